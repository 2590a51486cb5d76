# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Picks a tenant or a user by name. Private to the collection gpuops.tenancy."""

from __future__ import annotations

from typing import Any

from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant import names
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.errors import TenantError

_KEYS = ("name", "description", "organization", "slurm", "teams", "users")


def normalised(document: Any) -> dict:
    if not isinstance(document, dict) or any(key not in document for key in _KEYS):
        raise TenantError(
            "this is not a tenant document as gpuops.tenancy.tenant_documents returns it; give it that one"
        )
    return document


def pick_user(document: dict, name: str) -> dict:
    wanted = names.fold(name)
    for user in document["users"]:
        if user["name"] == wanted:
            return user
    known = [user["name"] for user in document["users"]]
    raise TenantError(
        "tenant {} has no user {!r}{}".format(
            document["name"], name, names.near(str(wanted), known) or "; add the user to its document first"
        )
    )
