# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Associations with one partition, and a reservation for a tenant."""

from __future__ import annotations

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import lab
from recorded import module


def test_a_user_without_an_entry_for_a_partition_is_refused_there():
    refused = lab.sbatch("ci-runner", "--partition=h100", "--gres=gpu:1")
    assert refused.returncode != 0
    assert "Invalid account or account/partition combination" in refused.stderr


def test_an_entry_for_a_partition_has_limits_of_its_own(jobs):
    # The scavenger has the L40S node: there this waits for GPUs, and not for a limit.
    elsewhere = jobs("dora", "--partition=l40s", "--qos=normal", "--gres=gpu:2")
    here = jobs("dora", "--partition=h100", "--qos=normal", "--gres=gpu:2")
    one = jobs("dora", "--partition=h100", "--qos=normal", "--gres=gpu:1")
    lab.reason(here, "AssocMaxGRESPerJob")
    lab.wait_for(lambda: lab.running(one), what="one GPU")
    state, reason = lab.states(elsewhere)[elsewhere]
    assert state == "RUNNING" or reason in ("Resources", "Priority")


@pytest.fixture
def reservation():
    """A node for the tenant; its teams are below the account that is named."""
    arguments = {"name": "lab-week", "accounts": ["tenant-lab"], "nodes": ["gpu2"], "duration": 60}
    made = module("ctl", "slurm_reservation", arguments)
    assert made.returncode == 0, made.output
    yield "lab-week"
    gone = module("ctl", "slurm_reservation", {"name": "lab-week", "state": "absent"})
    assert gone.returncode == 0, gone.output


def test_a_reservation_for_a_tenant(ran, stranger, reservation, jobs):
    theirs = jobs("raj", f"--reservation={reservation}", "--gres=gpu:1")
    lab.wait_for(lambda: lab.running(theirs), what="a job of a team")
    assert lab.job(theirs)["NodeList"] == "gpu2"
    refused = lab.sbatch(stranger, f"--reservation={reservation}", "--gres=gpu:1")
    assert refused.returncode != 0
    assert "reservation" in refused.stderr
    outside = jobs(stranger, "--gres=gpu:1", "--nodelist=gpu2")
    # What follows differs between releases.
    lab.wait_for(lambda: lab.states(outside)[outside][1].startswith("ReqNodeNotAvail"), what="kept out of the node")
