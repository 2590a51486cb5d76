# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import os

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.gpuops.tenancy.plugins.module_utils import _lock
from ansible_collections.gpuops.tenancy.plugins.module_utils._host import numbers
from ansible_collections.gpuops.tenancy.plugins.module_utils._host.posix_users import Accounts, User, UsersError
from ansible_collections.gpuops.tenancy.plugins.modules import posix_numbers
from hypothesis import given
from hypothesis import strategies as st

LOW, HIGH = 10000, 10009


def host(**users):
    """What a host knows: a user, and a group of the same name and number, for each."""
    uids = {number: name for name, number in users.items()}
    return Accounts({name: User(name, uid, uid) for name, uid in users.items()}, dict(users), uids, uids)


def reserve(ledger, current, *names):
    _plan, after, found = numbers.reserve(ledger, current, names, LOW, HIGH)
    return after, found


def test_a_departed_users_number_is_not_given_again():
    ledger, found = reserve({}, host(), "alice", "bob")
    assert found == {"alice": 10000, "bob": 10001}
    # alice is gone from the host, only bob is left.
    _ledger, found = reserve(ledger, host(bob=10001), "carol", "bob")
    assert found == {"carol": 10002, "bob": 10001}


def test_she_gets_her_own_again_when_she_comes_back():
    ledger, _found = reserve({}, host(), "alice", "bob")
    assert reserve(ledger, host(), "alice")[1] == {"alice": 10000}


def test_who_was_created_by_hand_keeps_the_number_too():
    ledger, found = reserve({}, host(old=10005, daemon=1, far=60000), "alice")
    assert ledger == {10005: "old", 10006: "alice"}
    assert found == {"alice": 10006}
    assert reserve(ledger, host(), "new")[1] == {"new": 10007}


def test_a_group_left_by_a_killed_run_has_the_number_of_its_user():
    current = Accounts({}, {"alice": 10003}, {}, {10003: "alice"})
    assert reserve({}, current, "alice")[1] == {"alice": 10003}


def test_gaps_come_last():
    assert reserve({10009: "a", 10001: "b"}, host(), "c")[1] == {"c": 10000}


def test_a_system_account_is_told_as_it_is():
    assert reserve({}, host(mysql=105), "mysql") == ({}, {"mysql": 105})


@pytest.mark.parametrize(
    ("ledger", "current", "says"),
    [
        ({10003: "bob"}, host(alice=10003), "given to bob"),
        ({10003: "alice"}, host(alice=10004), "has the number 10004 here and was given 10003"),
        ({number: f"u{number}" for number in range(LOW, HIGH + 1)}, host(), "widen the range"),
    ],
)
def test_refusals(ledger, current, says):
    with pytest.raises(UsersError, match=says):
        reserve(ledger, current, "alice")


names = st.lists(st.sampled_from(["alice", "bob", "carol", "dave"]), unique=True)


@given(st.lists(st.tuples(names, names), max_size=6))
def test_a_number_never_has_a_second_owner(steps):
    ledger, there, owners = {}, {}, {}
    for come, go in steps:
        current = host(**there)
        plan, ledger, found = numbers.reserve(ledger, current, come, LOW, HIGH)
        again, same, _found = numbers.reserve(ledger, current, come, LOW, HIGH)
        assert (again.changed, same) == (False, ledger)
        assert {change.object for change in plan} <= {f"number {number}" for number in ledger}
        for name, number in found.items():
            assert owners.setdefault(number, name) == name
        there = {name: number for name, number in {**there, **found}.items() if name not in go}


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", '{"numbers": []}', '{"numbers": {"x": "a"}}', '{"numbers": {"1": null}}']
)
def test_a_ledger_that_is_not_understood_is_not_an_empty_one(tmp_path, text):
    (tmp_path / "ledger").write_text(text)
    with pytest.raises(UsersError, match="restore it from a backup"):
        numbers.read(str(tmp_path / "ledger"))


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(_lock.Lock.__init__, "__defaults__", (300.0, (str(tmp_path),)))

    def call(*users, check=False, **params):
        arguments = {
            "users": list(users),
            "ledger": str(tmp_path / "state" / "ledger"),
            "uid_min": LOW,
            "uid_max": HIGH,
        }
        with patch_module_args({**arguments, **params, "_ansible_check_mode": check}), pytest.raises(SystemExit):
            posix_numbers.main()
        return json.loads(capsys.readouterr().out)

    call.ledger = tmp_path / "state" / "ledger"
    return call


def test_module(run):
    alice = {"name": "no-such-alice", "gecos": "Alice"}
    planned = run(alice, check=True)
    assert planned["changed"]
    assert not run.ledger.exists()
    done = run(alice)
    assert {key: done[key] for key in ("changed", "users", "plan")} == {
        key: planned[key] for key in ("changed", "users", "plan")
    }
    assert done["users"][0]["gecos"] == "Alice"
    again = run(alice)
    assert (again["changed"], again["users"]) == (False, done["users"])
    assert run.ledger.stat().st_mode & 0o777 == 0o644
    assert os.listdir(run.ledger.parent) == ["ledger"]


def test_a_directory_gives_its_own_numbers(run):
    result = run({"name": "root"}, create=False)
    assert (result["changed"], result["users"]) == (False, [{"name": "root", "uid": 0}])
    assert "unknown here" in run({"name": "no-such-alice"}, create=False)["msg"]
    assert not run.ledger.exists()


@pytest.mark.parametrize("user", [{"name": "-rf"}, {"name": ""}, {}, {"name": "1003"}])
def test_a_bad_name_reserves_nothing(run, user):
    assert "is refused" in run(user)["msg"]
    assert not run.ledger.exists()
