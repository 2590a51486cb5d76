# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the arguments of the accounting modules refer to must exist. Pure; private to the gpuops.tenancy collection."""

from __future__ import annotations

import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import fields, tres
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.desired import Desired
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.model import Key, State, label
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.scope import Scope


def dangling(state: State, desired: Desired, scope: Scope) -> list[str]:
    """A problem for each reference to what is not there."""
    look = _Look(state, desired, scope)
    look.references()
    return look.problems


class _Look:
    def __init__(self, state: State, desired: Desired, scope: Scope) -> None:
        self.state = state
        self.desired = desired
        self.scope = scope
        self.problems: list[str] = []

    def references(self) -> None:
        for key, given in self.desired.rows().items():
            self.known_qos(key, given)
            self.known_fields(key, given)
            for field in fields.ASSOCIATION:
                if field.type == fields.TRES and given.get(field.option):
                    self.known_tres(key, field, given[field.option])
            if key[1] and key[0] not in self.scope.inside:
                self.problems.append(self.outside(key))
        for account in self.desired.accounts.values():
            self.known_fields((account.name, "", ""), account.record)
            there = self.state.accounts.get(account.name)
            stays = account.record.get("users_are_coordinators", there is not None and there.users_are_coordinators)
            if stays and account.coordinators is not None:
                self.problems.append(
                    f"account {account.name}: all its users are coordinators by users_are_coordinators; "
                    "set that to false, or leave coordinators out"
                )
            for who in sorted(account.coordinators or ()):
                if who not in self.state.users and who not in self.desired.users:
                    self.problems.append(
                        f"account {account.name}: coordinator {who} is no user in Slurm; add the user first"
                    )

    def known_fields(self, key: Key, given: t.Mapping[str, t.Any]) -> None:
        problems = fields.missing(fields.BY_OPTION, given, self.state.version)
        self.problems += [f"{label(key)}: {problem}" for problem in problems]

    def known_qos(self, key: Key, given: t.Mapping[str, t.Any]) -> None:
        default = given.get("default_qos")
        names = set(given.get("qos") or ()) | ({default} if default else set())
        for name in sorted(names - self.state.qos):
            self.problems.append(
                f"{label(key)}: QOS {name} does not exist; the site has {', '.join(sorted(self.state.qos))}"
            )

    def known_tres(self, key: Key, field: fields.Field, given: t.Mapping[str, int]) -> None:
        for name in tres.unknown(given, self.state.tres):
            hint = "name it in AccountingStorageTRES of slurm.conf"
            if f"gres/{name}" in self.state.tres:
                hint = f"write gres/{name}"
            self.problems.append(f"{label(key)}: {field.option} names {name}, which slurmdbd does not track; {hint}")

    def outside(self, key: Key) -> str:
        account = key[0]
        if account in self.scope.before:
            return f"{label(key)}: account {account} is outside {self.scope.text}; add it to scope, or leave it out"
        return f"{label(key)}: account {account} does not exist and is not among the accounts; correct the name"
