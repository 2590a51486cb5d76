# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the kernel keeps device rules, on cgroup v1 and v2. Private to the gpuops.tenancy collection."""

from __future__ import annotations

import dataclasses
import os
import typing as t


class NoHierarchy(Exception):
    """No cgroup file system that could hold device rules."""


@dataclasses.dataclass(frozen=True)
class Hierarchy:
    """Where it is mounted; ``version`` 1 is the devices controller of v1, 2 the unified hierarchy."""

    version: int
    root: str

    def folder(self, path: str) -> str:
        return os.path.join(self.root, path.lstrip("/"))

    def nearest(self, path: str) -> str:
        """The cgroup that decides for a unit: on v1 systemd makes one only where it has something to say."""
        while path.strip("/") and not os.path.isdir(self.folder(path)):
            path = os.path.dirname(path)
        return path or "/"

    def occupied(self, path: str) -> list[str]:
        """The cgroups at and below a path that hold processes. A process can only join one of these on v2."""
        found = []
        for folder, _folders, _files in os.walk(self.folder(path)):
            if pids(folder):
                found.append(os.path.join("/", os.path.relpath(folder, self.root)))
        return sorted(found)

    def of_process(self, pid: int) -> str | None:
        try:
            with open(f"/proc/{pid}/cgroup", encoding="utf-8", errors="replace") as handle:
                return membership(handle.read(), self.version)
        except (FileNotFoundError, ProcessLookupError):
            return None


def membership(text: str, version: int) -> str | None:
    """The path in /proc/PID/cgroup. Pure."""
    for line in text.splitlines():
        number, controllers, path = line.split(":", 2)
        if version == 2 and number == "0" and not controllers:
            return path
        if version == 1 and "devices" in controllers.split(","):
            return path
    return None


def parse(mountinfo: str) -> Hierarchy:
    """From /proc/self/mountinfo. Pure.

    :raises NoHierarchy: neither is mounted.
    """
    unified = None
    for line in mountinfo.splitlines():
        left, _dash, right = line.partition(" - ")
        kind, _source, options = (right.split(" ") + ["", "", ""])[:3]
        place = left.split(" ")[4].replace("\\040", " ")
        if kind == "cgroup" and "devices" in options.split(","):
            return Hierarchy(1, place)
        if kind == "cgroup2" and unified is None:
            unified = place
    if unified is None:
        raise NoHierarchy("no cgroup file system is mounted that could hold device rules")
    return Hierarchy(2, unified)


def read() -> Hierarchy:
    with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as handle:
        return parse(handle.read())


def pids(folder: str) -> list[int]:
    """The processes of one cgroup; none where it has just gone."""
    try:
        with open(os.path.join(folder, "cgroup.procs"), encoding="ascii") as handle:
            return [int(word) for word in handle.read().split()]
    except OSError:
        return []


def all_pids(hierarchy: Hierarchy, path: str) -> t.Iterator[int]:
    for folder in hierarchy.occupied(path):
        yield from pids(hierarchy.folder(folder))
