# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules on tenant, teams and users that a schema cannot state. Private to the collection gpuops.tenancy."""

from __future__ import annotations

from collections.abc import Iterator

from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant import names
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.errors import Path, Problem, listed
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.outline import Member, Outline, stem, strings

# What concerns the person, not the membership: written in any one of the user's entries.
PERSON = ("default_account", "home", "member_of", "full_name", "email", "ssh_keys")
# What only the home tenant may say.
HOME_ONLY = ("default_account", "member_of", "full_name", "email", "ssh_keys")


def problems(doc: Outline, policy: names.Policy) -> Iterator[Problem]:
    yield from _names(doc, policy)
    yield from _accounts(doc)
    for user, entries in doc.by_user.items():
        yield from _entries(doc, entries)
        yield from _person(doc, entries)
        if doc.home(user) != doc.tenant:
            yield from _guest(doc, entries)
        else:
            yield from _default_account(doc, user, entries)
            if doc.tenant in strings(doc.stated(user, "member_of")):
                yield doc.source.problem(
                    _path_of(entries, "member_of"), "names this tenant itself; list other tenants, or remove the line"
                )


def _names(doc: Outline, policy: names.Policy) -> Iterator[Problem]:
    claimed = [(doc.tenant, ("name",), True)]
    claimed += [(team.name, team.name_path, True) for team in doc.teams]
    claimed += [(member.name, member.name_path, False) for member in doc.members]
    for name, path, account in claimed:
        length = names.ACCOUNT_LENGTH if account else names.USER_LENGTH
        if names.shape(name, length) is None:  # otherwise the schema check has said so
            why = names.refused(name, policy, account)
            if why:
                yield doc.source.problem(path, f"{doc.source.show(path, name)} {why}")


def _accounts(doc: Outline) -> Iterator[Problem]:
    name = doc.data.get("name")
    if name == doc.tenant and name != stem(doc.source.file):
        yield doc.source.problem(
            ("name",),
            "{} is not the name of the file; rename the file to {}, or change the name".format(
                doc.source.show(("name",), name), "NAME.yml" if doc.source.vaulted else name + ".yml"
            ),
        )
    seen = {}
    for team in doc.teams:
        shown = doc.source.show(team.name_path, team.name)
        if team.name == doc.tenant:
            yield doc.source.problem(
                team.name_path,
                f"{shown} is the tenant's own account; give the team a name of its own, or list its users at the top",
            )
        elif team.name in seen:
            line = doc.source.line(seen[team.name])
            yield doc.source.problem(team.name_path, f"{shown} is a team already (line {line}); join the two")
        seen.setdefault(team.name, team.name_path)


def _entries(doc: Outline, entries: list[Member]) -> Iterator[Problem]:
    seen: dict[tuple, Path] = {}
    for member in entries:
        place = (member.account, member.partition)
        if place in seen:
            line = doc.source.line(seen[place])
            shown = doc.source.show(member.name_path, member.name)
            yield doc.source.problem(member.path, f"{shown} is a member already (line {line}); keep one")
        seen.setdefault(place, member.name_path)


def _path_of(entries: list[Member], key: str) -> Path:
    return next(member.path + (key,) for member in entries if member.entry.get(key) is not None)


def _person(doc: Outline, entries: list[Member]) -> Iterator[Problem]:
    for key in PERSON:
        stating = [member for member in entries if member.entry.get(key) is not None]
        for member in stating[1:]:
            if member.entry[key] != stating[0].entry[key]:
                line = doc.source.line(stating[0].path + (key,))
                yield doc.source.problem(
                    member.path + (key,), f"contradicts line {line} for the same user; write it once"
                )


def _default_account(doc: Outline, user: str, entries: list[Member]) -> Iterator[Problem]:
    accounts = list(dict.fromkeys(member.account for member in entries))
    default = doc.stated(user, "default_account")
    if default is None:
        if len(accounts) > 1:
            path = entries[0].name_path
            shown, where, pick = doc.source.show(path, user), f" ({', '.join(accounts)})", accounts[0]
            if doc.source.vaulted:
                where, pick = "", "ACCOUNT"
            yield doc.source.problem(
                path,
                f"{shown} is in several accounts{where} without a default, so Slurm versions choose differently; add "
                f"'default_account: {pick}' to one of the entries",
            )
    elif default not in accounts:
        path = _path_of(entries, "default_account")
        fix = "an account of the user" if doc.source.secret(path) else listed(accounts)
        yield doc.source.problem(path, f"{doc.source.show(path, default)} is not an account of this user; write {fix}")


def _guest(doc: Outline, entries: list[Member]) -> Iterator[Problem]:
    for member in entries:
        for key in HOME_ONLY:
            if member.entry.get(key) is not None:
                yield doc.source.problem(member.path + (key,), "is set by the user's home tenant only; remove it here")
