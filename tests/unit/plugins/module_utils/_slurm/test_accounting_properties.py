# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""apply(plan(state, desired)) is desired, and leaves alone what it must."""

from __future__ import annotations

import dataclasses

from accounting_world import QOS, applied, settle, want, world
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import fields, qos
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.compile import compile_plan
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.desired import Refused
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.model import chain
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.plan import make_plan
from hypothesis import assume, given, settings, target
from hypothesis import strategies as st

INSIDE = ["foo", "a", "b", "c", "d"]
OUTSIDE = ["bar", "barteam"]
PEOPLE = ["al", "bo", "cy"]
LISTS = st.frozensets(st.sampled_from(sorted(QOS - {"blocked"})), max_size=3)

limits = st.fixed_dictionaries(
    {},
    optional={
        "grp_jobs": st.integers(0, 3),
        "max_jobs": st.integers(0, 3),
        "fairshare": st.integers(1, 3),
        "max_wall": st.sampled_from([60, 3600, 90000]),
        "grp_tres": st.dictionaries(st.sampled_from(["cpu", "gres/gpu"]), st.integers(0, 3)),
        "qos": st.one_of(LISTS, st.just(frozenset({"blocked"}))),
    },
)
options = st.fixed_dictionaries(
    {},
    optional={
        "grp_jobs": st.integers(-1, 3),
        "max_jobs": st.integers(-1, 3),
        "fairshare": st.sampled_from(["-1", "parent", "2"]),
        "max_wall": st.sampled_from(["-1", "1", "1-01:00:00"]),
        "grp_tres": st.dictionaries(st.sampled_from(["cpu", "gres/gpu"]), st.integers(0, 3)),
        "qos": LISTS.map(sorted),
        "default_qos": st.sampled_from(["", "normal", "high"]),
    },
)


def with_default(values):
    """The block comes with its default; elsewhere a default from the row's own list."""
    own = values.get("qos")
    return {**values, "default_qos": sorted(own)[0]} if own else values


@st.composite
def states(draw):
    tree = {"foo": ("root", with_default(draw(limits)))}
    for name in draw(st.lists(st.sampled_from(INSIDE[1:]), unique=True)):
        tree[name] = (draw(st.sampled_from(sorted(set(tree) - set(OUTSIDE)))), with_default(draw(limits)))
    tree["bar"] = ("root", draw(limits))
    tree["barteam"] = ("bar", draw(limits))
    people = {}
    for name in draw(st.lists(st.sampled_from(PEOPLE), unique=True)):
        places = draw(st.lists(st.sampled_from(sorted(tree)), min_size=1, max_size=3, unique=True))
        people[name] = (places[0], {place: with_default(draw(limits)) for place in places})
    return world(tree, people)


@st.composite
def arguments(draw):
    names = draw(st.lists(st.sampled_from(INSIDE), unique=True))
    accounts = [
        {"name": name, "parent": "root" if name == "foo" else draw(st.sampled_from(INSIDE)), **draw(options)}
        for name in names
    ]
    users = []
    for name in draw(st.lists(st.sampled_from(PEOPLE), unique=True)):
        places = draw(st.lists(st.sampled_from(INSIDE), min_size=1, max_size=2, unique=True))
        users.append(
            {
                "name": name,
                "default_account": draw(st.sampled_from([places[0], None])) if len(places) == 1 else places[0],
                "associations": [{"account": place, **draw(options)} for place in places],
            }
        )
    exclusive = draw(st.booleans()) and bool(accounts or users)
    return {"scope": ["foo"], "accounts": accounts, "users": users, "exclusive": exclusive, "max_removals": 20}


def planned(state, given_arguments):
    try:
        desired = want(**given_arguments)
        return desired, make_plan(state, desired)
    except Refused:
        assume(False)
        raise


def outside(state):
    parents = state.parents()
    return {
        key: dataclasses.replace(row) for key, row in state.associations.items() if "foo" not in chain(key[0], parents)
    }


@settings(max_examples=200, deadline=None)
@given(states(), arguments())
def test_a_second_plan_is_empty_and_nothing_outside_the_scope_is_touched(state, given_arguments):
    desired, plan = planned(state, given_arguments)
    target(float(len(plan)))
    before = outside(state)
    after = applied(state, plan)
    assert make_plan(after, desired).as_list() == []
    assert outside(after) == before
    for name, wanted in desired.accounts.items():
        assert after.account_row(name).parent == wanted.parent
    blocked = set(plan.blocked)
    for key, values in {
        **{(name, "", ""): item.values for name, item in desired.accounts.items()},
        **{key: values for item in desired.users.values() for key, values in item.rows.items()},
    }.items():
        for option, value in values.items():
            if option in ("qos", "default_qos") and blocked:
                continue
            assert after.associations[key].values[option] == value, (key, option)


@settings(max_examples=100, deadline=None)
@given(states(), arguments())
def test_no_plan_lifts_a_block(state, given_arguments):
    _desired, plan = planned(state, given_arguments)
    after = applied(state, plan)
    block = frozenset({"blocked"})
    for key, row in state.associations.items():
        if row.effective_qos == block and key in after.associations:
            assert after.associations[key].effective_qos == block or not named(key, given_arguments)


def named(key, given_arguments):
    if key[1]:
        return key[1] in {item["name"] for item in given_arguments["users"]}
    return key[0] in {item["name"] for item in given_arguments["accounts"]}


@settings(max_examples=100, deadline=None)
@given(states(), arguments())
def test_every_command_names_what_it_touches_and_no_default_account_dangles(state, given_arguments):
    _desired, plan = planned(state, given_arguments)
    rows = {key for key in state.associations if key[1]}
    defaults = {name: user.default_account for name, user in state.users.items()}
    for command in compile_plan(state, plan):
        words = command.words()
        assert f"cluster={state.cluster}" in words
        assert all(name and name != "root" for item in command.items for name in item[:2] if name is not item[2])
        for word in words:
            name, _equals, value = word.partition("=")
            field = next((field for field in fields.ASSOCIATION if field.set_name == name), None)
            assert value or field is None or field.type == fields.QOS_LIST, word
        for key in command.items:
            if command.kind == "add user":
                rows.add(key)
                defaults[key[1]] = next(word for word in words if word.startswith("DefaultAccount=")).partition("=")[2]
            elif command.kind == "modify default":
                defaults[key[1]] = words[-1].partition("=")[2]
            elif command.kind == "delete user":
                rows.discard(key)
        for name, account in defaults.items():
            mine = {key[0] for key in rows if key[1] == name}
            assert not mine or account in mine, (name, account, words)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_qos_changes_have_an_order_that_is_valid_at_every_moment(data):
    parents = {"root": "", "foo": "root", "a": "foo", "b": "a"}
    keys = [("foo", "", ""), ("a", "", ""), ("b", "", ""), ("a", "x", ""), ("b", "y", "")]
    values = st.tuples(LISTS, st.sampled_from([None, "normal", "high", "low"]))

    def tree():
        rows = {("root", "", ""): (frozenset({"normal"}), None)}
        rows.update({key: data.draw(values) for key in keys})
        made = qos.Tree(parents, rows)
        assume(all(made.fits(key) for key in rows))
        return made

    before, after = tree(), tree()
    changes = {}
    for key in keys:
        (old_list, old_default), (new_list, new_default) = before.rows[key], after.rows[key]
        change = {"qos": new_list} if old_list != new_list else {}
        if old_default != new_default:
            change["default_qos"] = new_default
        if change:
            changes[key] = change
    moving = before.copy()
    for step in qos.order(before, changes):
        for key, change in step:
            moving.set(key, change)
        assert all(moving.fits(key) for key in moving.rows), step
    assert moving.rows == after.rows


def test_settle_agrees_with_itself():
    state = world({"foo": ("root", {"qos": frozenset({"high"})})})
    assert settle(state).associations[("foo", "", "")].effective_qos == {"high"}
