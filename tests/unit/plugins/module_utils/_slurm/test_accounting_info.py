# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What slurm_accounting_info returns is what slurm_accounting takes."""

from __future__ import annotations

import pytest
from accounting_world import applied, example, plan, settle
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import info
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.model import State
from hypothesis import given, settings
from hypothesis import strategies as st


def feed(state, found, scope=("root",)):
    return plan(state, list(scope), found["accounts"], found["users"])


def test_what_is_set_is_returned_and_nothing_else():
    found = info.describe(example(), accounts=["foo"])
    assert found["accounts"] == [
        {
            "name": "foo",
            "parent": "root",
            "description": "foo",
            "organization": "foo",
            "grp_jobs": 10,
            "qos": ["high", "normal"],
            "default_qos": "normal",
        },
        {"name": "data", "parent": "foo", "description": "data", "organization": "data"},
        {"name": "ml", "parent": "foo", "description": "ml", "organization": "ml", "fairshare": 200},
    ]
    assert found["users"] == [
        {"name": "alice", "default_account": "ml", "associations": [{"account": "ml", "max_jobs": 5}]},
        {"name": "carol", "default_account": "ml", "associations": [{"account": "ml"}]},
    ]
    assert found["cluster_limits"] == {"qos": ["normal"]}


@pytest.mark.parametrize("view", info.VIEWS)
def test_feeding_it_back_is_no_change(view):
    state = example()
    state.accounts["ml"].coordinators = frozenset({"alice"})
    state.users["bob"].admin_level = "operator"
    found = info.describe(state, view=view)
    assert not feed(state, found).changed
    for tenant in found.get("tenants", {}).values():
        assert not feed(state, tenant, tenant["scope"]).changed
    assert set(found.get("tenants", {"foo": 0, "bar": 0})) == {"foo", "bar"}


def test_views():
    tree = info.describe(example(), view="tree")["accounts"]
    assert [(item["name"], [child["name"] for child in item.get("accounts", [])]) for item in tree] == [
        ("bar", ["barteam"]),
        ("foo", ["data", "ml"]),
    ]
    one = info.describe(example(), accounts=["foo"], view="tenants")["tenants"]
    assert [item["name"] for item in one["foo"]["accounts"]] == ["foo", "data", "ml"]
    assert [item["name"] for item in one["foo"]["users"]] == ["alice", "carol"]


def test_some_users():
    found = info.describe(example(), users=["Carol", "nosuch"])
    assert [item["name"] for item in found["accounts"]] == ["bar", "ml"]
    assert [row["account"] for row in found["users"][0]["associations"]] == ["bar", "ml"]
    assert found["missing"] == ["nosuch"]


def test_absence_is_an_answer():
    found = info.describe(State("c1"), accounts=["foo"], users=["al"])
    assert (found["accounts"], found["users"], found["missing"]) == ([], [], ["foo", "al"])


def test_what_cannot_be_said_in_options_is_named():
    state = example()
    state.associations[("ml", "alice", "")].values["qos"] = frozenset({"+low"})
    state.associations[("ml", "alice", "")].effective_qos = frozenset({"normal", "low"})
    del state.associations[("barteam", "", "")]
    state.associations[("barteam", "eve", "")] = state.associations[("bar", "bob", "")]
    found = info.describe(state)
    assert found["differences"] == ["user alice in ml"]
    assert found["users"][0]["associations"][0]["qos"] == ["low", "normal"]
    assert found["orphans"] == ["user eve in barteam"]
    assert "eve" not in [item["name"] for item in found["users"]]


limits = st.fixed_dictionaries(
    {},
    optional={
        "fairshare": st.sampled_from(["parent", "7"]),
        "grp_tres": st.dictionaries(st.sampled_from(["cpu", "mem", "gres/gpu"]), st.integers(0, 3)),
        "grp_wall": st.integers(0, 5000),
        "max_jobs": st.integers(0, 3),
        "qos": st.sampled_from([[], ["normal"], ["high", "normal"]]),
        "comment": st.sampled_from(["", "x, y"]),
    },
)


@settings(max_examples=60)
@given(limits, limits, st.sampled_from(["root", "foo", "data"]))
def test_any_tree_can_be_fed_back_to_an_empty_cluster(account, row, parent):
    wanted = [{"name": "new", "parent": parent, **account}]
    user = [{"name": "zoe", "associations": [{"account": "new", **row}]}]
    state = applied(example(), plan(example(), ["root"], wanted, user))
    found = info.describe(state)
    assert not feed(state, found).changed
    empty = settle(State("c1", qos=state.qos, tres=state.tres))
    root = ("root", "", "")
    empty.associations[root], empty.accounts["root"] = state.associations[root], state.accounts["root"]
    rebuilt = applied(empty, feed(empty, found))
    assert info.describe(rebuilt) == found
