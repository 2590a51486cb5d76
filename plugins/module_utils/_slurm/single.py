# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""slurm_account and slurm_user: slurm_accounting with what the arguments leave open taken from the state.

Private to the gpuops.tenancy collection.
"""

from __future__ import annotations

import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils._lock import Lock
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import accounting, options
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import desired as wanted
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.changes import direct_coordinators
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.client import Client
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.desired import (
    Desired,
    Items,
    Refused,
    WantedAccount,
    named,
)
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.model import ROOT, Key, State, children, subtree

Params = t.Mapping[str, t.Any]


def reconcile_accounts(params: Params, check_mode: bool, client: Client, lock: Lock | None) -> dict[str, t.Any]:
    items = named(params, "accounts", "account", options.ONE_ACCOUNT)
    comments = tuple((item["name"], "", "") for item in items if item.get("comment") is not None)
    beyond = accounting.Reading(tuple(item["name"] for item in items), comments or None)
    return _carry_out(lambda state: accounts(state, params, items), beyond, params, check_mode, client, lock)


def reconcile_users(params: Params, check_mode: bool, client: Client, lock: Lock | None) -> dict[str, t.Any]:
    items = named(params, "users", "user", options.ONE_USER)
    comments = tuple(
        (str(row["account"]).lower(), item["name"], str(row.get("partition") or "").lower())
        for item in items
        for row in item.get("associations") or []
        if row.get("comment") is not None
    )
    beyond = accounting.Reading((), comments or None, any(item.get("default_wckey") is not None for item in items))
    return _carry_out(lambda state: users(state, params, items), beyond, params, check_mode, client, lock)


def accounts(state: State, params: Params, items: Items) -> Desired:
    names = [item["name"] for item in items]
    if params["state"] == "absent":
        return _absent(params, [(name, "", "") for name in names])
    parents = state.parents()
    filled = [{**item, "parent": item.get("parent") or parents.get(item["name"]) or ROOT} for item in items]
    return wanted.build({**_common(params), "scope": params["scope"] or names, "accounts": filled})


def users(state: State, params: Params, items: Items) -> Desired:
    if params["state"] == "absent":
        return _absent(params, [("", item["name"], "") for item in items])
    parents = state.parents()
    problems = []
    scope: list[str] = list(params["scope"] or [])
    for item in items:
        given = item.get("associations") or []
        if not given and not _rows(state, item["name"]):
            problems.append(f"user {item['name']} does not exist; give associations")
        named_accounts = [str(row["account"]).lower() for row in given]
        named_accounts += [str(name).lower() for name in item.get("coordinator_of") or []]
        problems += [
            f"user {item['name']}: account {name} does not exist; create it first, or correct the name"
            for name in dict.fromkeys(named_accounts)
            if name not in parents
        ]
        if not params["scope"]:
            scope += named_accounts
            scope += [] if given else [key[0] for key in _rows(state, item["name"])]
    if problems:
        raise Refused(problems)
    inside = _inside(scope, parents)
    filled = []
    for item in items:
        rows = list(item.get("associations") or [])
        if not rows or not params["scope"]:
            listed = {(str(row["account"]).lower(), str(row.get("partition") or "").lower()) for row in rows}
            rows += [
                {"account": account, "partition": partition}
                for account, _user, partition in _rows(state, item["name"])
                if account in inside and (account, partition) not in listed
            ]
        filled.append({**item, "associations": rows})
    desired = wanted.build({**_common(params), "scope": list(dict.fromkeys(scope)), "users": filled})
    desired.accounts = coordinated(state, items, inside if params["scope"] else set())
    return desired


def coordinated(state: State, items: Items, exactly_in: set[str]) -> dict[str, WantedAccount]:
    """The accounts whose coordinators change. Whom others coordinate beside stays."""
    direct = direct_coordinators(state)
    wish: dict[str, set[str]] = {}
    for item in items:
        if item.get("coordinator_of") is None:
            continue
        listed = {str(name).lower() for name in item["coordinator_of"]}
        present = {name for name in exactly_in if item["name"] in direct.get(name, ())}
        for name in listed | present:
            wish.setdefault(name, set(direct.get(name, ())))
        for name in listed:
            wish[name].add(item["name"])
        for name in present - listed:
            wish[name].discard(item["name"])
    parents = state.parents()
    return {name: WantedAccount(name, parents[name], coordinators=frozenset(who)) for name, who in sorted(wish.items())}


def _rows(state: State, user: str) -> list[Key]:
    return sorted(key for key in state.associations if key[1] == user)


def _inside(scope: t.Iterable[str], parents: t.Mapping[str, str]) -> set[str]:
    below = children(parents)
    return {name for root in scope for name in subtree(str(root).lower(), below)}


def _absent(params: Params, keys: list[Key]) -> Desired:
    desired = wanted.build({**_common(params), "scope": params["scope"] or []})
    desired.absent = frozenset(keys)
    if params.get("max_removals") is None:
        desired.max_removals = len(keys)
    return desired


def _common(params: Params) -> dict[str, t.Any]:
    return {"block_qos": params.get("block_qos"), "max_removals": params.get("max_removals")}


def _carry_out(
    build: t.Callable[[State], Desired],
    beyond: accounting.Reading,
    params: Params,
    check_mode: bool,
    client: Client,
    lock: Lock | None,
) -> dict[str, t.Any]:
    result = accounting.carry_out(build, beyond, params, check_mode, client, lock)
    # Everything that the arguments do not name is none of this module's business.
    del result["unmanaged"]
    return result
