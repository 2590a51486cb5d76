# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from accounting_world import world
from ansible_collections.gpuops.tenancy.plugins.module_utils._command import Completed
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import effective_report
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.client import Client, SlurmError
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.partitions import Partition

GPU = "gres/gpu"
BOTH = frozenset({"normal", "high"})
QOS = {"normal": {}, "high": {"grp_tres": {GPU: 64}}, "low": {}, "big": {"max_jobs_per_user": 9}}
PARTITIONS = {
    "gpu": Partition("gpu", limits={"max_time": 3600}),
    "own": Partition("own", "big", allow_accounts=frozenset({"bar"}), allow_groups=frozenset({"staff"})),
}


def state():
    return world(
        {"foo": ("root", {"qos": BOTH, "grp_tres": {GPU: 4}}), "ml": ("foo", {}), "bar": ("root", {})},
        {"alice": ("ml", {"ml": {"max_jobs": 2}, ("ml", "gpu"): {"max_jobs": 5}}), "bob": ("bar", {"bar": {}})},
    )


def report(**filters):
    return effective_report.report(state(), QOS, PARTITIONS, **filters)


def find(entries, **wanted):
    (entry,) = [entry for entry in entries if all(entry[key] == value for key, value in wanted.items())]
    return entry


def test_who_says_what():
    entry = find(report(), user="alice", partition="gpu", qos="high")
    assert entry["allowed"]
    assert entry["limits"] == [
        {
            "option": "grp_tres",
            "resource": GPU,
            "value": 64,
            "level": "QOS high",
            "instead_of": [{"level": "account foo", "option": "grp_tres", "value": {GPU: 4}[GPU]}],
        },
        # The row for the partition counts there, the plain one elsewhere.
        {
            "option": "max_jobs",
            "resource": "",
            "value": 5,
            "level": "user alice in ml partition gpu",
            "instead_of": [],
        },
        {"option": "max_wall", "resource": "", "value": "01:00:00", "level": "partition gpu", "instead_of": []},
    ]


def test_the_qos_of_a_partition_and_who_gets_in():
    entry = find(report(users=["alice"]), partition="own", qos="normal")
    assert (entry["allowed"], entry["refused_because"]) == (False, "account ml is not in AllowAccounts")
    assert entry["groups"] == ["staff"]
    limits = {limit["option"]: limit for limit in entry["limits"]}
    assert limits["max_jobs_per_user"]["level"] == "QOS big of partition own"
    assert limits["max_jobs_per_user"]["instead_of"][0]["level"] == "user alice in ml"
    assert find(report(users=["bob"]), partition="own")["allowed"]


@pytest.mark.parametrize(
    ("filters", "count"),
    [
        ({}, 6),
        ({"users": ["alice"]}, 4),
        ({"users": ["nobody"]}, 0),
        ({"accounts": ["foo"]}, 4),
        ({"accounts": ["bar"]}, 2),
        ({"users": ["alice"], "only": ["gpu"], "names": ["high"]}, 1),
        ({"only": ["nowhere"]}, 0),
    ],
)
def test_filters_never_fail(filters, count):
    assert len([entry for entry in report(**filters) if entry["user"] != "root"]) == count


def test_a_qos_that_is_asked_for_and_not_granted():
    found = report(users=["bob"], only=["gpu"], names=["high", "nosuch"])
    assert [entry["refused_because"] for entry in found] == ["QOS high is not granted", "QOS nosuch does not exist"]


def test_a_partition_that_cannot_be_read_is_an_error():
    client = Client(
        "c1", runner=lambda argv, **_given: Completed(tuple(argv), 1, "", "Unable to contact slurm controller")
    )
    with pytest.raises(SlurmError, match="slurmctld has to run"):
        effective_report.read(client)
