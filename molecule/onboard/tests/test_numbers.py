# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nobody inherits what a departed user owned: a number has one owner, on all hosts and for good."""

from __future__ import annotations

import concurrent.futures
import json
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tests" / "cluster"))
from recorded import module
from remote import on, said

LEDGER = "/root/numbers-of-a-test.json"
HOSTS = ("ctl", "login", "gpu1", "gpu2", "gpu3")


@pytest.fixture(autouse=True)
def clean():
    yield
    on("ctl", "rm", "-f", LEDGER)
    on("ctl", "userdel", "departed")


def reserve(*names):
    users = [{"name": name} for name in names]
    run = module("ctl", "posix_numbers", {"users": users, "ledger": LEDGER, "uid_min": 10000})
    assert run.returncode == 0, run.output
    return json.loads(said("ctl", "cat", LEDGER))["numbers"]


def test_the_users_have_their_numbers_of_the_ledger_on_every_host():
    ledger = json.loads(said("ctl", "cat", "/var/lib/gpuops-tenancy/numbers.json"))["numbers"]
    number = next(number for number, name in ledger.items() if name == "alice")
    assert {said(host, "id", "-u", "alice") for host in HOSTS} == {number}


def test_a_departed_users_number_is_not_given_again():
    number = next(number for number, name in reserve("departed").items() if name == "departed")
    run = module("ctl", "posix_users", {"users": [{"name": "departed", "uid": int(number)}], "uid_min": 10000})
    assert run.returncode == 0, run.output
    said("ctl", "userdel", "departed")
    assert on("ctl", "id", "departed").returncode != 0
    after = reserve("successor")
    assert after[number] == "departed"
    assert list(after.values()).count("successor") == 1


def test_two_runs_at_once_choose_different_numbers():
    with concurrent.futures.ThreadPoolExecutor() as pool:
        list(pool.map(reserve, ("one", "two", "three")))
    assert {"one", "two", "three"} <= set(json.loads(said("ctl", "cat", LEDGER))["numbers"].values())
