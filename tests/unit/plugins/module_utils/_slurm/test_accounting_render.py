# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import difflib

from accounting_world import account, example, plan, user, world
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import render


def changed_lines(state, made):
    diff = render.diff(state, made)
    lines = difflib.ndiff(diff["before"].splitlines(), diff["after"].splitlines())
    return [line for line in lines if line[0] in "+-"]


def test_one_changed_limit_is_one_changed_line():
    state = example()
    assert changed_lines(state, plan(state, ["foo"], [account("foo", grp_jobs=5)])) == [
        '- account foo grp_jobs=10 qos=high,normal default_qos=normal description="foo" organization="foo"'.replace(
            "- ", "-   "
        ),
        '+ account foo grp_jobs=5 qos=high,normal default_qos=normal description="foo" organization="foo"'.replace(
            "+ ", "+   "
        ),
    ]


def test_only_what_changes_and_what_is_above_it_is_shown():
    state = example()
    diff = render.diff(state, plan(state, ["foo"], users=[user("alice", "ml", max_jobs=6)]))
    assert diff["before"] == "account root\n  account foo\n    account ml\n      user alice (default) max_jobs=5\n"
    assert diff["after"] == "account root\n  account foo\n    account ml\n      user alice (default) max_jobs=6\n"
    assert "bar" not in diff["before"] + diff["after"]


def test_a_reparented_account_moves():
    state = example()
    diff = render.diff(state, plan(state, ["foo"], [account("data", "ml")]))
    assert '\n    account data description="data"' in diff["before"]
    assert '\n      account data description="data"' in diff["after"]


def test_a_removed_user_is_gone_and_a_default_is_shown_where_it_was_and_will_be():
    state = example()
    diff = render.diff(state, plan(state, ["foo"], users=[user("carol", "data", default="bar")]))
    assert "user carol (default)\n" in diff["before"]
    assert diff["after"].count("user carol (default)") == 1
    assert "account bar\n    user carol (default)\n" in diff["after"]


def test_without_a_change_both_sides_are_empty():
    state = example()
    diff = render.diff(state, plan(state, ["foo"]))
    assert (diff["before"], diff["after"]) == ("", "")


def test_a_text_cannot_forge_a_line():
    state = world({"foo": ("root", {"description": "x\naccount root"})})
    diff = render.diff(state, plan(state, ["foo"], [account("foo", grp_jobs=1)]))
    assert len(diff["before"].splitlines()) == 2
