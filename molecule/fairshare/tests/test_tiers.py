# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who has to make room for whom, and what a tier gives at most."""

from __future__ import annotations

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import lab
from remote import said

EXEMPT = 60
# By Slurm itself, before what was requeued may begin again.
PUT_OFF = 120


def lives(number: str) -> list[dict[str, str]]:
    """A job's runs, as sacct keeps them when it was requeued."""
    columns = "state,start,end"
    text = said("ctl", "sacct", "-nPXD", "-j", number, "-o", columns)
    return [dict(zip(columns.split(","), line.split("|"))) for line in text.splitlines()]


def test_urgent_takes_gpus_from_a_scavenger_after_its_first_minute_and_never_from_normal(ran):
    lab.wait_for(lambda: lab.running(ran.urgent), 90, "the urgent job")
    evicted = lab.wait_for(lambda: [one for one in lives(ran.scavenger) if one["state"] == "PREEMPTED"], what="sacct")
    began, gone = lab.moment(evicted[0]["start"]), lab.moment(evicted[0]["end"])
    assert EXEMPT <= gone - began < 2 * EXEMPT
    assert lab.moment(lab.job(ran.urgent)["StartTime"]) >= began + EXEMPT
    job = lab.job(ran.scavenger)
    assert (job["JobState"], job["Restarts"]) == ("PENDING", "1")
    assert PUT_OFF <= lab.moment(job["EligibleTime"]) - gone < PUT_OFF + 30

    # Meanwhile the same tier waited behind a normal job, which nothing but its tier protects.
    lab.wait_for(lambda: lab.looked_at(ran.urgent_behind_normal, gone), what="the scheduler looks again")
    assert lab.states(ran.urgent_behind_normal)[ran.urgent_behind_normal][0] == "PENDING"
    assert lab.states(ran.normal)[ran.normal][0] == "RUNNING"
    assert lab.job(ran.normal)["Restarts"] == "0"

    # The scavenger runs again when there is room; nobody here has two minutes.
    lab.cancel(ran.urgent, ran.urgent_behind_normal, ran.normal)
    said("ctl", "scontrol", "update", f"JobId={ran.scavenger}", "StartTime=now")
    lab.wait_for(lambda: lab.running(ran.scavenger), what="the scavenger again")
    lab.cancel(ran.scavenger)


def test_limit_of_each_user(jobs):
    first, second, third = jobs("dora", "--gres=gpu:1"), jobs("dora", "--gres=gpu:1"), jobs("dora", "--gres=gpu:1")
    other = jobs("dan", "--gres=gpu:1")
    lab.wait_for(lambda: lab.running(first, second, other), what="two GPUs of dora's and one of dan's")
    lab.reason(third, "QOSMaxGRESPerUser")
    # The tier refuses what could never run.
    refused = lab.sbatch("dan", "--gres=gpu:3")
    assert refused.returncode != 0
    assert "QOSMaxGRESPerUser" in refused.stderr


def test_limit_of_each_account(jobs):
    running = [jobs("ines", "--gres=gpu:2"), jobs("ivan", "--gres=gpu:2")]
    lab.wait_for(lambda: lab.running(*running), what="four GPUs of the team's")
    lab.reason(jobs("ivan", "--gres=gpu:1"), "MaxGRESPerAccount")
    assert lab.running(*running)


def test_limit_of_all_together(jobs):
    running = [jobs(user) for user in ("ines", "ivan", "ines", "ivan")]
    lab.wait_for(lambda: lab.running(*running), what="four jobs")
    waits = jobs("ines")
    lab.reason(waits, "QOSGrpJobsLimit")
    assert lab.running(*running)
    lab.cancel(running[0])
    lab.wait_for(lambda: lab.running(waits), what="the fifth")
