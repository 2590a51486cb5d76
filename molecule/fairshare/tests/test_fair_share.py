# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Real jobs of five teams, and the order in which their next jobs stand."""

from __future__ import annotations

import math
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import fair_tree

# PriorityWeightFairshare, as the role sets it.
WEIGHT = 100000


def test_every_factor_is_what_shares_and_usage_make_of_it(ran):
    expected = fair_tree.factors(ran.tree)
    assert {key[1] for key in expected} >= {"rosa", "raj", "ines", "ivan", "ella", "emil", "dora", "dan", "ci-runner"}
    told = {key: float(row["FairShare"]) for key, row in ran.sshare.items() if key[1]}
    assert told == pytest.approx(expected, abs=1e-6)


def test_every_level_is_what_shares_and_usage_make_of_it(ran):
    for key, level in fair_tree.levels(ran.tree).items():
        told = float(ran.sshare[key]["LevelFS"])
        # sshare prints usage without its fraction.
        assert told == level or math.isclose(told, level, rel_tol=0.02), key


def test_the_order_is_one_that_could_be_wrong(ran):
    """No team ties, usage and not shares alone decide, and a user of a better team comes before all of a worse one."""
    teams = [row for row in ran.tree if row.parent == "tenant-lab"]
    level = fair_tree.levels(ran.tree)
    order = sorted(teams, key=lambda row: level[row.key], reverse=True)
    assert len({level[row.key] for row in teams}) == 5
    assert order != sorted(teams, key=lambda row: row.shares, reverse=True)
    factors = fair_tree.factors(ran.tree)
    found = [[value for key, value in factors.items() if key[0] == team.key[0]] for team in order]
    assert all(min(better) > max(worse) for better, worse in zip(found, found[1:]))


def test_who_has_used_nothing_ties_and_comes_first_among_siblings(ran):
    told = {key: float(row["FairShare"]) for key, row in ran.sshare.items() if key[0] == "dev-lab" and key[1]}
    idle = told["dev-lab", "dan", ""], told["dev-lab", "dora", ""]
    assert idle[0] == idle[1] > told["dev-lab", "dora", "h100"]


def test_waiting_jobs_stand_in_that_order(ran):
    # A user may have an association for each partition; these jobs are for the L40S.
    factor = {
        user: float(row["FairShare"])
        for (_account, user, partition), row in ran.sshare.items()
        if user in ran.waiting and partition in ("", "l40s")
    }
    assert ran.waiting == pytest.approx({user: value * WEIGHT for user, value in factor.items()}, abs=1)
    assert len(set(ran.waiting.values())) == 5
