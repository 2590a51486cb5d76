# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changes of accounting, and what they make of a state. Pure; private to the gpuops.tenancy collection."""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils import _plan
from ansible_collections.gpuops.tenancy.plugins.module_utils._plan import ADD, CHANGE, REMOVE
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import fields, values
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.model import (
    Account,
    Association,
    Key,
    State,
    User,
    chain,
    label,
)

PARENT = "parent"
COORDINATORS = "coordinators"
DEFAULT_ACCOUNT = "default_account"


@dataclasses.dataclass(frozen=True)
class AccountingChange(_plan.Change):
    """``was`` and ``will`` are the normal form; ``before`` and ``after`` the same for people and for JSON."""

    key: Key = ("", "", "")
    was: t.Any = None
    will: t.Any = None


class AccountingPlan(_plan.Plan):
    def __init__(self, changes: t.Iterable[AccountingChange] = ()) -> None:
        super().__init__(changes)
        self.unmanaged: list[str] = []
        self.blocked: list[str] = []
        self.warnings: list[str] = []

    def whole(self, kind: str) -> list[AccountingChange]:
        """Rows that appear or go."""
        return [change for change in self.changes if change.kind == kind and not change.field]

    def fields(self) -> t.Iterator[AccountingChange]:
        return (change for change in self.changes if change.field)


def row_change(kind: str, key: Key) -> AccountingChange:
    risk = _plan.DESTRUCTIVE if kind == REMOVE else _plan.SAFE
    return AccountingChange(kind, label(key), risk=risk, key=key)


def field_change(kind: str, key: Key, field: fields.Field, was: t.Any, will: t.Any) -> AccountingChange:
    return AccountingChange(
        kind,
        label(key),
        field.option,
        plain(field, was),
        plain(field, will),
        risk(field, was, will) if kind == CHANGE else _plan.SAFE,
        key,
        was,
        will,
    )


def named_change(kind: str, what: str, key: Key, option: str, was: t.Any, will: t.Any) -> AccountingChange:
    """For what is not in the table: parent, coordinators, default account."""
    before, after = (sorted(item) if isinstance(item, frozenset) else item for item in (was, will))
    risk = _plan.DISRUPTIVE if option == PARENT and kind == CHANGE else _plan.SAFE
    return AccountingChange(kind, what, option, before, after, risk, key, was, will)


def apply_changes(state: State, plan: AccountingPlan) -> State:
    """What the state becomes. The model of this project, not of Slurm: only what the plan says happens."""
    after = state.copy()
    direct = direct_coordinators(state)
    for change in plan.changes:
        account, user, _partition = change.key
        if not change.field and change.kind == ADD:
            after.associations[change.key] = Association(*change.key, values=unset_values())
            if user:
                after.users.setdefault(user, User(user))
            else:
                after.accounts.setdefault(account, Account(account))
        elif not change.field:
            after.associations.pop(change.key, None)
            _forget(after, account, user)
        elif change.field == PARENT:
            after.associations[change.key].parent = change.will
        elif change.field == DEFAULT_ACCOUNT:
            after.users.setdefault(user, User(user)).default_account = change.will
        elif change.field == COORDINATORS:
            direct[account] = change.will
        elif fields.BY_OPTION[change.field] in fields.USER:
            setattr(after.users.setdefault(user, User(user)), change.field, change.will)
        elif fields.BY_OPTION[change.field] in fields.RECORD:
            setattr(after.accounts[account], change.field, change.will)
        else:
            after.associations[change.key].values[change.field] = change.will
    parents = after.parents()
    for name, account_record in after.accounts.items():
        above = (direct.get(item, frozenset()) for item in chain(name, parents) or [name])
        account_record.coordinators = frozenset().union(*above)
    return after


def unset_values() -> dict[str, t.Any]:
    return {field.option: field.unset for field in fields.ASSOCIATION}


def direct_coordinators(state: State) -> dict[str, frozenset[str]]:
    """Those of the accounts themselves, as far as it can be seen: an ancestor's coordinator hides the same one below."""
    parents = state.parents()
    found = {}
    for name, account in state.accounts.items():
        above = state.accounts.get(parents.get(name, ""))
        found[name] = account.coordinators - (above.coordinators if above else frozenset())
    return found


def _forget(state: State, account: str, user: str) -> None:
    if not user:
        state.accounts.pop(account, None)
    elif not any(key[1] == user for key in state.associations):
        state.users.pop(user, None)


def plain(field: fields.Field, value: t.Any) -> t.Any:
    if value is None or field.type == fields.TRES:
        return value
    if isinstance(value, frozenset):
        return sorted(value)
    if field.type == fields.TIME:
        return values.clock(value)
    return value


def risk(field: fields.Field, was: t.Any, will: t.Any) -> str:
    """Tightening may hold back jobs that wait now; loosening cannot."""
    if field.option in ("fairshare", "priority") or field.type in _NO_LIMIT:
        return _plan.SAFE
    if field.option.startswith("min_"):
        # A minimum tightens as it rises.
        if field.type == fields.TRES:
            was, will = ({name: -count for name, count in (item or {}).items()} for item in (was, will))
        else:
            was, will = (None if item is None else -item for item in (was, will))
    if field.type in (fields.QOS_LIST, fields.QOS):
        widened = field.type == fields.QOS_LIST and was and will and was <= will
        return _plan.SAFE if widened else _plan.DISRUPTIVE
    if field.type == fields.TRES:
        tighter = any(_tighter((was or {}).get(name), count) for name, count in (will or {}).items())
    else:
        tighter = _tighter(was, will)
    return _plan.DISRUPTIVE if tighter else _plan.SAFE


_NO_LIMIT = (fields.TEXT, fields.WORD, fields.NAME, fields.FLAGS, fields.SWITCH)


def _tighter(was: int | None, will: int | None) -> bool:
    return will is not None and (was is None or will < was)
