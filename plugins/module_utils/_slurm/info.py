# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is in the accounting database, in the words of the modules that write it. Private to the collection.

What is not set is left out: an option that is left out is left alone, so what is returned can be fed back.
"""

from __future__ import annotations

import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import fields, lineage, qos_definitions
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.changes import direct_coordinators, plain
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.client import Client, columns
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.model import (
    ROOT,
    Association,
    Key,
    State,
    children,
    label,
    subtree,
)

Item = dict[str, t.Any]
TREE = "tree"
TENANTS = "tenants"
VIEWS = ("flat", TREE, TENANTS)


def gather(params: t.Mapping[str, t.Any], client: Client) -> Item:
    """Absence is an answer, a slurmdbd that does not answer is an error."""
    clusters = client.read_text(["show", "cluster", columns(("cluster",))]).split()
    registered = client.cluster in clusters
    state = client.read(comments=()) if registered else State(client.cluster, client.version())
    qos = qos_definitions.read(client)
    found = describe(state, params.get("accounts"), params.get("users"), params.get("view") or VIEWS[0])
    return {
        "registered": registered,
        "slurm_version": fields.shown(state.version),
        "qos": [{"name": name, **given(fields.QOS_FIELDS, qos.qos[name])} for name in sorted(qos.qos)],
        **found,
    }


def describe(
    state: State, accounts: t.Sequence[str] | None = None, users: t.Sequence[str] | None = None, view: str = VIEWS[0]
) -> Item:
    tops = None if accounts is None else list(dict.fromkeys(name.lower() for name in accounts))
    who = None if users is None else {name.lower() for name in users}
    parents = state.parents()
    below = children(parents)
    inside = _selected(tops, parents)
    rows = sorted(key for key in state.associations if key[1] and key[1] != ROOT and key[0] in inside)
    if who is not None:
        rows = [key for key in rows if key[1] in who]
        if tops is None:
            inside = {key[0] for key in rows}
    inside.discard(ROOT)
    # Parents first, so that the list reads like the tree.
    ordered = [name for name in subtree(ROOT, below) if name in inside]
    ordered += sorted(inside - set(ordered))
    flat = {name: _account(state, name) for name in ordered}
    found: Item = {
        "accounts": list(flat.values()),
        "users": _users(state, rows),
        "cluster_limits": given(fields.ASSOCIATION, _root(state).values),
        "missing": sorted(set(tops or ()) - set(parents)) + sorted((who or set()) - {key[1] for key in rows}),
        "orphans": [label(key) for key in sorted(state.associations) if key[0] not in parents],
        "outdated": [label(key) for key in lineage.outdated(state)],
        "differences": [label(key) for key in sorted(state.associations) if _is_difference(state.associations[key])],
        "warnings": [f"somebody's {name} holds a line break: this text is left out" for name in state.unread],
    }
    if view == TREE:
        found["accounts"] = _nested(flat, parents)
    if view == TENANTS:
        found["tenants"] = {top: _tenant(state, top, flat, rows) for top in tops or below.get(ROOT, ()) if top in flat}
    return found


def given(table: t.Iterable[fields.Field], values: t.Mapping[str, t.Any]) -> Item:
    """Options of a table with what is set."""
    found = {}
    for field in table:
        value = values.get(field.option, field.unset)
        if value != field.unset:
            found[field.option] = plain(field, value)
    return found


def _selected(tops: t.Sequence[str] | None, parents: t.Mapping[str, str]) -> set[str]:
    if tops is None:
        return set(parents)
    below = children(parents)
    return {name for top in tops if top in parents for name in subtree(top, below)}


def _account(state: State, name: str) -> Item:
    row = state.associations[(name, "", "")]
    record = state.accounts.get(name)
    found: Item = {"name": name, "parent": row.parent}
    if record:
        found.update(given(fields.RECORD, vars(record)))
        own = direct_coordinators(state)[name]
        if own and not record.users_are_coordinators:
            found["coordinators"] = sorted(own)
    return {**found, **_values(row)}


def _values(row: Association) -> Item:
    values = dict(row.values)
    if _is_difference(row):
        # A difference to the parent's list cannot be said in options: what it comes to can.
        values["qos"] = row.effective_qos
    return given(fields.ASSOCIATION, values)


def _is_difference(row: Association) -> bool:
    return any(name[0] in "+-" for name in row.values.get("qos", ()))


def _root(state: State) -> Association:
    return state.account_row(ROOT) or Association(ROOT)


def _users(state: State, rows: t.Iterable[Key]) -> list[Item]:
    found: dict[str, Item] = {}
    for key in rows:
        account, name, partition = key
        if name not in found:
            record = state.users.get(name)
            found[name] = {"name": name, **(given(fields.USER, vars(record)) if record else {}), "associations": []}
            if record and record.default_account:
                found[name]["default_account"] = record.default_account
        row = {"account": account, **({"partition": partition} if partition else {})}
        found[name]["associations"].append({**row, **_values(state.associations[key])})
    return [found[name] for name in sorted(found)]


def _nested(flat: t.Mapping[str, Item], parents: t.Mapping[str, str]) -> list[Item]:
    items = {name: dict(item) for name, item in flat.items()}
    top = []
    for name, item in items.items():
        above = items.get(parents[name])
        if above is None:
            top.append(item)
        else:
            del item["parent"]
            above.setdefault("accounts", []).append(item)
    return top


def _tenant(state: State, top: str, flat: t.Mapping[str, Item], rows: t.Sequence[Key]) -> Item:
    """Arguments of slurm_accounting."""
    inside = set(subtree(top, children(state.parents())))
    return {
        "scope": [top],
        "accounts": [item for name, item in flat.items() if name in inside],
        "users": _users(state, [key for key in rows if key[0] in inside]),
    }
