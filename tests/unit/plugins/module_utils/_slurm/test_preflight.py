# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.preflight import (
    Reading,
    caps,
    parse_config,
    parse_partition_qos,
    problems,
)

GOOD = {"ClusterName": "demo", "AccountingStorageEnforce": "associations,limits,qos,safe"}


def reading(**fields):
    return Reading(
        **{
            "config": GOOD,
            "clusters": ["demo"],
            "qos": {"normal": {}},
            "partitions": {},
            "root_qos": ["normal"],
            **fields,
        }
    )


def check(read, accounts=(), users=(), named=()):
    return problems(read, "demo", caps(accounts, users, read.root_qos), named)


def account(name="foo", **fields):
    return {"name": name, "parent": "root", "qos": [], **fields}


def test_nothing_to_say_about_a_cluster_in_order():
    assert check(reading(), [account(grp_tres={"gres/gpu": 4}, qos=["normal"])], named=["normal"]) == []


def test_config_is_read_from_what_scontrol_prints():
    text = "Configuration data as of 2026-11-29T20:00:00\nAccountingStorageEnforce = associations,limits\nClusterName             = demo\n"
    assert parse_config(text)["ClusterName"] == "demo"
    assert "lacks qos" in check(reading(config=parse_config(text)))[0]


def test_partition_qos_is_read_and_na_is_none():
    text = "PartitionName=gpu AllowGroups=ALL QoS=big State=UP\nPartitionName=cpu AllowQos=ALL QoS=N/A State=UP\n"
    assert parse_partition_qos(text) == {"gpu": "big"}


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"config": {**GOOD, "ClusterName": "other"}}, "runs cluster 'other'"),
        ({"clusters": []}, "slurmdbd knows no cluster 'demo'"),
        ({"config": {**GOOD, "AccountingStorageEnforce": "none"}}, "not enforced"),
        ({"skew": 200.0}, "+200 s off"),
        ({"skew": -200.0}, "-200 s off"),
    ],
)
def test_a_cluster_that_is_not_in_order(changed, says):
    assert says in " ".join(check(reading(**changed)))


def test_unknown_qos_names_those_that_exist():
    assert "'hihg' does not exist (there are: normal)" in check(reading(), named=["hihg"])[0]


@pytest.mark.parametrize(
    ("cap", "qos", "refused"),
    [
        ({"grp_tres": {"gres/gpu": 4}}, {"grp_tres": {"gres/gpu": 8}}, True),
        ({"grp_tres": {"gres/gpu": 4}}, {"grp_tres": {"gres/gpu": 4}}, False),
        ({"grp_tres": {"gres/gpu": 4}}, {"grp_tres": {"cpu": 800}}, False),
        ({"grp_tres": {"gres/gpu": 4}}, {"max_tres_per_user": {"gres/gpu": 8}}, False),
        ({"grp_jobs": 10}, {"grp_jobs": 11}, True),
        ({"grp_submit_jobs": 10}, {"grp_submit_jobs": 9}, False),
        ({"grp_submit_jobs": 10}, {"max_submit_jobs_per_user": 100}, False),
        ({"max_submit_jobs": 10}, {"max_submit_jobs_per_user": 100}, True),
        ({"max_submit_jobs": 10}, {"max_submit_jobs_per_account": 100}, True),
        ({"max_jobs": 0}, {"max_jobs_per_user": 1}, True),
        ({"max_wall": "01:00:00"}, {"max_wall": 7200}, True),
        ({"max_wall": "02:00:00"}, {"max_wall": 7200}, False),
        ({"grp_jobs": -1, "grp_tres": {}}, {"grp_jobs": 11, "grp_tres": {"gres/gpu": 8}}, False),
    ],
)
@pytest.mark.parametrize("through", ["qos", "partition", "user"])
def test_a_cap_that_a_qos_would_outrank_is_refused(cap, qos, refused, through):
    read = reading(qos={"normal": {}, "big": qos}, partitions={"gpu": "big"} if through == "partition" else {})
    accounts = [account(qos=["normal", "big"] if through == "qos" else [], **cap)]
    users = [{"name": "alice", "associations": [{"account": "foo", "qos": ["big"] if through == "user" else []}]}]
    found = check(read, accounts, users)
    assert bool(found) is refused
    if refused:
        assert "account foo" in found[0]
        assert "QOS big" in found[0]


def test_a_qos_that_is_not_granted_does_not_matter():
    assert check(reading(qos={"normal": {}, "big": {"grp_jobs": 99}}), [account(grp_jobs=1)]) == []


def test_what_a_team_is_granted_meets_the_tenants_cap():
    accounts = [account(grp_jobs=1), account("team", parent="foo", qos=["big"])]
    found = check(reading(qos={"normal": {}, "big": {"grp_jobs": 99}}), accounts)
    assert found
    assert "account foo" in found[0]
