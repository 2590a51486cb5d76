# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tenant document to where its users may log in from. Private to gpuops.tenancy."""

from __future__ import annotations

from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.pick import normalised
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.users import users


def login_access(document: dict) -> dict:
    """`tenant`, `users` (without guests, whom their home tenant binds) and `allow_from`."""
    document = normalised(document)
    return {
        "tenant": document["name"],
        "users": [one["name"] for one in users(document)],
        "allow_from": list(document["network"]["allow_from"]),
    }
