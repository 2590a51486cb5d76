# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A budget that grows back, and one that is paid in advance."""

from __future__ import annotations

import math
import pathlib
import sys
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import lab
from conftest import measured_usage
from recorded import module

# As the scenario sets it.
HALF_LIFE = 120
AS_SOLD = {"gres/gpu": 120000}
AS_GRANTED = {"gres/gpu": 87000}


def budgets(prepaid: dict | None = None, research: dict | None = None) -> None:
    runs = []
    if prepaid:
        runs.append(module("ctl", "slurm_qos", {"name": "prepaid-lab", "grp_tres_mins": prepaid}))
    if research:
        arguments = {"cluster": lab.CLUSTER, "name": "research-lab", "grp_tres_mins": research}
        runs.append(module("ctl", "slurm_account", arguments))
    for run in runs:
        assert run.returncode == 0, run.output
        assert run.changed


@pytest.fixture
def used_up(ran):
    """Both budgets at what has been used of them; of the account's the price counts, which is finer than GPU minutes."""
    budgets({"gres/gpu": int(ran.usage["prepaid"]["gres/gpu"])}, {"billing": int(ran.usage["research"]["billing"])})
    yield
    budgets(AS_SOLD, AS_GRANTED)


def test_one_grows_back_by_itself_and_the_other_when_more_is_sold(ran, used_up, jobs):
    prepaid, research = jobs("ella", "--gres=gpu:1"), jobs("rosa")
    lab.reason(prepaid, "QOSGrpGRESMinutes")
    lab.reason(research, "AssocGrpBillingMinutes")
    # So do others of the team wait; they may still scavenge.
    other = jobs("emil", "--gres=gpu:1")
    lab.reason(other, "QOSGrpGRESMinutes")
    unpaid = jobs("emil", "--qos=scavenger", "--gres=gpu:1")
    lab.wait_for(lambda: lab.running(unpaid), what="what needs no budget")

    # Until a whole minute less is on the books: slurmctld compares whole ones.
    used = ran.usage["research"]["UsageRaw"] / 60
    heals = ran.counted + HALF_LIFE * math.log2(used / (int(used) - 0.2))
    time.sleep(max(0.0, heals - lab.now()))
    lab.count_usage()
    after, passed = measured_usage(), lab.now() - ran.counted
    lab.wait_for(lambda: lab.running(research), what="a budget that has grown back")
    assert lab.states(prepaid)[prepaid] == ("PENDING", "QOSGrpGRESMinutes")

    # The same jobs of ella's: what the contract counts stays, what fair share counts of them halves every HALF_LIFE.
    assert after["prepaid"] == ran.usage["prepaid"]
    least, most = (0.5 ** ((passed + slack) / HALF_LIFE) for slack in (5, -5))
    assert least < after["ella"] / ran.usage["ella"] < most < 1

    budgets({"gres/gpu": int(ran.usage["prepaid"]["gres/gpu"]) + 2})
    lab.wait_for(lambda: lab.running(prepaid), what="a budget that was raised")
