# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which jobs are on this node, found out without asking slurmctld.

Two sources: what prolog and epilog wrote down (a job has no process yet while its prolog runs), and Slurm's own traces
(slurmstepd, its sockets in the spool directory, the cgroups of processes).
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import time
import typing as t

BEGINS, ENDS = "begins", "ends"
_STEPD = re.compile(rb"^slurmstepd: \[(\d+)\.")
_SOCKET = re.compile(r"^.+_(\d+)\.\d+(\.\d+)?$")
# Anchored: on v2 a user may make cgroups of any name below user.slice.
_JOB_CGROUP = re.compile(
    r"^(?:\d+:[^:]*:/slurm(?:_[^/]+)?/uid_\d+/job_(\d+)(?:/|$)"
    r"|0::(?!/user\.slice/)(?:/[^/]+)*/(?:[^/]+_)?slurmstepd\.scope/job_(\d+)(?:/|$))",
    re.MULTILINE,
)


def of_cgroup(text: str) -> int | None:
    """The job that a process belongs to, from its /proc/PID/cgroup. Pure."""
    match = _JOB_CGROUP.search(text)
    return int(match.group(1) or match.group(2)) if match else None


def live(proc: str, spool: str) -> set[int]:
    """Jobs that have a slurmstepd, or a socket of one."""
    found: set[int] = set()
    for entry in os.listdir(proc):
        if not entry.isdigit():
            continue
        with contextlib.suppress(OSError):
            # A user can give a process any title, but not root's number.
            if os.stat(os.path.join(proc, entry)).st_uid != 0:
                continue
            with open(os.path.join(proc, entry, "cmdline"), "rb") as handle:
                match = _STEPD.match(handle.read(200))
            if match:
                found.add(int(match.group(1)))
    with contextlib.suppress(FileNotFoundError):
        for name in os.listdir(spool):
            match_name = _SOCKET.match(name)
            if match_name:
                found.add(int(match_name.group(1)))
    return found


class Registry:
    """What prologs and epilogs wrote down: one small file for each job, gone at boot."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        # Where there is no room for it, each use says so.
        with contextlib.suppress(OSError):
            os.makedirs(directory, mode=0o700, exist_ok=True)

    def _path(self, job: int) -> str:
        return os.path.join(self.directory, f"job-{job}")

    def _write(self, job: int, uid: int, state: str) -> None:
        path = self._path(job)
        with open(f"{path}.new", "w", encoding="utf-8") as handle:
            json.dump({"uid": uid, "state": state, "at": time.time()}, handle)
        os.replace(f"{path}.new", path)

    def begins(self, job: int, uid: int) -> None:
        self._write(job, uid, BEGINS)

    def ends(self, job: int, uid: int) -> None:
        """From now on it keeps nobody from cleaning up: two jobs that end together must not wait for each other."""
        self._write(job, uid, ENDS)

    def forget(self, job: int) -> None:
        with contextlib.suppress(OSError):
            os.unlink(self._path(job))

    def read(self) -> dict[int, dict[str, t.Any]]:
        found: dict[int, dict[str, t.Any]] = {}
        for name in os.listdir(self.directory):
            if not re.match(r"^job-\d+$", name):
                continue
            with contextlib.suppress(FileNotFoundError, ValueError):
                with open(os.path.join(self.directory, name), encoding="utf-8") as handle:
                    entry = json.load(handle)
                found[int(name[4:])] = {"uid": int(entry["uid"]), "state": entry["state"], "at": float(entry["at"])}
        return found

    def prune(self, alive: t.Container[int], grace: float, now: float) -> None:
        """Forget jobs whose epilog never came to its end here and that have nothing left."""
        for job, entry in self.read().items():
            if job not in alive and now - entry["at"] > grace:
                self.forget(job)

    @contextlib.contextmanager
    def lock(self, name: str, patience: float) -> t.Iterator[bool]:
        """Held by the process, so it goes with it. After ``patience``, or where there is no room for it, the work goes
        on without: false."""
        path = os.path.join(self.directory, f"lock-{name}")
        deadline = time.monotonic() + patience
        while True:
            try:
                handle = open(path, "a", encoding="utf-8")  # noqa: SIM115
            except OSError:
                yield False
                return
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # The last holder may have removed it between our opening it and its giving it up.
                held = os.fstat(handle.fileno()).st_nlink > 0
            except BlockingIOError:
                held = False
            if held or time.monotonic() > deadline:
                break
            handle.close()
            time.sleep(0.05)
        try:
            yield held
        finally:
            if held:
                os.unlink(path)
            handle.close()


def others(
    job: int,
    uid: int,
    registered: t.Mapping[int, t.Mapping[str, t.Any]],
    alive: t.Container[int],
    members: t.Iterable[int],
    grace: float,
    now: float,
) -> set[int]:
    """Other jobs of the user that are on this node, or about to be. Pure.

    :param alive: jobs with a slurmstepd.
    :param members: jobs whose cgroups hold processes of the user.
    :param grace: how long a job may take from the begin of its prolog to its first slurmstepd.
    """
    found = set()
    for other, entry in registered.items():
        if other == job or entry["uid"] != uid or entry["state"] != BEGINS:
            continue
        if other in alive or 0 <= now - entry["at"] < grace:
            found.add(other)
    ending = {other for other, entry in registered.items() if entry["state"] == ENDS}
    return found | {other for other in members if other != job and other in alive and other not in ending}


def count(directory: str, script: str, why: str) -> None:
    """Add a mistake of a script to the tally, bugs.json."""
    path = os.path.join(directory, "bugs.json")
    with open(os.path.join(directory, "lock-bugs"), "a", encoding="utf-8") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        tally: dict[str, t.Any] = {}
        with contextlib.suppress(FileNotFoundError, ValueError):
            with open(path, encoding="utf-8") as old:
                tally = json.load(old)
        entry = tally.get(script) or {"count": 0}
        tally[script] = {"count": int(entry["count"]) + 1, "last": why, "at": int(time.time())}
        with open(f"{path}.new", "w", encoding="utf-8") as new:
            json.dump(tally, new, indent=1, sort_keys=True)
        os.replace(f"{path}.new", path)
