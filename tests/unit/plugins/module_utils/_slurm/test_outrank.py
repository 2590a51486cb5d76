# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import outrank
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.partitions import Partition

GPU = "gres/gpu"


def check(accounts=(), users=(), qos=None, partitions=()):
    wanted = outrank.rows(accounts, users, ["normal"])
    return outrank.check(wanted, {"normal": {}, **(qos or {})}, {item.name: item for item in partitions})


def account(name="foo", **fields):
    return {"name": name, "parent": "root", "qos": [], **fields}


def user(name, where, **fields):
    return {"name": name, "associations": [{"account": where, **fields}]}


@pytest.mark.parametrize(
    ("cap", "qos", "refused"),
    [
        ({"grp_tres": {GPU: 4}}, {"grp_tres": {GPU: 8}}, True),
        ({"grp_tres": {GPU: 4}}, {"grp_tres": {GPU: 4}}, False),
        ({"grp_tres": {GPU: 4}}, {"grp_tres": {"cpu": 800}}, False),
        ({"grp_tres": {GPU: 4}}, {"max_tres_per_user": {GPU: 8}}, False),
        ({"grp_tres": {GPU: 4}}, {"limit_factor": 2.0}, True),
        ({"grp_tres": {GPU: 4}}, {"limit_factor": 0.5}, False),
        ({"grp_jobs": 10}, {"grp_jobs": 11}, True),
        ({"grp_submit_jobs": 10}, {"grp_submit_jobs": 9}, False),
        ({"grp_submit_jobs": 10}, {"max_submit_jobs_per_user": 100}, False),
        ({"max_submit_jobs": 10}, {"max_submit_jobs_per_user": 100}, True),
        ({"max_submit_jobs": 10}, {"max_submit_jobs_per_account": 100}, True),
        # Both hold, and the tighter one is no larger than the cap.
        ({"max_submit_jobs": 10}, {"max_submit_jobs_per_account": 100, "max_submit_jobs_per_user": 5}, False),
        ({"max_jobs": 0}, {"max_jobs_per_user": 1}, True),
        ({"max_wall": "01:00:00"}, {"max_wall": 7200}, True),
        ({"max_wall": "02:00:00"}, {"max_wall": 7200}, False),
        ({"grp_jobs": -1, "grp_tres": {}}, {"grp_jobs": 11, "grp_tres": {GPU: 8}}, False),
    ],
)
@pytest.mark.parametrize("through", ["qos", "partition", "user"])
def test_a_cap_that_a_qos_would_outrank_is_refused(cap, qos, refused, through):
    partitions = [Partition("gpu", "big")] if through == "partition" else []
    accounts = [account(qos=["normal", "big"] if through == "qos" else [], **cap)]
    users = [user("alice", "foo", qos=["big"] if through == "user" else [])]
    found = check(accounts, users, {"big": qos}, partitions).problems
    assert bool(found) is refused
    if refused:
        assert "account foo" in found[0]
        assert "QOS big" in found[0]
        assert ("partition gpu" in found[0]) is (through == "partition")


def test_a_qos_that_is_not_granted_does_not_matter():
    assert check([account(grp_jobs=1)], qos={"big": {"grp_jobs": 99}}).problems == []


@pytest.mark.parametrize(
    ("partition", "refused"),
    [
        (Partition("p", "big"), True),
        (Partition("p", "big", allow_accounts=frozenset({"foo"})), True),
        (Partition("p", "big", allow_accounts=frozenset({"bar"})), False),
        (Partition("p", "big", deny_accounts=frozenset({"foo"})), False),
        (Partition("p", "big", allow_qos=frozenset({"other"})), False),
        (Partition("p", "big", state="INACTIVE"), True),
        (Partition("p", "gone"), False),
    ],
)
def test_a_partition_counts_where_the_tenant_gets_in(partition, refused):
    assert bool(check([account(grp_jobs=1)], qos={"big": {"grp_jobs": 99}}, partitions=[partition]).problems) is refused


def test_a_row_for_a_partition_meets_that_one_alone():
    for name, refused in (("gpu", True), ("cpu", False)):
        users = [user("alice", "foo", partition=name, max_jobs=1)]
        found = check(
            [account()], users, {"big": {"max_jobs_per_user": 9}}, [Partition("gpu", "big"), Partition("cpu")]
        )
        assert bool(found.problems) is refused


def test_overpartqos_makes_the_jobs_qos_the_one_that_counts():
    partitions = [Partition("gpu", "big")]
    over = {"grp_jobs": 1, "flags": frozenset({"OverPartQOS"})}
    assert (
        check([account(grp_jobs=1)], qos={"big": {"grp_jobs": 99}, "normal": over}, partitions=partitions).problems
        == []
    )


def test_a_partition_that_is_shorter_saves_the_cap():
    """The QOS allows two hours, the partition one."""
    qos = {"normal": {"max_wall": 7200}}
    assert (
        check([account(max_wall="01:30:00")], qos=qos, partitions=[Partition("p", limits={"max_time": 3600})]).problems
        == []
    )
    assert check([account(max_wall="01:30:00")], qos=qos, partitions=[Partition("p")]).problems


def test_what_a_team_is_granted_meets_the_tenants_cap():
    accounts = [account(grp_jobs=1), account("team", parent="foo", qos=["big"])]
    found = check(accounts, qos={"big": {"grp_jobs": 99}}).problems
    assert found
    assert "account foo" in found[0]


def test_a_smaller_limit_of_a_qos_is_no_refusal_but_the_cap_is_not_exact():
    found = check([account(grp_tres={GPU: 4}, qos=["normal", "small"])], qos={"small": {"grp_tres": {GPU: 1}}})
    assert found.problems == []
    assert found.warnings == [
        "grp_tres gres/gpu 4 of account foo is not exact: jobs of QOS small count against its own grp_tres gres/gpu 1 "
        "instead, so that both together may be used; remove it there if the cap is to be exact"
    ]


def test_each_thing_is_said_once():
    users = [user(f"u{number}", "foo") for number in range(50)]
    partitions = [Partition(f"p{number}") for number in range(5)]
    found = check([account(grp_jobs=1, qos=["big"])], users, {"big": {"grp_jobs": 99}}, partitions)
    assert len(found.problems) == 1
