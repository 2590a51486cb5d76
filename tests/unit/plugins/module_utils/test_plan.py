# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.gpuops.tenancy.plugins.module_utils._plan import ADD, CHANGE, REMOVE, Change, Plan, show


def test_an_empty_plan_changes_nothing_and_has_an_empty_diff():
    plan = Plan()
    assert not plan.changed
    assert plan.as_list() == []
    assert plan.diff("now", "wanted") == {"before_header": "now", "after_header": "wanted", "before": "", "after": ""}


def test_as_list_names_every_key_once():
    plan = Plan([Change(CHANGE, "account a", "grp_jobs", 1, 2, "safe")])
    assert plan.changed
    assert plan.as_list() == [
        {"kind": "change", "object": "account a", "field": "grp_jobs", "before": 1, "after": 2, "risk": "safe"}
    ]


def test_one_changed_field_is_one_line_of_the_diff():
    diff = Plan([Change(CHANGE, "account a", "grp_jobs", 1, 2)]).diff("b", "a")
    assert diff["before"] == "account a:\n  grp_jobs: 1\n"
    assert diff["after"] == "account a:\n  grp_jobs: 2\n"


def test_an_added_object_is_absent_before_and_a_removed_one_after():
    plan = Plan(
        [
            Change(ADD, "user new"),
            Change(ADD, "user new", "max_jobs", None, 3),
            Change(REMOVE, "user old", risk="destructive"),
        ]
    )
    diff = plan.diff("b", "a")
    assert diff["before"] == "user old:\n"
    assert diff["after"] == "user new:\n  max_jobs: 3\n"


def test_a_cleared_field_disappears_from_after():
    diff = Plan([Change(CHANGE, "account a", "grp_jobs", 5, None)]).diff("b", "a")
    assert diff["before"] == "account a:\n  grp_jobs: 5\n"
    assert diff["after"] == "account a:\n"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"mem": 1, "cpu": 2}, "cpu=2,mem=1"),
        ({}, "{}"),
        ({"b", "a"}, "a,b"),
        (["b", "a"], "b,a"),
        ([], "[]"),
        (True, "true"),
        ("two\nlines", "two\\nlines"),
    ],
)
def test_values_are_shown_on_one_line(value, text):
    assert show(value) == text


@pytest.mark.parametrize("bad", [{"kind": "delete"}, {"kind": "add", "risk": "big"}])
def test_an_unknown_kind_or_risk_is_refused(bad):
    with pytest.raises(ValueError, match="expected one of"):
        Change(object="x", **bad)
