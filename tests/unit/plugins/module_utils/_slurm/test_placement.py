# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where an account may run jobs, by what scontrol prints."""

from __future__ import annotations

import pytest
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import partitions, placement
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.conf import read

PARTITIONS = partitions.parse(
    "PartitionName=urgent AllowAccounts=ALL AllowQos=ALL State=UP PriorityTier=10\n"
    "PartitionName=main AllowAccounts=ALL DenyAccounts=tenant-own AllowQos=ALL State=UP PriorityTier=1\n"
    "PartitionName=off AllowAccounts=ALL AllowQos=ALL State=DOWN PriorityTier=1\n"
    "PartitionName=tenant-own AllowAccounts=tenant-own,own-team AllowQos=ALL State=UP PriorityTier=1\n"
)
NODES = (
    "NodeName=gpu1 State=IDLE AvailableFeatures=(null) Partitions=urgent,main Comment=x\n"
    "NodeName=gpu2 State=IDLE AvailableFeatures=owner-tenant-own Partitions=tenant-own \n"
    "NodeName=gpu3 State=IDLE+DRAIN AvailableFeatures=big Partitions=off \n"
    "NodeName=gpu4 State=IDLE AvailableFeatures=(null)\n"
)
NAMES = ["gpu1", "gpu2", "gpu3", "gpu4", "gpu9"]


def found(account="attest-a", qos="normal", asked=""):
    return placement.nodes(NODES, PARTITIONS, NAMES, account, qos, asked)


def test_of_several_partitions_the_least():
    assert found()["gpu1"] == {"idle": True, "owner": "", "partition": "main", "refused": ""}
    assert found("tenant-own")["gpu1"]["partition"] == "urgent"


def test_a_node_of_a_tenant_says_whose_it_is_and_why_not():
    own = found()["gpu2"]
    assert (own["owner"], own["partition"], own["idle"]) == ("tenant-own", "", True)
    assert own["refused"] == "partition tenant-own: account attest-a is not in AllowAccounts"
    assert found("own-team")["gpu2"]["partition"] == "tenant-own"


@pytest.mark.parametrize(
    ("node", "idle", "says"),
    [
        ("gpu3", False, "partition off: DOWN"),
        ("gpu4", True, "in no partition"),
        ("gpu9", False, "does not know the node"),
    ],
)
def test_where_nobody_runs_anything(node, idle, says):
    one = found()[node]
    assert (one["idle"], one["partition"]) == (idle, "") and says in one["refused"]


def test_the_partition_that_is_asked_for_is_the_only_one():
    assert found(asked="urgent")["gpu1"]["partition"] == "urgent"
    assert "AllowAccounts" in found(asked="tenant-own")["gpu1"]["refused"]
    assert found(asked="nowhere")["gpu1"]["partition"] == ""


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("Name=gpu File=/dev/nvidia[0-2]", [[["/dev/nvidia0"], ["/dev/nvidia1"], ["/dev/nvidia2"]]]),
        ("Name=gpu Type=b File=/dev/nvidia0\nName=gpu Type=a File=/dev/nvidia1",
         [[["/dev/nvidia0"], ["/dev/nvidia1"]]]),
        ("Name=gpu Type=a File=/dev/nvidia1\nName=gpu Type=b File=/dev/nvidia0",
         [[["/dev/nvidia1"], ["/dev/nvidia0"]], [["/dev/nvidia0"], ["/dev/nvidia1"]]]),
        ("Name=gpu MultipleFiles=/dev/nvidia0,/dev/nvidia-caps/nvidia-cap3",
         [[["/dev/nvidia0", "/dev/nvidia-caps/nvidia-cap3"]]]),
        ("NodeName=gpu[2-9] Name=gpu File=/dev/nvidia0\nName=shard Count=4", []),
        ("AutoDetect=nvml\nName=gpu Type=a Count=4", []),
        ("", []),
    ],
)  # fmt: skip
def test_which_gpu_has_which_number(text, numbers):
    assert read.gpu_numbers(text, "gpu1") == numbers
