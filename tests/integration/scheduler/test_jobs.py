# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""slurm_job and slurm_job_info: exactly the jobs that are meant, and only what has come true."""

from __future__ import annotations

import pytest
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import jobs_apply
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.client import SlurmError
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.desired import Refused

LATER = "--begin=now+1hour"


@pytest.fixture
def info(ctl):
    return lambda **selection: jobs_apply.info(selection, False, ctl.scheduler())["jobs"]


def test_hold_and_release_one_users_waiting_jobs(ctl, job, submit, accounts):
    waiting, others, running = submit(LATER), submit(LATER, user="daemon"), submit(on="gpu1")
    result = job(users=["games"], state="held")
    assert result["commands"] == [f"scontrol hold {waiting}"]
    assert [one.id for one in ctl.queue().values() if one.held] == [waiting]
    assert ctl.queue()[running].state == "RUNNING"
    assert job(accounts=[accounts["games"].upper()], state="released")["commands"] == [f"scontrol release {waiting}"]
    assert not ctl.queue()[waiting].held
    assert others in ctl.queue()


def test_cancel_what_waits_and_leave_what_runs(ctl, job, submit, accounts):
    waiting, running, others = submit(LATER), submit(on="gpu1"), submit(LATER, user="daemon")
    result = job(accounts=[accounts["games"]], states=["pd"], state="cancelled")
    assert result["plan"][0]["object"] == f"job {waiting}"
    assert set(ctl.queue()) == {running, others}


def test_cancel_by_node_waits_until_the_job_is_gone(ctl, job, submit):
    running, elsewhere = submit(on="gpu1"), submit(on="gpu2")
    result = job(nodes=["gpu[1,3]"], state="cancelled")
    assert result["unfinished"] == []
    assert set(ctl.queue()) == {elsewhere}
    assert [one["id"] for one in result["jobs"]] == [running]


def test_a_job_that_does_not_end_is_reported(ctl, job, submit):
    # Slurm sends SIGTERM, and SIGKILL after KillWait (30 s); this one ends by itself in between.
    deaf = "trap '' TERM; scontrol update JobId=$SLURM_JOB_ID Comment=deaf; sleep 5"
    stubborn = submit(on="gpu1", script=deaf)
    ctl.wait_for(lambda: ctl.queue()[stubborn].as_dict()["comment"] == "deaf")
    result = job(ids=[stubborn], state="cancelled", wait=0, twice=False)
    assert (result["changed"], result["unfinished"]) == (True, [stubborn])
    with pytest.raises(SlurmError, match=rf"after 1 s these jobs are not cancelled: {stubborn} .games, COMPLETING."):
        job(ids=[stubborn], state="cancelled", wait=1, check=False)
    assert job(ids=[stubborn], state="cancelled", wait=60)["changed"] is False
    assert ctl.queue() == {}


def test_more_than_max_jobs_is_refused_with_a_list(ctl, job, submit):
    ids = [submit(LATER) for _number in range(3)]
    with pytest.raises(
        Refused, match=rf"3 jobs would be cancelled, more than max_jobs 2 allows: .*{ids[2]} .games, PEND"
    ):
        job(users=["games"], state="cancelled", max_jobs=2)
    assert set(ctl.queue()) == set(ids)
    job(users=["games"], state="cancelled", max_jobs=3)
    assert ctl.queue() == {}


@pytest.mark.parametrize(
    "selection", [{}, {"states": ["PENDING"]}, {"partitions": ["h100"]}, {"users": []}, {"users": [""], "ids": ["1"]}]
)
def test_everything_is_never_selected(ctl, job, submit, selection):
    waiting = submit(LATER)
    with pytest.raises(Refused, match="everybody's jobs|empty"):
        job(**selection, state="cancelled")
    assert (set(ctl.queue()), ctl.writes) == ({waiting}, [])


def test_names_that_would_forge_other_jobs(ctl, job, info, submit):
    victim = submit(LATER, user="daemon")
    name = f"a|b\n{victim}|{victim}|games|x|PENDING\n"
    forged = submit(LATER, "--job-name", name, "--comment", f"\n{victim} |")
    (found,) = info(users=["games"])
    assert (found["id"], found["name"], found["comment"]) == (forged, name, f"\n{victim} |")
    job(users=["games"], state="cancelled")
    assert set(ctl.queue()) == {victim}


def test_arrays_by_task_and_as_a_whole(ctl, job, submit):
    array, others = submit(LATER, "--array=1-4%2"), submit(LATER)
    job(ids=[f"{array}_[2-3]"], state="held")
    assert [one.id for one in ctl.queue().values() if one.held] == [f"{array}_2", f"{array}_3"]
    job(ids=[f"{array}_3"], state="cancelled")
    assert set(ctl.queue()) == {others, *(f"{array}_{number}" for number in (1, 2, 4))}
    job(ids=[array], state="cancelled")
    assert set(ctl.queue()) == {others}


def test_both_parts_of_a_heterogeneous_job(ctl, job, submit):
    mixed = submit(LATER, ":", "-n1", "--mem=50")
    assert set(ctl.queue()) == {f"{mixed}+0", f"{mixed}+1"}
    job(ids=[mixed], state="held")
    assert all(one.held for one in ctl.queue().values())
    job(ids=[mixed], state="cancelled")
    assert ctl.queue() == {}


def test_requeue_and_a_job_that_cannot_be(ctl, job, submit):
    running, waiting = submit("--requeue", on="gpu1"), submit(LATER)
    result = job(users=["games"], state="requeued")
    assert result["commands"] == [f"scontrol requeue {running}"]
    assert ctl.queue()[running].state == "PENDING"
    job(users=["games"], state="cancelled")
    single = submit("--no-requeue", on="gpu1")
    with pytest.raises(SlurmError, match=rf"these jobs are not requeued: {single} .*Slurm says"):
        job(users=["games"], state="requeued", check=False)
    assert ctl.queue()[single].state == "RUNNING"
    assert waiting not in ctl.queue()


def test_jobs_that_appear_meanwhile_are_taken_along(ctl, job, submit):
    first, late = submit(LATER), []

    def meanwhile():
        if not late:
            late.append(submit(LATER))

    ctl.meanwhile = meanwhile
    result = job(users=["games"], state="cancelled", check=False)
    assert result["commands"] == [f"scancel {first}", f"scancel {late[0]}"]
    assert ctl.queue() == {}


def test_somebody_who_goes_on_submitting_has_to_be_blocked(ctl, job, submit):
    submit(LATER)
    ctl.meanwhile = lambda: submit(LATER)
    with pytest.raises(SlurmError, match="new jobs keep coming; block who submits them first"):
        job(users=["games"], state="cancelled", check=False)


def test_info_never_fails_on_absence(ctl, info, submit, accounts):
    assert info() == []
    running = submit("--gres=gpu:2", on="gpu1")
    (found,) = info(users=["games", "nosuchuser"], nodes=["gpu1", "nosuchnode"], states=["RUNNING"])
    assert {key: found[key] for key in ("id", "user", "account", "nodes", "gres", "held", "partition")} == {
        "id": running,
        "user": "games",
        "account": accounts["games"],
        "nodes": ["gpu1"],
        "gres": "gres/gpu:2",
        "held": False,
        "partition": "h100",
    }
    for nothing in ({"ids": ["999999"]}, {"accounts": ["nosuch"]}, {"reservations": ["nosuch"]}, {"users": []}):
        assert info(**nothing) == []
