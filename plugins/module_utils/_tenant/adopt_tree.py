# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Slurm's accounts as tenants, teams and what is neither. Pure; private to the collection gpuops.tenancy."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant import names
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.adopt_findings import LEFT, Finding, Key, label
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.outline import Outline

ROOT = "root"


@dataclass(frozen=True)
class Options:
    policy: names.Policy
    include: frozenset[str] = frozenset()  # empty: all
    exclude: frozenset[str] = frozenset()
    # login name -> {uid, gecos} of those whom the host knows; None: nobody asked
    posix: dict | None = None
    uid_min: int = 0
    uid_max: int = 2**32


@dataclass
class Refusals:
    """What the checks of documents refused in an earlier draft: object -> (why, fix)."""

    tenants: dict[str, tuple[str, str]] = field(default_factory=dict)
    accounts: dict[str, tuple[str, str]] = field(default_factory=dict)
    users: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict)  # (tenant, user)

    def __len__(self) -> int:
        return len(self.tenants) + len(self.accounts) + len(self.users)


class Tree:
    """`tenants`: accounts that get a document; `home_of`: account -> tenant, for what a document can name."""

    def __init__(self, survey: dict, options: Options, existing: dict[str, Outline], refused: Refusals) -> None:
        self.options = options
        self.existing = existing
        self.refused = refused
        self.findings: list[Finding] = []
        self.accounts = {one["name"]: one for one in survey["accounts"]}
        self.users = {one["name"]: one for one in survey["users"]}
        self.below: dict[str, list[str]] = {}
        self.top: dict[str, str] = {}
        for one in survey["accounts"]:
            self.below.setdefault(one["parent"], []).append(one["name"])
            self.top[one["name"]] = one["name"] if one["parent"] == ROOT else self.top.get(one["parent"], "")
        self.rows: dict[str, list[Key]] = {}
        for user in survey["users"]:
            for row in user["associations"]:
                self.rows.setdefault(row["account"], []).append((row["account"], user["name"], row["partition"]))
        self.tenants = [name for name in self.below.get(ROOT, []) if name not in existing and self._is_tenant(name)]
        self.home_of: dict[str, str] = {}
        for tenant in self.tenants:
            self._accounts_of(tenant)

    def _is_tenant(self, name: str) -> bool:
        policy = self.options.policy
        if name == policy.platform_account:
            why, fix = "the operators' own subtree is never part of a tenant", "nothing"
        elif name in self.options.exclude:
            why, fix = "adopt_exclude names it", "nothing, or take it off the list"
        elif self.options.include and name not in self.options.include:
            why, fix = "adopt_include names others only", "nothing, or add it to the list"
        elif name in self.refused.tenants:
            why, fix = self.refused.tenants[name]
        else:
            return True
        self._leave_subtree(name, why, fix)
        return False

    def _accounts_of(self, tenant: str) -> None:
        self.home_of[tenant] = tenant
        for team in self.below.get(tenant, []):
            if team in self.refused.accounts:
                self._leave_subtree(team, *self.refused.accounts[team])
                continue
            self.home_of[team] = tenant
            for deep in self.below.get(team, []):
                self._leave_subtree(
                    deep,
                    "a document has a tenant, its teams and their users, and this is below a team",
                    f"move it up (sacctmgr modify account where name=NAME cluster=CLUSTER set parent={tenant}), or keep "
                    "it by hand",
                )

    def _leave_subtree(self, name: str, why: str, fix: str) -> None:
        inside = list(self._subtree(name))
        rows = [key for one in inside for key in self.rows.get(one, [])]
        value = f"{len(inside)} account(s), {len(rows)} association(s) of users" if rows or len(inside) > 1 else ""
        covers = frozenset([*((one, "", "") for one in inside), *rows])
        self.findings.append(Finding(LEFT, label((name, "", "")), why, fix, "", value, covers, name, name))

    def _subtree(self, name: str) -> Iterable[str]:
        yield name
        for child in self.below.get(name, []):
            yield from self._subtree(child)
