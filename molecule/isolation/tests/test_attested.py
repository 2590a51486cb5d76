# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""attest.yml where a tenant is exclusive, so that every job needs a label, and another has nodes of its own."""

from __future__ import annotations

import json

import pytest
from apart import OWN, OWNERS, idle, on, run, said, submit, try_submit, wait_for, wait_state

PROBES = ["gpu-device", "see-jobs", "change-foreign-job", "limit-jobs", "job-tmp", "memory"]


@pytest.fixture(autouse=True)
def empty(tenants):
    idle("gpu1", *OWNERS)


def attest(folder, **variables):
    given = {"attest_only": PROBES, "attest_report_dir": str(folder), **variables}
    done = run("attest.yml", settings=given)
    report = folder / "attest.json"
    return done, json.loads(report.read_text())["answers"] if report.exists() else []


def of(answers, host: str, context: str) -> dict[str, str]:
    """Probe -> verdict of the tenant's user."""
    return {
        one["probe"]: one["verdict"]
        for one in answers
        if (one["host"], one["context"], one["actor"]) == (host, context, "a")
    }


def wrong(answers) -> list[str]:
    return [
        f"{one['probe']} {one['host']}/{one['context']}/{one['actor']} {one['verdict']}: {one['evidence']}"
        for one in answers
        if one["verdict"] in ("error", "FAIL")
    ]


def test_canaries_share_nodes_and_leave_those_alone_that_are_private(tmp_path):
    done, answers = attest(tmp_path)
    assert wrong(answers) == [] and done.returncode == 0, done.output[-4000:]
    assert of(answers, "gpu1", "job") == {"gpu-device": "pass", "job-tmp": "pass", "memory": "pass"}
    for node in OWNERS:
        assert set(of(answers, node, "job").values()) == {"not applicable"}
        evidence = next(
            one["evidence"]
            for one in answers
            if (one["probe"], one["host"], one["context"]) == ("gpu-device", node, "job")
        )
        assert f"private to {OWN}" in evidence and "attest_reserved" in evidence


def test_a_private_node_that_is_empty_is_attested_when_it_is_named(tmp_path):
    done, answers = attest(tmp_path, attest_reserved=["gpu2"])
    assert wrong(answers) == [] and done.returncode == 0, done.output[-4000:]
    assert of(answers, "gpu2", "job") == {"gpu-device": "pass", "job-tmp": "pass", "memory": "pass"}
    assert "gpuops-attest" not in said("ctl", "scontrol", "-a", "-o", "show", "partition")
    # It is its owner's as before.
    assert try_submit("bob", "-p", OWN).returncode != 0
    wait_state(submit("frank", "-p", OWN, "-w", "gpu2", script="exit 0"), "COMPLETED")


def test_what_a_killed_attest_leaves_keeps_nobody_from_working(tmp_path):
    given = {"attest_only": ["see-jobs"], "attest_report_dir": str(tmp_path)}
    killed = run("attest.yml", settings=given, kill_at="Have the canaries' accounts")
    assert killed.killed, killed.output[-2000:]
    assert "attest-a1" in said("ctl", "sacctmgr", "-nP", "show", "assoc", "format=user")
    assert "attest-a1" in said("ctl", "getent", "group", "mcs-shared")
    # As if a tenant had become exclusive only afterwards.
    said("ctl", "gpasswd", "-d", "attest-a1", "mcs-shared")
    done = run("site.yml", "--limit", "ctl", "--tags", "slurm_controller")
    assert done.returncode == 0, done.output[-3000:]
    wait_for(lambda: on("ctl", "scontrol", "ping").returncode == 0, 60)
    done, answers = attest(tmp_path, attest_only=["see-jobs"])
    assert done.returncode == 0, done.output[-3000:]
    assert on("ctl", "getent", "passwd", "attest-a1").returncode != 0
