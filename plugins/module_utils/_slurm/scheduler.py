# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Talking to slurmctld: one reading, one write, and what is true afterwards. Private to the gpuops.tenancy collection.

Exit statuses prove little here: scancel says 0 for what does not exist, scontrol 1 for a change that it made in part.
"""

from __future__ import annotations

import contextlib
import secrets
import shlex
import time
import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils import _command
from ansible_collections.gpuops.tenancy.plugins.module_utils._lock import Lock, LockError
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import jobs as job_list
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import nodes as node_list
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import reservations as reservation_list
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.client import Client, SlurmError
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.desired import Refused

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

LOCK = "slurm-scheduler"
# slurmctld does these at once; the time is for one that is busy.
SETTLE = 15.0
# Where Slurm refused all that was written, a little suffices: its words are seldom wrong.
REFUSED = 2.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.25, 10.0
_NO_ANSWER = ("unable to contact slurm controller", "connection refused", "connection timed out", "zero bytes were")
T = t.TypeVar("T")


class Scheduler:
    """Reads and writes; remembers what was written, for the result of a run that stops half-way."""

    def __init__(self, client: Client, purpose: str = "", lock_timeout: float | None = None) -> None:
        self.client = client
        self.purpose = purpose
        self.lock_timeout = lock_timeout
        self.applied: list[str] = []
        self.complaints: list[str] = []
        self._fds: tuple[int, ...] = ()

    def argv(self, program: str, words: t.Sequence[str]) -> list[str]:
        return [self.client.program(program), *words]

    def printable(self, program: str, words: t.Sequence[str]) -> str:
        return shlex.join(self.argv(program, words))

    def ask(self, program: str, words: t.Sequence[str]) -> str:
        done = self.client.run(self.argv(program, words))
        if done.rc != 0:
            raise _failure(done)
        return done.stdout

    def jobs(self) -> list[job_list.Job]:
        # Drawn for each reading, so that no name or comment of a job can hold it.
        mark = secrets.token_hex(8)
        return _read(lambda: job_list.parse(self.ask("squeue", job_list.squeue_words(mark)), mark))

    def nodes(self) -> dict[str, node_list.Node]:
        found = _read(lambda: node_list.parse(self.ask("scontrol", ["show", "node"])))
        if not found:
            raise SlurmError("slurmctld names no node at all: that is no state to plan from; look at its log")
        return found

    def reservations(self) -> dict[str, reservation_list.Reservation]:
        return _read(lambda: reservation_list.parse(self.ask("scontrol", ["-o", "show", "reservation"])))

    @contextlib.contextmanager
    def alone(self, check_mode: bool) -> t.Iterator[None]:
        """One writer at a time, from reading to reading back. A check waits for nobody."""
        lock = None if check_mode or self.lock_timeout is None else Lock(LOCK, self.purpose, self.lock_timeout)
        with lock or contextlib.nullcontext():
            self._fds = lock.fds if lock else ()
            try:
                yield
            finally:
                self._fds = ()

    def write(self, program: str, words: t.Sequence[str], several: bool = False) -> None:
        """What a command complains about counts only if the reading afterwards agrees.

        :param several: it names several objects, and may have done it to some of them whatever its exit status is.
        """
        done = self.client.run(self.argv(program, words), pass_fds=self._fds)
        said = " ".join((done.stderr.strip() or done.stdout.strip()).split())
        if done.rc != 0 and any(phrase in said.lower() for phrase in _NO_ANSWER):
            raise _failure(done)
        if done.rc == 0 or several:
            self.applied.append(self.printable(program, words))
        if done.rc != 0:
            self.complaints.append(said or f"{program} ended with status {done.rc}")

    def settled(self, check: t.Callable[[], tuple[bool, T]]) -> tuple[bool, T]:
        """Whether what was written shows, and the last answer."""
        return until(check, SETTLE if self.applied or not self.complaints else REFUSED)

    def failed(self, message: str, **details: t.Any) -> SlurmError:
        said = "; ".join(dict.fromkeys(self.complaints))
        return SlurmError(f"{message} (Slurm says: {said})" if said else message, {"applied": self.applied, **details})


def until(check: t.Callable[[], tuple[bool, T]], seconds: float) -> tuple[bool, T]:
    """Ask until it is true or the time is over; the last answer. Asks once at least."""
    deadline = time.monotonic() + seconds
    pause = _FIRST_PAUSE
    while True:
        done, value = check()
        left = deadline - time.monotonic()
        if done or left <= 0:
            return done, value
        time.sleep(min(pause, left))
        pause = min(pause * 1.5, _LONGEST_PAUSE)


def run_module(module: AnsibleModule, purpose: str, work: t.Callable[..., dict[str, t.Any]]) -> None:
    """``work(params, check_mode, scheduler)`` gives the result."""
    params = module.params
    scheduler = Scheduler(Client("", params["search_path"]), purpose, params.get("lock_timeout"))
    try:
        result = work(params, module.check_mode, scheduler)
    except (Refused, SlurmError, LockError) as exc:
        details = {**getattr(exc, "details", {}), "changed": bool(scheduler.applied), "applied": scheduler.applied}
        module.fail_json(msg=str(exc), **details)
    for warning in result.pop("warnings", []):
        module.warn(warning)
    module.exit_json(**result)


def _read(parse: t.Callable[[], T]) -> T:
    try:
        return parse()
    except ValueError as exc:
        raise SlurmError(f"cannot read what Slurm printed: {exc}") from exc


def _failure(done: _command.Completed) -> SlurmError:
    said = f"{done.stdout}\n{done.stderr}".lower()
    hint = "slurmctld does not answer; start it, and run again" if any(word in said for word in _NO_ANSWER) else ""
    error = _command.failed(done, hint)
    return SlurmError(str(error), error.as_result())
