# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What onboarding promises, seen from the tenants' side."""

from __future__ import annotations

import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "cluster"))
sys.path.insert(0, str(ROOT / "tests" / "show"))
import visibility
from remote import OPEN_GPUS, gpus_seen, on, said, wait_for


def rows(*conditions: str) -> set[str]:
    columns = "format=account,user,share,grptres,grpjobs,grpsubmit,maxjobs,maxsubmit,grptresmins,qos,defaultqos"
    return set(said("ctl", "sacctmgr", "-nP", "show", "assoc", "wopi", columns, *conditions).splitlines())


def test_the_tree_is_what_the_document_says():
    assert rows("account=tenant-foo,ml-team-foo,data-team-foo") == {
        "tenant-foo||300|gres/gpu=4||2000||||high,normal|normal",
        "ml-team-foo||200||||||||",
        "ml-team-foo|alice|1||||20|200|gres/gpu=10000||",
        "data-team-foo||100||||||||",
        "data-team-foo|carol|1||||||||",
        "data-team-foo|dave|1||||||||",
    }


def test_default_accounts_and_descriptions():
    users = said("ctl", "sacctmgr", "-nP", "show", "user", "alice,bob", "format=user,defaultaccount").splitlines()
    assert users == ["alice|ml-team-foo", "bob|tenant-bar"]
    text = said("ctl", "sacctmgr", "-nP", "show", "account", "ml-team-foo", "format=account,organization,description")
    assert text == "ml-team-foo|tenant-foo|machine learning"


@pytest.mark.parametrize("user", ["alice", "bob", "carol", "dave"])
def test_a_user_has_the_same_numbers_on_every_host(user):
    assert len({said(host, "id", user) for host in ("ctl", "login", "gpu1", "gpu2", "gpu3")}) == 1


def test_one_gpu_opens_one_device():
    seen = gpus_seen("login", "srun", "-n1", "--gres=gpu:1", user="alice")
    assert sorted(seen.values()) == ["ENXIO", "EPERM", "EPERM", "EPERM"]


def test_two_jobs_at_once_get_different_devices():
    script = f"#!/bin/sh\nsrun -n1 python3 -c '{OPEN_GPUS}'\nsleep 3\n"
    # What a user leaves in /tmp goes with her last job.
    said("gpu1", "install", "-d", "-m", "1777", "/opt/jobs")
    options = ["-n1", "--gres=gpu:1", "-wgpu1", "--mem=100", "--chdir=/opt/jobs", "--output=own-%j.out", "--time=1"]
    jobs = [said("login", "sbatch", "--parsable", *options, stdin=script, user="alice") for _number in range(2)]
    wait_for(
        lambda: not said(
            "login", "squeue", "-h", "-j", ",".join(jobs), "-t", "PENDING,RUNNING,COMPLETING", user="alice"
        )
    )
    opened = []
    for job in jobs:
        lines = said("gpu1", "cat", f"/opt/jobs/own-{job}.out").splitlines()
        opened.append([line.split()[0] for line in lines if line.endswith("ENXIO")])
    assert [len(devices) for devices in opened] == [1, 1]
    assert opened[0] != opened[1]


def test_a_tenant_over_its_cap_waits_with_assocgrpgres():
    job = said(
        "login",
        "sbatch",
        "--parsable",
        "-N2",
        "--gres=gpu:4",
        "--time=1",
        "--chdir=/tmp",
        "--output=/dev/null",
        "--wrap=true",
        user="alice",
    )
    try:
        wait_for(lambda: "AssocGrpGRES" in said("login", "squeue", "-h", "-j", job, "-o", "%T %r", user="alice"), 30)
    finally:
        said("login", "scancel", job, user="alice")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["-A", "tenant-foo"], "Invalid account"),
        (["-A", "ml-team-foo"], "Invalid account"),
        (["-q", "high"], "Invalid qos"),
        (["-q", "blocked"], "Invalid qos"),
    ],
)
def test_bob_cannot_use_what_is_not_his(options, says):
    done = on("login", "sbatch", *options, "--time=1", "--chdir=/tmp", "--output=/dev/null", "--wrap=true", user="bob")
    assert done.returncode != 0
    assert says in done.stderr


def test_what_is_meant_to_be_hidden_is_hidden():
    table = visibility.measure()
    leaks = {command: answer for command, _what, hidden, answer in table if hidden and not answer.startswith("nothing")}
    assert leaks == {}
    # The measurement can see: alice herself is shown what bob is not.
    assert "alice" in said("login", "sacctmgr", "-nP", "show", "user", user="alice")
    assert any(not hidden and not answer.startswith("nothing") for _command, _what, hidden, answer in table)


def test_what_slurm_cannot_hide_is_what_the_guide_says():
    guide = (ROOT / "docs" / "visibility.md").read_text()
    for command, _what, hidden, answer in visibility.measure():
        if not hidden and not answer.startswith("nothing"):
            assert f"`{command}`" in guide, f"{command} shows {answer}: say so in docs/visibility.md"
