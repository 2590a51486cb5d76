# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What systemd and the kernel say about a service. Private to the gpuops.tenancy collection."""

from __future__ import annotations

import dataclasses
import os
import re
import time
import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils import _command

PROPERTIES = (
    "LoadState",
    "ActiveState",
    "SubState",
    "Result",
    "MainPID",
    "NRestarts",
    "Id",
    "FragmentPath",
    "DropInPaths",
)
FOLDER = "/etc/systemd/system"
# What systemd itself makes at a reload, or knows without one.
_OWN = re.compile(r"^/(run|etc)/systemd/(generator|transient|system\.control)")
# systemd touches it whenever it has read its units.
LOADED = "/run/systemd/systemd-units-load"
# Ticks of the process table, the clock of the file system and two readings of the time do not agree to the last bit.
# A file this close to the start counts as newer: a needless restart, once, instead of a missed one.
MARGIN = 0.1


@dataclasses.dataclass(frozen=True)
class Unit:
    """A unit as it is now.

    ``started`` is the main process's start in seconds since the epoch, None without one; ``files`` those that systemd has
    read for it; ``folders`` where drop-ins may lie of which it does not know yet.
    """

    loaded: bool
    active: str
    result: str
    pid: int
    restarts: int
    started: float | None = None
    files: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()

    @property
    def running(self) -> bool:
        return self.active in ("active", "reloading") and self.pid > 0


def parse(show: str, started: t.Callable[[int], float | None]) -> Unit:
    """The output of ``systemctl show``."""
    values = dict(line.split("=", 1) for line in show.splitlines() if "=" in line)
    pid = int(values.get("MainPID") or 0)
    return Unit(
        loaded=values.get("LoadState") == "loaded",
        active=values.get("ActiveState", "inactive"),
        result=values.get("Result", ""),
        pid=pid,
        restarts=int(values.get("NRestarts") or 0),
        started=started(pid) if pid else None,
        files=tuple(
            path
            for key in ("FragmentPath", "DropInPaths")
            for path in values.get(key, "").split()
            if not _OWN.match(path)
        ),
        folders=drop_in_folders(values.get("Id", "")),
    )


def drop_in_folders(unit: str) -> tuple[str, ...]:
    """Where drop-ins of a unit may lie: its own, those of its template, those of all services. Pure."""
    name, dot, kind = unit.rpartition(".")
    names = [unit, f"{name.partition('@')[0]}@.{kind}" if "@" in name else "", kind]
    return tuple(f"{FOLDER}/{it}.d" for it in names if it and dot)


def read(name: str) -> Unit:
    done = _command.run(["systemctl", "show", name, *(f"--property={item}" for item in PROPERTIES)], ok=(0,))
    return parse(done.stdout, process_start)


def enabled(name: str) -> str:
    """What is on disk. The unit itself (UnitFileState) says until the next reload what was there before."""
    return _command.run(["systemctl", "is-enabled", name]).stdout.strip()


def stale(unit: Unit) -> bool:
    """Whether systemd goes by files of before."""
    gone = [path for path in unit.files if changed_at(path) is None]
    return bool(gone or unread([*unit.files, *unit.folders]))


def unread(paths: t.Iterable[str]) -> list[str]:
    """The files and folders that changed after systemd last read its units.

    It is not asked itself: up to 252 NeedDaemonReload says no where a unit got its first drop-in, and from 255 on it says
    yes of every unit as soon as any is enabled.
    """
    try:
        loaded = os.stat(LOADED).st_mtime
    except FileNotFoundError:
        # A release that does not say: what changed since it began.
        loaded = process_start(1) or 0.0
    changes = {path: changed_at(path) for path in paths}
    return [path for path, changed in changes.items() if changed is not None and changed > loaded]


def process_start(pid: int) -> float | None:
    """When a process began, on the clock that file times use.

    The kernel counts from its boot. The boot's own time is not read but computed from now: a clock that was set since
    then moves file times and this alike.
    """
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as handle:
            # The name of the program stands in brackets and may hold anything.
            ticks = int(handle.read().rpartition(")")[2].split()[19])
    except (OSError, IndexError, ValueError):
        return None
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) + ticks / os.sysconf("SC_CLK_TCK")


def changed_at(path: str) -> float | None:
    """When the file last changed in content, name, owner or mode; None when there is no such file."""
    try:
        return os.stat(path).st_ctime
    except OSError:
        return None


def newer(changes: t.Mapping[str, float | None], started: float) -> list[str]:
    """The files that changed after the process began. Pure."""
    return [path for path, changed in changes.items() if changed is not None and changed > started - MARGIN]


def journal(name: str, lines: int = 15) -> str:
    """The last words of a service."""
    try:
        argv = ["journalctl", "--no-pager", "--quiet", f"--lines={lines}", "--output=cat", f"--unit={name}"]
        return _command.run(argv, timeout=20).stdout.strip()
    except _command.CommandError:
        return ""
