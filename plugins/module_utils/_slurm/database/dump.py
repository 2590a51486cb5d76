# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Backups of the accounting database as files: names, rows, manifest, retention. Pure. Private to the gpuops.tenancy collection.

A backup is a compressed dump and, beside it, a manifest with its checksum and the number of rows of every table. The
manifest comes first: a dump in its place always has one.
"""

from __future__ import annotations

import dataclasses
import json
import re
import typing as t

STAGE = ".tenancy-backup-"
_WORD = re.compile(r"^[A-Za-z0-9_]{1,48}$")
_NAME = re.compile(r"^(?P<database>[A-Za-z0-9_]+)-(?P<when>\d{8}T\d{6}Z)\.sql\.gz$")
_CREATE = re.compile(rb"^CREATE TABLE `([^`]+)` \(")
_INSERT = re.compile(rb"^INSERT INTO `([^`]+)` VALUES")
_STRING = re.compile(rb"'(?:[^'\\]|\\.|'')*'", re.DOTALL)
_END = b"-- Dump completed"


class BackupError(Exception):
    """A backup cannot be made, or is none; the message says what to do."""


def database(name: str) -> str:
    """The name, if it can stand in SQL and in a file's name as it is."""
    if not _WORD.match(name):
        raise BackupError(f"database name {name!r} must match {_WORD.pattern}")
    return name


class Rows:
    """Counts the rows of a dump, line by line, as the client that restores it would read them."""

    def __init__(self) -> None:
        self.tables: dict[str, int] = {}
        self.complete = False
        self._table = ""

    def feed(self, line: bytes) -> None:
        if not self._table:
            created = _CREATE.match(line)
            if created:
                self.tables.setdefault(created.group(1).decode(), 0)
                return
            if line.startswith(_END):
                self.complete = True
            insert = _INSERT.match(line)
            if not insert:
                return
            self._table = insert.group(1).decode()
            line = line[insert.end() :]
        # What users wrote (names of jobs, scripts) may hold anything; a newline in it is written as two characters.
        bare = _STRING.sub(b"", line)
        self.tables[self._table] = self.tables.get(self._table, 0) + bare.count(b"(")
        if bare.rstrip().endswith(b";"):
            self._table = ""


@dataclasses.dataclass(frozen=True)
class Manifest:
    database: str
    created: str
    sha256: str
    bytes: int
    rows: dict[str, int]
    slurm: str = ""

    def text(self) -> str:
        return json.dumps(dataclasses.asdict(self), indent=2, sort_keys=True) + "\n"


def manifest(text: str, path: str) -> Manifest:
    try:
        return Manifest(**json.loads(text))
    except (ValueError, TypeError) as exc:
        raise BackupError(f"{path} is no manifest of a backup ({exc}); take another backup") from exc


def manifest_path(path: str) -> str:
    return f"{path}.json"


def file_name(name: str, when: str) -> str:
    return f"{name}-{when}.sql.gz"


def outdated(names: t.Iterable[str], name: str, keep: int) -> list[str]:
    """The files of this database beyond the newest ``keep``; the times in their names sort as text."""
    mine = sorted(
        entry for entry in names for match in [_NAME.match(entry)] if match and match.group("database") == name
    )
    return mine[:-keep] if keep > 0 else []


def differences(dumped: t.Mapping[str, int], before: t.Mapping[str, int], after: t.Mapping[str, int]) -> list[str]:
    """Where the dump cannot be what the server held while it was taken; slurmdbd goes on writing meanwhile."""
    found: list[str] = []
    for table in sorted({*dumped, *before, *after}):
        # A cluster that was registered meanwhile has tables on one side only.
        if table not in dumped:
            if table in before and table in after:
                found.append(f"{table} is missing")
            continue
        low, high = sorted((before.get(table, 0), after.get(table, 0)))
        if not low <= dumped[table] <= high:
            found.append(f"{table} has {dumped[table]} rows, the server {low if low == high else f'{low} to {high}'}")
    return found
