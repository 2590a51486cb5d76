# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rows that must be told by a command of their own what they inherit (23.11 and later)."""

from __future__ import annotations

import pytest
from accounting_world import account, commands, example, user, world

NORMAL, HIGH = frozenset({"normal"}), frozenset({"high"})


def deep():
    """foo -> ml -> sub; a user on each level."""
    return world(
        {
            "foo": ("root", {"qos": NORMAL, "max_tres_per_job": {"cpu": 4}}),
            "ml": ("foo", {}),
            "sub": ("ml", {}),
            "own": ("foo", {"max_jobs": 2, "qos": HIGH}),
        },
        {
            "fred": ("foo", {"foo": {}}),
            "mary": ("ml", {"ml": {}}),
            "sue": ("sub", {"sub": {"max_jobs": 1}}),
            "owen": ("own", {"own": {}}),
        },
    )


def told(state, *args, **options):
    """Without the command that makes the change."""
    return commands(state, *args, **options)[1:]


def test_what_is_right_below_is_told_by_slurm_itself():
    flat = world({"foo": ("root", {})}, {"fred": ("foo", {"foo": {}})})
    assert told(flat, ["foo"], [account("foo", max_jobs=5)]) == []


def test_a_number_from_above_first_and_not_where_a_row_has_its_own():
    assert told(deep(), ["foo"], [account("foo", max_jobs=5)]) == [
        "modify account where name=sub cluster=c1 set MaxJobs=-1",
        "modify user where name=mary account=ml cluster=c1 set MaxJobs=-1",
    ]


def test_qos_and_default():
    state = world({"foo": ("root", {"qos": NORMAL}), "ml": ("foo", {})}, {"mary": ("ml", {"ml": {}})})
    assert told(state, ["foo"], [account("foo", qos=["normal", "low"], default_qos="low")]) == [
        "modify user where name=mary account=ml cluster=c1 set QOS= DefaultQOS=-1"
    ]
    assert told(deep(), ["foo"], [account("foo", qos=["normal", "low"])]) == [
        "modify account where name=sub cluster=c1 set QOS=",
        "modify user where name=mary,sue account=ml,sub cluster=c1 set QOS=",
    ]


def test_tres_by_tres():
    found = told(deep(), ["foo"], [account("foo", max_tres_per_job={"cpu": 4, "mem": 8})])
    # 24.11 tells a row of TRES only where it had one of its own (tried with jobs).
    assert found == [
        "modify account where name=sub cluster=c1 set MaxTRESPerJob=mem=8",
        "modify account where name=sub cluster=c1 set MaxTRESPerJob=mem=-1",
        "modify user where name=mary,owen,sue account=ml,own,sub cluster=c1 set MaxTRESPerJob=mem=8",
        "modify user where name=mary,owen,sue account=ml,own,sub cluster=c1 set MaxTRESPerJob=mem=-1",
    ]


def test_tres_that_are_inherited_no_longer():
    assert told(deep(), ["foo"], [account("foo", max_tres_per_job={})])[-2:] == [
        "modify user where name=mary,owen,sue account=ml,own,sub cluster=c1 set MaxTRESPerJob=cpu=4",
        "modify user where name=mary,owen,sue account=ml,own,sub cluster=c1 set MaxTRESPerJob=cpu=-1",
    ]


@pytest.mark.parametrize("given", [{"grp_jobs": 3}, {"fairshare": 7}, {"grp_tres": {"cpu": 1}}])
def test_what_is_not_inherited_needs_nothing(given):
    assert told(deep(), ["foo"], [account("foo", **given)]) == []


def test_a_row_of_a_user_needs_nothing_below_it():
    assert told(deep(), ["foo"], users=[user("mary", "ml", max_jobs=3)]) == []


def test_22_05_tells_them_all():
    assert told(example((22, 5)), ["foo"], [account("foo", max_jobs=5)]) == []
    assert told(example((24, 11)), ["foo"], [account("foo", max_jobs=5)]) == [
        "modify user where name=carol account=ml cluster=c1 set MaxJobs=-1"
    ]


def test_an_account_that_moves_is_told_itself():
    state = world(
        {"top": ("root", {}), "a": ("top", {"max_jobs": 1}), "b": ("top", {"max_jobs": 2}), "team": ("a", {})},
        {"mary": ("team", {"team": {}})},
    )
    assert commands(state, ["top"], [account("team", "b")]) == [
        "modify account where name=team cluster=c1 set parent=b",
        "modify account where name=team cluster=c1 set MaxJobs=-1",
        "modify user where name=mary account=team cluster=c1 set MaxJobs=-1",
    ]


def test_a_move_that_changes_nothing_inherited_is_one_command():
    state = world({"top": ("root", {}), "a": ("top", {}), "b": ("top", {}), "team": ("a", {})})
    assert len(commands(state, ["top"], [account("team", "b")])) == 1


def test_a_row_that_comes_before_the_change_is_told_too():
    found = commands(deep(), ["foo"], [account("foo", max_jobs=5)], [user("new", "ml")])
    assert found[-1] == "modify user where name=mary,new account=ml cluster=c1 set MaxJobs=-1"


def test_a_difference_is_not_wiped_out():
    state = deep()
    row = state.associations[("ml", "mary", "")]
    row.values["qos"] = frozenset({"+high"})
    row.effective_qos = frozenset({"normal", "high"})
    found = told(state, ["foo"], [account("foo", qos=["normal", "low"])])
    assert any("name=mary account=ml" in line and line.endswith("set QOS+=high") for line in found)
    assert not any("mary" in line and "QOS= " in f"{line} " for line in found)
