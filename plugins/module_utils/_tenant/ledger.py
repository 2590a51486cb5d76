# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names that were given to somebody once and are never given again. Private to gpuops.tenancy; controller only."""

from __future__ import annotations

from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant import names
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.errors import TenantError
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.load import Source


def retired(source: Source) -> frozenset[str]:
    """The names in `retired:`, a list of names or of mappings with a `name`; other keys of the ledger are left alone.

    Whatever is not understood is an error: a ledger that looks empty would give names away again.
    """
    if source.problems:
        raise TenantError("the ledger of retired names cannot be used:", source.problems)
    entries = source.data.get("retired")
    if not isinstance(entries, list):
        raise TenantError(f"the ledger {source.file} has no list 'retired'; write 'retired: []' if there is none")
    result = set()
    for index, entry in enumerate(entries):
        name = entry.get("name") if isinstance(entry, dict) else entry
        if not isinstance(name, str) or not name:
            path = ("retired", index)
            raise TenantError(
                "the ledger of retired names cannot be used:",
                [
                    source.problem(
                        path, "is neither a name nor a mapping with a name; quote names that look like numbers"
                    )
                ],
            )
        result.add(str(names.fold(name)))
    return frozenset(result)
