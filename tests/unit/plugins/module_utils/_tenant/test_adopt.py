# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Adoption against the planner of the other side: what the documents make of the cluster they came from."""

from __future__ import annotations

import pytest
import yaml
from accounting_world import settle, world
from ansible_collections.gpuops.tenancy.plugins.module_utils._plan import ADD, REMOVE
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import desired
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.model import label
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.plan import make_plan
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.qos import Tree
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.survey import compose
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant import accounting, adopt_findings, names
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.adopt import adopt
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.adopt_findings import CHANGES, DECIDE, LEFT
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.adopt_tree import Options
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.load import parse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

POLICY = names.Policy(operators=frozenset({"anna"}), retired=frozenset({"gone"}))
NORMAL = frozenset({"normal"})
BOTH = frozenset({"normal", "high"})


def surveyed(state, kept=None, elsewhere=()):
    kept = kept or {"account": list(state.accounts), "user": list(state.users)}
    return compose(state, elsewhere, kept)


def adopted(state, existing=(), posix=None, kept=None, elsewhere=(), preflight=(), **options):
    """Adopt, and prove that the report says exactly what onboarding would do."""
    sources = [parse(text, name) for name, text in existing]
    found = adopt(surveyed(state, kept, elsewhere), Options(POLICY, posix=posix, **options), sources, tuple(preflight))
    named = set()
    changes = []
    for document in found.documents.values():
        wanted = desired.build({"block_qos": "blocked", **accounting.arguments(document)})
        named |= {(name, "", "") for name in wanted.accounts} | {key for u in wanted.users.values() for key in u.rows}
        changes += make_plan(state, wanted).changes
    reported = {(one.object, one.field) for one in found.findings if one.kind == CHANGES}
    assert {(one.object, one.field) for one in changes if one.kind != REMOVE and one.field} - _parts_of(changes) == {
        one for one in reported if one[1]
    }
    covered = named.union(*(one.covers for one in found.findings))
    assert set(state.associations) - covered == {("root", "", ""), ("root", "root", "")}
    if not existing:
        assert not [one for one in changes if one.kind in (ADD, REMOVE) and not one.field]
    return found


def _parts_of(changes):
    """Fields of rows that appear as a whole."""
    whole = {one.object for one in changes if one.kind == ADD and not one.field}
    return {(one.object, one.field) for one in changes if one.object in whole}


def data(found, tenant="foo"):
    return yaml.safe_load(found.texts[tenant])


def said(found, kind=None):
    return [
        (one.object, one.field, one.value) for one in found.findings if kind is None or one.kind == kind
    ]  # fmt: skip


def test_a_plain_cluster_is_documents_and_nothing_else():
    state = world(
        {
            "foo": ("root", {"description": "foo & co", "fairshare": 300, "qos": BOTH, "default_qos": "normal",
                             "grp_tres": {"gres/gpu": 4, "mem": 2048}}),
            "ml": ("foo", {"organization": "foo", "grp_wall": 90000, "max_jobs": 0}),
            "bar": ("root", {"priority": 7}),
            "platform": ("root", {}),
        },
        {
            "alice": ("ml", {"ml": {"max_tres_per_job": {"mem": 1500}, "max_wall": 3600}, "foo": {}}),
            "bob": ("bar", {"bar": {}}),
            "anna": ("platform", {"platform": {}}),
        },
    )  # fmt: skip
    found = adopted(state)
    assert data(found) == {
        "schema": 1,
        "name": "foo",
        "description": "foo & co",
        "contacts": [],
        "slurm": {
            "fairshare": 300,
            "limits": {"grp_tres": {"gres/gpu": 4, "mem": "2G"}},
            "qos": ["high", "normal"],
            "default_qos": "normal",
        },
        "teams": [
            {
                "name": "ml",
                "limits": {"max_jobs": 0, "grp_wall": "1-01:00:00"},
                "users": [
                    {
                        "name": "alice",
                        "limits": {"max_tres_per_job": {"mem": "1500M"}, "max_wall": "01:00:00"},
                        "default_account": "ml",
                    }
                ],
            }
        ],
        "users": ["alice"],
    }
    assert data(found, "bar")["users"] == ["bob"]
    assert said(found) == [("account platform", "", "1 account(s), 1 association(s) of users")]


def test_membership_across_tenants_is_in_both_documents():
    state = world(
        {"foo": ("root", {}), "ml": ("foo", {}), "bar": ("root", {})},
        {"carol": ("bar", {"bar": {}, "ml": {"max_jobs": 1}})},
    )
    found = adopted(state)
    assert data(found, "bar")["users"] == [{"name": "carol", "member_of": ["foo"]}]
    assert data(found)["teams"][0]["users"] == [{"name": "carol", "limits": {"max_jobs": 1}, "home": "bar"}]
    assert said(found) == []


@pytest.mark.parametrize(
    ("users", "left"),
    [
        ({"u": ("deep", {"deep": {}, "ml": {}})}, {("deep", "u", ""), ("ml", "u", "")}),
        ({"u": ("", {"foo": {}, "ml": {}})}, {("foo", "u", ""), ("ml", "u", "")}),
        ({"u": ("other", {"foo": {}})}, {("foo", "u", "")}),
        ({"u": ("platform", {"platform": {}, "foo": {}})}, {("foo", "u", "")}),
        ({"anna": ("foo", {"foo": {}})}, {("foo", "anna", "")}),
        ({"slurm": ("foo", {"foo": {}})}, {("foo", "slurm", "")}),
        ({"gone": ("foo", {"foo": {}})}, {("foo", "gone", "")}),
        ({"x" * 33: ("foo", {"foo": {}})}, {("foo", "x" * 33, "")}),
        ({"u": ("staff", {"staff": {}, "foo": {}})}, {("foo", "u", "")}),
        ({"u": ("root", {"root": {}, "foo": {}})}, {("foo", "u", ""), ("root", "u", "")}),
    ],
)
def test_a_user_who_cannot_be_said_keeps_everything(users, left):
    state = world(
        {"foo": ("root", {}), "ml": ("foo", {"organization": "foo"}), "deep": ("ml", {}), "staff": ("root", {}), "platform": ("root", {})},
        users,
    )  # fmt: skip
    found = adopted(state)
    assert "users" not in data(found) and "users" not in data(found)["teams"][0]
    rows = {key for one in found.findings if one.kind == LEFT for key in one.covers if key[1]}
    assert left <= rows
    assert said(found, CHANGES) == []
    assert "staff" not in found.texts


def test_a_default_that_is_missing_is_healed_where_it_is_plain():
    found = adopted(world({"foo": ("root", {})}, {"u": ("", {"foo": {}})}))
    assert said(found, CHANGES) == [("user u", "default_account", "nothing -> foo")]


def test_partitions_one_factor_and_lists_of_its_own():
    parent = {"fairshare": "parent"}
    state = world(
        {"foo": ("root", {"qos": NORMAL}), "ml": ("foo", {"organization": "foo", "qos": frozenset({"low"})})},
        {
            "a": ("foo", {"foo": parent, ("foo", "h100"): {**parent, "max_jobs": 2}}),
            "b": ("foo", {("foo", "h100"): {**parent, "qos": BOTH}}),
            "c": ("foo", {"foo": {"fairshare": 3}}),
        },
    )
    found = adopted(state)
    assert data(found) == {
        "schema": 1,
        "name": "foo",
        "contacts": [],
        "slurm": {"qos": ["normal"], "one_factor": True},
        "teams": [{"name": "ml", "qos": ["low"], "qos_exception": True}],
        "users": [
            "a",
            {"name": "a", "partition": "h100", "limits": {"max_jobs": 2}},
            {"name": "b", "partition": "h100", "qos": ["high", "normal"], "qos_exception": True},
        ],
    }
    assert said(found) == [("user c in foo", "", "")]


def test_what_is_stored_as_a_difference_is_said_in_full():
    state = world({"foo": ("root", {"qos": NORMAL})}, {"u": ("foo", {"foo": {}})})
    row = state.associations[("foo", "u", "")]
    row.values["qos"], row.effective_qos = frozenset({"+high"}), BOTH
    found = adopted(state)
    assert data(found)["users"] == [{"name": "u", "qos": ["high", "normal"], "qos_exception": True}]
    assert said(found) == [("user u in foo", "qos", "+high -> high,normal")]


def test_a_block_stays():
    blocked = {"qos": frozenset({"blocked"}), "default_qos": "blocked"}
    found = adopted(
        world({"foo": ("root", blocked), "ml": ("foo", {"organization": "foo"})}, {"u": ("ml", {"ml": {}})})
    )
    assert "slurm" not in data(found)
    assert said(found) == [("account foo", "", "")]


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("a|b", "a/b"),
        ("two\nlines `q`", "two lines q"),
        ("ünÏ|日本", "ünÏ/日本"),
        ("", None),
        ("  ", None),
        ("foo", None),
    ],
)
def test_a_text_that_no_document_can_hold_becomes_the_nearest(text, written):
    found = adopted(world({"foo": ("root", {"description": text})}))
    assert data(found).get("description") == written
    assert said(found, CHANGES) == (
        [] if text == "foo" else [("account foo", "description", f"{adopt_findings.show(text) or 'nothing'} -> {written or 'foo'}")]
    )  # fmt: skip


def test_logins_decide_who_is_there():
    state = world({"foo": ("root", {})}, {name: ("foo", {"foo": {}}) for name in ("here", "left", "low")})
    posix = {"here": {"uid": 10001}, "low": {"uid": 400}}
    found = adopted(state, posix=posix, uid_min=1000, uid_max=20000)
    assert data(found)["users"] == ["here"]
    assert said(found, LEFT) == [("user left in foo", "", ""), ("user low in foo", "", "")]
    assert "sacctmgr delete user where name=left cluster=c1" in [one.concrete("c1") for one in found.findings][0]


def test_rights_records_and_departed_are_told():
    state = world({"foo": ("root", {"coordinators": ["u"]})}, {"u": ("foo", {"foo": {}})})
    state.users["u"].admin_level, state.users["u"].default_wckey = "operator", "w"
    state.users["root"].admin_level = "administrator"
    state.associations[("foo", "u", "")].values["grp_jobs_accrue"] = 0
    state.accounts["ghost"] = type(state.accounts["foo"])("ghost")
    found = adopted(
        state,
        kept={"account": ["foo", "old", "gone"], "user": ["u", "retiree"]},
        elsewhere=[{"cluster": "c2", "account": "abroad", "user": "v"}],
        preflight=["QOS x outranks\nit"],
    )
    assert said(found, DECIDE) == [
        ("account foo", "coordinators", "u"),
        ("user u in foo", "grp_jobs_accrue", "0"),
        ("deleted accounts", "", "old"),
        ("deleted users", "", "retiree"),
        ("user u", "default_wckey", "w"),
        ("user u", "admin_level", "operator"),
        ("pre-flight", "", "QOS x outranks\\nit"),
    ]
    assert said(found, LEFT) == [("account ghost", "", ""), ("user v", "clusters", "c2")]


def test_include_and_exclude():
    tree = {name: ("root", {}) for name in ("foo", "bar", "baz")}
    assert set(adopted(world(tree), include=frozenset({"foo", "bar"}), exclude=frozenset({"bar"})).texts) == {"foo"}


def test_a_document_that_is_there_only_counts():
    state = world(
        {"foo": ("root", {"grp_jobs": 3}), "bar": ("root", {})},
        {"u": ("foo", {"foo": {}, "bar": {}}), "v": ("bar", {"bar": {}}), "w": ("foo", {"foo": {}, "bar": {}})},
    )
    text = "schema: 1\nname: foo\nusers: [u, {name: w, member_of: [bar]}, new]\n"
    found = adopted(state, existing=[("foo.yml", text)])
    assert set(found.texts) == {"bar"}
    assert data(found, "bar")["users"] == ["v", {"name": "w", "home": "foo"}]
    assert said(found, CHANGES) == [
        ("account foo", "grp_jobs", "3 -> nothing"),
        ("user new in foo", "", "created"),
        ("user new", "default_account", "nothing -> foo"),
    ]
    (left,) = [one for one in found.findings if one.kind == LEFT]
    assert left.object == "user u in bar"
    assert "the home tenant does not agree; add 'member_of: [bar]'" in f"{left.why}; {left.fix}"


def test_the_report_groups_and_stays_in_its_lines():
    state = world({"foo": ("root", {"description": "x\n## forged"})}, {f"u{n}": ("", {"foo": {}}) for n in range(9)})
    found = adopted(state)
    text = adopt_findings.report("c1", found.documents, found.findings)
    assert "\n## forged" not in text and text.count("jobs that name no account are refused") == 1
    assert "- user u8, default_account: nothing -> foo" in text
    lines = adopt_findings.screen("c1", found.findings)
    assert any("and 4 more" in line for line in lines)
    assert "Everything that Slurm has" in adopt_findings.report("c1", [], [])


# Trees as people leave them behind

WORDS = ["foo", "bar", "ml", "deep", "deeper", "staff", "1003", "platform", "a+b"]
PEOPLE = ["alice", "bob", "carol", "anna", "slurm", "4711", "x" * 33]
counts = st.integers(0, 2**31 - 2)
tres = st.dictionaries(st.sampled_from(["cpu", "gres/gpu", "gres/gpu:h100", "mem", "billing"]), st.integers(0, 10**6), min_size=1)  # fmt: skip
lists = st.sets(st.sampled_from(["normal", "high", "low"]), min_size=1).map(frozenset) | st.just(frozenset({"blocked"}))
values = st.fixed_dictionaries(
    {},
    optional={
        "fairshare": st.integers(0, 1000) | st.just("parent"),
        "priority": counts,
        "grp_tres": tres,
        "max_tres_mins_per_job": tres,
        "grp_jobs": counts,
        "max_submit_jobs": counts,
        "max_wall": st.integers(0, 10**5).map(lambda minutes: minutes * 60),
        "qos": lists,
        "default_qos": st.sampled_from(["normal", "high", "low", "blocked"]),
    },
)
prose = st.text(alphabet=st.sampled_from("ab üÜ|`\n日"), max_size=5)


@st.composite
def clusters(draw):
    tree = {}
    for name in draw(st.lists(st.sampled_from(WORDS), unique=True, min_size=1)):
        tree[name] = (draw(st.sampled_from(["root", *tree])), dict(draw(values), description=draw(prose)))
    users = {}
    for name in draw(st.lists(st.sampled_from(PEOPLE), unique=True)):
        places = {}
        for place in draw(st.lists(st.sampled_from(["root", *tree]), unique=True, min_size=1, max_size=3)):
            for partition in draw(st.sampled_from([[""], ["h100"], ["", "h100"], ["", "a100", "h100"]])):
                places[(place, partition)] = draw(values)
        users[name] = (draw(st.sampled_from(["", *tree, *(place for place, _partition in places)])), places)
    state = world(tree, users)
    _as_slurm_would_have_it(state)
    for key in sorted(state.associations):
        row = state.associations[key]
        if key[1] and not row.values["qos"] and row.effective_qos != {"blocked"} and draw(st.booleans()):
            row.values["qos"] = frozenset({"+extra"})
            row.effective_qos |= {"extra"}
    state.qos |= {"extra"}
    return state


def _as_slurm_would_have_it(state):
    """Slurm lets nobody have a default outside the list."""
    while True:
        rows = {key: (row.values["qos"], row.values["default_qos"]) for key, row in state.associations.items()}
        tree = Tree(state.parents(), rows)
        wrong = [key for key in rows if not tree.fits(key)]
        if not wrong:
            break
        for key in wrong:
            for step in tree.path(key):
                state.associations[step].values["default_qos"] = None
    settle(state)


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(clusters())
def test_whatever_the_tree_the_report_is_the_truth(state):
    found = adopted(state)
    # Only what a document cannot say as it is may change at all.
    for what, field, value in said(found, CHANGES):
        texts = field in ("description", "organization", "default_account")
        shares = what.startswith("account") and (field, value) == ("fairshare", "parent -> 1")
        lists = what.startswith("user") and field == "qos" and value.startswith("+extra")
        assert texts or shares or lists, (what, field, value)
    # A second run has nothing to write, and finds the same to change.
    again = adopt(surveyed(state), Options(POLICY), [parse(text, f"{name}.yml") for name, text in found.texts.items()])
    assert again.texts == {}
    assert sorted(said(again, CHANGES)) == sorted(said(found, CHANGES))
    assert label(("a", "b", "")) == adopt_findings.label(("a", "b", ""))
