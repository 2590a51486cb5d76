# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.gpuops.tenancy.plugins.module_utils._host import posix_groups
from ansible_collections.gpuops.tenancy.plugins.module_utils._host.posix_groups import Host, Wanted
from hypothesis import given
from hypothesis import strategies as st


def host(listed=None, gids=None, **effective):
    return Host(listed or {}, gids or {}, {name: frozenset(numbers) for name, numbers in effective.items()})


def test_a_new_group_gets_the_users_that_are_known():
    wanted = [Wanted("mcs-foo", ("alice", "later"), exact=True)]
    changes, after = posix_groups.plan(host(alice=[1]), wanted, create=True)
    assert posix_groups.commands(changes, after) == [["groupadd", "mcs-foo"], ["gpasswd", "-M", "alice", "mcs-foo"]]


def test_members_come_and_go_in_one_command_and_others_stay():
    there = host(
        {"g": ("alice", "bob", "kept")}, {"g": 2000}, alice=[1, 2000], bob=[2, 2000], carol=[3], kept=[4, 2000]
    )
    changes, after = posix_groups.plan(there, [Wanted("g", ("alice", "carol"), ("bob",))], create=True)
    assert after == {"g": ["alice", "carol", "kept"]}
    assert len(changes) == 1
    changes, after = posix_groups.plan(there, [Wanted("g", ("alice", "carol"), exact=True)], create=True)
    assert after == {"g": ["alice", "carol"]}


def test_a_group_that_loses_its_last_member_is_emptied():
    there = host({"g": ("bob",)}, {"g": 2000}, bob=[2, 2000])
    changes, after = posix_groups.plan(there, [Wanted("g", exact=True)], create=True)
    assert posix_groups.commands(changes, after) == [["gpasswd", "-M", "", "g"]]


def test_nothing_to_do_is_no_change():
    there = host({"g": ("alice",)}, {"g": 2000}, alice=[1, 2000], bob=[2000])
    # Who has it as the primary group is in it without being listed.
    changes, _after = posix_groups.plan(there, [Wanted("g", ("alice", "bob"))], create=True)
    assert not changes.changed


@pytest.mark.parametrize(
    ("there", "wanted", "create", "says"),
    [
        (host(), Wanted("bad|name"), True, "no name for a group"),
        (host(gids={"sudo": 27}), Wanted("sudo"), True, "one of the system's"),
        (host(), Wanted("g", ("a",), ("a",)), True, "is to have and not to have"),
        (host(), Wanted("g"), False, "create it in the directory"),
        (host(gids={"g": 2000}, a=[1]), Wanted("g", ("a",)), False, "add the user in the directory"),
        (host(gids={"g": 2000}, a=[2000]), Wanted("g", (), ("a",)), False, "remove the user in the directory"),
        (host(gids={"g": 2000}, a=[2000]), Wanted("g", (), ("a",)), True, "take the user out there"),
    ],
)
def test_what_cannot_be_had_is_one_clear_error(there, wanted, create, says):
    with pytest.raises(posix_groups.GroupsError, match=says):
        posix_groups.plan(there, [wanted], create)


NAMES = st.sampled_from(["a", "b", "c", "d"])


@given(st.sets(NAMES), st.sets(NAMES), st.sets(NAMES), st.booleans())
def test_afterwards_it_is_as_asked_and_a_second_plan_is_empty(before, members, without, exact):
    without -= members
    wanted = [Wanted("g", tuple(sorted(members)), tuple(sorted(without)), exact)]

    def at(listed):
        return host(
            {"g": tuple(sorted(listed))}, {"g": 2000}, **{name: [2000] if name in listed else [1] for name in "abcd"}
        )

    _changes, after = posix_groups.plan(at(before), wanted, create=True)
    now = set(after.get("g", before))
    assert members <= now and not without & now
    assert not exact or now == members
    again, _after = posix_groups.plan(at(now), wanted, create=True)
    assert not again.changed


def test_reads_this_host(tmp_path):
    local = tmp_path / "group"
    local.write_text("root:x:0:\nmcs-x:x:2000:alice,root\nbroken\n")
    found = posix_groups.read([Wanted("root", ("root",))], str(local))
    assert found.gids == {"root": 0}
    assert found.listed["mcs-x"] == ("alice", "root")
    assert 0 in found.effective["root"]
