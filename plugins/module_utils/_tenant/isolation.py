# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tenant documents to who shares nodes with whom. Private to the collection gpuops.tenancy."""

from __future__ import annotations

from collections.abc import Iterable

from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.errors import TenantError
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.pick import normalised

# Of the Unix group that a tenant's users have where it is exclusive. useradd and groupadd take 32 characters.
PREFIX, LONGEST = "mcs-", 32


def isolation(documents: Iterable[dict]) -> list[dict]:
    """One entry per tenant, by name: `tenant`, `level`, `accounts` (the tenant's, then its teams'), `group`, `users`."""
    found = [_one(document) for document in documents]
    exclusive: dict[str, str] = {}
    for entry in found:
        if entry["level"] != "exclusive":
            continue
        if len(entry["group"]) > LONGEST:
            raise TenantError(
                f"tenant {entry['tenant']} is exclusive, and its group {entry['group']} is longer than {LONGEST} characters; "
                f"a name of at most {LONGEST - len(PREFIX)} is needed"
            )
        for user in entry["users"]:
            if user in exclusive:
                raise TenantError(
                    f"user {user} is in {exclusive[user]} and in {entry['tenant']}, which are both exclusive: Slurm goes by the "
                    "user's group, and jobs of both would share nodes; give the person a second login"
                )
            exclusive[user] = entry["tenant"]
    return sorted(found, key=lambda entry: entry["tenant"])


def _one(document: dict) -> dict:
    level = document["isolation"]
    document = normalised(document)
    name = document["name"]
    if level == "private_cluster":
        # The seam: such a tenant has an inventory of its own, and its document lies there.
        raise TenantError(
            f"tenant {name}: isolation private_cluster is a Slurm cluster of its own, which this collection does not set up yet; "
            "choose private_nodes, or keep the document in the folder of that cluster's inventory"
        )
    return {
        "tenant": name,
        "level": level,
        "accounts": [name, *(team["name"] for team in document["teams"])],
        "group": f"{PREFIX}{name}",
        "users": sorted({user["name"] for user in document["users"]}),
    }
