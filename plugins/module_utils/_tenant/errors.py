# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is wrong with tenant documents, and where. Private to the collection gpuops.tenancy."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Union

Path = tuple[Union[str, int], ...]


def dotted(path: Path) -> str:
    """('teams', 0, 'name') -> teams[0].name"""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += ("." if text else "") + part
    # A key may hold anything YAML allows; a message stays one line whatever it holds.
    return "".join(char if char.isprintable() else "?" for char in text)


@dataclass(frozen=True)
class Problem:
    file: str
    line: int
    path: str
    text: str

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}:"
        return " ".join(part for part in (where, self.path + ":" if self.path else "", self.text) if part)

    def as_dict(self) -> dict:
        return {"file": self.file, "line": self.line, "path": self.path, "message": self.text}


class TenantError(Exception):
    """Documents that cannot be used; carries every problem, not only the first."""

    def __init__(self, message: str, problems: Iterable[Problem] = ()) -> None:
        self.problems = sorted(set(problems), key=lambda one: (one.file, one.line, one.path, one.text))
        super().__init__("\n".join([message] + [str(one) for one in self.problems]) if self.problems else message)


def listed(values: Iterable[str]) -> str:
    """a, b or c"""
    items = list(values)
    return items[0] if len(items) == 1 else ", ".join(items[:-1]) + " or " + items[-1]
