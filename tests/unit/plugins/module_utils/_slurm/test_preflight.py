# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.preflight import Reading, parse_config, problems

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


def check(read, named=()):
    return problems(read, "demo", named)


def test_nothing_to_say_about_a_cluster_in_order():
    assert check(reading(), named=["normal"]) == []


def test_config_is_read_from_what_scontrol_prints():
    text = "Configuration data as of 2026-11-29T20:00:00\nAccountingStorageEnforce = associations,limits\nClusterName             = demo\n"
    assert parse_config(text)["ClusterName"] == "demo"
    assert "lacks qos" in check(reading(config=parse_config(text)))[0]


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
