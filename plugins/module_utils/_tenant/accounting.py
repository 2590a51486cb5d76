# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tenant document to the arguments of the module slurm_accounting. Private to the collection gpuops.tenancy.

Every field that a document can name is stated for each account and each association, cleared where the document is
silent: deleting a line from a document clears the limit.
"""

from __future__ import annotations

from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.outline import mapping
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.pick import normalised, pick_user
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.schema_limits import COUNTS, TIMES, TRES

CLEARED = -1


def arguments(document: dict, user: str | None = None) -> dict:
    """`scope`, `accounts` (parents first) and `users` of one tenant.

    With `user`, only that user's associations: no account is named, so none is created or changed.
    """
    document = normalised(document)
    users = document["users"] if user is None else [pick_user(document, user)]
    accounts = [] if user is not None else [_account(document, "root"), *_teams(document)]
    return {"scope": [document["name"]], "accounts": accounts, "users": [_user(one) for one in users]}


def _account(document: dict, parent: str) -> dict:
    return dict(
        _fields(document["slurm"]),
        name=document["name"],
        parent=parent,
        description=document["description"],
        organization=document["organization"],
    )


def _teams(document: dict) -> list[dict]:
    return [
        dict(
            _fields(team),
            name=team["name"],
            parent=document["name"],
            description=team["description"],
            organization=team["organization"],
        )
        for team in document["teams"]
    ]


def _user(user: dict) -> dict:
    result = {
        "name": user["name"],
        "associations": [_association(one) for one in user["associations"]],
    }
    if not user["guest"]:
        result["default_account"] = user["default_account"]
    return result


def _association(one: dict) -> dict:
    result = dict(_fields(one), account=one["account"])
    return dict(result, partition=one["partition"]) if one["partition"] else result


def _fields(level: dict) -> dict:
    limits = mapping(level["limits"])
    result: dict = {key: limits.get(key, CLEARED) for key in COUNTS + TIMES}
    result.update({key: dict(limits.get(key, {})) for key in TRES})
    result.update(
        fairshare=level["fairshare"],
        priority=CLEARED if level["priority"] is None else level["priority"],
        qos=list(level["qos"]),
        default_qos=level["default_qos"] or "",
    )
    return result
