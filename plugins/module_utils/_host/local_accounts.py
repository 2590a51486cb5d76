# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Accounts and groups of the host itself, without asking a directory. Private to the gpuops.tenancy collection.

What lets an administrator in must not depend on a service that may be down, or on who else can write there.
"""

from __future__ import annotations

import dataclasses
import typing as t

PASSWD, GROUP = "/etc/passwd", "/etc/group"


class AccountError(Exception):
    """An account or group is not this host's own; the message says what to do."""


@dataclasses.dataclass(frozen=True)
class Group:
    name: str
    gid: int
    members: tuple[str, ...]


def users(path: str = PASSWD) -> dict[str, tuple[int, int]]:
    """Name -> uid and gid."""
    return {row[0]: (int(row[2]), int(row[3])) for row in _rows(path, 7)}


def groups(path: str = GROUP) -> dict[str, Group]:
    return {row[0]: Group(row[0], int(row[2]), tuple(filter(None, row[3].split(",")))) for row in _rows(path, 4)}


def uids(names: t.Iterable[str], path: str = PASSWD) -> list[int]:
    """The numbers of local accounts.

    :raises AccountError: one is not in /etc/passwd.
    """
    known = users(path)
    missing = sorted(set(names) - set(known))
    if missing:
        raise AccountError(
            f"{', '.join(missing)} is not in {path}: only the host's own accounts can be exempt; create it there, or take it out"
        )
    return sorted({known[name][0] for name in names})


def _rows(path: str, fields: int) -> t.Iterator[list[str]]:
    with open(path, encoding="utf-8", errors="surrogateescape") as handle:
        for line in handle:
            row = line.rstrip("\n").split(":")
            # Lines of compat mode ("+:::") name nobody.
            if len(row) >= fields and row[0] and row[0][0] not in "+-#" and row[2].isdigit():
                yield row
