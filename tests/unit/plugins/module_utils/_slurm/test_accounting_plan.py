# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import dataclasses

import pytest
from accounting_world import account, applied, example, fields_of, plan, user, want, world
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import fields, lineage
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.desired import Refused
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.plan import make_plan


def refused(*args, **options):
    with pytest.raises(Refused) as caught:
        plan(*args, **options)
    return str(caught.value)


def test_what_is_so_already_is_no_change():
    made = plan(
        example(),
        ["foo"],
        [
            account("foo", grp_jobs=10, qos=["high", "normal"], default_qos="normal"),
            account("ml", "foo", fairshare="200"),
        ],
        [user("alice", "ml", max_jobs=5)],
    )
    assert not made.changed


def test_one_changed_limit_is_one_change():
    made = plan(example(), ["foo"], [account("foo", grp_jobs=5)])
    assert fields_of(made) == [("account foo", "grp_jobs", 10, 5)]
    assert made.changes[0].risk == "disruptive"


def test_a_new_tenant_with_a_team_and_a_user():
    made = plan(
        example(),
        ["new"],
        [account("new", description="New", accounts=[account("newteam", fairshare="5")])],
        [user("dora", "newteam", max_jobs=1)],
    )
    assert fields_of(made) == [
        ("account new", "add", None, None),
        ("account new", "parent", None, "root"),
        ("account new", "description", None, "new"),
        ("account newteam", "add", None, None),
        ("account newteam", "parent", None, "new"),
        ("account newteam", "fairshare", None, 5),
        ("user dora in newteam", "add", None, None),
        ("user dora in newteam", "max_jobs", None, 1),
        ("user dora", "default_account", None, "newteam"),
    ]


def test_a_move_between_teams_is_a_move():
    made = plan(example(), ["foo"], users=[user("alice", "data")])
    assert [(c.kind, c.object, c.field) for c in made.changes] == [
        ("add", "user alice in data", ""),
        ("change", "user alice", "default_account"),
        ("remove", "user alice in ml", ""),
    ]


def test_associations_outside_the_scope_are_never_touched():
    made = plan(example(), ["foo"], users=[user("carol", "data", default="data")])
    assert ("bar", "carol", "") in applied(example(), made).associations
    assert not any("bar" in change.object for change in made.changes)


def test_a_default_account_that_is_still_valid_stays_even_with_several_accounts():
    assert fields_of(plan(example(), ["foo"], users=[user("carol", "ml", "data")])) == [
        ("user carol in data", "add", None, None)
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"users": [user("new", "ml", "data")]}, "user new is associated with data, ml and has no default_account"),
        (
            {"users": [user("alice", "data", "foo")]},
            "user alice is associated with data, foo and has no default_account",
        ),
        ({"users": [user("alice", "ml", default="bar")]}, "default_account bar is none of the user's accounts"),
        ({"users": [user("alice", "bar")]}, r"user alice in bar: account bar is outside the scope \(foo\)"),
        ({"users": [user("alice", "nowhere")]}, "account nowhere does not exist and is not among the accounts"),
        (
            {"accounts": [account("barteam", "foo")]},
            "barteam exists already below bar, outside the scope .* foo-barteam",
        ),
        ({"accounts": [account("x", "bar")]}, "account x: its parent bar is outside the scope"),
        ({"accounts": [account("x")]}, "account x: its parent root is outside the scope"),
        ({"accounts": [account("x", "nowhere")]}, "its parent nowhere does not exist"),
        ({"accounts": [account("foo", "bar")]}, "account foo is below root, not bar, and root is outside the scope"),
        ({"accounts": [account("ml", "data"), account("data", "ml")]}, "data -> ml -> data|ml -> data -> ml"),
        ({"accounts": [account("ml", "ml")]}, "ml -> ml"),
        ({"scope": ["typo"]}, "scope names account typo, which neither exists"),
        (
            {"accounts": [account("foo", qos=["gold"])]},
            "QOS gold does not exist; the site has blocked, high, low, normal",
        ),
        ({"accounts": [account("foo", default_qos="gold")]}, "QOS gold does not exist"),
        (
            {"accounts": [account("foo", default_qos="low")]},
            r"account foo: default QOS low is not in its list \(high, normal\)",
        ),
        ({"accounts": [account("foo", qos=["high"])]}, r"account foo: default QOS normal is not in its list \(high\)"),
        ({"users": [user("alice", "ml", qos=["high"])]}, "user alice in ml: default QOS normal is not in its list"),
        (
            {"accounts": [account("foo", grp_tres={"gpu": 1})]},
            "names gpu, which slurmdbd does not track; write gres/gpu",
        ),
        ({"accounts": [account("foo", grp_tres={"gres/x": 1})]}, "gres/x, .* AccountingStorageTRES"),
        ({"accounts": [account("foo", coordinators=["nobody"])]}, "coordinator nobody is no user in Slurm"),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything(arguments, message):
    import re

    state = example()
    assert re.search(message, refused(state, **{"scope": ["foo"], **arguments}))


def test_a_list_cut_below_an_unnamed_users_own_default_is_refused_with_that_user():
    state = world(
        {"foo": ("root", {"qos": frozenset({"normal", "high"})})}, {"al": ("foo", {"foo": {"default_qos": "high"}})}
    )
    assert "user al in foo: default QOS high is not in its list (normal)" in refused(
        state, ["foo"], [account("foo", qos=["normal"])]
    )


def test_an_account_is_reparented_within_the_scope():
    assert fields_of(plan(example(), ["foo"], [account("data", "ml")])) == [("account data", "parent", "foo", "ml")]


def test_parent_and_child_can_change_places():
    state = world({"foo": ("root", {}), "a": ("foo", {}), "b": ("a", {})})
    made = plan(state, ["foo"], [account("b", "foo"), account("a", "b")])
    assert applied(state, made).parents() == {"root": "", "foo": "root", "b": "foo", "a": "b"}


def test_limits_are_cleared_by_minus_one_and_by_an_empty_dictionary():
    state = world({"foo": ("root", {"grp_jobs": 5, "grp_tres": {"cpu": 4}, "qos": frozenset({"high"})})})
    made = plan(state, ["foo"], [account("foo", grp_jobs=-1, grp_tres={}, qos=[])])
    assert fields_of(made) == [
        ("account foo", "grp_tres", {"cpu": 4}, {}),
        ("account foo", "grp_jobs", 5, None),
        ("account foo", "qos", ["high"], []),
    ]


def test_a_field_that_the_version_does_not_have_is_refused(monkeypatch):
    newer = dataclasses.replace(fields.BY_OPTION["grp_jobs"], since=(25, 5))
    monkeypatch.setitem(fields.BY_OPTION, "grp_jobs", newer)
    assert "account foo: grp_jobs needs Slurm 25.05, and this is 24.11" in refused(
        example(), ["foo"], [account("foo", grp_jobs=1)]
    )


def test_a_stored_difference_is_replaced_by_the_list_that_is_wanted():
    state = world({"foo": ("root", {"qos": frozenset({"+high"})})})
    state.associations[("foo", "", "")].effective_qos = frozenset({"normal", "high"})
    made = plan(state, ["foo"], [account("foo", qos=["normal", "high"])])
    assert fields_of(made) == [("account foo", "qos", ["+high"], ["high", "normal"])]


class TestUnnamed:
    def test_is_reported_and_left(self):
        made = plan(example(), ["foo"], [account("foo")], [user("alice", "ml")])
        assert not made.changed
        assert made.unmanaged == ["user carol in ml", "account data", "account ml"]

    def test_is_removed_with_exclusive_users_before_accounts(self):
        state = example()
        made = plan(
            state,
            ["foo"],
            [account("foo"), account("ml", "foo")],
            [user("alice", "ml")],
            exclusive=True,
            max_removals=2,
        )
        assert [(c.kind, c.object) for c in made.changes] == [
            ("change", "user carol"),
            ("remove", "user carol in ml"),
            ("remove", "account data"),
        ]
        assert made.changes[0].after == "bar"
        after = applied(state, made)
        assert ("bar", "carol", "") in after.associations
        assert not plan(after, ["foo"], [account("foo"), account("ml", "foo")], [user("alice", "ml")]).unmanaged

    @pytest.mark.parametrize("limit", [0, 1])
    def test_is_not_removed_beyond_the_cap(self, limit):
        message = refused(
            example(),
            ["foo"],
            [account("foo"), account("ml", "foo")],
            [user("alice", "ml")],
            exclusive=True,
            max_removals=limit,
        )
        assert f"would remove 2 objects, more than max_removals ({limit}): user carol in ml, account data" in message

    @pytest.mark.parametrize(("share", "goes"), [(0.3, False), (0.4, True)])
    def test_is_not_removed_beyond_its_share(self, share, goes):
        """Two of the five objects in scope."""
        given = (example(), ["foo"], [account("foo"), account("ml", "foo")], [user("alice", "ml")])
        options = {"exclusive": True, "max_removals": 9, "max_removal_share": share}
        if goes:
            assert plan(*given, **options).changed
            return
        with pytest.raises(Refused) as caught:
            plan(*given, **options)
        assert "would remove 2 of the 5 objects in the scope (foo), more than max_removal_share (0.3)" in str(
            caught.value
        )
        assert caught.value.details == {"removals": ["user carol in ml", "account data"]}

    def test_with_a_name_that_selects_more_than_one_object_is_left_to_a_person(self):
        state = world({"foo": ("root", {}), "a,b": ("foo", {})})
        assert "account a,b: no command can name it safely; remove it by hand" in refused(
            state, ["foo"], [account("foo")], exclusive=True, max_removals=1
        )

    def test_the_top_of_the_scope_is_never_removed(self):
        made = plan(example(), ["foo"], [account("ml", "foo")], [user("alice", "ml")], exclusive=True, max_removals=9)
        assert "account foo" not in [change.object for change in made.changes]

    def test_an_account_that_something_named_needs_is_refused(self):
        assert "exclusive would remove account ml; add it to accounts" in refused(
            example(), ["foo"], [account("foo")], [user("alice", "ml")], exclusive=True, max_removals=9
        )
        assert "exclusive would remove its parent ml" in refused(
            example(), ["foo"], [account("x", "ml")], exclusive=True, max_removals=9
        )

    def test_a_move_does_not_count_against_the_cap(self):
        accounts = [account("foo"), account("ml", "foo"), account("data", "foo")]
        users = [user("alice", "data"), user("carol", "ml")]
        made = plan(example(), ["foo"], accounts, users, exclusive=True, max_removals=0)
        assert "user alice in ml" in [change.object for change in made.changes if change.kind == "remove"]


BLOCK = {"qos": frozenset({"blocked"}), "default_qos": "blocked"}


def blocked_tenant():
    return world(
        {"foo": ("root", BLOCK), "ml": ("foo", {}), "other": ("root", {})},
        {"al": ("ml", {"ml": BLOCK}), "bo": ("ml", {"ml": {}})},
    )


class TestBlock:
    def test_is_not_lifted_by_the_lists_that_the_arguments_name(self):
        made = plan(
            blocked_tenant(),
            ["foo"],
            [
                account("foo", qos=["normal"], default_qos="normal", grp_jobs=3),
                account("ml", "foo", qos=["normal"], default_qos="normal"),
            ],
            [
                user("al", "ml", qos=["normal"], default_qos="normal"),
                user("bo", "ml", qos=["normal"], default_qos="normal"),
            ],
        )
        assert fields_of(made) == [("account foo", "grp_jobs", None, 3)]
        assert made.blocked == ["account foo", "account ml", "user al in ml", "user bo in ml"]

    def test_covers_what_is_new_below_it(self):
        state = blocked_tenant()
        made = plan(state, ["foo"], [account("new", "foo", qos=["normal"], default_qos="normal")], [user("cy", "ml")])
        after = applied(state, made)
        for key in (("new", "", ""), ("ml", "cy", "")):
            assert after.associations[key].values["qos"] == {"blocked"}
            assert after.associations[key].values["default_qos"] == "blocked"
        assert made.blocked == ["account new", "user cy in ml"]

    def test_its_default_is_not_held_against_a_narrower_list_below(self):
        state = world({"foo": ("root", BLOCK)}, {})
        accounts = [account("foo"), account("a", "foo"), account("b", "a", qos=["high"], default_qos="")]
        made = plan(state, ["foo"], accounts)
        after = applied(state, made)
        assert after.associations[("b", "", "")].values["qos"] == {"blocked"}
        assert plan(after, ["foo"], accounts).as_list() == []

    def test_follows_a_blocked_person_to_another_team(self):
        state = world(
            {"foo": ("root", {}), "a": ("foo", {}), "b": ("foo", {})},
            {"al": ("a", {"a": BLOCK}), "bo": ("a", {"a": {}})},
        )
        made = plan(state, ["foo"], users=[user("al", "b"), user("bo", "b")])
        after = applied(state, made)
        assert after.associations[("b", "al", "")].values["qos"] == {"blocked"}
        assert after.associations[("b", "bo", "")].values["qos"] == frozenset()

    def test_of_one_of_two_teams_does_not_block_the_person_elsewhere(self):
        state = world(
            {"foo": ("root", {}), "a": ("foo", {}), "b": ("foo", {}), "c": ("foo", {})},
            {"al": ("a", {"a": BLOCK, "b": {}})},
        )
        made = plan(state, ["foo"], users=[user("al", "a", "b", "c")])
        assert made.blocked == ["user al in a"]
        assert applied(state, made).associations[("c", "al", "")].values["qos"] == frozenset()

    def test_goes_along_with_a_team_that_leaves_the_blocked_account(self):
        state = world(
            {"foo": ("root", {}), "a": ("foo", BLOCK), "b": ("foo", {}), "team": ("a", {})},
            {"al": ("team", {"team": {}})},
        )
        made = plan(state, ["foo"], [account("team", "b")])
        after = applied(state, made)
        assert after.associations[("team", "al", "")].effective_qos == {"blocked"}

    def test_does_not_hide_a_document_that_could_not_be_restored(self):
        assert "default QOS low is not in its list (normal)" in refused(
            blocked_tenant(), ["foo"], [account("foo", qos=["normal"], default_qos="low")]
        )


class TestCoordinators:
    def test_those_of_the_parent_are_not_taken_for_own_ones(self):
        state = world(
            {"foo": ("root", {"coordinators": ["al"]}), "ml": ("foo", {"coordinators": ["al", "bo"]})},
            {"al": ("foo", {"foo": {}}), "bo": ("ml", {"ml": {}})},
        )
        assert not plan(
            state, ["foo"], [account("foo", coordinators=["al"]), account("ml", "foo", coordinators=["bo"])]
        ).changed
        made = plan(state, ["foo"], [account("ml", "foo", coordinators=[])])
        assert fields_of(made) == [("account ml", "coordinators", ["bo"], [])]

    def test_a_parents_change_reaches_the_child_only_once(self):
        state = world({"foo": ("root", {}), "ml": ("foo", {})}, {"al": ("foo", {"foo": {}})})
        arguments = (["foo"], [account("foo", coordinators=["al"]), account("ml", "foo", coordinators=[])])
        made = plan(state, *arguments)
        assert fields_of(made) == [("account foo", "coordinators", [], ["al"])]
        assert not plan(applied(state, made), *arguments).changed


def test_planning_ten_thousand_associations_is_quick():
    import time

    teams = {f"t{i}": ("foo", {}) for i in range(10)}
    users = {f"u{i}": (f"t{i % 10}", {f"t{i % 10}": {"max_jobs": 1}}) for i in range(10000)}
    state = world({"foo": ("root", {}), **teams}, users)
    wanted = want(
        ["foo"],
        [account("foo", accounts=[account(name) for name in teams])],
        [user(name, default, max_jobs=2, qos=["normal"]) for name, (default, _places) in users.items()],
    )
    started = time.process_time()
    assert len(make_plan(state, wanted)) == 20000
    assert time.process_time() - started < 4


class TestPathsThatAreOutOfDate:
    """alice is in ml, which was moved away from data; the database still has her below data."""

    def state(self):
        state = example()
        for key, row in state.associations.items():
            row.lineage = lineage.path(key, state.parents())
        state.associations[("ml", "alice", "")].lineage = "/foo/data/ml/0-alice/"
        return state

    def test_are_found(self):
        assert lineage.outdated(self.state()) == [("ml", "alice", "")]
        assert lineage.outdated(example((22, 5))) == []

    def test_stop_the_removal_that_would_take_them_along(self):
        given = (["foo"], [account("foo"), account("ml", "foo")], [user("alice", "ml"), user("carol", "ml")])
        options = {"exclusive": True, "max_removals": 9}
        assert plan(example(), *given, **options).changed
        assert "account data: Slurm would remove user alice in ml along with it" in refused(
            self.state(), *given, **options
        )

    def test_are_told_of(self):
        made = plan(self.state(), ["foo"], [account("foo")])
        assert "Slurm has old paths of user alice in ml;" in made.warnings[0]
        assert plan(self.state(), ["bar"], [account("bar")]).warnings == []

    def test_do_not_matter_where_they_go_as_well(self):
        given = (["foo"], [account("foo")])
        assert plan(self.state(), *given, exclusive=True, max_removals=9).changed
