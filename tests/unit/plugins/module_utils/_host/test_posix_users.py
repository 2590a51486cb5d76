# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import dataclasses

import pytest
from ansible_collections.gpuops.tenancy.plugins.module_utils._host.posix_users import (
    Accounts,
    User,
    UsersError,
    commands,
    plan,
)
from hypothesis import given
from hypothesis import strategies as st

EMPTY = Accounts({}, {}, {}, {})


def user(name, uid=-1, **fields):
    return User(name, uid, uid, **{"gecos": "", "home": f"/home/{name}", "shell": "/bin/bash", **fields})


def applied(current: Accounts, users: list[User]) -> Accounts:
    """What a host knows after the users exist on it."""
    return Accounts(
        {**current.users, **{it.name: it for it in users}},
        {**current.groups, **{it.name: it.gid for it in users}},
        {**current.uids, **{it.uid: it.name for it in users}},
        {**current.gids, **{it.gid: it.name for it in users}},
    )


def refused(current, wanted, create=True):
    with pytest.raises(UsersError) as caught:
        plan(current, wanted, 10000, 10009, create)
    return caught.value.problems


def test_new_users_get_the_lowest_numbers_that_are_free_as_uid_and_gid():
    current = Accounts({}, {}, {10000: "old"}, {10001: "oldgroup"})
    changes, users = plan(current, [user("alice"), user("bob")], 10000, 10009, True)
    assert [(it.name, it.uid, it.gid) for it in users] == [("alice", 10002, 10002), ("bob", 10003, 10003)]
    assert changes.changed


def test_numbers_from_another_host_are_kept():
    _changes, users = plan(EMPTY, [user("alice", 10005)], 10000, 10009, True)
    assert users[0].uid == 10005


def test_a_number_asked_for_is_not_given_to_somebody_else():
    _changes, users = plan(EMPTY, [user("alice"), user("bob", 10000)], 10000, 10009, True)
    assert [it.uid for it in users] == [10001, 10000]


def test_a_group_left_by_a_killed_run_gives_the_number():
    current = Accounts({}, {"alice": 10003}, {}, {10003: "alice"})
    changes, users = plan(current, [user("alice")], 10000, 10009, True)
    assert users[0].uid == 10003
    assert [argv[0] for argv in commands(changes, users, False)] == ["useradd"]


def test_commands_are_argument_lists_with_the_name_last():
    changes, users = plan(EMPTY, [user("alice", gecos="Alice A")], 10000, 10009, True)
    group, create = commands(changes, users, True)
    assert group == ["groupadd", "--gid", "10000", "alice"]
    assert create[0] == "useradd"
    assert create[-1] == "alice"
    assert "--create-home" in create
    assert create[create.index("--comment") + 1] == "Alice A"


def test_changed_shell_is_one_change_and_one_command():
    there = user("alice", 10000)
    changes, users = plan(applied(EMPTY, [there]), [user("alice", shell="/bin/sh")], 10000, 10009, True)
    assert [(it.field, it.before, it.after) for it in changes] == [("shell", "/bin/bash", "/bin/sh")]
    assert commands(changes, users, False) == [["usermod", "--shell", "/bin/sh", "alice"]]


@pytest.mark.parametrize(
    ("current", "wanted", "says"),
    [
        (applied(EMPTY, [user("slurm", 64030)]), user("slurm", 10001), "64030 here and 10001 elsewhere"),
        (applied(EMPTY, [user("backup", 34)]), user("backup"), "system account"),
        (applied(EMPTY, [user("bob", 10001)]), user("alice", 10001), "belongs to bob"),
        (EMPTY, user("alice", 999), "outside 10000 to 10009"),
        (EMPTY, user("1003"), "'1003' is refused"),
        (EMPTY, user(""), "'' is refused"),
        (EMPTY, user("a;b"), "is refused"),
        (EMPTY, user("-rf"), "is refused"),
        (EMPTY, user("alice", gecos="x:0:0"), "take it out"),
        (Accounts({}, {"alice": 999}, {}, {999: "alice"}), user("alice", 10001), "gid 999 here and 10001 elsewhere"),
    ],
)
def test_refusals(current, wanted, says):
    assert says in " ".join(refused(current, [wanted]))


def test_a_range_that_is_full_is_an_error():
    assert "widen the range" in refused(EMPTY, [user(f"u{n}") for n in range(11)])[0]


def test_a_directorys_user_that_is_missing_is_an_error_and_never_created():
    assert "unknown here" in refused(EMPTY, [user("alice")], create=False)[0]


def test_named_twice():
    assert "named twice" in refused(EMPTY, [user("alice"), user("alice")])[0]


names = st.lists(st.from_regex(r"[a-z][a-z0-9]{0,5}", fullmatch=True), unique=True, max_size=8)


@given(names, names, st.integers(10000, 10009))
def test_a_second_plan_is_empty_and_numbers_are_unique(old, new, start):
    current = applied(EMPTY, [user(name, start + n) for n, name in enumerate(old)])
    _changes, users = plan(current, [user(name) for name in new], 10000, 10099, True)
    numbers = [it.uid for it in users]
    assert len(set(numbers)) == len(numbers)
    after = applied(current, users)
    again, same = plan(after, [dataclasses.replace(it) for it in users], 10000, 10099, True)
    assert not again.changed
    assert same == users


def test_what_is_not_said_of_a_user_who_is_there_stays():
    there = user("alice", 20000, gecos="Alice Old,,,", shell="/bin/zsh")
    changes, users = plan(applied(EMPTY, [there]), [user("alice", 20000, shell="")], 10000, 29999, True)
    assert not changes.changed and users == [there]


def test_a_new_user_gets_a_name_and_a_shell():
    _changes, users = plan(EMPTY, [user("alice", shell="")], 10000, 10009, True)
    assert (users[0].gecos, users[0].shell) == ("alice", "/bin/bash")
