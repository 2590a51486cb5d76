# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a field of accounting is, see fields.py. Private to the gpuops.tenancy collection."""

from __future__ import annotations

import dataclasses
import typing as t

INT = "int"
FACTOR = "factor"  # a decimal number
TIME = "time"  # minutes or [D-]HH:MM:SS, kept in seconds
SECONDS = "seconds"  # set as a number of seconds, printed as a time
TRES = "tres"
QOS = "qos"
QOS_LIST = "qos_list"
FAIRSHARE = "fairshare"
TEXT = "text"  # free text: read by a query of its own
NAME = "name"  # of something that must exist; cannot be taken back
WORD = "word"
FLAGS = "flags"
SWITCH = "switch"  # a flag of accounts; set and cleared by different words

Version = tuple[int, int]

_TYPES: dict[str, dict[str, t.Any]] = {
    FACTOR: {"type": "float"},
    INT: {"type": "int"},
    SECONDS: {"type": "int"},
    TRES: {"type": "dict"},
    QOS_LIST: {"type": "list", "elements": "str"},
    FLAGS: {"type": "list", "elements": "str"},
    SWITCH: {"type": "bool"},
}


@dataclasses.dataclass(frozen=True)
class Field:
    """One thing that can be set.

    option: name in module arguments and results. set_name, column: what sacctmgr calls it for ``set`` and
    ``format=``. about: its documentation. clear: the word that unsets it (TRES are cleared name by name instead).
    unset: what an unset field is after normalising. since: first Slurm version that has it. until: first that has it no
    more.
    """

    option: str
    set_name: str
    column: str
    type: str
    about: tuple[str, ...]
    clear: str = "-1"
    unset: t.Any = None
    since: Version = (22, 5)
    until: Version | None = None
    choices: tuple[str, ...] = ()

    def spec(self) -> dict[str, t.Any]:
        found = dict(_TYPES.get(self.type, {"type": "str"}))
        if self.choices and self.type == WORD:
            found["choices"] = list(self.choices)
        if "key" in self.option:
            # Ansible takes a word like this for a secret.
            found["no_log"] = False
        return found

    def exists(self, version: Version) -> bool:
        return self.since <= version and (self.until is None or version < self.until)

    def missing(self, version: Version) -> str:
        """Why this version cannot have it; empty where it can."""
        if version < self.since:
            return f"{self.option} needs Slurm {shown(self.since)}, and this is {shown(version)}; leave it out"
        if self.until is not None and version >= self.until:
            return f"{self.option} is gone since Slurm {shown(self.until)}, and this is {shown(version)}; leave it out"
        return ""


def shown(version: Version) -> str:
    return f"{version[0]}.{version[1]:02d}"


def make(option: str, set_name: str, column: str, kind: str, *about: str, **more: t.Any) -> Field:
    if kind == TRES:
        more.setdefault("unset", {})
    return Field(option, set_name, column, kind, about, **more)
