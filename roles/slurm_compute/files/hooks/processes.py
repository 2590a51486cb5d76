# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Processes of users: found by number, ended by process and start time so that nobody else's is hit."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import time
import typing as t

import jobs

# How often in a row nothing must be found.
LOOKS = 3


@dataclasses.dataclass(frozen=True)
class Process:
    """``started``: in ticks since boot; with the number it names one process for good."""

    pid: int
    started: int
    real: int
    effective: int
    state: str
    name: str
    job: int | None

    def belongs_to(self, owns: t.Callable[[int], bool]) -> bool:
        # A service of root that acts for the user for a moment is not hers; a program with the s bit that she started is.
        return owns(self.real) or (self.real != 0 and owns(self.effective))


def read_one(proc: str, pid: int) -> Process | None:
    directory = os.path.join(proc, str(pid))
    try:
        with open(os.path.join(directory, "stat"), encoding="utf-8", errors="replace") as handle:
            text = handle.read()
        # The name stands in brackets and may hold anything.
        head, _bracket, tail = text.rpartition(")")
        fields = tail.split()
        with open(os.path.join(directory, "status"), encoding="utf-8", errors="replace") as handle:
            uids = next(row for row in handle if row.startswith("Uid:")).split()
        job = None
        with contextlib.suppress(FileNotFoundError):
            with open(os.path.join(directory, "cgroup"), encoding="utf-8", errors="replace") as handle:
                job = jobs.of_cgroup(handle.read())
    except (OSError, StopIteration, IndexError):
        # It ended meanwhile.
        return None
    return Process(
        pid, int(fields[19]), int(uids[1]), int(uids[2]), fields[0], head.partition("(")[2].replace("\n", " "), job
    )


def read(proc: str) -> list[Process]:
    found = (read_one(proc, int(name)) for name in os.listdir(proc) if name.isdigit())
    return [process for process in found if process is not None]


def targets(
    processes: t.Iterable[Process],
    owns: t.Callable[[int], bool],
    job: int | None,
    spare: t.Container[int],
    all_of_them: bool,
) -> list[Process]:
    """What has to end. Pure.

    :param owns: whether a uid is one of those to be cleaned up behind.
    :param job: the job that ended.
    :param spare: jobs that still run.
    :param all_of_them: without it only what is left in the cgroup of ``job`` itself.
    """
    found = []
    for process in processes:
        if process.pid in (1, os.getpid()) or process.state in "ZX" or not process.belongs_to(owns):
            continue
        if process.job is not None and process.job != job and process.job in spare:
            continue
        if all_of_them or (job is not None and process.job == job):
            found.append(process)
    return found


def send(proc: str, process: Process, number: int) -> bool:
    """Send a signal to this very process; false where it has ended meanwhile."""
    try:
        # Kernels before 5.3 have none; the look at the start time right before is then all there is.
        descriptor = os.pidfd_open(process.pid) if hasattr(os, "pidfd_open") else -1
    except ProcessLookupError:
        return False
    except OSError:
        descriptor = -1
    try:
        now = read_one(proc, process.pid)
        if now is None or now.started != process.started:
            return False
        if descriptor >= 0:
            signal.pidfd_send_signal(descriptor, number)
        else:
            os.kill(process.pid, number)
        return True
    except ProcessLookupError:
        return False
    finally:
        if descriptor >= 0:
            os.close(descriptor)


def kill_all_of(uid: int) -> None:
    """SIGKILL for every process of a user, by the kernel and in one stroke: nothing that forks faster than it is found
    gets away. Hits jobs too, so only for a user who has none here."""
    if uid < 1000:
        raise ValueError(f"uid {uid} is no user's")
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setresuid(uid, uid, uid)
            os.kill(-1, signal.SIGKILL)
        finally:
            os._exit(0)
    os.waitpid(child, 0)


def end(
    proc: str, find: t.Callable[[], list[Process]], patience: float, uid: int | None = None
) -> tuple[list[Process], list[Process]]:
    """End whatever ``find`` finds until it finds nothing; returns what was ended, and what could not be.

    :param uid: all processes of this user may be ended.
    """
    met: dict[tuple[int, int], Process] = {}
    deadline = time.monotonic() + patience
    quiet = 0
    while True:
        found = find()
        met.update({(process.pid, process.started): process for process in found})
        # One look is not enough: the parent may be gone when we read it, and the child be new since we listed it.
        quiet = 0 if found else quiet + 1
        if quiet == LOOKS or time.monotonic() > deadline:
            left = {(process.pid, process.started) for process in found}
            return [process for key, process in met.items() if key not in left], found
        if uid is not None:
            kill_all_of(uid)
        # Stopped first, all of them: what makes children faster than it is killed would win.
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for process in found:
                send(proc, process, number)
        time.sleep(0.05 if found else 0.01)


def holders(proc: str, processes: t.Iterable[Process], devices: t.Container[str]) -> list[Process]:
    """Who has one of the devices open or mapped."""
    found = []
    for process in processes:
        if process.state in "ZX":
            continue
        if any(name in devices for name in opened(proc, process.pid)):
            found.append(process)
    return found


def opened(proc: str, pid: int) -> t.Iterator[str]:
    """The files that a process has open or mapped."""
    directory = os.path.join(proc, str(pid))
    with contextlib.suppress(OSError):
        for name in os.listdir(os.path.join(directory, "fd")):
            with contextlib.suppress(OSError):
                yield os.readlink(os.path.join(directory, "fd", name))
    with contextlib.suppress(OSError):
        with open(os.path.join(directory, "maps"), encoding="utf-8", errors="replace") as handle:
            for row in handle:
                words = row.rstrip("\n").split(maxsplit=5)
                if len(words) == 6 and words[5].startswith("/dev/"):
                    yield words[5]
