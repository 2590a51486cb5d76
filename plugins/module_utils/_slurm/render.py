# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The diff of accounting: a tree, one line per object, so that one changed limit is one changed line.

Pure; private to the gpuops.tenancy collection.
"""

from __future__ import annotations

import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import fields, values
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.changes import (
    AccountingPlan,
    apply_changes,
)
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.model import (
    Key,
    State,
    chain,
    children,
)


def diff(state: State, plan: AccountingPlan) -> dict[str, str]:
    header = f"accounting of cluster {state.cluster}"
    after = apply_changes(state, plan) if plan.changed else state
    touched = _touched(state, after, plan)
    return {
        "before_header": f"{header} (now)",
        "after_header": f"{header} (wanted)",
        "before": tree(state, touched),
        "after": tree(after, touched),
    }


def tree(state: State, keys: set[Key]) -> str:
    """The named rows and the accounts above them."""
    parents = state.parents()
    shown = {key for key in keys if key in state.associations}
    accounts = {name for key in shown for name in chain(key[0], parents)}
    below = children({name: parent for name, parent in parents.items() if name in accounts})
    rows: dict[str, list[Key]] = {}
    for key in sorted(shown):
        if key[1]:
            rows.setdefault(key[0], []).append(key)
    lines: list[str] = []
    todo = [(name, 0) for name in sorted(accounts, reverse=True) if parents.get(name, "") not in accounts]
    while todo:
        name, depth = todo.pop()
        lines.append("  " * depth + account_line(state, name, (name, "", "") in shown))
        lines += ["  " * (depth + 1) + row_line(state, key) for key in rows.get(name, ())]
        todo += [(child, depth + 1) for child in reversed(below.get(name, ()))]
    return "".join(f"{line}\n" for line in lines)


def account_line(state: State, name: str, with_fields: bool) -> str:
    if not with_fields:
        return f"account {name}"
    words = [f"account {name}", *_words(state.associations[(name, "", "")].values)]
    record = state.accounts.get(name)
    if record:
        words += [
            f"{field.option}={_shown(getattr(record, field.option))}"
            for field in fields.RECORD
            if getattr(record, field.option)
        ]
        if record.coordinators:
            words.append(f"coordinators={','.join(sorted(record.coordinators))}")
    return " ".join(words)


def row_line(state: State, key: Key) -> str:
    account, user, partition = key
    words = [f"user {user}"]
    if partition:
        words.append(f"partition={partition}")
    there = state.users.get(user)
    if there and there.default_account == account:
        words.append("(default)")
        words += [
            f"{field.option}={getattr(there, field.option)}"
            for field in fields.USER
            if getattr(there, field.option) != field.unset
        ]
    return " ".join(words + _words(state.associations[key].values))


def _words(given: t.Mapping[str, t.Any]) -> list[str]:
    found = []
    for field in fields.ASSOCIATION:
        text = values.to_text(field, given.get(field.option, field.unset))
        if text and field.type == fields.TEXT:
            text = _quoted(text)
        if text:
            found.append(f"{field.option}={text}")
    return found


def _shown(value: str | bool) -> str:
    return _quoted(value) if isinstance(value, str) else "true"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace("\n", "\\n") + '"'


def _touched(before: State, after: State, plan: AccountingPlan) -> set[Key]:
    keys: set[Key] = set()
    users: set[str] = set()
    for change in plan.changes:
        if change.key[0]:
            keys.add(change.key)
        else:
            users.add(change.key[1])
    for state in (before, after):
        for key in state.associations:
            there = state.users.get(key[1]) if key[1] in users else None
            if there and there.default_account == key[0]:
                keys.add(key)
    return keys
