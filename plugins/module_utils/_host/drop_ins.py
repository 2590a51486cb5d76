# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Drop-ins of systemd's units as files. Private to the gpuops.tenancy collection."""

from __future__ import annotations

import os
import re
import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils import _command, _files, _systemd
from ansible_collections.gpuops.tenancy.plugins.module_utils._plan import ADD, CHANGE, REMOVE, Change, Plan

_UNIT = re.compile(r"^[A-Za-z0-9:_.@-]+\.(service|slice|scope|socket|timer|mount)$")
_NAME = re.compile(r"^[A-Za-z0-9_.-]+\.conf$")


class DropInError(Exception):
    """The drop-in cannot be had as asked."""


def path(unit: str, name: str) -> str:
    """Pure."""
    if not _UNIT.match(unit):
        raise DropInError(f"{unit!r} is no name of a unit; write it in full, like ssh.service")
    if not _NAME.match(name):
        raise DropInError(f"{name!r} is no name of a drop-in; it has to end in .conf")
    return os.path.join(_systemd.FOLDER, f"{unit}.d", name)


def read(file: str) -> str | None:
    try:
        with open(file, encoding="utf-8", errors="surrogateescape") as handle:
            return handle.read()
    except FileNotFoundError:
        return None


def plan(current: t.Mapping[str, str | None], texts: t.Mapping[str, str]) -> Plan:
    """What differs between the files that are there and those that are wanted. Pure."""
    changes = Plan()
    for file in sorted({*current, *texts}):
        before, after = current.get(file), texts.get(file)
        if before is None and after is not None:
            changes.add(Change(ADD, file, "content", None, after))
        elif after is None and before is not None:
            changes.add(Change(REMOVE, file, "content", before, None))
        elif before != after:
            changes.add(Change(CHANGE, file, "content", before, after))
    return changes


def difference(changes: t.Iterable[Change]) -> dict[str, str]:
    """Ansible's diff, with the texts in full. Pure."""
    listed = list(changes)
    before = "".join(f"[{change.object}]\n{change.before}" for change in listed if change.before is not None)
    after = "".join(f"[{change.object}]\n{change.after}" for change in listed if change.after is not None)
    return {"before_header": "drop-ins", "after_header": "drop-ins", "before": before, "after": after}


def apply(changes: t.Iterable[Change], result: dict[str, t.Any]) -> None:
    """Write and remove; ``applied`` and ``remaining`` of the result say how far it came."""
    for change in changes:
        folder = os.path.dirname(change.object)
        if change.after is not None:
            os.makedirs(folder, mode=0o755, exist_ok=True)
            _files.write(change.object, change.after, 0o644)
        else:
            os.unlink(change.object)
            if not os.listdir(folder):
                os.rmdir(folder)
        result["applied"].append(change.object)
        result["remaining"].remove(change.object)


def owed(unit: str, file: str) -> bool:
    """Whether systemd goes by another drop-in than the one on disk.

    :param unit: one that systemd can be asked about.
    """
    done = _command.run(["systemctl", "show", unit, "--property=LoadState", "--property=DropInPaths"], ok=(0,))
    values = dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)
    there = os.path.exists(file)
    # A unit that does not exist, or is masked, has none.
    listed = file in values.get("DropInPaths", "").split() if values.get("LoadState") == "loaded" else there
    return there != listed or bool(_systemd.unread([file]))
