# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module arguments to wanted state: flat, folded, normalised, checked as far as the arguments alone allow.

Pure; private to the gpuops.tenancy collection.
"""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import fields, values
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.model import ROOT, Key, label

Items = list[dict[str, t.Any]]


class Refused(Exception):
    """What is wanted cannot or must not be done; nothing was changed. One line per problem."""

    def __init__(self, problems: t.Sequence[str], details: dict[str, t.Any] | None = None) -> None:
        super().__init__("\n".join(problems))
        self.problems = list(problems)
        # What a module passes on.
        self.details = details or {}


@dataclasses.dataclass
class WantedAccount:
    name: str
    parent: str
    values: dict[str, t.Any] = dataclasses.field(default_factory=dict)
    record: dict[str, t.Any] = dataclasses.field(default_factory=dict)
    coordinators: frozenset[str] | None = None


@dataclasses.dataclass
class WantedUser:
    name: str
    default_account: str | None = None
    record: dict[str, t.Any] = dataclasses.field(default_factory=dict)
    rows: dict[Key, dict[str, t.Any]] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class Desired:
    scope: tuple[str, ...]
    accounts: dict[str, WantedAccount] = dataclasses.field(default_factory=dict)
    users: dict[str, WantedUser] = dataclasses.field(default_factory=dict)
    exclusive: bool = False
    # To go, with all that is below: (account, "", ""), or ("", user, "") for the user's rows in scope.
    absent: frozenset[Key] = frozenset()
    max_removals: int = 0
    # Of the accounts and associations in scope.
    max_removal_share: float = 1.0
    block_qos: str = "blocked"
    # On record as blocked, wherever they turn up.
    blocked_users: frozenset[str] = frozenset()
    blocked_accounts: frozenset[str] = frozenset()
    warnings: list[str] = dataclasses.field(default_factory=list)

    def rows(self) -> dict[Key, dict[str, t.Any]]:
        """What is wanted of each association, those of accounts included."""
        found = {(name, "", ""): account.values for name, account in self.accounts.items()}
        for user in self.users.values():
            found.update(user.rows)
        return found


def build(params: t.Mapping[str, t.Any]) -> Desired:
    """From the arguments of slurm_accounting. Reports every problem at once."""
    return _Builder().build(params)


def named(params: t.Mapping[str, t.Any], plural: str, kind: str, one: t.Iterable[str]) -> Items:
    """The objects of the arguments, with their names folded."""
    items = params.get(plural)
    if items is None:
        items = [{"name": params["name"], **{option: params.get(option) for option in one}}]
    problems, found = [], []
    for item in items:
        try:
            name = values.check_name(kind, item["name"])
        except values.ValueProblem as exc:
            problems.append(str(exc))
            continue
        if name == ROOT and kind != "QOS":
            problems.append(f"{kind} root belongs to Slurm and cannot be managed; leave it out")
        found.append({**item, "name": name})
    if not items and kind != "QOS":
        problems.append(f"{plural} is empty: name at least one {kind}")
    if problems:
        raise Refused(problems)
    return found


class _Builder:
    def __init__(self) -> None:
        self.problems: list[str] = []
        self.warnings: list[str] = []

    def build(self, params: t.Mapping[str, t.Any]) -> Desired:
        desired = Desired(
            scope=tuple(dict.fromkeys(self.name("scope account", name) for name in params["scope"])),
            exclusive=bool(params.get("exclusive")),
            max_removals=int(params.get("max_removals") or 0),
            max_removal_share=float(1 if params.get("max_removal_share") is None else params["max_removal_share"]),
            block_qos=self.name("QOS", params.get("block_qos") or "blocked"),
        )
        if not desired.scope:
            self.problems.append("scope is empty: name the accounts below which this run may change anything")
        if desired.max_removals < 0:
            self.problems.append(f"max_removals is {desired.max_removals}: give 0 or a larger number")
        if not 0 <= desired.max_removal_share <= 1:
            self.problems.append(f"max_removal_share is {desired.max_removal_share:g}: give a number from 0 to 1")
        for item in params.get("accounts") or []:
            self.account(desired, item, "")
        for item in params.get("users") or []:
            self.user(desired, item)
        if desired.exclusive and not desired.accounts and not desired.users:
            self.problems.append(
                "exclusive is true and neither accounts nor users are named: that would remove everything in scope; "
                "name what stays"
            )
        if self.problems:
            raise Refused(self.problems)
        desired.warnings = self.warnings
        return desired

    def name(self, kind: str, name: t.Any) -> str:
        try:
            folded = values.check_name(kind, name)
        except values.ValueProblem as exc:
            self.problems.append(str(exc))
            return ""
        if folded != name:
            self.warnings.append(f"{kind} {name} is written {folded} in Slurm, which knows lower case only")
        return folded

    def account(self, desired: Desired, item: t.Mapping[str, t.Any], enclosing: str) -> None:
        name = self.name("account", item.get("name"))
        parent = self.name("account", item["parent"]) if item.get("parent") else ""
        if enclosing and parent and parent != enclosing:
            self.problems.append(
                f"account {name}: it is written inside {enclosing} but names the parent {parent}; remove one of them"
            )
        if name == ROOT:
            self.problems.append("account root belongs to Slurm and cannot be managed; leave it out")
        if name and name in desired.accounts:
            self.problems.append(f"account {name} is named twice; join the two entries")
        wanted = WantedAccount(name, parent or enclosing or ROOT, self.values(f"account {name}", item))
        for field in fields.RECORD:
            if item.get(field.option) is not None:
                self.store(wanted.record, f"account {name}", field, item[field.option])
        if item.get("coordinators") is not None:
            wanted.coordinators = frozenset(self.name("coordinator", who) for who in item["coordinators"])
            if wanted.record.get("users_are_coordinators"):
                self.problems.append(
                    f"account {name}: users_are_coordinators makes coordinators of all its users; leave coordinators out"
                )
        if name:
            desired.accounts.setdefault(name, wanted)
        for child in item.get("accounts") or []:
            self.account(desired, child, name)

    def user(self, desired: Desired, item: t.Mapping[str, t.Any]) -> None:
        name = self.name("user", item.get("name"))
        if name == ROOT:
            self.problems.append("user root administers Slurm and cannot be a tenant's user; leave it out")
        if name and name in desired.users:
            self.problems.append(f"user {name} is named twice; join the two entries")
        wanted = WantedUser(name)
        for field in fields.USER:
            if item.get(field.option) is not None:
                self.store(wanted.record, f"user {name}", field, item[field.option])
        for row in item.get("associations") or []:
            account = self.name("account", row.get("account"))
            partition = self.name("partition", row["partition"]) if row.get("partition") else ""
            key = (account, name, partition)
            if account == ROOT:
                self.problems.append(
                    f"user {name}: account root is Slurm's own; associate the user with a tenant's account"
                )
            if key in wanted.rows:
                self.problems.append(f"{label(key)} is listed twice; join the two entries")
            wanted.rows[key] = self.values(label(key), row)
        if not wanted.rows:
            self.problems.append(
                f"user {name} names no association: to remove a user, leave the user out and set exclusive and max_removals"
            )
        if item.get("default_account"):
            wanted.default_account = self.name("account", item["default_account"])
        if name:
            desired.users.setdefault(name, wanted)

    def values(self, what: str, item: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
        found: dict[str, t.Any] = {}
        for field in fields.ASSOCIATION:
            if item.get(field.option) is not None:
                self.store(found, what, field, item[field.option])
        return found

    def store(self, target: dict[str, t.Any], what: str, field: fields.Field, value: t.Any) -> None:
        try:
            target[field.option] = values.from_option(field, value)
        except values.ValueProblem as exc:
            self.problems.append(f"{what}: {exc}")
