# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""slurm_reservation, from arguments to result. Private to the gpuops.tenancy collection."""

from __future__ import annotations

import time
import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils._plan import REMOVE, Plan
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import (
    hostlist,
    jobs,
    jobs_plan,
    reservations,
    reservations_plan,
)
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.desired import Refused
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.reservations import Wanted
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.scheduler import Scheduler, until

# How long the jobs of a reservation that is removed by force may take to end: KillWait, and an epilog.
_ENDING = 120.0


def reconcile(params: t.Mapping[str, t.Any], check_mode: bool, scheduler: Scheduler) -> dict[str, t.Any]:
    wanted = reservations.build(params)
    with scheduler.alone(check_mode):
        current = scheduler.reservations()
        plan = reservations_plan.make_plan(int(time.time()), current, wanted)
        _check_names(plan, wanted, scheduler)
        inside = _inside(plan, wanted, bool(params.get("force")), scheduler)
        clearing = _clearing(inside)
        steps = [("scontrol", words) for words in reservations_plan.compile_plan(plan, wanted)]
        if not check_mode:
            for program, words in clearing:
                scheduler.write(program, words, len(inside) > 1)
            if not clearing:
                current = _apply(wanted, steps, current, scheduler)
    if clearing and not check_mode:
        # Others may write while this one waits.
        done, left = until(lambda: _empty(wanted.name, scheduler), _ENDING)
        if not done:
            names = jobs_plan.listed([job.label for job in left])
            raise scheduler.failed(f"reservation {wanted.name} still has jobs {names}; it stays")
        with scheduler.alone(check_mode):
            current = _apply(wanted, steps, current, scheduler)
    there = current.get(wanted.name)
    return {
        "changed": plan.changed,
        "plan": plan.as_list(),
        "diff": plan.diff("reservations (now)", "reservations (wanted)"),
        "commands": [scheduler.printable(program, words) for program, words in [*clearing, *steps]],
        "jobs": [job.as_dict() for job in inside],
        "reservation": there.as_dict() if there else {},
    }


def _inside(plan: Plan, wanted: Wanted, force: bool, scheduler: Scheduler) -> list[jobs.Job]:
    """Jobs that stand in the way of a removal, where it may go on regardless."""
    if not plan.changes or plan.changes[0].kind != REMOVE:
        return []
    found = reservations.in_it(scheduler.jobs(), wanted.name)
    if found and not force:
        names = jobs_plan.listed([job.label for job in found])
        raise Refused(
            [
                f"reservation {wanted.name} has jobs {names}; wait for them, or set force, which cancels those that run "
                "and takes the others out of the reservation"
            ]
        )
    return found


def _clearing(inside: t.Sequence[jobs.Job]) -> list[tuple[str, list[str]]]:
    running = [job.id for job in inside if not job.waiting]
    waiting = [job.id for job in inside if job.waiting]
    steps = [("scancel", part) for part in jobs_plan.portions(running)]
    steps += [
        ("scontrol", ["update", f"JobId={','.join(part)}", "ReservationName="]) for part in jobs_plan.portions(waiting)
    ]
    return steps


def _apply(
    wanted: Wanted,
    steps: t.Sequence[tuple[str, list[str]]],
    current: dict[str, reservations.Reservation],
    scheduler: Scheduler,
) -> dict[str, reservations.Reservation]:
    if not steps:
        return current
    for program, words in steps:
        scheduler.write(program, words)
    done, (current, left_over) = scheduler.settled(lambda: _as_wanted(wanted, scheduler))
    if not done:
        fields = ", ".join(change.field or change.kind for change in left_over)
        remaining = [
            scheduler.printable("scontrol", words) for words in reservations_plan.compile_plan(left_over, wanted)
        ]
        raise scheduler.failed(f"reservation {wanted.name} is not as wanted: {fields}", remaining=remaining)
    return current


def _as_wanted(wanted: Wanted, scheduler: Scheduler) -> tuple[bool, tuple[dict[str, reservations.Reservation], Plan]]:
    current = scheduler.reservations()
    if wanted.present and wanted.name not in current:
        # Not what a plan from nothing would say: that refuses times that have passed meanwhile.
        return False, (current, Plan())
    plan = reservations_plan.make_plan(int(time.time()), current, wanted)
    return not plan.changed, (current, plan)


def _empty(name: str, scheduler: Scheduler) -> tuple[bool, list[jobs.Job]]:
    found = reservations.in_it(scheduler.jobs(), name)
    return not found, found


def _check_names(plan: Plan, wanted: Wanted, scheduler: Scheduler) -> None:
    """What scontrol would refuse with one word for all of it."""
    problems = []
    changing = {change.field for change in plan}
    if "nodes" in changing and wanted.nodes and wanted.nodes != {reservations.ALL}:
        unknown = wanted.nodes - set(scheduler.nodes())
        if unknown:
            problems.append(f"Slurm knows no node {hostlist.fold(unknown)}")
    if "users" in changing and wanted.users:
        names = sorted(name.lstrip("-") for name in wanted.users)
        entries = scheduler.client.run(scheduler.argv("getent", ["passwd", *names])).stdout
        known = {line.split(":")[0] for line in entries.splitlines()}
        problems += [f"this host knows no user {name}" for name in names if name not in known]
    if "accounts" in changing and wanted.accounts:
        text = scheduler.ask("sacctmgr", ["-inP", "show", "account", "format=account"])
        unknown = {name.lstrip("-") for name in wanted.accounts} - set(text.split("\n"))
        problems += [f"Slurm knows no account {name}" for name in sorted(unknown)]
    if problems:
        raise Refused(
            [f"reservation {wanted.name}: {problem}; correct the name, or make it first" for problem in problems]
        )
