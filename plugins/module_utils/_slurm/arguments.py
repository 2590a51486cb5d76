# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Arguments that the accounting modules share. Private to the gpuops.tenancy collection."""

from __future__ import annotations

import typing as t

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.gpuops.tenancy.plugins.module_utils._command import SEARCH_PATH
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import saved
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.desired import Refused

COMMON: dict[str, dict[str, t.Any]] = {
    "search_path": {"type": "list", "elements": "path", "default": SEARCH_PATH},
    "lock_timeout": {"type": "int", "default": 300},
}
SAVING: dict[str, dict[str, t.Any]] = {"save_dir": {"type": "path", "default": saved.DIRECTORY}}
REMOVAL: dict[str, dict[str, t.Any]] = {
    **SAVING,
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    # None: as many as are named.
    "max_removals": {"type": "int"},
}


def checked_children(accounts: t.Sequence[dict[str, t.Any]], spec: dict[str, t.Any]) -> list[dict[str, t.Any]]:
    """Nested accounts, which an argument spec cannot describe to any depth, checked against the same spec."""
    return [_checked(account, spec, str(account.get("name"))) for account in accounts]


def _checked(account: dict[str, t.Any], spec: dict[str, t.Any], path: str) -> dict[str, t.Any]:
    children = []
    for index, child in enumerate(account.get("accounts") or []):
        result = ArgumentSpecValidator(spec).validate(child)
        name = child.get("name") or index
        if result.error_messages:
            raise Refused([f"account {path} -> {name}: {message}" for message in result.error_messages])
        children.append(_checked(result.validated_parameters, spec, f"{path} -> {name}"))
    return dict(account, accounts=children)
