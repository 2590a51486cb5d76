# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from accounting_world import account, user, want
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.desired import Refused


def test_nested_accounts_become_flat_and_get_their_parent():
    made = want(["foo"], [account("foo", accounts=[account("ml", accounts=[account("vision")])])])
    assert {name: item.parent for name, item in made.accounts.items()} == {"foo": "root", "ml": "foo", "vision": "ml"}


def test_upper_case_is_folded_with_a_warning():
    made = want(["Foo"], [account("FOO")], [user("Alice", "foo")])
    assert list(made.accounts) == ["foo"] and list(made.users) == ["alice"]
    assert len(made.warnings) == 3
    assert "user Alice is written alice in Slurm" in made.warnings[2]


def test_names_that_differ_only_in_case_are_the_same_name():
    with pytest.raises(Refused, match="account foo is named twice"):
        want(["foo"], [account("foo"), account("Foo")])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"scope": []}, "scope is empty"),
        ({"accounts": [account("root")]}, "account root belongs to Slurm"),
        ({"users": [user("root", "foo")]}, "user root administers Slurm"),
        ({"users": [user("al", "root")]}, "account root is Slurm's own"),
        ({"users": [user("al")]}, "user al names no association: to remove a user"),
        ({"users": [user("al", "foo", "foo")]}, "user al in foo is listed twice"),
        ({"users": [user("al", "foo"), user("al", "foo")]}, "user al is named twice"),
        ({"users": [user("1003", "foo")]}, "digits only"),
        ({"users": [user("", "foo")]}, "user name '' is refused"),
        ({"users": [user("a'b", "foo")]}, "is refused"),
        ({"accounts": [account("foo", accounts=[account("x", "bar")])]}, "inside foo but names the parent bar"),
        ({"accounts": [account("foo", max_jobs=-5)]}, "account foo: max_jobs: -5 is out of range"),
        ({"exclusive": True}, "exclusive is true and neither accounts nor users are named"),
        ({"max_removals": -1}, "max_removals is -1"),
        ({"block_qos": "a b"}, "QOS name 'a b' is refused"),
    ],
)
def test_arguments_that_cannot_be_meant_are_refused(arguments, message):
    with pytest.raises(Refused, match=message):
        want(**{"scope": ["foo"], **arguments})


def test_every_problem_is_reported_at_once():
    with pytest.raises(Refused) as caught:
        want(["foo"], [account("a b"), account("foo", max_wall="soon")], [user("7", "foo")])
    assert len(caught.value.problems) == 3


def test_what_is_left_out_is_left_alone():
    made = want(["foo"], [account("foo", grp_jobs=None, qos=[])])
    assert made.accounts["foo"].values == {"qos": frozenset()}
    assert made.accounts["foo"].record == {}
    assert made.accounts["foo"].coordinators is None
