# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Groups of users that a daemon goes by. Pure but for ``read``; private to the gpuops.tenancy collection."""

from __future__ import annotations

import contextlib
import dataclasses
import grp
import os
import pwd
import re
import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils._plan import ADD, CHANGE, Change, Plan

NAME = re.compile(r"^[a-z_][a-z0-9_.-]{0,31}$")
# Below are the system's groups.
LOWEST = 1000
LOCAL = "/etc/group"


class GroupsError(Exception):
    """The groups cannot be had as asked; nothing was touched. ``problems``: one sentence each."""

    def __init__(self, problems: t.Sequence[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = list(problems)


@dataclasses.dataclass(frozen=True)
class Wanted:
    """``members`` are in it, ``without`` are not; with ``exact`` nobody else is either."""

    name: str
    members: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    exact: bool = False


@dataclasses.dataclass(frozen=True)
class Host:
    """What this host knows. ``listed``: local group -> names in its line; ``gids``: group -> number, through NSS;
    ``effective``: known user -> numbers of all groups, the primary one included."""

    listed: t.Mapping[str, tuple[str, ...]]
    gids: t.Mapping[str, int]
    effective: t.Mapping[str, frozenset[int]]


def read(wanted: t.Iterable[Wanted], local: str = LOCAL) -> Host:
    listed: dict[str, tuple[str, ...]] = {}
    with open(local, encoding="utf-8", errors="surrogateescape") as handle:
        for row in handle:
            words = row.rstrip("\n").split(":")
            if len(words) == 4:
                listed[words[0]] = tuple(name for name in words[3].split(",") if name)
    gids: dict[str, int] = {}
    effective: dict[str, frozenset[int]] = {}
    for group in wanted:
        with contextlib.suppress(KeyError):
            gids[group.name] = grp.getgrnam(group.name).gr_gid
        for name in [*group.members, *group.without, *listed.get(group.name, ())]:
            try:
                user = pwd.getpwnam(name)
            except KeyError:
                continue
            effective[name] = frozenset(os.getgrouplist(name, user.pw_gid))
    return Host(listed, gids, effective)


def plan(host: Host, wanted: t.Sequence[Wanted], create: bool) -> tuple[Plan, dict[str, list[str]]]:
    """The changes, and for each group that changes who is in it afterwards. Users that the host does not know yet are left out.

    :param create: whether the groups are ours to change; else what differs is a problem for whoever runs the directory.
    """
    problems: list[str] = []
    changes = Plan()
    after: dict[str, list[str]] = {}
    for group in wanted:
        problems += refused(group, host)
        both = sorted(set(group.members) & set(group.without))
        if both:
            problems.append(f"group {group.name} is to have and not to have {', '.join(both)}")
    if problems:
        raise GroupsError(problems)
    for group in wanted:
        gid = host.gids.get(group.name)
        known = [name for name in group.members if name in host.effective]
        if gid is None and not create:
            problems.append(f"there is no group {group.name} here; create it in the directory, or check nsswitch.conf")
            continue
        inside = {name for name, groups in host.effective.items() if gid is not None and gid in groups}
        missing = [name for name in known if name not in inside]
        there = host.listed.get(group.name, ())
        extra = [name for name in group.without if name in inside]
        if group.exact:
            extra += [name for name in there if name not in group.members and name not in extra]
        if not create:
            problems += [f"{name} is not in group {group.name}; add the user in the directory" for name in missing]
            problems += [f"{name} is in group {group.name}; remove the user in the directory" for name in extra]
            continue
        stuck = [name for name in extra if name not in there]
        problems += [
            f"{name} is in group {group.name} by the directory or as the primary group; take the user out there"
            for name in stuck
        ]
        if gid is None:
            changes.add(Change(ADD, f"group {group.name}"))
        if missing or extra:
            now = sorted((set(there) | set(missing)) - set(extra))
            changes.add(Change(CHANGE, f"group {group.name}", "members", sorted(there), now))
            after[group.name] = now
    if problems:
        raise GroupsError(problems)
    return changes, after


def refused(group: Wanted, host: Host) -> list[str]:
    if not NAME.match(group.name):
        return [f"{group.name!r} is no name for a group; at most 32 of a-z, 0-9, '_', '-' and '.'"]
    gid = host.gids.get(group.name)
    if gid is not None and gid < LOWEST:
        return [f"group {group.name} has number {gid}, which is one of the system's; choose another name"]
    return []


def commands(changes: Plan, after: t.Mapping[str, t.Sequence[str]]) -> list[list[str]]:
    """One for each group that is new, one for each whose members change. Pure."""
    added = [change.object.partition(" ")[2] for change in changes if change.kind == ADD]
    argvs = [["groupadd", name] for name in added]
    return argvs + [["gpasswd", "-M", ",".join(names), name] for name, names in after.items()]
