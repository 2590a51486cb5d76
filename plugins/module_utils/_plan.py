# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Change and Plan, shared by every module. Private to the gpuops.tenancy collection.

A planner is a pure function that returns a Plan; a compiler turns the Plan into the commands of a tool.
``changed``, ``diff`` and the drift report are made from the changes, never from what a tool prints.
"""

from __future__ import annotations

import dataclasses
import typing as t

ADD = "add"
CHANGE = "change"
REMOVE = "remove"
KINDS = (ADD, CHANGE, REMOVE)

# What applying a change can do to people who are working:
SAFE = "safe"  # nothing that exists is lost, nobody is stopped
DISRUPTIVE = "disruptive"  # may stop or hold back work that is going on
DESTRUCTIVE = "destructive"  # removes something that cannot be had back by running again
RISKS = (SAFE, DISRUPTIVE, DESTRUCTIVE)


@dataclasses.dataclass(frozen=True)
class Change:
    """One field of one object; ``field`` is empty where the object as a whole appears or goes."""

    kind: str
    object: str
    field: str = ""
    before: t.Any = None
    after: t.Any = None
    risk: str = SAFE

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"kind is {self.kind!r}, expected one of {', '.join(KINDS)}")
        if self.risk not in RISKS:
            raise ValueError(f"risk is {self.risk!r}, expected one of {', '.join(RISKS)}")

    def as_dict(self) -> dict[str, t.Any]:
        return {
            "kind": self.kind,
            "object": self.object,
            "field": self.field,
            "before": self.before,
            "after": self.after,
            "risk": self.risk,
        }


class Plan:
    """Changes in the order in which they were planned."""

    def __init__(self, changes: t.Iterable[Change] = ()) -> None:
        self.changes: list[Change] = list(changes)

    def add(self, change: Change) -> None:
        self.changes.append(change)

    @property
    def changed(self) -> bool:
        return bool(self.changes)

    def __len__(self) -> int:
        return len(self.changes)

    def __iter__(self) -> t.Iterator[Change]:
        return iter(self.changes)

    def as_list(self) -> list[dict[str, t.Any]]:
        return [change.as_dict() for change in self.changes]

    def diff(self, before_header: str, after_header: str) -> dict[str, str]:
        """Ansible's diff: one heading per object, one line per field, in a stable order."""
        before: list[str] = []
        after: list[str] = []
        for name, changes in self._by_object().items():
            kinds = {change.kind for change in changes if not change.field}
            if ADD not in kinds:
                before.append(f"{name}:")
            if REMOVE not in kinds:
                after.append(f"{name}:")
            for change in changes:
                if not change.field:
                    continue
                if change.before is not None:
                    before.append(f"  {change.field}: {show(change.before)}")
                if change.after is not None:
                    after.append(f"  {change.field}: {show(change.after)}")
        return {
            "before_header": before_header,
            "after_header": after_header,
            "before": _text(before),
            "after": _text(after),
        }

    def _by_object(self) -> dict[str, list[Change]]:
        grouped: dict[str, list[Change]] = {}
        for change in self.changes:
            grouped.setdefault(change.object, []).append(change)
        return grouped


def show(value: t.Any) -> str:
    """One value on one line: mappings and lists sorted where their order means nothing."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return ",".join(f"{key}={show(item)}" for key, item in sorted(value.items())) or "{}"
    if isinstance(value, (set, frozenset)):
        return ",".join(sorted(show(item) for item in value)) or "[]"
    if isinstance(value, (list, tuple)):
        return ",".join(show(item) for item in value) or "[]"
    # A newline in a value would forge lines of the diff.
    return str(value).replace("\r", "\\r").replace("\n", "\\n")


def _text(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
