# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""slurm_account and slurm_user: what the arguments leave open comes from the state."""

from __future__ import annotations

import pytest
from accounting_world import applied, example, fields_of
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import options, single
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.compile import compile_plan
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.desired import Refused, named
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.plan import make_plan

KINDS = {
    "accounts": ("account", options.ONE_ACCOUNT, single.accounts),
    "users": ("user", options.ONE_USER, single.users),
}


def plan(plural, there, **params):
    kind, one, build = KINDS[plural]
    params = {"state": "present", "scope": None, "max_removals": None, "block_qos": "blocked", **params}
    return make_plan(there, build(there, params, named(params, plural, kind, one)))


def words(plural, there, **params):
    made = plan(plural, there, **params)
    return [" ".join(command.words()) for command in compile_plan(there, made)]


def test_one_and_a_list_of_one_are_the_same():
    one = plan("accounts", example(), name="ml", grp_jobs=3)
    several = plan("accounts", example(), accounts=[{"name": "ML", "grp_jobs": 3}])
    assert fields_of(one) == fields_of(several) == [("account ml", "grp_jobs", None, 3)]


def test_an_account_stays_below_its_parent_and_a_new_one_is_put_below_root():
    assert words("accounts", example(), name="ml") == []
    assert words("accounts", example(), name="new") == ["add account name=new cluster=c1 parent=root"]
    assert words("accounts", example(), name="new", parent="foo") == ["add account name=new cluster=c1 parent=foo"]


def test_an_account_moves_only_within_a_scope():
    with pytest.raises(Refused, match="account ml is below foo, not data, and foo is outside"):
        plan("accounts", example(), name="ml", parent="data")
    moved = ["modify account where name=ml cluster=c1 set parent=data"]
    assert words("accounts", example(), name="ml", parent="data", scope=["foo"]) == moved
    with pytest.raises(Refused, match="account barteam exists already below bar, outside"):
        plan("accounts", example(), name="barteam", parent="data", scope=["foo"])


def test_nobody_else_is_touched_by_a_change():
    before = example()
    after = applied(before, plan("accounts", before, name="foo", qos=["normal"], default_qos="normal"))
    assert set(after.associations) == set(before.associations)
    assert {
        key for key in before.associations if before.associations[key].values != after.associations[key].values
    } == {("foo", "", "")}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"name": "root"}, "account root belongs to Slurm"),
        ({"name": "a b"}, "account name 'a b' is refused"),
        ({"accounts": []}, "accounts is empty"),
        ({"name": "new", "parent": "nosuch"}, "its parent nosuch does not exist"),
        (
            {"name": "foo", "users_are_coordinators": True, "coordinators": ["bob"]},
            "makes coordinators of all its users",
        ),
    ],
)
def test_an_account_that_cannot_be_meant_is_refused(given, message):
    with pytest.raises(Refused, match=message):
        plan("accounts", example(), **given)


def test_an_account_goes_with_what_is_below_only_where_that_is_said():
    with pytest.raises(
        Refused,
        match=r"state absent would remove 3 objects, more than max_removals \(1\): user alice in ml, user carol",
    ):
        plan("accounts", example(), name="ml", state="absent", scope=["foo"])
    assert words("accounts", example(), name="ml", state="absent", scope=["foo"], max_removals=3) == [
        "modify user where name=carol cluster=c1 set DefaultAccount=bar",
        # carol stays in bar, alice is in no other account: Slurm looks at both differently.
        "delete user where name=carol account=ml cluster=c1",
        "delete user where name=alice account=ml cluster=c1",
        "delete account where name=ml cluster=c1",
    ]


def test_what_is_gone_already_is_no_change():
    assert words("accounts", example(), name="nosuch", state="absent", scope=["foo"]) == []
    assert words("users", example(), name="nosuch", state="absent", scope=["foo"]) == []


@pytest.mark.parametrize(("name", "scope"), [("foo", "foo"), ("bar", "foo"), ("foo", "ml")])
def test_what_is_not_below_the_scope_never_goes(name, scope):
    with pytest.raises(Refused, match=f"account {name} is not below the scope .*give scope: .root. if it is meant"):
        plan("accounts", example(), name=name, state="absent", scope=[scope], max_removals=99)


def test_a_removal_leaves_everything_else_as_it_is():
    before = example()
    made = plan("accounts", before, name="data", state="absent", scope=["foo"])
    after = applied(before, made)
    assert set(before.associations) - set(after.associations) == {("data", "", "")}
    with pytest.raises(Refused, match="scope is empty"):
        plan("accounts", before, name="data", state="absent")


def test_a_user_gets_one_more_account_and_keeps_the_others():
    made = words("users", example(), name="alice", associations=[{"account": "data", "max_jobs": 2}])
    assert made == ["add user name=alice account=data cluster=c1 DefaultAccount=ml MaxJobs=2"]


def test_in_a_scope_the_associations_are_exactly_the_listed_ones():
    made = plan("users", example(), name="alice", associations=[{"account": "data"}], scope=["foo"])
    assert [change.object for change in made.whole("remove")] == ["user alice in ml"]
    elsewhere = plan("users", example(), name="carol", associations=[{"account": "data"}], scope=["foo"])
    assert [change.object for change in elsewhere.whole("remove")] == ["user carol in ml"]


def test_a_user_is_changed_without_naming_associations():
    assert words("users", example(), name="carol", default_account="bar") == [
        "modify user where name=carol cluster=c1 set DefaultAccount=bar"
    ]
    assert words(
        "users", example(), users=[{"name": name, "admin_level": "operator"} for name in ("alice", "bob")]
    ) == ["modify user where name=alice,bob cluster=c1 set AdminLevel=operator"]
    assert words("users", example(), name="bob", admin_level="none") == []


def test_a_wckey_is_added_where_the_user_has_it_not():
    state = example()
    state.users["bob"].wckeys = frozenset({"w"})
    assert words("users", state, users=[{"name": name, "default_wckey": "W"} for name in ("alice", "bob")]) == [
        "add user name=alice wckey=w cluster=c1",
        "modify user where name=alice,bob cluster=c1 set DefaultWCKey=w",
    ]
    with pytest.raises(Refused, match="default_wckey: Slurm cannot take it away, only change it"):
        words("users", state, name="bob", default_wckey="")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"name": "new"}, "user new does not exist; give associations"),
        ({"name": "alice", "associations": [{"account": "nosuch"}]}, "account nosuch does not exist; create it first"),
        ({"name": "alice", "coordinator_of": ["nosuch"]}, "account nosuch does not exist; create it first"),
        ({"name": "root"}, "user root belongs to Slurm"),
        ({"name": "alice", "admin_level": "king"}, "'king' is none of none, operator, administrator"),
        ({"name": "alice", "associations": [{"account": "bar"}], "scope": ["foo"]}, "account bar is outside the scope"),
    ],
)
def test_a_user_that_cannot_be_meant_is_refused(given, message):
    with pytest.raises(Refused, match=message):
        plan("users", example(), **given)


def test_a_user_with_several_associations_goes_only_where_that_is_said():
    with pytest.raises(Refused, match="would remove 2 objects, more than max_removals .1.: user carol in bar"):
        plan("users", example(), name="carol", state="absent", scope=["root"])
    before = example()
    after = applied(before, plan("users", before, name="carol", state="absent", scope=["root"], max_removals=2))
    assert "carol" not in after.users
    within = plan("users", example(), name="carol", state="absent", scope=["bar"])
    assert [change.object for change in within.whole("remove")] == ["user carol in bar"]


def test_coordinators_are_said_with_the_user_too():
    assert words("users", example(), name="alice", coordinator_of=["ml"]) == ["add coordinator account=ml names=alice"]
    state = example()
    for name in ("ml", "data"):
        state.accounts[name].coordinators = frozenset({"alice", "bob"})
    assert words("users", state, name="alice", coordinator_of=["ml"]) == []
    assert words("users", state, name="alice", coordinator_of=["ml"], scope=["foo"]) == [
        "delete coordinator where account=data names=alice"
    ]
