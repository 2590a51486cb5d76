# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Accounting as plain data, in normal form. Pure; private to the gpuops.tenancy collection."""

from __future__ import annotations

import dataclasses
import typing as t

ROOT = "root"

# (account, user, partition); user is empty for the row of the account itself.
Key = tuple[str, str, str]


@dataclasses.dataclass
class Association:
    """One row. ``values`` holds what is set on the row itself, by option name, not what it inherits.

    ``values["qos"]`` is empty where the row inherits, and has names with + or - where somebody stored a difference to
    the parent's list: that is no list of its own and never equals a wanted one.
    """

    account: str
    user: str = ""
    partition: str = ""
    parent: str = ""
    values: dict[str, t.Any] = dataclasses.field(default_factory=dict)
    effective_qos: frozenset[str] = frozenset()
    # The path that the database has for it, see lineage.py; empty before 23.11.
    lineage: str = ""

    @property
    def key(self) -> Key:
        return (self.account, self.user, self.partition)


@dataclasses.dataclass
class Account:
    """The record of the whole database. Coordinators are listed as Slurm lists them: those of ancestors included."""

    name: str
    description: str = ""
    organization: str = ""
    coordinators: frozenset[str] = frozenset()
    users_are_coordinators: bool = False


@dataclasses.dataclass
class User:
    name: str
    default_account: str = ""
    admin_level: str = "none"
    default_wckey: str = ""
    wckeys: frozenset[str] = frozenset()


@dataclasses.dataclass
class State:
    cluster: str
    version: tuple[int, int] = (24, 11)
    accounts: dict[str, Account] = dataclasses.field(default_factory=dict)
    users: dict[str, User] = dataclasses.field(default_factory=dict)
    associations: dict[Key, Association] = dataclasses.field(default_factory=dict)
    qos: frozenset[str] = frozenset()
    tres: frozenset[str] = frozenset()
    # Texts that could not be told apart, because somebody's holds a line break.
    unread: tuple[str, ...] = ()

    def account_row(self, name: str) -> Association | None:
        return self.associations.get((name, "", ""))

    def parents(self) -> dict[str, str]:
        return {row.account: row.parent for row in self.associations.values() if not row.user}

    def copy(self) -> State:
        return dataclasses.replace(
            self,
            accounts={name: dataclasses.replace(item) for name, item in self.accounts.items()},
            users={name: dataclasses.replace(item) for name, item in self.users.items()},
            associations={
                key: dataclasses.replace(row, values=dict(row.values)) for key, row in self.associations.items()
            },
        )


def label(key: Key) -> str:
    """How messages, plan and diff name a row."""
    account, user, partition = key
    if not user:
        return f"account {account}"
    return f"user {user} in {account}" + (f" partition {partition}" if partition else "")


def chain(name: str, parents: t.Mapping[str, str]) -> list[str]:
    """The account and its ancestors, upwards; ends at a loop or at an unknown parent."""
    found: list[str] = []
    while name and name not in found:
        found.append(name)
        name = parents.get(name, "")
    return found


def children(parents: t.Mapping[str, str]) -> dict[str, list[str]]:
    below: dict[str, list[str]] = {}
    for name in sorted(parents):
        if parents[name]:
            below.setdefault(parents[name], []).append(name)
    return below


def subtree(root: str, below: t.Mapping[str, t.Sequence[str]]) -> list[str]:
    """The account and everything below it, parents first."""
    found: list[str] = []
    seen: set[str] = set()
    todo = [root]
    while todo:
        name = todo.pop()
        if name in seen:
            continue
        seen.add(name)
        found.append(name)
        todo.extend(reversed(below.get(name, ())))
    return found


def depths(parents: t.Mapping[str, str]) -> dict[str, int]:
    known: dict[str, int] = {}
    for name in parents:
        path = []
        while name and name not in known and name not in path:
            path.append(name)
            name = parents.get(name, "")
        depth = known.get(name, -1)
        for item in reversed(path):
            depth += 1
            known[item] = depth
    return known
