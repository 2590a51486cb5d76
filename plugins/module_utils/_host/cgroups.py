# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the kernel keeps device rules, on cgroup v1 and v2. Private to the gpuops.tenancy collection."""

from __future__ import annotations

import dataclasses
import os
import re

# Anchored: nobody but root makes cgroups of these names there. The scripts around jobs, which stand alone, have the same.
JOB = re.compile(r"^(/slurm(_[^/]+)?/uid_\d+|(?!/user\.slice/)(/[^/]+)*/([^/]+_)?slurmstepd\.scope)/job_\d+(/|$)")


class NoHierarchy(Exception):
    """No cgroup file system that could hold device rules."""


@dataclasses.dataclass(frozen=True)
class Hierarchy:
    """Where it is mounted; ``version`` 1 is the devices controller of v1, 2 the unified hierarchy.

    ``units`` is where systemd keeps its units. On v1 these are two trees: a process that began before its unit had a
    policy stays where it was in the one that decides about devices.
    """

    version: int
    root: str
    units: str

    def folder(self, path: str) -> str:
        return os.path.join(self.root, path.lstrip("/"))

    def unit_pids(self, path: str) -> list[int]:
        """The processes of a unit and of all units below it."""
        found = []
        for folder, _folders, _files in os.walk(os.path.join(self.units, path.lstrip("/"))):
            found += pids(folder)
        return found

    def deciding(self, path: str) -> list[str]:
        """The cgroups that decide about devices for the processes of a unit, those of Slurm's jobs left out.

        On v1 systemd counts a job among slurmd's processes, and a login that a job adopted among sshd's.
        """
        found = {self.of_process(pid) for pid in self.unit_pids(path)}
        return sorted(group for group in found if group is not None and not JOB.match(group))

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
    devices = units = unified = None
    for line in mountinfo.splitlines():
        left, _dash, right = line.partition(" - ")
        kind, _source, options = (right.split(" ") + ["", "", ""])[:3]
        place = left.split(" ")[4].replace("\\040", " ")
        if kind == "cgroup" and "devices" in options.split(","):
            devices = place
        elif kind == "cgroup" and "name=systemd" in options.split(","):
            units = place
        elif kind == "cgroup2" and unified is None:
            unified = place
    if devices is not None:
        return Hierarchy(1, devices, units or unified or devices)
    if unified is None:
        raise NoHierarchy("no cgroup file system is mounted that could hold device rules")
    return Hierarchy(2, unified, unified)


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
