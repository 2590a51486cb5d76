# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""slurm_job and slurm_job_info, from arguments to result. Private to the gpuops.tenancy collection."""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils._plan import Plan
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import jobs, jobs_plan
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.jobs import Job, Selection
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.scheduler import Scheduler, until

SELECTION: dict[str, dict[str, t.Any]] = {
    field.name: {"type": "list", "elements": "str"} for field in dataclasses.fields(Selection)
}
# Jobs that were submitted in the meantime are taken along; who goes on submitting has to be blocked first.
_PASSES = 3


def info(params: t.Mapping[str, t.Any], check_mode: bool, scheduler: Scheduler) -> dict[str, t.Any]:
    if any(params.get(name) == [] for name in SELECTION):
        # Nobody was named, so nobody's jobs are asked for.
        return {"changed": False, "jobs": []}
    wanted = jobs.selection(params)
    found = [job for job in scheduler.jobs() if wanted.holds(job) and not (wanted.states is None and job.over)]
    return {"changed": False, "jobs": [job.as_dict() for job in found]}


class _Run:
    def __init__(self, wanted: Selection, state: str, max_jobs: int, scheduler: Scheduler) -> None:
        self.wanted = wanted
        self.state = state
        self.max_jobs = max_jobs
        self.scheduler = scheduler
        self.seen: dict[str, Job] = {}
        self.acted: dict[str, Job] = {}
        self.plan = Plan()
        self.commands: list[str] = []

    def once(self, check_mode: bool) -> bool:
        """Plan and act on the selected jobs that were not seen before; whether there was anything to do."""
        found = [job for job in self.scheduler.jobs() if self.wanted.holds(job) and not job.over]
        new = [job for job in found if job.id not in self.seen]
        plan = jobs_plan.make_plan(new, self.state, self.max_jobs, len(self.plan))
        self.seen.update((job.id, job) for job in new)
        # A job that is ending already is waited for as well.
        self.acted.update(
            (job.id, job) for job in new if self.state == jobs_plan.CANCELLED or jobs_plan.to_do(job, self.state)
        )
        self.plan.changes += plan.changes
        steps = jobs_plan.compile_plan(plan, self.state)
        self.commands += [self.scheduler.printable(program, words) for program, words in steps]
        if check_mode or not plan.changed:
            return False
        for program, words in steps:
            self.scheduler.write(program, words, len(plan) > 1)
        done, left = self.scheduler.settled(self._accepted)
        if not done:
            raise self.failed(f"these jobs are not {self.state}", left)
        return True

    def left(self) -> tuple[bool, list[Job]]:
        found = jobs_plan.unfinished(self.acted, self.scheduler.jobs(), self.state)
        return not found, found

    def _accepted(self) -> tuple[bool, list[Job]]:
        found = [job for job in self.left()[1] if job.state != "COMPLETING"]
        return not found, found

    def failed(self, message: str, left: t.Iterable[Job]) -> Exception:
        names = [job.label for job in left]
        return self.scheduler.failed(
            f"{message}: {jobs_plan.listed(names)}", **self.result(), unfinished=[job.id for job in left]
        )

    def result(self) -> dict[str, t.Any]:
        return {
            "changed": self.plan.changed,
            "plan": self.plan.as_list(),
            "diff": self.plan.diff("jobs (now)", "jobs (wanted)"),
            "commands": self.commands,
            "jobs": [job.as_dict() for job in self.seen.values()],
        }


def reconcile(params: t.Mapping[str, t.Any], check_mode: bool, scheduler: Scheduler) -> dict[str, t.Any]:
    wanted, state = jobs.selection(params), params["state"]
    jobs.refuse_everything(wanted)
    run = _Run(wanted, state, params["max_jobs"], scheduler)
    for _attempt in range(_PASSES):
        with scheduler.alone(check_mode):
            more = run.once(check_mode)
        if not more or state not in (jobs_plan.CANCELLED, jobs_plan.HELD):
            break
    else:
        raise run.failed("new jobs keep coming; block who submits them first. The last ones", run.acted.values())
    if check_mode:
        return {**run.result(), "unfinished": []}
    # Others may write while this one waits.
    done, left = until(run.left, params["wait"])
    if not done and params["wait"]:
        raise run.failed(f"after {params['wait']} s these jobs are not {state}", left)
    return {**run.result(), "unfinished": [job.id for job in left]}
