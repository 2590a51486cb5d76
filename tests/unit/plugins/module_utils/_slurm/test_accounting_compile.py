# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from accounting_world import account, commands, example, plan, user, world
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.command import Command
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.compile import compile_plan


def test_a_changed_limit_is_one_command_with_a_condition():
    assert commands(example(), ["foo"], [account("foo", grp_jobs=5)]) == [
        "modify account where name=foo cluster=c1 set GrpJobs=5"
    ]


def test_users_with_the_same_change_share_a_command():
    state = world({"foo": ("root", {}), "a": ("foo", {})}, {name: ("a", {"a": {}}) for name in "xyz"})
    assert commands(state, ["foo"], users=[user(name, "a", max_jobs=3) for name in "xyz"]) == [
        "modify user where name=x,y,z account=a cluster=c1 set MaxJobs=3"
    ]


def test_across_accounts_too_where_every_pair_is_meant():
    state = world(
        {"foo": ("root", {}), "a": ("foo", {}), "b": ("foo", {})}, {"x": ("a", {"a": {}}), "y": ("b", {"b": {}})}
    )
    assert commands(state, ["foo"], users=[user("x", "a", max_jobs=3), user("y", "b", max_jobs=3)]) == [
        "modify user where name=x,y account=a,b cluster=c1 set MaxJobs=3"
    ]


def test_but_not_where_a_pair_would_be_hit_that_is_not_meant():
    state = world(
        {"foo": ("root", {}), "a": ("foo", {}), "b": ("foo", {})},
        {"x": ("a", {"a": {}, "b": {}}), "y": ("b", {"b": {}})},
    )
    rows = {"name": "x", "associations": [{"account": "a", "max_jobs": 3}, {"account": "b"}]}
    assert commands(state, ["foo"], users=[rows, user("y", "b", max_jobs=3)]) == [
        "modify user where name=x account=a cluster=c1 set MaxJobs=3",
        "modify user where name=y account=b cluster=c1 set MaxJobs=3",
    ]


def test_new_users_come_with_their_default_account_that_one_first():
    assert commands(example(), ["foo"], users=[user("zoe", "data", "ml", default="ml", max_jobs=2)]) == [
        "add user name=zoe account=ml cluster=c1 DefaultAccount=ml MaxJobs=2",
        "add user name=zoe account=data cluster=c1 DefaultAccount=ml MaxJobs=2",
    ]


def test_a_move_adds_with_the_new_default_before_it_removes():
    assert commands(example(), ["foo"], users=[user("alice", "data")]) == [
        "add user name=alice account=data cluster=c1 DefaultAccount=data",
        "delete user where name=alice account=ml cluster=c1",
    ]


def test_a_switched_default_is_not_switched_back_by_the_next_association():
    assert commands(example(), ["foo"], users=[user("alice", "data", "foo", "ml", default="data")]) == [
        "add user name=alice account=data cluster=c1 DefaultAccount=data",
        "add user name=alice account=foo cluster=c1 DefaultAccount=data",
    ]


def test_an_association_more_keeps_the_default():
    assert commands(example(), ["foo"], users=[user("alice", "data", "ml")]) == [
        "add user name=alice account=data cluster=c1 DefaultAccount=ml"
    ]


def test_a_default_among_existing_accounts_is_changed_by_itself_and_before_removals():
    state = world({"foo": ("root", {}), "a": ("foo", {}), "b": ("foo", {})}, {"x": ("a", {"a": {}, "b": {}})})
    assert commands(state, ["foo"], users=[user("x", "b")]) == [
        "modify user where name=x cluster=c1 set DefaultAccount=b",
        "delete user where name=x account=a cluster=c1",
    ]


def test_of_several_removals_the_default_account_goes_last():
    state = world(
        {"foo": ("root", {}), "a": ("foo", {}), "b": ("foo", {})},
        {"x": ("a", {"a": {}, "b": {}}), "y": ("a", {"a": {}})},
    )
    made = commands(
        state,
        ["foo"],
        [account("foo"), account("a", "foo"), account("b", "foo")],
        [user("y", "a")],
        exclusive=True,
        max_removals=2,
    )
    assert made == ["delete user where name=x account=b cluster=c1", "delete user where name=x account=a cluster=c1"]


def test_accounts_are_added_from_above_and_removed_from_below():
    state = world({"foo": ("root", {}), "a": ("foo", {}), "b": ("a", {})})
    tree = [account("foo", accounts=[account("x", accounts=[account("y")])])]
    assert commands(state, ["foo"], tree, exclusive=True, max_removals=2) == [
        "add account name=x cluster=c1 parent=foo",
        "add account name=y cluster=c1 parent=x",
        "delete account where name=b cluster=c1",
        "delete account where name=a cluster=c1",
    ]


def test_accounts_are_added_together_and_texts_that_differ_come_later():
    """On 10,000 associations each "add account" takes a second, whatever it adds."""
    teams = [account(name, "foo", fairshare="10", description=f"Team {name}") for name in ("t1", "t2")]
    assert commands(example(), ["foo"], teams) == [
        "add account name=t1,t2 cluster=c1 parent=foo Fairshare=10",
        "modify account where name=t1 cluster=c1 set Description=team t1",
        "modify account where name=t2 cluster=c1 set Description=team t2",
    ]


def test_a_text_that_all_share_comes_with_them():
    teams = [account(name, "foo", organization="lab") for name in ("t1", "t2")]
    assert commands(example(), ["foo"], teams) == ["add account name=t1,t2 cluster=c1 parent=foo Organization=lab"]
    assert commands(example(), ["foo"], [account("t1", "foo", description="One")]) == [
        "add account name=t1 cluster=c1 parent=foo Description=one"
    ]


def test_changing_places_moves_the_child_up_first():
    state = world({"foo": ("root", {}), "a": ("foo", {}), "b": ("a", {})})
    assert commands(state, ["foo"], [account("b", "foo"), account("a", "b")]) == [
        "modify account where name=b cluster=c1 set parent=foo",
        "modify account where name=a cluster=c1 set parent=b",
    ]


def test_list_and_default_change_in_one_command():
    assert commands(example((22, 5)), ["foo"], [account("foo", qos=["high"], default_qos="high", grp_jobs=4)]) == [
        "modify account where name=foo cluster=c1 parent=root set GrpJobs=4 QOS=high DefaultQOS=high"
    ]


def test_removing_a_qos_that_a_users_own_default_uses_changes_the_user_first():
    state = world(
        {"foo": ("root", {"qos": frozenset({"normal", "high"})})}, {"x": ("foo", {"foo": {"default_qos": "high"}})}
    )
    assert commands(state, ["foo"], [account("foo", qos=["normal"])], [user("x", "foo", default_qos="normal")]) == [
        "modify user where name=x account=foo cluster=c1 set DefaultQOS=normal",
        "modify account where name=foo cluster=c1 set QOS=normal",
    ]


def test_where_no_single_pass_is_possible_lists_are_widened_and_narrowed():
    state = world(
        {"foo": ("root", {"qos": frozenset({"high"}), "default_qos": "high"})},
        {"x": ("foo", {"foo": {"default_qos": "high"}})},
    )
    made = commands(
        state, ["foo"], [account("foo", qos=["low"], default_qos="low")], [user("x", "foo", default_qos="low")]
    )
    assert made == [
        "modify account where name=foo cluster=c1 set QOS=high,low",
        "modify user where name=x account=foo cluster=c1 set DefaultQOS=low",
        "modify account where name=foo cluster=c1 set DefaultQOS=low",
        "modify account where name=foo cluster=c1 set QOS=low",
    ]


def test_a_new_row_whose_default_is_not_there_yet_gets_it_later():
    state = world({"foo": ("root", {})})
    assert commands(state, ["foo"], [account("foo", qos=["high"])], [user("x", "foo", default_qos="high")]) == [
        "add user name=x account=foo cluster=c1 DefaultAccount=foo",
        "modify account where name=foo cluster=c1 set QOS=high",
        "modify user where name=x account=foo cluster=c1 set DefaultQOS=high",
    ]


def test_clearing_never_leaves_an_empty_number():
    state = world(
        {
            "foo": (
                "root",
                {
                    "grp_jobs": 5,
                    "max_wall": 60,
                    "grp_tres": {"cpu": 1, "mem": 2},
                    "qos": frozenset({"high"}),
                    "default_qos": "high",
                    "fairshare": 7,
                },
            )
        }
    )
    cleared = account("foo", grp_jobs=-1, max_wall="-1", grp_tres={"mem": 2}, qos=[], default_qos="", fairshare="-1")
    assert commands(state, ["foo"], [cleared]) == [
        "modify account where name=foo cluster=c1 set Fairshare=1 GrpTRES=cpu=-1 GrpJobs=-1 MaxWall=-1 QOS= DefaultQOS=-1"
    ]


def test_the_plain_row_beside_a_partition_row_is_named_exactly():
    state = world({"foo": ("root", {})}, {"x": ("foo", {"foo": {}, ("foo", "gpu"): {}}), "y": ("foo", {"foo": {}})})
    rows = {"name": "x", "associations": [{"account": "foo", "max_jobs": 1}, {"account": "foo", "partition": "gpu"}]}
    assert commands(state, ["foo"], users=[rows, user("y", "foo", max_jobs=1)]) == [
        "modify user where name=x account=foo cluster=c1 partition= set MaxJobs=1",
        "modify user where name=y account=foo cluster=c1 set MaxJobs=1",
    ]


def test_a_partition_row_beside_the_default_does_not_become_a_second_default():
    rows = [{"account": "data", "partition": "gpu"}, {"account": "data"}]
    assert commands(example(), ["foo"], users=[{"name": "zoe", "associations": rows}]) == [
        "add user name=zoe account=data cluster=c1 DefaultAccount=data",
        "add user name=zoe account=data cluster=c1 partition=gpu",
    ]
    assert commands(example(), ["foo"], users=[{"name": "zoe", "associations": rows[:1]}]) == [
        "add user name=zoe account=data cluster=c1 partition=gpu DefaultAccount=data"
    ]


def test_only_the_partition_row_is_removed():
    state = world({"foo": ("root", {})}, {"x": ("foo", {"foo": {}, ("foo", "gpu"): {}})})
    assert commands(state, ["foo"], users=[user("x", "foo")]) == [
        "delete user where name=x account=foo cluster=c1 partition=gpu"
    ]


def test_a_text_for_an_account_that_slurm_knows_already_is_set_after_adding():
    state = world({"foo": ("root", {})})
    del state.associations[("foo", "", "")]
    assert commands(state, ["foo"], [account("foo", description="New", organization="", grp_jobs=1)]) == [
        "add account name=foo cluster=c1 parent=root GrpJobs=1",
        "modify account where name=foo cluster=c1 set Description=new Organization=",
    ]


def test_coordinators_are_added_after_the_users_and_removed_by_name():
    state = world({"foo": ("root", {"coordinators": ["old"]})}, {"old": ("foo", {"foo": {}})})
    made = commands(state, ["foo"], [account("foo", coordinators=["new"])], [user("new", "foo")])
    assert made == [
        "add user name=new account=foo cluster=c1 DefaultAccount=foo",
        "add coordinator account=foo names=new",
        "delete coordinator where account=foo names=old",
    ]


@pytest.mark.parametrize("name", ["", "a,b", "n[1-3]", "a=b", "a'b"])
def test_the_last_barrier_refuses_names_that_select_more_than_one(name):
    with pytest.raises(ValueError, match="cannot be put on a command line"):
        Command("modify", "account", "c1", ((name, "", ""),), ("GrpJobs=1",)).words()


def test_a_command_without_names_cannot_be_made():
    with pytest.raises(ValueError, match="every object of the cluster"):
        Command("modify", "user", "c1", (), ("MaxJobs=1",)).words()


def test_a_thousand_users_in_ten_teams_are_ten_commands():
    teams = [account(f"t{i}") for i in range(10)]
    users = [user(f"u{i}", f"t{i % 10}", max_jobs=1) for i in range(1000)]
    state = example()
    made = compile_plan(state, plan(state, ["new"], [account("new", accounts=teams)], users))
    assert len(made) == 1 + 1 + 10


@pytest.mark.parametrize("version", [(22, 5), (24, 11)])
def test_accounts_move_together_only_where_slurm_can(version):
    state = world({"foo": ("root", {}), "a": ("foo", {}), "b": ("foo", {}), "c": ("foo", {})}, version=version)
    made = commands(state, ["foo"], [account("a", "c"), account("b", "c")])
    names = ["a,b"] if version >= (23, 11) else ["a", "b"]
    assert made == [f"modify account where name={name} cluster=c1 set parent=c" for name in names]


def test_on_22_05_a_default_qos_of_an_account_does_not_look_at_rows_of_users():
    given = (["foo"], [account("foo", default_qos="high")])
    assert commands(example((22, 5)), *given) == [
        "modify account where name=foo cluster=c1 parent=root set DefaultQOS=high"
    ]
    assert commands(example(), *given)[0] == "modify account where name=foo cluster=c1 set DefaultQOS=high"


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ((24, 11), ["delete user where name=al,bo account=foo cluster=c1"]),
        (
            (22, 5),
            [
                "delete user where name=al account=foo cluster=c1 partition=",
                "delete user where name=al account=foo cluster=c1 partition=gpu",
                "delete user where name=bo account=foo cluster=c1 partition=",
                "delete user where name=bo account=foo cluster=c1 partition=gpu",
            ],
        ),
    ],
)
def test_a_user_with_a_row_for_a_partition_goes(version, expected):
    places = {"foo": {}, ("foo", "gpu"): {}}
    state = world({"foo": ("root", {})}, {"al": ("foo", places), "bo": ("foo", places)}, version)
    assert commands(state, ["foo"], [account("foo")], exclusive=True, max_removals=9) == expected


def test_who_leaves_does_not_share_a_command_with_who_stays_elsewhere():
    """22.05 looks at the defaults of all whom a command names."""
    state = world(
        {"foo": ("root", {}), "a": ("foo", {}), "b": ("foo", {})}, {name: ("b", {"b": {}}) for name in ("al", "bo")}
    )
    made = commands(
        state,
        ["foo"],
        [account("foo"), account("a", "foo"), account("b", "foo")],
        [user("al", "a")],
        exclusive=True,
        max_removals=9,
    )
    assert [command for command in made if command.startswith("delete")] == [
        "delete user where name=al account=b cluster=c1",
        "delete user where name=bo account=b cluster=c1",
    ]


class TestRowsOfADefaultAccount:
    """24.11 marks all rows of a user in an account as default at once, and then parts with none of them alone."""

    TREE = {"foo": ("root", {}), "ml": ("foo", {})}

    def deleted_and_moved(self, default, places, wanted, version=(24, 11)):
        state = world(self.TREE, {"al": (default, {place: {} for place in places})}, version)
        rows = [
            {"account": place} if isinstance(place, str) else dict(zip(("account", "partition"), place))
            for place in wanted
        ]
        user = {"name": "al", "default_account": "ml", "associations": rows}
        return commands(state, ["foo"], [account("foo"), account("ml", "foo")], [user])

    def test_go_before_the_default_comes(self):
        assert self.deleted_and_moved("foo", ["foo", "ml", ("ml", "gpu")], ["foo", "ml"]) == [
            "delete user where name=al account=ml cluster=c1 partition=gpu",
            "modify user where name=al cluster=c1 set DefaultAccount=ml",
        ]

    def test_go_while_the_default_is_elsewhere(self):
        assert self.deleted_and_moved("ml", ["foo", "ml", ("ml", "gpu")], ["foo", "ml"]) == [
            "modify user where name=al cluster=c1 set DefaultAccount=foo",
            "delete user where name=al account=ml cluster=c1 partition=gpu",
            "modify user where name=al cluster=c1 set DefaultAccount=ml",
        ]

    def test_need_no_detour_before_23_11_or_without_another_account(self):
        one = ["delete user where name=al account=ml cluster=c1 partition=gpu"]
        assert self.deleted_and_moved("ml", ["foo", "ml", ("ml", "gpu")], ["foo", "ml"], (22, 5)) == one
        assert self.deleted_and_moved("ml", ["ml", ("ml", "gpu")], ["ml"]) == one
