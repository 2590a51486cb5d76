# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Text of ``sacctmgr -nP`` to rows. Pure; private to the gpuops.tenancy collection.

The output has no escaping. Columns of free text are therefore read one by one, each as last column, and lines are
matched with names that were read without free text.
"""

from __future__ import annotations

import re
import typing as t


class ParseError(ValueError):
    """sacctmgr printed something that cannot be read without guessing."""


def rows(text: str, columns: t.Sequence[str]) -> list[dict[str, str]]:
    """Lines of columns that hold no free text; any other number of columns is an error, never a guess."""
    found = []
    for line in text.splitlines():
        parts = line.split("|")
        if len(parts) != len(columns):
            raise ParseError(
                f"sacctmgr printed {line!r}, which has {len(parts)} columns instead of {len(columns)} "
                f"({', '.join(columns)}); look for a name that contains '|' or a line break, and rename or remove it"
            )
        found.append(dict(zip(columns, parts)))
    return found


def texts(text: str, names: t.Sequence[str]) -> dict[str, str] | None:
    """Free text by name (of one column or several), from lines ``name|text`` in the order of ``names``.

    None where a text holds a line break: then lines could pass for other objects', and each text has to be read
    by a query of its own (``whole``).
    """
    lines = text.split("\n")
    if lines and lines[-1] == "":
        lines.pop()
    if len(lines) != len(names):
        return None
    found = {}
    for name, line in zip(names, lines):
        if not line.startswith(f"{name}|"):
            return None
        found[name] = line[len(name) + 1 :]
    return found


def whole(text: str) -> str:
    """The only value of a query for one text of one object."""
    return text[:-1] if text.endswith("\n") else text


def names(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


def tres_names(text: str) -> frozenset[str]:
    return frozenset(
        f"{row['type']}/{row['name']}" if row["name"] else row["type"] for row in rows(text, ("type", "name"))
    )


def version(text: str) -> tuple[int, int]:
    """``slurm-wlm 22.05.8`` or ``slurm 24.11.5``."""
    match = re.search(r"\b([0-9]{2})\.([0-9]{2})\b", text)
    if not match:
        raise ParseError(f"cannot read the version of Slurm from {text.strip()!r}")
    return int(match[1]), int(match[2])


def jobs(text: str) -> list[dict[str, str]]:
    """Lines of ``squeue -h -o %i|%u|%a|%P|%T``; the heading that -M adds is skipped."""
    found = []
    for line in text.splitlines():
        if not line or line.startswith("CLUSTER:"):
            continue
        parts = line.split("|")
        if len(parts) != 5:
            raise ParseError(f"squeue printed {line!r}, which cannot be read")
        found.append(dict(zip(("id", "user", "account", "partition", "state"), parts)))
    return found
