# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""One row of Slurm's accounting as keys of a tenant document. Pure; private to the collection gpuops.tenancy."""

from __future__ import annotations

from typing import Any

from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.schema_limits import COUNTS, TIMES, TRES

NAMED = frozenset({"fairshare", "priority", "qos", "default_qos", *COUNTS, *TIMES, *TRES})
# Not fields of a row, or spoken of elsewhere.
_AROUND = frozenset(
    {
        "name",
        "parent",
        "account",
        "partition",
        "description",
        "organization",
        "coordinators",
        "effective_qos",
        "qos_difference",
    }
)
_UNITS = (("T", 1024**2), ("G", 1024))


def level(row: dict, above: list[str] | None, block_qos: str) -> dict:
    """`above`: the QOS list that holds above, None where no document says so."""
    result: dict[str, Any] = {}
    if isinstance(row.get("fairshare"), int):
        result["fairshare"] = row["fairshare"]
    if row.get("priority") is not None:
        result["priority"] = row["priority"]
    limits = {key: row[key] for key in COUNTS + TIMES if row.get(key) is not None}
    limits.update(
        {key: {name: _amount(name, row[key][name]) for name in sorted(row[key])} for key in TRES if row.get(key)}
    )
    if limits:
        result["limits"] = {key: limits[key] for key in (*TRES, *COUNTS, *TIMES) if key in limits}
    # A block is an overlay that onboarding neither writes nor lifts.
    if is_blocked(row, block_qos):
        return result
    listed = own_qos(row)
    if listed:
        result["qos"] = listed
        if above is not None and set(listed) - set(above):
            result["qos_exception"] = True
    if row.get("default_qos"):
        result["default_qos"] = row["default_qos"]
    return result


def own_qos(row: dict) -> list[str]:
    """Its own list, or what a stored difference amounts to; empty where it inherits."""
    return sorted(row["effective_qos"] if row.get("qos_difference") else row.get("qos") or [])


def is_blocked(row: dict, block_qos: str) -> bool:
    return row.get("effective_qos") == [block_qos]


def unnamed(row: dict) -> list[str]:
    """What is set on the row and no document can name."""
    extra = {key: value for key, value in row.items() if key not in NAMED | _AROUND}
    # Not "in": a limit of 0 is one.
    return sorted(key for key, value in extra.items() if value is not False and value not in (None, "", [], {}))


def _amount(name: str, value: Any) -> Any:
    """Slurm counts memory in MiB and calls it M, as documents may."""
    if name != "mem":
        return value
    for unit, size in _UNITS:
        if value and value % size == 0:
            return f"{value // size}{unit}"
    return f"{value}M"


def clean(text: str) -> str:
    """The nearest text that a document can hold."""
    letters = ["/" if char == "|" else " " if ord(char) < 32 or ord(char) == 127 else char for char in text]
    return " ".join("".join(char for char in letters if char not in "\"'`").split())[:255]
