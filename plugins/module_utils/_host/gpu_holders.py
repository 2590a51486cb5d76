# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Users' processes outside of jobs that have a GPU open or mapped. Private to the gpuops.tenancy collection."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils._host import cgroups, gpu_containers

# Numbers below are the system's own accounts.
FIRST_USER = 1000


@dataclasses.dataclass(frozen=True)
class Holder:
    pid: int
    uid: int
    name: str
    devices: tuple[str, ...]


def belongs(group: str) -> bool:
    """Whether whoever is in a cgroup got the GPU from somebody entitled to give it: a job, a container of root's. Pure."""
    of_user = group.startswith("/user.slice/")
    return bool(cgroups.JOB.match(group)) or (
        not of_user and any(gpu_containers.SCOPE.match(part) for part in group.split("/"))
    )


def read(
    hierarchy: cgroups.Hierarchy,
    devices: t.Container[str],
    exempt_uids: t.Container[int],
    spare: t.Container[int],
    proc: str = "/proc",
) -> list[Holder]:
    """
    :param exempt_uids: users who may.
    :param spare: processes of services that may.
    """
    found = []
    for pid in sorted(int(name) for name in os.listdir(proc) if name.isdigit()):
        # It may end at any time.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            status = _status(proc, pid)
            uid = int(status["Uid"].split()[0])
            if uid < FIRST_USER or uid in exempt_uids or pid in spare:
                continue
            held = sorted({path for path in opened(proc, pid) if path in devices})
            if held and not belongs(hierarchy.of_process(pid) or "/"):
                found.append(Holder(pid, uid, status["Name"].strip(), tuple(held)))
    return found


def _status(proc: str, pid: int) -> dict[str, str]:
    with open(os.path.join(proc, str(pid), "status"), encoding="utf-8", errors="replace") as handle:
        return {key: value for key, _colon, value in (line.partition(":") for line in handle)}


def opened(proc: str, pid: int) -> t.Iterator[str]:
    """The files that a process has open or mapped."""
    folder = os.path.join(proc, str(pid), "fd")
    for name in os.listdir(folder):
        with contextlib.suppress(FileNotFoundError):
            yield os.readlink(os.path.join(folder, name))
    with open(os.path.join(proc, str(pid), "maps"), encoding="utf-8", errors="replace") as handle:
        for line in handle:
            words = line.rstrip("\n").split(maxsplit=5)
            if len(words) == 6:
                yield words[5]
