# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Limits. The canaries that try have limits so small that nothing runs, and cancel what they submitted."""

from __future__ import annotations

import re
import time

from ..api import NotProven, failed, passed, probe
from .slurm_write import ENFORCE

PATIENCE = 25


def stays(world, reason: str, *options: str):
    """A job that a limit must keep waiting; it must say so, and never begin."""
    argv = ["sbatch", "--parsable", "--mem=10", "--chdir=/", "--output=/dev/null", *world.placed(), *options]
    code, out, err = world.run(argv, stdin="#!/bin/sh\nexit 0\n")
    words = " ".join(options)
    if code:
        answer = " ".join((err or out).split())[:200]
        if re.search(reason, answer):
            return passed(f"sbatch {words}: {answer}")
        raise NotProven(f"sbatch {words}: {answer}")
    job = out.strip().split(";")[0]
    seen = ""
    try:
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            code, out, _err = world.run(["squeue", "-h", "-j", job, "-o", "%T %r"])
            seen = out.strip()
            if not seen or not seen.startswith("PENDING"):
                return failed(f"sbatch {words}: job {job} is {seen or 'over'}")
            if re.search(reason, seen):
                return passed(f"sbatch {words}: {seen}")
            time.sleep(1)
    finally:
        world.run(["scancel", job])
    raise NotProven(f"sbatch {words}: waits for another reason, {seen}")


@probe(
    "limit-gpus",
    "gets no more GPUs than its limit",
    f"{ENFORCE}=limits (GrpTRES gres/gpu)",
    ("login",),
    actors=("capped",),
)
def limit_gpus(world):
    """Ask for two GPUs where the limit is one."""
    return stays(world, r"(AssocGrp|Max)(GRES|Gres)(?!\w*Min)", "--nodes=1", "--gres=gpu:2", "--time=1")


@probe(
    "limit-minutes",
    "uses no more GPU minutes than its budget",
    f"{ENFORCE}=safe (GrpTRESMins gres/gpu)",
    ("login",),
    actors=("capped",),
)
def limit_minutes(world):
    """Ask for one GPU for five minutes where the budget is three."""
    return stays(world, "GRESMin|GresMin", "--gres=gpu:1", "--time=5")


@probe("limit-jobs", "runs no more jobs than its limit", f"{ENFORCE}=limits (MaxJobs)", ("login",), actors=("idle",))
def limit_jobs(world):
    """Submit a job where the limit is none."""
    return stays(world, "AssocMaxJobs|AssocGrpJobs|QOSMaxJobs", "--time=1")


@probe(
    "limit-submits",
    "queues no more jobs than its limit",
    f"{ENFORCE}=limits (MaxSubmitJobs)",
    ("login",),
    actors=("capped",),
)
def limit_submits(world):
    """Submit three held jobs where the limit is two."""
    jobs = []
    try:
        for _number in range(3):
            argv = ["sbatch", "--parsable", "--hold", "--time=1", "--mem=10", "--chdir=/", "--output=/dev/null"]
            code, out, err = world.run(argv, stdin="#!/bin/sh\nexit 0\n")
            answer = " ".join((err or out).split())[:200]
            if code == 0:
                jobs.append(out.strip().split(";")[0])
            elif "SubmitJob" in answer:
                return passed(f"job {len(jobs) + 1}: {answer}")
            else:
                raise NotProven(f"job {len(jobs) + 1} is refused for another reason: {answer}")
    finally:
        if jobs:
            world.run(["scancel", *jobs])
    return failed("three jobs were accepted, and cancelled")
