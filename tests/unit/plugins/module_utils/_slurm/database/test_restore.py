# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import re

import pytest
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.database import dump, restore
from ansible_collections.gpuops.tenancy.plugins.modules import slurm_database_restore as module

SHA, OTHER, WHEN = "a" * 64, "b" * 64, "20261130T000000Z"


@pytest.mark.parametrize(
    ("loaded", "mark", "expected"),
    [
        (None, (), restore.NOTHING),
        ([], (), restore.NOTHING),
        (["t"], (), restore.NOTHING),  # killed while it loaded
        (["t", restore.MARK], (SHA, WHEN), restore.LOADED),
        ([restore.MARK], (SHA, WHEN), restore.SWAPPED),
        (["t", restore.MARK], (OTHER, WHEN), restore.NOTHING),
        (["t", restore.MARK], ("nonsense", WHEN), restore.NOTHING),
        (["t", restore.MARK], (SHA, "`; DROP"), restore.NOTHING),
        (["t", restore.MARK], (SHA,), restore.NOTHING),
    ],
)
def test_how_far_it_has_come(loaded, mark, expected):
    assert restore.current(["t"], loaded, mark).step(SHA) == expected


def now(live=("t", "u"), loaded=("t", "v")):
    return restore.Current(live, loaded, SHA, WHEN)


def test_one_statement_moves_all_tables():
    *before, last = restore.swap("acct", now())
    assert before == [
        "CREATE DATABASE IF NOT EXISTS `acct`;",
        f"CREATE DATABASE IF NOT EXISTS `acct_until_{WHEN}`;",
    ]
    assert re.findall(r"`(\w+)`\.`(\w+)` TO `(\w+)`\.`(\w+)`", last) == [
        ("acct", "t", f"acct_until_{WHEN}", "t"),
        ("acct", "u", f"acct_until_{WHEN}", "u"),
        ("acct_restore", "t", "acct", "t"),
        ("acct_restore", "v", "acct", "v"),
    ]


@pytest.mark.parametrize("live", [None, ()])
def test_a_database_that_is_gone_leaves_nothing_to_keep(live):
    *before, last = restore.swap("acct", now(live))
    assert before == ["CREATE DATABASE IF NOT EXISTS `acct`;"]
    assert "until" not in last


def test_a_mark_is_checked():
    assert "ENGINE=InnoDB AS SELECT" in restore.mark("acct", SHA, WHEN)
    for sha, when in (("x", WHEN), (SHA, "now")):
        with pytest.raises(ValueError, match="no mark"):
            restore.mark("acct", sha, when)


@pytest.mark.parametrize(
    ("state", "current", "changed"),
    [
        ("loaded", restore.Current(("t",), None), True),
        ("loaded", now(), False),
        ("loaded", now(loaded=()), False),
        ("swapped", now(), True),
        ("swapped", now(loaded=()), False),
        ("finished", now(loaded=()), True),
        ("finished", restore.Current(("t",), None), False),
    ],
)
def test_each_step_is_done_once(state, current, changed):
    assert module.steps(state, "/x", "acct", current, SHA).changed == changed


def test_check_mode_foresees_the_steps_before():
    nothing, want = restore.Current(("t",), None), dump.Manifest("acct", WHEN, SHA, 1, {"t": 1})
    assert module.foreseen("loaded", nothing, want) == nothing
    assert module.foreseen("swapped", nothing, want).step(SHA) == restore.LOADED
    assert module.foreseen("finished", nothing, want).step(SHA) == restore.SWAPPED
    assert module.foreseen("swapped", now(loaded=()), want).step(SHA) == restore.SWAPPED
