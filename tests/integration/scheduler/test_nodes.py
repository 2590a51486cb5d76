# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""slurm_node: nobody's drain is released but one's own."""

from __future__ import annotations

import pytest
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import nodes_apply
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.client import SlurmError
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.desired import Refused


def by_hand(ctl, name, reason):
    ctl.said("scontrol", "update", f"NodeName={name}", "State=DRAIN", f"Reason={reason}")


def test_drain_and_resume_are_one_command_for_all_nodes(ctl, node):
    result = node(nodes=["gpu[1-2]", "gpu3"], state="drain", reason="a test, of x=y (50 %)")
    assert result["commands"] == [
        "scontrol update 'NodeName=gpu[1-3]' State=DRAIN 'Reason=[tst] a test, of x=y (50 %)'"
    ]
    assert [(found["state"], found["flags"], found["owners"]) for found in result["nodes"]] == [
        ("IDLE", ["DRAIN"], ["tst"])
    ] * 3
    assert result["nodes"][0]["reason_by"] == "root"
    result = node(nodes=["gpu[1-3]"], state="resume")
    assert (len(result["commands"]), result["kept"]) == (1, [])
    ctl.opens("gpu1", "gpu2", "gpu3")


@pytest.mark.parametrize("words", ["bad fan; ask [root@home] about it", "two\nlines State=IDLE", "[hw] bad fan"])
def test_what_somebody_else_drained_stays_drained(ctl, node, words):
    by_hand(ctl, "gpu1", words)
    before = ctl.node("gpu1").reason
    node(nodes=["gpu1", "gpu2"], state="drain", reason="ours")
    assert ctl.node("gpu1").reason == f"[tst] ours; {before}"
    result = node(nodes=["gpu1", "gpu2"], state="resume")
    assert (ctl.node("gpu1").reason, ctl.node("gpu1").shown) == (before, "IDLE+DRAIN")
    assert result["kept"] == ["gpu1"]
    ctl.opens("gpu2")
    assert len(result["commands"]) == 2


def test_two_owners_in_any_order(ctl, node):
    node(nodes=["gpu1"], state="drain", owner="health", reason="xid 79")
    node(nodes=["gpu1"], state="drain", owner="incident-42", reason="mining")
    node(nodes=["gpu1"], state="resume", owner="health")
    assert ctl.node("gpu1").reason == "[incident-42] mining"
    node(nodes=["gpu1"], state="drain", owner="incident-42", reason="mining, proven")
    assert ctl.node("gpu1").reason == "[incident-42] mining, proven"
    node(nodes=["gpu1"], state="resume", owner="incident-42")
    ctl.opens("gpu1")


def test_a_drain_by_hand_over_ours_is_not_ours(ctl, node):
    node(nodes=["gpu1"], state="drain", reason="ours")
    by_hand(ctl, "gpu1", "mine now")
    assert node(nodes=["gpu1"], state="resume")["kept"] == ["gpu1"]
    assert ctl.node("gpu1").reason == "mine now"


def test_waiting_names_the_jobs_and_keeps_the_node_closed(ctl, node, submit):
    held = submit(on="gpu1")
    drained = {"nodes": ["gpu[1-2]"], "state": "drain", "reason": "empty it", "owner": "tst"}
    with pytest.raises(
        SlurmError, match=rf"after 2 s jobs still hold nodes: gpu1 by {held} \(games, RUNNING\)"
    ) as failed:
        nodes_apply.reconcile({**drained, "wait": 2}, False, ctl.scheduler())
    assert failed.value.details["nodes"][0]["jobs"] == [held]
    assert "DRAIN" in ctl.node("gpu1").flags
    ctl.said("scancel", held)
    result = node(**drained, wait=60)
    assert (result["changed"], result["jobs"]) == (False, [])


def test_a_suspended_job_holds_its_node(ctl, node, submit):
    held = submit(on="gpu1")
    ctl.said("scontrol", "suspend", held)
    ctl.wait_for(lambda: ctl.queue()[held].state == "SUSPENDED")
    result = node(nodes=["gpu1"], state="drain", reason="empty it")
    assert result["nodes"][0]["jobs"] == [held]
    with pytest.raises(SlurmError, match=f"{held} .games, SUSPENDED."):
        node(nodes=["gpu1"], state="drain", reason="empty it", wait=1, check=False)


def test_an_unknown_node_is_named_and_nothing_is_touched(ctl, node):
    with pytest.raises(Refused, match=r"Slurm knows no node gpu\[8-9\]; it knows gpu\[1-3\]"):
        node(nodes=["gpu1", "gpu[8-9]"], state="drain", reason="x")
    assert ctl.writes == []
