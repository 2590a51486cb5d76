# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""plan(state, desired) -> changes. Pure; private to the gpuops.tenancy collection.

Refuses before anything is changed; every problem is reported at once.
"""

from __future__ import annotations

import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils._plan import ADD, CHANGE, REMOVE
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import fields, lineage, qos
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.changes import (
    COORDINATORS,
    DEFAULT_ACCOUNT,
    PARENT,
    AccountingPlan,
    field_change,
    named_change,
    row_change,
)
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.desired import Desired, Refused
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.model import Key, State, depths, label
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.references import dangling
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.removals import Removals, some
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.scope import Scope

_QOS_OPTIONS = ("qos", "default_qos")


def make_plan(state: State, desired: Desired) -> AccountingPlan:
    scope = Scope(state, desired)
    if scope.problems:
        raise Refused(scope.problems)
    return _Planner(state, desired, scope).run()


class _Planner:
    def __init__(self, state: State, desired: Desired, scope: Scope) -> None:
        self.state = state
        self.desired = desired
        self.scope = scope
        self.block = frozenset((desired.block_qos,))
        self.plan = AccountingPlan()
        self.plan.warnings = list(desired.warnings)
        self.problems: list[str] = []
        self.wanted = desired.rows()
        self.rows = {key: row for key, row in state.associations.items() if not key[1] or key[0] in scope.now}
        self.in_scope = sorted(key for key in self.rows if key[1] and key[0] in scope.now)
        self.by_user: dict[str, list[Key]] = {}
        for key in self.in_scope:
            self.by_user.setdefault(key[1], []).append(key)
        # As the rows will be, blocks included; filled from above while the changes are planned.
        self.overlay = qos.Tree(scope.parents, {key: self.own(key) for key in self.rows}, self.fixed_lists())

    def run(self) -> AccountingPlan:
        removals = Removals(self.state, self.desired, self.scope, self.in_scope)
        removed = removals.going()
        self.plan.unmanaged = removals.unmanaged
        self.problems += dangling(self.state, self.desired, self.scope) + removals.problems
        self.default_fits(removed)
        if self.problems:
            raise Refused(self.problems, {"removals": removals.too_many} if removals.too_many else {})
        self.warn_of_paths()
        self.accounts()
        self.users()
        self.coordinators()
        self.default_accounts(removed)
        for key in removed:
            self.plan.add(row_change(REMOVE, key))
        return self.plan

    def warn_of_paths(self) -> None:
        stale = [label(key) for key in lineage.outdated(self.state) if key[0] in self.scope.now]
        if stale:
            self.plan.warnings.append(
                f"Slurm has old paths of {some(stale)}; see 'Paths that are out of date' in docs/accounting.md"
            )

    # QOS

    def default_fits(self, removed: t.Sequence[Key]) -> None:
        """As the arguments want it, blocks aside: a default outside its list is refused whether blocked or not."""
        gone = set(removed)
        rows = {key: self.own(key) for key in self.rows if key not in gone}
        fixed = self.fixed_lists()
        for key, given in self.wanted.items():
            own, default = rows.get(key, (frozenset(), None))
            if "qos" in given:
                own = given["qos"]
                fixed.pop(key, None)
                # The default that came with a block goes with it.
                default = None if default == self.desired.block_qos else default
            rows[key] = (own, given.get("default_qos", default))
        final = qos.Tree(self.scope.parents, rows, fixed)
        now = qos.Tree(self.scope.before, {key: self.own(key) for key in self.rows}, self.fixed_lists())
        for key in sorted(rows):
            if final.fits(key) or final.listed(key) == self.block or self.stays_blocked(key, final.default(key)):
                continue
            if key in self.wanted or now.fits(key):
                self.problems.append(
                    f"{label(key)}: default QOS {final.default(key)} is not in its list "
                    f"({', '.join(sorted(final.listed(key))) or 'empty'}); add it to qos, or choose another default_qos"
                )

    def stays_blocked(self, key: Key, default: str | None) -> bool:
        """The default is a block's that the row is under or, being new, comes under: its own list waits with it."""
        above = self.overlay.above(key)
        under = self.is_blocked(key) or (
            key not in self.rows and above is not None and self.overlay.listed(above) == self.block
        )
        return default == self.desired.block_qos and under

    def own(self, key: Key) -> tuple[frozenset[str], str | None]:
        given = self.rows[key].values
        return given.get("qos", frozenset()), given.get("default_qos")

    def fixed_lists(self) -> dict[Key, frozenset[str]]:
        """Rows that hold a difference instead of a list."""
        return {
            key: row.effective_qos
            for key, row in self.rows.items()
            if any(name[0] in "+-" for name in row.values.get("qos", ()))
        }

    def is_blocked(self, key: Key) -> bool:
        """In effect, by its own list or by inheritance."""
        row = self.rows.get(key)
        return row is not None and row.effective_qos == self.block

    # Changes

    def accounts(self) -> None:
        depth = depths(self.scope.parents)
        for name in sorted(self.desired.accounts, key=lambda item: (depth[item], item)):
            account = self.desired.accounts[name]
            key = (name, "", "")
            above_blocked = self.overlay.listed((account.parent, "", "")) == self.block
            row = self.rows.get(key)
            if row is None:
                self.plan.add(row_change(ADD, key))
                self.plan.add(named_change(ADD, label(key), key, PARENT, None, account.parent))
                self.new_row(key, account.values, above_blocked or name in self.desired.blocked_accounts)
            else:
                if row.parent != account.parent:
                    self.plan.add(named_change(CHANGE, label(key), key, PARENT, row.parent, account.parent))
                self.changed_row(key, account.values, keep_block=not above_blocked)
            self.record(name, account.record)

    def users(self) -> None:
        for user in sorted(self.desired.users):
            mine = self.by_user.get(user, [])
            blocked = user in self.desired.blocked_users or (bool(mine) and all(self.is_blocked(key) for key in mine))
            for key, given in sorted(self.desired.users[user].rows.items()):
                if key in self.rows:
                    self.changed_row(key, given, keep_block=self.overlay.listed((key[0], "", "")) != self.block)
                    continue
                self.plan.add(row_change(ADD, key))
                self.new_row(key, given, blocked or self.overlay.listed((key[0], "", "")) == self.block)
            self.user_record(user, self.desired.users[user].record)

    def new_row(self, key: Key, given: t.Mapping[str, t.Any], blocked: bool) -> None:
        wanted = dict(given)
        if blocked:
            wanted.update(qos=self.block, default_qos=self.desired.block_qos)
            self.plan.blocked.append(label(key))
        for field in fields.ASSOCIATION:
            value = wanted.get(field.option, field.unset)
            if value != field.unset:
                self.plan.add(field_change(ADD, key, field, None, value))
        self.overlay.rows[key] = (wanted.get("qos", frozenset()), wanted.get("default_qos"))

    def changed_row(self, key: Key, given: t.Mapping[str, t.Any], keep_block: bool) -> None:
        row = self.rows[key]
        wanted = dict(given)
        if self.is_blocked(key):
            self.plan.blocked.append(label(key))
            for option in _QOS_OPTIONS:
                wanted.pop(option, None)
            if keep_block and not row.values.get("qos"):
                # It was blocked by an account that it leaves: the block goes with it.
                wanted.update(qos=self.block, default_qos=self.desired.block_qos)
        for field in fields.ASSOCIATION:
            was = row.values.get(field.option, field.unset)
            if field.option in wanted and wanted[field.option] != was:
                self.plan.add(field_change(CHANGE, key, field, was, wanted[field.option]))
        change = {option: wanted[option] for option in _QOS_OPTIONS if option in wanted}
        self.overlay.set(key, change)

    def user_record(self, name: str, given: t.Mapping[str, t.Any]) -> None:
        there = self.state.users.get(name)
        for option, will in given.items():
            field = fields.BY_OPTION[option]
            was = getattr(there, option) if there else field.unset
            if was != will:
                self.plan.add(field_change(CHANGE if there else ADD, ("", name, ""), field, was, will))

    def record(self, name: str, given: t.Mapping[str, t.Any]) -> None:
        there = self.state.accounts.get(name)
        kind = CHANGE if there else ADD
        for field in fields.RECORD:
            if field.option not in given:
                continue
            was = getattr(there, field.option) if there else None
            if was != given[field.option]:
                self.plan.add(field_change(kind, (name, "", ""), field, was, given[field.option]))

    def coordinators(self) -> None:
        """Slurm lists those of the ancestors too: take them away before comparing."""
        for name, account in sorted(self.desired.accounts.items()):
            if account.coordinators is None:
                continue
            there = self.state.accounts.get(name)
            listed = there.coordinators if there else frozenset()
            above = self.listed_coordinators(self.scope.before.get(name, ""))
            inherited = self.wanted_above(account.parent)
            was = listed - above
            will = account.coordinators - inherited
            if was != will:
                key = (name, "", "")
                self.plan.add(named_change(CHANGE if there else ADD, label(key), key, COORDINATORS, was, will))

    def listed_coordinators(self, name: str) -> frozenset[str]:
        there = self.state.accounts.get(name)
        return there.coordinators if there else frozenset()

    def wanted_above(self, name: str) -> frozenset[str]:
        account = self.desired.accounts.get(name)
        if account is None:
            return self.listed_coordinators(name)
        above = self.wanted_above(account.parent)
        if account.coordinators is None:
            return above | self.listed_coordinators(name)
        return above | account.coordinators

    def default_accounts(self, removed: t.Sequence[Key]) -> None:
        gone = set(removed)
        left: dict[str, set[str]] = {}
        for key in self.state.associations:
            if key[1] and key not in gone:
                left.setdefault(key[1], set()).add(key[0])
        for key in self.wanted:
            if key[1]:
                left.setdefault(key[1], set()).add(key[0])
        for user in sorted(set(self.desired.users) | {key[1] for key in removed if key[1]}):
            there = self.state.users.get(user)
            was = there.default_account if there else ""
            will = self.default_account(user, was, left.get(user, set()))
            if will and will != was:
                kind = CHANGE if was else ADD
                self.plan.add(named_change(kind, f"user {user}", ("", user, ""), DEFAULT_ACCOUNT, was or None, will))
        if self.problems:
            raise Refused(self.problems)

    def default_account(self, user: str, was: str, left: set[str]) -> str:
        wanted = self.desired.users.get(user)
        if wanted and wanted.default_account:
            if wanted.default_account not in left:
                self.problems.append(
                    f"user {user}: default_account {wanted.default_account} is none of the user's accounts "
                    f"({', '.join(sorted(left))}); name one of them, or add the association"
                )
            return wanted.default_account
        if was in left or not left:
            return was
        if wanted:
            accounts = sorted({key[0] for key in wanted.rows})
            if len(accounts) > 1:
                self.problems.append(
                    f"user {user} is associated with {', '.join(accounts)} and has no default_account; name one of them"
                )
            return accounts[0]
        return sorted(left)[0]
