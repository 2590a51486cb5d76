# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Apply a plan, read again, plan again. Private to the gpuops.tenancy collection.

Exit statuses and messages of sacctmgr prove nothing (0 with half of it done exists, and 1 as well): a run has
succeeded when a new reading yields an empty plan.
"""

from __future__ import annotations

import contextlib
import dataclasses
import shlex
import time
import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils._lock import Lock
from ansible_collections.gpuops.tenancy.plugins.module_utils._plan import Plan
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.client import Client, SlurmError, Transient
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.command import Command
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.desired import Refused

FIRST = 25
GROWTH = 4
# A command that is ended half-way leaves the server at work; this is for one that hangs. sacctmgr itself gives up on
# an answer after 900 s.
TIMEOUT = 960.0
_PASSES = 4
_PAUSE = 2.0
_SHOWN = 20


@dataclasses.dataclass(frozen=True)
class Work:
    """What differs between kinds of objects.

    ``guard`` raises where a plan must not be carried out right now, ``last_look`` where a command must not.
    """

    read: t.Callable[[], t.Any]
    plan: t.Callable[[t.Any], Plan]
    compile: t.Callable[[t.Any, t.Any], list[Command]]
    guard: t.Callable[[t.Any], None] = lambda plan: None
    last_look: t.Callable[[Command], None] = lambda command: None


class ApplyError(SlurmError):
    """Stopped part of the way: ``applied`` were accepted by sacctmgr, ``remaining`` is still to do."""

    def __init__(self, message: str, details: dict[str, t.Any], applied: list[str], remaining: list[str]) -> None:
        super().__init__(message, {**details, "applied": applied, "remaining": remaining})


@dataclasses.dataclass
class Portions:
    """How many objects the next command takes, from what the last ones cost on this server."""

    target: float = 6.0
    sizes: dict[str, int] = dataclasses.field(default_factory=dict)

    def size(self, command: Command) -> int:
        return max(1, min(self.sizes.get(command.kind, FIRST), command.most))

    def measured(self, command: Command, count: int, seconds: float) -> None:
        now = self.size(command)
        fitting = max(1, int(count * self.target / max(seconds, 0.001)))
        # Grows step by step, since a fast command may have been lucky; does not shrink because a small one was fast,
        # since much of what that took was no matter of its size.
        self.sizes[command.kind] = fitting if seconds > self.target else max(now, min(fitting, count * GROWTH))


def printable(client: Client, command: Command) -> str:
    return shlex.join(client.sacctmgr(command.words()))


def once(
    client: Client, work: Work, check_mode: bool, lock: Lock | None, target: float = 6.0
) -> tuple[t.Any, t.Any, list[str]]:
    """One run: the state before, the plan, and the commands of it, which are run unless it is a check.

    A check reads without the lock; anything that may write holds it from before the first reading.
    """
    with contextlib.nullcontext() if check_mode or lock is None else lock:
        state = work.read()
        plan = work.plan(state)
        if check_mode or not plan.changed:
            return state, plan, [printable(client, command) for command in work.compile(state, plan)]
        fds = lock.fds if lock else ()
        return state, plan, converge(client, work, state, plan, fds, target)


def converge(
    client: Client,
    work: Work,
    state: t.Any,
    first: Plan,
    pass_fds: t.Sequence[int] = (),
    target: float = 6.0,
) -> list[str]:
    """Carry out ``first``, made from ``state``; return the commands run.

    What only shows once something else is gone (a coordinator of a parent hides the same one of the child) makes a
    further pass. A pass that leaves exactly what it set out to do is a failure.
    """
    plan, applied, portions = first, t.cast("list[str]", []), Portions(target)
    for attempt in range(_PASSES):
        commands = work.compile(state, plan)
        try:
            work.guard(plan)
            _run(client, commands, portions, applied, pass_fds, work.last_look)
            transient = None
        except Transient as exc:
            transient = exc
            time.sleep(_PAUSE * (attempt + 1))
        except SlurmError as exc:
            raise _stopped(client, work, str(exc), exc.details, applied, commands) from exc
        before = plan.as_list()
        try:
            state = work.read()
            plan = work.plan(state)
        except (SlurmError, Refused) as exc:
            remaining = [printable(client, command) for command in commands]
            raise ApplyError(
                f"cannot read back what was written: {exc}", getattr(exc, "details", {}), applied, remaining
            ) from exc
        if not plan.changed:
            return applied
        if transient is None and plan.as_list() == before:
            break
    message = "slurmdbd accepted the commands, but these fields differ from the plan: " + "; ".join(
        f"{change.object} {change.field or change.kind}" for change in plan.changes[:_SHOWN]
    )
    if transient is not None:
        message = f"still refused after {_PASSES} attempts: {transient}"
    raise _stopped(client, work, message, {}, applied, [])


def _run(
    client: Client,
    commands: t.Sequence[Command],
    portions: Portions,
    applied: list[str],
    pass_fds: t.Sequence[int],
    last_look: t.Callable[[Command], None] = lambda command: None,
) -> None:
    for command in commands:
        first = 0
        while first < len(command.items):
            part = command.part(first, portions.size(command))
            last_look(part)
            seconds = client.write(part.words(), TIMEOUT, pass_fds)
            portions.measured(command, len(part.items), seconds)
            applied.append(printable(client, part))
            first += len(part.items)


def _stopped(
    client: Client,
    work: Work,
    message: str,
    details: dict[str, t.Any],
    applied: list[str],
    commands: t.Sequence[Command],
) -> ApplyError:
    """What remains is what a new plan says; where that cannot be had, all commands of this pass."""
    try:
        state = work.read()
        commands = work.compile(state, work.plan(state))
    except (SlurmError, Refused):
        pass  # the first error is the one to report
    return ApplyError(message, details, applied, [printable(client, command) for command in commands])
