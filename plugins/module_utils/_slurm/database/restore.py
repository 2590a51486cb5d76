# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The steps from a backup to the database in force. Pure. Private to the gpuops.tenancy collection.

A backup is loaded into a database of its own beside the one in force, while everybody works on. One statement then
moves the tables in force out of the way and the loaded ones in. How far a restore has come is read from the server: a
mark that is made when all rows have been counted, and where the tables are.
"""

from __future__ import annotations

import dataclasses
import re
import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.database import dump

MARK = "gpuops_tenancy_restore"
_SHA = re.compile(r"^[0-9a-f]{64}$")
_WHEN = re.compile(r"^\d{8}T\d{6}Z$")

NOTHING, LOADED, SWAPPED = "nothing", "loaded", "swapped"


@dataclasses.dataclass(frozen=True)
class Current:
    """What the server holds: tables by database (None: no such database), and the mark."""

    live: tuple[str, ...] | None
    loaded: tuple[str, ...] | None
    sha256: str = ""
    when: str = ""

    def step(self, sha256: str) -> str:
        if self.loaded is None or self.sha256 != sha256:
            return NOTHING
        return LOADED if self.loaded else SWAPPED


def scratch(name: str) -> str:
    return f"{dump.database(name)}_restore"


def kept(name: str, when: str) -> str:
    """Where the tables go that were in force."""
    return f"{dump.database(name)}_until_{when}"


def current(live: t.Sequence[str] | None, loaded: t.Sequence[str] | None, mark: t.Sequence[str] = ()) -> Current:
    sha256, when = (*mark, "", "")[:2]
    if not _SHA.match(sha256) or not _WHEN.match(when):
        sha256 = when = ""
    rest = None if loaded is None else tuple(table for table in loaded if table != MARK)
    return Current(None if live is None else tuple(live), rest, sha256, when)


def empty(name: str) -> str:
    return f"DROP DATABASE IF EXISTS `{scratch(name)}`;\nCREATE DATABASE `{scratch(name)}`;\n"


def mark(name: str, sha256: str, when: str) -> str:
    if not _SHA.match(sha256) or not _WHEN.match(when):
        raise ValueError(f"{sha256!r} at {when!r} is no mark")
    table = f"`{scratch(name)}`.`{MARK}`"
    # Seen whole or not at all.
    return f"CREATE TABLE {table} ENGINE=InnoDB AS SELECT '{sha256}' AS sha256, '{when}' AS moment;\n"  # noqa: S608


def swap(name: str, now: Current) -> list[str]:
    """The statements; the last one does it, for all tables or for none."""
    statements = [f"CREATE DATABASE IF NOT EXISTS `{name}`;"]
    moves: list[str] = []
    if now.live:
        old = kept(name, now.when)
        statements.append(f"CREATE DATABASE IF NOT EXISTS `{old}`;")
        moves += [f"`{name}`.`{table}` TO `{old}`.`{table}`" for table in now.live]
    moves += [f"`{scratch(name)}`.`{table}` TO `{name}`.`{table}`" for table in now.loaded or ()]
    return [*statements, f"RENAME TABLE {', '.join(moves)};"]


def finish(name: str) -> str:
    return f"DROP DATABASE IF EXISTS `{scratch(name)}`;"
