# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which limit holds. The same order is tried with jobs in molecule/limits."""

from __future__ import annotations

import pytest
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import effective, fields
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.effective import Level, Setting
from hypothesis import given
from hypothesis import strategies as st

GPU = "gres/gpu"


def holds(user=None, account=None, root=None, job=None, partition_qos=None, partition=None):
    """{(option, resource): [(value, level)]}"""
    rows = [Level("user", user or {}), Level("account", account or {}), Level("root", root or {})]
    found: dict = {}
    limits = effective.effective(
        rows,
        None if job is None else Level("job", job),
        None if partition_qos is None else Level("partition qos", partition_qos),
        None if partition is None else Level("partition", partition),
    )
    for limit in limits:
        found.setdefault((limit.option, limit.resource), []).append((limit.value, limit.level))
    return found


def test_nothing_is_set():
    assert holds(job={}, partition_qos={}, partition={}) == {}


@pytest.mark.parametrize("kind", [kind for kind in effective.KINDS if not kind.tres], ids=lambda kind: kind.option)
def test_one_number(kind):
    place = (kind.option, "")
    everywhere = {"user": {kind.option: 1}, "account": {kind.option: 2}, "root": {kind.option: 3}}
    if kind.group:
        assert holds(**everywhere)[place] == [(1, "user"), (2, "account"), (3, "root")]
    else:
        assert holds(**everywhere)[place] == [(1, "user")]
        assert holds(account={kind.option: 2}, root={kind.option: 3})[place] == [(2, "account")]
    for option in kind.qos:
        found = holds(**everywhere, job={option: 9})
        assert found == {(option, ""): [(9, "job")]}
        found = holds(**everywhere, job={option: 9}, partition_qos={option: 8})
        assert found == {(option, ""): [(8, "partition qos")]}
        found = holds(**everywhere, job={option: 9, "flags": frozenset(["OverPartQOS"])}, partition_qos={option: 8})
        assert found == {(option, ""): [(9, "job")]}
        assert holds(**everywhere, job={}, partition_qos={option: 8}) == {(option, ""): [(8, "partition qos")]}


@pytest.mark.parametrize("kind", [kind for kind in effective.KINDS if kind.tres], ids=lambda kind: kind.option)
def test_tres_one_by_one(kind):
    (option,) = kind.qos
    found = holds(
        user={kind.option: {"cpu": 1, "mem": 1}},
        account={kind.option: {"cpu": 2, GPU: 2}},
        job={option: {"cpu": 9, "node": 9}},
        partition_qos={option: {"node": 8}},
    )
    assert found[(option, "cpu")] == [(9, "job")]
    assert found[(option, "node")] == [(8, "partition qos")]
    assert found[(option, "mem")] == [(1, "user")]
    assert found[(option, GPU)] == [(2, "account")]


def test_what_is_void_is_named():
    rows = [Level("user", {"max_jobs": 1}), Level("account", {"max_jobs": 2})]
    (per_user, per_account) = effective.effective(
        rows, Level("job", {"max_jobs_per_user": 5}), Level("partition qos", {"max_jobs_per_account": 7})
    )
    assert per_user.instead_of == per_account.instead_of == (Setting("user", "max_jobs", 1),)
    (limit,) = effective.effective(
        [Level("user", {"grp_jobs": 1}), Level("account", {"grp_jobs": 2})],
        Level("job", {"grp_jobs": 5}),
        Level("partition qos", {"grp_jobs": 7}),
    )
    assert (limit.value, limit.level) == (7, "partition qos")
    assert limit.instead_of == (
        Setting("job", "grp_jobs", 5),
        Setting("user", "grp_jobs", 1),
        Setting("account", "grp_jobs", 2),
    )


def test_zero_is_a_limit():
    assert holds(user={"grp_jobs": 5}, job={"grp_jobs": 0}) == {("grp_jobs", ""): [(0, "job")]}
    assert holds(user={"max_tres_per_job": {GPU: 0}}) == {("max_tres_per_job", GPU): [(0, "user")]}


@pytest.mark.parametrize("option", effective.QOS_TRES)
def test_what_only_a_qos_has(option):
    assert holds(job={option: {GPU: 2}}, partition_qos={option: {GPU: 1, "cpu": 3}}) == {
        (option, "cpu"): [(3, "partition qos")],
        (option, GPU): [(1, "partition qos")],
    }


def test_one_qos_for_both_counts_once():
    same = Level("QOS normal", {"grp_jobs": 3})
    (limit,) = effective.effective([], same, Level("QOS normal", {"grp_jobs": 3}))
    assert limit.instead_of == ()


def test_a_limit_factor_multiplies_what_associations_set_and_nothing_else():
    found = holds(
        user={"grp_tres": {GPU: 4}, "max_tres_per_job": {"cpu": 3}, "grp_jobs": 4},
        job={"limit_factor": 2.0, "grp_tres": {"cpu": 5}},
    )
    assert found[("grp_tres", GPU)][0][0] == 8
    assert "LimitFactor of job" in found[("grp_tres", GPU)][0][1]
    assert found[("max_tres_per_job", "cpu")][0][0] == 6
    assert found[("grp_tres", "cpu")] == [(5, "job")]
    assert found[("grp_jobs", "")] == [(4, "user")]
    minutes = {"grp_tres_mins": {GPU: 4}, "max_tres_per_node": {GPU: 4}}
    assert [limit[0][0] for limit in holds(user=minutes, job={"limit_factor": 2.0}).values()] == [4, 4]
    both = holds(user={"grp_tres": {GPU: 4}}, job={"limit_factor": 2.0}, partition_qos={"limit_factor": 3.0})
    assert both[("grp_tres", GPU)][0][0] == 12


@pytest.mark.parametrize(
    ("option", "resource", "own", "flag"),
    [
        ("max_wall", "", "max_time", "PartitionTimeLimit"),
        ("max_tres_per_job", "node", "max_nodes", "PartitionMaxNodes"),
    ],
)
def test_a_partition_bounds_whatever_holds(option, resource, own, flag):
    def given_(value):
        return {option: {resource: value} if resource else value}

    place = (option, resource)
    assert holds(partition={own: 5}) == {place: [(5, "partition")]}
    assert holds(user=given_(9), partition={own: 5}) == {place: [(5, "partition")]}
    assert holds(user=given_(3), partition={own: 5}) == {place: [(3, "user")]}
    assert holds(user=given_(3), job=given_(9), partition={own: 5}) == {place: [(5, "partition")]}
    flagged = {**given_(9), "flags": frozenset([flag])}
    assert holds(job=flagged, partition={own: 5}) == {place: [(9, "job")]}
    assert holds(job={"flags": frozenset([flag])}, user=given_(9), partition={own: 5}) == {place: [(9, "user")]}
    assert holds(job={"flags": frozenset([flag])}, partition={own: 5}) == {}
    # The flag of the partition's own QOS does not count.
    assert holds(partition_qos=flagged, partition={own: 5}) == {place: [(5, "partition")]}


def test_the_least_number_of_nodes_is_the_larger_one():
    place = ("min_tres_per_job", "node")
    assert holds(job={"min_tres_per_job": {"node": 2}}, partition={"min_nodes": 3}) == {place: [(3, "partition")]}
    assert holds(job={"min_tres_per_job": {"node": 4}}, partition={"min_nodes": 3}) == {place: [(4, "job")]}


def test_every_limit_of_the_table_is_known_here():
    """A field that is added to the table must get its place in the order, or be named here as no limit."""
    association = {"fairshare", "priority", "qos", "default_qos", "comment", "min_prio_threshold"}
    # Slurm keeps it and counts it, and no job was seen to be held back by it: nothing is claimed.
    association.add("max_tres_run_mins")
    of_qos = {
        "description", "priority", "preempt", "preempt_mode", "preempt_exempt_time", "grace_time", "usage_factor",
        "usage_threshold", "min_prio_threshold",
    }  # fmt: skip
    assert {field.option for field in fields.ASSOCIATION} - association <= set(effective.ASSOCIATION_OPTIONS)
    assert {field.option for field in fields.QOS_FIELDS} - of_qos <= set(effective.READ_OF_QOS)


LEVELS = st.dictionaries(st.sampled_from(["grp_jobs", "max_jobs", "max_submit_jobs", "max_wall"]), st.integers(0, 9))
OF_QOS = st.dictionaries(
    st.sampled_from(["grp_jobs", "max_jobs_per_user", "max_jobs_per_account", "max_submit_jobs_per_user", "max_wall"]),
    st.integers(0, 9),
)


@given(st.lists(LEVELS, max_size=4), OF_QOS, OF_QOS)
def test_every_setting_holds_or_is_named_as_void_or_has_a_nearer_one(rows, job, partition):
    chain = [Level(f"row{number}", values) for number, values in enumerate(rows)]
    limits = effective.effective(chain, Level("job", job), Level("partition", partition))
    said = {(limit.level, limit.option) for limit in limits}
    said |= {(void.level, void.option) for limit in limits for void in limit.instead_of}
    nearest = [option for row in rows for option in row if option != "grp_jobs"]
    for number, values in enumerate(rows):
        for option in values:
            first = option == "grp_jobs" or option not in {name for row in rows[:number] for name in row}
            assert ((f"row{number}", option) in said) is first, nearest
    for level, values in (("job", job), ("partition", partition)):
        assert {(level, option) for option in values} <= said
