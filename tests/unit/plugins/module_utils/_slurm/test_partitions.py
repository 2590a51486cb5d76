# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import partitions
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.parse import ParseError

TEXT = """\
PartitionName=gpu AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL AllocNodes=ALL Default=YES QoS=N/A DefaultTime=00:30:00 DisableRootJobs=NO ExclusiveUser=NO GraceTime=0 Hidden=NO MaxNodes=UNLIMITED MaxTime=1-00:00:00 MinNodes=0 LLN=NO MaxCPUsPerNode=UNLIMITED Nodes=gpu[1-3] PriorityJobFactor=1 PriorityTier=1 RootOnly=NO ReqResv=NO OverSubscribe=NO OverTimeLimit=NONE PreemptMode=REQUEUE State=UP TotalCPUs=6 TotalNodes=3 SelectTypeParameters=NONE JobDefaults=(null) DefMemPerNode=UNLIMITED MaxMemPerNode=UNLIMITED TRES=cpu=6,mem=6000M,node=3,billing=391,gres/gpu=12 TRESBillingWeights=CPU=1.0,Mem=0.25G
PartitionName=dev AllowGroups=staff DenyAccounts=tenant-bar,Tenant-Foo DenyQos=high QoS=Dev MaxNodes=2 MaxTime=01:30:00 MinNodes=1 State=DRAIN
PartitionName=own AllowAccounts=tenant-foo AllowQos=normal,high QoS=dev MaxTime=UNLIMITED State=UP
"""  # noqa: E501


def test_what_scontrol_prints():
    found = partitions.parse(TEXT)
    assert list(found) == ["gpu", "dev", "own"]
    gpu, dev, own = (found[name] for name in ("gpu", "dev", "own"))
    assert (gpu.qos, gpu.limits) == ("", {"max_time": 86400})
    assert (dev.qos, dev.limits) == ("Dev", {"max_time": 5400, "max_nodes": 2, "min_nodes": 1})
    assert own.limits == {}
    assert (gpu.allow_accounts, own.allow_accounts, dev.allow_groups) == (None, {"tenant-foo"}, {"staff"})


@pytest.mark.parametrize(
    ("partition", "account", "qos", "says"),
    [
        ("gpu", "tenant-bar", "low", ""),
        ("own", "tenant-foo", "high", ""),
        ("own", "tenant-bar", "high", "not in AllowAccounts"),
        ("own", "tenant-foo", "low", "not in AllowQos"),
        ("dev", "other", "normal", ""),
    ],
)
def test_who_gets_in(partition, account, qos, says):
    assert says in partitions.parse(TEXT)[partition].refuses(account, qos)
    assert bool(says) == bool(partitions.parse(TEXT)[partition].refuses(account, qos))


def test_denied():
    dev = partitions.parse(TEXT)["dev"]
    assert "in DenyAccounts" in dev.refuses_account("tenant-foo")
    assert "in DenyQos" in dev.refuses_qos("high")
    assert dev.refuses_account("other") == dev.refuses_qos("low") == ""


def test_nothing_is_guessed():
    with pytest.raises(ParseError):
        partitions.parse("slurm_load_partitions error: Unable to contact slurm controller\n")
    assert partitions.parse("") == {}
