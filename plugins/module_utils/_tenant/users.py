# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tenant document to the POSIX users that the identity step creates or expects. Private to gpuops.tenancy."""

from __future__ import annotations

from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.pick import normalised, pick_user


def users(document: dict, user: str | None = None, guests: bool = False) -> list[dict]:
    """One entry per user; guests only on request, since their home tenant creates them."""
    document = normalised(document)
    chosen = document["users"] if user is None else [pick_user(document, user)]
    return [_user(document["name"], one) for one in chosen if guests or not one["guest"]]


def _user(tenant: str, user: dict) -> dict:
    return {
        "name": user["name"],
        # Empty: whoever has the login already keeps what stands there.
        "gecos": user["full_name"] or "",
        "email": user["email"],
        "ssh_keys": list(user["ssh_keys"]),
        "tenant": tenant,
        "home_tenant": user["home"],
        "guest": user["guest"],
        "accounts": list(dict.fromkeys(one["account"] for one in user["associations"])),
        "default_account": user["default_account"],
    }
