# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Jobs: what is still to do, and whether it has come true. Pure; private to the gpuops.tenancy collection."""

from __future__ import annotations

import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils._plan import (
    CHANGE,
    DESTRUCTIVE,
    DISRUPTIVE,
    SAFE,
    Change,
    Plan,
)
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.desired import Refused
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.jobs import Job

HELD, RELEASED, CANCELLED, REQUEUED = "held", "released", "cancelled", "requeued"
STATES = (HELD, RELEASED, CANCELLED, REQUEUED)
_IDS_PER_COMMAND = 200
_SHOWN = 20


def to_do(job: Job, state: str) -> bool:
    """Whether a job is not yet what is wanted, and can become it."""
    if job.over:
        return False
    if state == HELD:
        return job.waiting and not job.held
    if state == RELEASED:
        return job.held
    if state == REQUEUED:
        return not job.waiting and job.state != "COMPLETING"
    return job.state != "COMPLETING"


def listed(names: t.Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def make_plan(jobs: t.Sequence[Job], state: str, max_jobs: int, already: int = 0) -> Plan:
    """:param jobs: those selected. :param already: how many the run has acted on before."""
    meant = [job for job in jobs if to_do(job, state)]
    if len(meant) + already > max_jobs:
        before = f"{already} are done; " if already else ""
        raise Refused(
            [
                f"{before}{len(meant)} jobs would be {state}, more than max_jobs {max_jobs} allows: "
                f"{listed([job.label for job in meant])}; narrow the selection, or raise max_jobs"
            ]
        )
    risk = {CANCELLED: DESTRUCTIVE, RELEASED: SAFE}.get(state, DISRUPTIVE)
    before = {HELD: "PENDING", RELEASED: "held"}
    after = {HELD: "held", RELEASED: "released", CANCELLED: "CANCELLED", REQUEUED: "REQUEUED"}[state]
    return Plan(Change(CHANGE, f"job {job.id}", "state", before.get(state, job.state), after, risk) for job in meant)


def portions(ids: t.Sequence[str]) -> list[list[str]]:
    return [list(ids[first : first + _IDS_PER_COMMAND]) for first in range(0, len(ids), _IDS_PER_COMMAND)]


def compile_plan(plan: Plan, state: str) -> list[tuple[str, list[str]]]:
    """Programs and their words."""
    ids = [change.object.partition(" ")[2] for change in plan]
    parts = portions(ids)
    if state == CANCELLED:
        return [("scancel", part) for part in parts]
    verb = {HELD: "hold", RELEASED: "release", REQUEUED: "requeue"}[state]
    return [("scontrol", [verb, ",".join(part)]) for part in parts]


def unfinished(acted: t.Mapping[str, Job], now: t.Iterable[Job], state: str) -> list[Job]:
    """Of the jobs acted on, those for which it has not come true yet. A job that is gone needs nothing more."""
    left = []
    for job in now:
        before = acted.get(job.id)
        if before is None or job.over:
            continue
        if state == HELD:
            done = job.held
        elif state == RELEASED:
            done = not job.held
        elif state == REQUEUED:
            done = job.waiting or (job.start_time != before.start_time and job.state != "COMPLETING")
        else:
            done = False
        if not done:
            left.append(job)
    return left
