# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What attest says of the cluster that site.yml makes, and what it costs."""

from __future__ import annotations

import collections
import json
import pathlib
import xml.etree.ElementTree as ET

import pytest
import yaml
from attested import KNOWN, attest, traces
from recorded import playbook
from remote import on, said, wait_for

HERE = pathlib.Path(__file__).resolve().parent
EXPECTED = yaml.safe_load((HERE / "expected.yml").read_text())


def test_it_is_over_soon(attested):
    assert attested.seconds < 180


def test_everything_could_be_tried(attested):
    errors = [
        f"{row['probe']} {row['host']}/{row['context']}/{row['actor']}: {row['evidence']}"
        for row in attested.answers
        if row["verdict"] == "error"
    ]
    assert errors == []


def test_each_claim_holds(attested):
    failing = [
        f"{row['probe']} {row['host']}/{row['context']}/{row['actor']}: {row['evidence']}"
        for row in attested.answers
        if row["verdict"] == "FAIL"
    ]
    assert failing == []
    print(collections.Counter(row["verdict"] for row in attested.answers))


def test_what_slurm_cannot_hide_is_shown_as_accepted(attested):
    accepted = {row["probe"] for row in attested.answers if row["verdict"] == "accepted risk"}
    assert accepted == {*EXPECTED["accepted"], *KNOWN}


def test_what_is_tried_nowhere_says_why_and_is_one_of_these(attested):
    every, tried = collections.defaultdict(set), collections.defaultdict(set)
    for row in attested.answers:
        every[row["context"]].add(row["probe"])
        if row["verdict"] != "not applicable":
            tried[row["context"]].add(row["probe"])
    never = {where: sorted(probes - tried[where]) for where, probes in every.items()}
    expected = {where: EXPECTED["not applicable"].get(where, []) for where in every}
    for where, given in expected.items():
        expected[where] = sorted(every[where] - set(given["all but"]) if isinstance(given, dict) else given)
    assert never == expected
    assert all(row["evidence"] for row in attested.answers)


def test_in_its_job_the_canary_opens_one_gpu_of_four(attested):
    for row in attested.answers:
        if row["probe"] == "gpu-device" and row["context"] == "job":
            answers, _semicolon, given = row["evidence"].partition("; the job was given ")
            assert f"{given} ENXIO" in answers
            assert sorted(word.split()[1] for word in answers.split(", ")) == [
                "ENXIO",
                "EPERM",
                "EPERM",
                "EPERM",
            ]


def test_the_exit_status_says_that_all_claims_hold(attested):
    assert attested.run.returncode == 0, attested.run.output


def test_the_reports_agree(attested):
    data = json.loads((attested.folder / "attest.json").read_text())
    junit = ET.parse(attested.folder / "attest.xml").getroot()
    assert len(junit.findall("./testsuite/testcase")) == len(data["answers"])
    assert len(junit.findall("./testsuite/testcase/failure")) == data["counts"]["FAIL"]
    page = (attested.folder / "attest.html").read_text()
    assert page.count('<td class="verdict"') == len(data["answers"])
    assert "<script" not in page and "src=" not in page and "<link" not in page


def test_another_tenants_jobs_were_not_disturbed(attested, work):
    jobs, state = work
    assert said("ctl", "squeue", "-h", "-j", ",".join(jobs), "-o", "%i %T %S %N") == state
    assert {row["host"] for row in attested.answers if row["probe"] == "memory" and row["verdict"] == "pass"} == {
        "gpu3"
    }
    # Its users waited for nothing: no node is closed, and a job of alice's begins at once.
    assert said("login", "srun", "-n1", "-t1", "--mem=10", "-D/", "id", "-un", user="alice") == "alice"


def test_nothing_is_left(attested, before):
    assert traces() == before


def test_all_that_is_asked_for_holds_and_that_is_status_0(tmp_path):
    done = attest(tmp_path, attest_only=["see-jobs", "submit-foreign-account", "become-coordinator"])
    assert done.run.returncode == 0, done.run.output
    assert {row["verdict"] for row in done.answers} == {"pass"}
    assert {row["probe"] for row in done.answers} == {"see-jobs", "submit-foreign-account", "become-coordinator"}


def test_a_host_that_is_not_reached_is_status_4_and_an_error_in_the_report(tmp_path, before):
    (tmp_path / "away.yml").write_text("all: {hosts: {gpu2: {ansible_port: 1}}}\n")
    done = attest(tmp_path / "report", "-i", str(tmp_path / "away.yml"), attest_only=["gpu-control"])
    assert done.run.returncode == 4, done.run.output
    assert {row["evidence"] for row in done.answers if row["host"] == "gpu2"} == {"the host was not reached"}
    assert {row["verdict"] for row in done.answers if row["host"] == "gpu2"} == {"error"}
    assert {row["verdict"] for row in done.answers if row["host"] == "gpu1"} <= {"pass", "FAIL", "not applicable"}
    assert traces() == before


def test_a_risk_that_the_site_accepts_does_not_fail_the_run(tmp_path):
    done = attest(
        tmp_path, attest_only=["see-transactions", "gpu-control"], attest_accepted={"gpu-control": "ticket 7"}
    )
    assert done.run.returncode == 0, done.run.output


SITE = '''
from attest.api import failed, opened, passed, probe

@probe("site-motd", "cannot change /etc/hosts", "our base image", contexts=("login", "job"))
def motd(world):
    """Open /etc/hosts for writing."""
    said = opened("/etc/hosts", 1)
    return passed(said) if said else failed("opened")
'''


def test_a_site_adds_a_probe_of_its_own(tmp_path):
    (tmp_path / "probes").mkdir()
    (tmp_path / "probes" / "motd.py").write_text(SITE)
    done = attest(tmp_path / "report", attest_only=["site-motd"], attest_probes_dir=str(tmp_path / "probes"))
    assert done.run.returncode == 0, done.run.output
    assert {(row["context"], row["verdict"], row["evidence"]) for row in done.answers} == {
        ("login", "pass", "EACCES"),
        ("job", "pass", "EACCES"),
    }


def test_a_probe_that_there_is_not_is_refused_before_anything_is_touched(tmp_path):
    done = attest(tmp_path, attest_only=["no-such-probe"])
    assert done.run.returncode == 2
    assert "there is no probe no-such-probe" in done.run.output
    assert done.run.changed == []


def test_somebody_elses_user_is_refused_before_anything_is_touched(tmp_path):
    said("gpu2", "useradd", "-u", "45678", "-c", "A person", "attest-a1")
    try:
        done = attest(tmp_path)
        assert done.run.returncode == 2
        assert "attest-a1 is no canary" in done.run.output
        assert done.run.changed == []
        assert said("gpu2", "id", "-u", "attest-a1") == "45678"
    finally:
        said("gpu2", "userdel", "attest-a1")


def test_a_run_that_is_killed_in_the_middle_is_cleared_up_by_the_next(tmp_path, before):
    run = playbook("attest.yml", "-e", json.dumps({"attest_report_dir": str(tmp_path)}))
    wait_for(lambda: on("gpu3", "pgrep", "-u", "attest-a1").returncode == 0, 300, "the attack on gpu3")
    run.kill()
    assert run.wait().killed
    left = traces()
    assert left["accounts"] != before["accounts"] and left["users of gpu3"] != before["users of gpu3"]
    done = attest(tmp_path, attest_only=["see-jobs", "memory"])
    assert done.run.returncode == 0, done.run.output
    assert {row["verdict"] for row in done.answers} <= {"pass", "not applicable"}
    assert traces() == before


@pytest.mark.parametrize("task", ["Have the canaries' accounts", "Reserve nodes for what could disturb"])
def test_a_run_that_is_killed_after_a_step_is_cleared_up_by_the_next(task, tmp_path, before):
    variables = {"attest_report_dir": str(tmp_path), "attest_only": ["see-jobs"]}
    killed = playbook("attest.yml", "-e", json.dumps(variables), kill_at=task).wait()
    assert killed.killed
    done = attest(tmp_path, attest_only=["see-jobs"])
    assert done.run.returncode == 0, done.run.output
    assert traces() == before


def test_nodes_work_as_before(before, work):
    """No node is drained, down or reserved; the one that was attacked takes a job."""
    states = dict(line.split() for line in said("ctl", "sinfo", "-hN", "-o", "%N %t").splitlines())
    assert states == {"gpu1": "mix", "gpu2": "mix", "gpu3": "idle"}
    argv = ["srun", "-n1", "-t1", "-pa100", "-wgpu3", "--mem=10", "-D/", "--gres=gpu:1", "id", "-un"]
    assert said("login", *argv, user="alice") == "alice"
