# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Everything that the database holds of a cluster, as plain data for whoever adopts it. Private to gpuops.tenancy.

More than a plan needs: what another cluster or a departed user left behind, and what no argument of ours can name.
"""

from __future__ import annotations

import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import fields, parse
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.changes import plain
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.client import Client, columns
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.command import addressable
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.model import (
    Association,
    Key,
    State,
    children,
    subtree,
)

_HAS_TEXTS = ("description", "organization")
_AT_ONCE = 500


def survey(client: Client) -> dict[str, t.Any]:
    """Only reads."""
    state = client.read(comments=())
    names = [name for name in state.accounts if addressable(name)]
    for column in _HAS_TEXTS:
        for first in range(0, len(names), _AT_ONCE):
            for name, text in texts(client, column, names[first : first + _AT_ONCE]).items():
                setattr(state.accounts[name], column, text)
    keys = ("cluster", "account", "user")
    elsewhere = parse.rows(client.read_text(["show", "assoc", "wopi", columns(keys)]), keys)
    kept = deleted_too(client)
    return compose(state, elsewhere, kept)


def deleted_too(client: Client) -> dict[str, set[str]]:
    """Names of records and of rows: with a second cluster Slurm drops the record of a user and keeps the row."""
    here = f"cluster={client.cluster}"
    rows = client.read_text(["show", "assoc", "where", here, "withdeleted", "wopi", columns(("account", "user"))])
    kept: dict[str, set[str]] = {"account": set(), "user": set()}
    for row in parse.rows(rows, ("account", "user")):
        for kind, names in kept.items():
            names.update([row[kind]] if row[kind] else ())
    for kind, names in kept.items():
        names.update(client.read_text(["show", kind, "withdeleted", columns((kind,))]).split())
    return kept


def texts(client: Client, column: str, names: t.Sequence[str]) -> dict[str, str]:
    """One free text of each account. A line break in one is found by halving: few queries, however many accounts."""
    where = ["where", f"name={','.join(names)}"]
    found = parse.texts(client.read_text(["show", "account", *where, columns(("account", column))]), names)
    if found is not None:
        return found
    if len(names) == 1:
        return {names[0]: parse.whole(client.read_text(["show", "account", *where, columns((column,))]))}
    middle = len(names) // 2
    return {**texts(client, column, names[:middle]), **texts(client, column, names[middle:])}


def compose(
    state: State,
    elsewhere: t.Sequence[t.Mapping[str, str]],
    kept: t.Mapping[str, t.Iterable[str]],
) -> dict[str, t.Any]:
    """Pure. ``elsewhere``: rows of all clusters; ``kept``: names of records, deleted ones included."""
    parents = state.parents()
    below = children(parents)
    order = [name for root in parents if not parents[root] for name in subtree(root, below)]
    accounts = [_account(state, name, parents[name]) for name in order]
    users: dict[str, dict[str, t.Any]] = {}
    for key in sorted(state.associations):
        if key[1]:
            user = users.setdefault(key[1], _user(state, key[1]))
            user["associations"].append(_row(state.associations[key], {"account": key[0], "partition": key[2]}))
    return {
        "cluster": state.cluster,
        "accounts": accounts,
        "users": [users[name] for name in sorted(users)],
        "without_association": _without(state, elsewhere, set(order), set(users)),
        "departed": {
            "accounts": sorted(set(kept["account"]) - set(state.accounts)),
            "users": sorted(set(kept["user"]) - _users(state, elsewhere)),
        },
    }


def _account(state: State, name: str, parent: str) -> dict[str, t.Any]:
    record = state.accounts.get(name)
    above = state.accounts.get(parent)
    inherited = above.coordinators if above else frozenset()
    return _row(
        state.associations[(name, "", "")],
        {
            "name": name,
            "parent": parent,
            "description": record.description if record else "",
            "organization": record.organization if record else "",
            "coordinators": sorted(record.coordinators - inherited) if record else [],
            "users_are_coordinators": bool(record and record.users_are_coordinators),
        },
    )


def _user(state: State, name: str) -> dict[str, t.Any]:
    record = state.users.get(name)
    return {
        "name": name,
        "default_account": record.default_account if record else "",
        **{field.option: _set(field, record) for field in fields.USER},
        "associations": [],
    }


def _set(field: fields.Field, record: t.Any) -> t.Any:
    """Empty where nothing is set."""
    value = getattr(record, field.option, field.unset)
    return "" if value == field.unset else value


def _row(row: Association, result: dict[str, t.Any]) -> dict[str, t.Any]:
    """What is set on a row, in the words of slurm_accounting, and what that amounts to for QOS."""
    for field in fields.ASSOCIATION:
        value = row.values.get(field.option, field.unset)
        if value != field.unset:
            result[field.option] = plain(field, value)
    listed = result.get("qos", [])
    if any(name[0] in "+-" for name in listed):
        result["qos_difference"] = result.pop("qos")
    result["effective_qos"] = sorted(row.effective_qos)
    return result


def _users(state: State, elsewhere: t.Sequence[t.Mapping[str, str]]) -> set[str]:
    return {*state.users, *(row["user"] for row in elsewhere)}


def _without(
    state: State, elsewhere: t.Sequence[t.Mapping[str, str]], accounts: set[str], users: set[str]
) -> list[dict[str, t.Any]]:
    """Records without a row on this cluster, and the clusters on which they have one."""
    where: dict[Key, set[str]] = {}
    for row in elsewhere:
        where.setdefault(("account", row["account"], ""), set()).add(row["cluster"])
        where.setdefault(("user", row["user"], ""), set()).add(row["cluster"])
    names = [("account", name) for name in sorted(set(state.accounts) - accounts)]
    names += [("user", name) for name in sorted(_users(state, elsewhere) - users - {""})]
    return [{"kind": kind, "name": name, "clusters": sorted(where.get((kind, name, ""), ()))} for kind, name in names]
