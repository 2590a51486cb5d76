# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Local POSIX users in bulk. Private to the gpuops.tenancy collection.

Each user has a group of the same name and number. Numbers are given, or taken from a range; an account below the
range belongs to the system and is never touched.
"""

from __future__ import annotations

import contextlib
import dataclasses
import grp
import pwd
import re
import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils._plan import ADD, CHANGE, Change, Plan

NAME = re.compile(r"^[a-z0-9][a-z0-9._-]{0,31}$")
SHELL = "/bin/bash"
UNKNOWN = "user {} is unknown here; create it in the directory first, or check nsswitch.conf"
# What useradd would accept and passwd(5) would not survive.
_UNSAFE = re.compile(r"[:\n\r\0,=]")


class UsersError(Exception):
    """The users cannot be had as asked; nothing was touched. ``problems``: one sentence each."""

    def __init__(self, problems: t.Sequence[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = list(problems)


@dataclasses.dataclass(frozen=True)
class User:
    """One passwd entry. ``uid`` and ``gid`` are -1 until a number is chosen."""

    name: str
    uid: int = -1
    gid: int = -1
    gecos: str = ""
    home: str = ""
    shell: str = ""


@dataclasses.dataclass(frozen=True)
class Accounts:
    """What the host knows, through NSS: users and groups among the wanted names, and every number in use."""

    users: t.Mapping[str, User]
    groups: t.Mapping[str, int]
    uids: t.Mapping[int, str]
    gids: t.Mapping[int, str]


def read(names: t.Iterable[str]) -> Accounts:
    """Ask NSS for the names and for all numbers it enumerates."""
    users, groups = {}, {}
    for name in names:
        with contextlib.suppress(KeyError):
            entry = pwd.getpwnam(name)
            users[name] = User(entry.pw_name, entry.pw_uid, entry.pw_gid, entry.pw_gecos, entry.pw_dir, entry.pw_shell)
        with contextlib.suppress(KeyError):
            groups[name] = grp.getgrnam(name).gr_gid
    return Accounts(
        users,
        groups,
        {entry.pw_uid: entry.pw_name for entry in pwd.getpwall()},
        {entry.gr_gid: entry.gr_name for entry in grp.getgrall()},
    )


def plan(
    current: Accounts, wanted: t.Sequence[User], uid_min: int, uid_max: int, create: bool
) -> tuple[Plan, list[User]]:
    """Pure: what to add or change, and the wanted users with their numbers.

    :param create: whether missing users may be created; else they are an error.
    :raises UsersError: all problems at once.
    """
    check_names([user.name for user in wanted])
    problems = [problem for user in wanted for problem in _unsound(user)]
    if problems:
        raise UsersError(problems)
    changes = Plan()
    result = []
    taken = set(current.uids) | set(current.gids) | {user.uid for user in wanted}
    for user in wanted:
        there = current.users.get(user.name)
        if there is not None:
            problems += _conflicts(there, user, uid_min)
            result.append(there)
            if create:
                _plan_changes(changes, there, user)
            continue
        if not create:
            problems.append(UNKNOWN.format(user.name))
            continue
        # A group without its user is what a run leaves that was killed between the two: its number is the user's.
        group = current.groups.get(user.name)
        number = user.uid if user.uid >= 0 or group is None else group
        if number < 0:
            number = next((free for free in range(uid_min, uid_max + 1) if free not in taken), -1)
            if number < 0:
                problems.append(f"no free number for {user.name} between {uid_min} and {uid_max}; widen the range")
                continue
            taken.add(number)
        if group is not None and group != number:
            problems.append(
                f"group {user.name} has gid {group} here and {number} elsewhere; remove or renumber the group"
            )
        holder = current.uids.get(number) or current.gids.get(number)
        if holder and not (number not in current.uids and group == number):
            problems.append(
                f"number {number} of {user.name} belongs to {holder} here; give {user.name} another one on all hosts"
            )
        if not uid_min <= number <= uid_max:
            problems.append(f"number {number} of {user.name} is outside {uid_min} to {uid_max}; take one of the range")
        new = dataclasses.replace(
            user, uid=number, gid=number, gecos=user.gecos or user.name, shell=user.shell or SHELL
        )
        result.append(new)
        _plan_add(changes, new, group is None)
    if problems:
        raise UsersError(problems)
    return changes, result


def commands(changes: Plan, users: t.Sequence[User], create_home: bool) -> list[list[str]]:
    """Pure: argument lists that carry out a plan."""
    by_name = {user.name: user for user in users}
    argvs = []
    for change in changes:
        kind, name = change.object.split(" ", 1)
        user = by_name[name]
        if kind == "group" and not change.field:
            argvs.append(["groupadd", "--gid", str(user.gid), name])
        elif kind == "user" and not change.field:
            argvs.append(
                [
                    "useradd",
                    "--uid",
                    str(user.uid),
                    "--gid",
                    str(user.gid),
                    "--comment",
                    user.gecos,
                    "--home-dir",
                    user.home,
                    "--shell",
                    user.shell,
                    "--create-home" if create_home else "--no-create-home",
                    "--key",
                    "HOME_MODE=0700",
                    name,
                ]
            )
        elif change.kind == CHANGE:
            option = {"gecos": "--comment", "shell": "--shell"}[change.field]
            argvs.append(["usermod", option, change.after, name])
    return argvs


def check_names(names: t.Sequence[str]) -> None:
    """Pure.

    :raises UsersError: all problems at once.
    """
    problems = [
        f"user name {name!r} is refused: lower case letters, digits, '.', '_' and '-', not digits alone, at most 32"
        for name in names
        if not NAME.match(name) or name.isdigit()
    ]
    if len(set(names)) != len(names):
        problems.append("a user is named twice; give each name once")
    if problems:
        raise UsersError(problems)


def _unsound(user: User) -> list[str]:
    found = []
    for field in ("gecos", "home", "shell"):
        if _UNSAFE.search(getattr(user, field)):
            found.append(f"{field} of {user.name} contains ':', ',', '=' or a line break; take it out")
    return found


def _conflicts(there: User, user: User, uid_min: int) -> list[str]:
    if there.uid < uid_min:
        return [
            f"{user.name} is a system account here (uid {there.uid}, below {uid_min}); a tenant's user needs another name"
        ]
    if user.uid >= 0 and there.uid != user.uid:
        return [
            f"{user.name} has uid {there.uid} here and {user.uid} elsewhere; make the numbers equal before anything is onboarded"
        ]
    return []


def _plan_add(changes: Plan, user: User, group: bool) -> None:
    if group:
        changes.add(Change(ADD, f"group {user.name}"))
        changes.add(Change(ADD, f"group {user.name}", "gid", None, user.gid))
    name = f"user {user.name}"
    changes.add(Change(ADD, name))
    for field in ("uid", "gid", "gecos", "home", "shell"):
        changes.add(Change(ADD, name, field, None, getattr(user, field)))


def _plan_changes(changes: Plan, there: User, user: User) -> None:
    for field in ("gecos", "shell"):
        before, after = getattr(there, field), getattr(user, field)
        if after and before != after:
            changes.add(Change(CHANGE, f"user {user.name}", field, before, after))
