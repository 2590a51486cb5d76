# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Blocks: who is covered, what comes back, and that a run may be killed between any two steps."""

from __future__ import annotations

import accounting_world as aw
import pytest
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import block, block_ledger, block_plan
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.block_ledger import Ledger
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.changes import apply_changes
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.desired import Refused
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.model import ROOT
from hypothesis import given
from hypothesis import strategies as st

BLOCK = frozenset({"blocked"})


def request(state="blocked", users=(), accounts=(), owner="billing", **options):
    params = {"state": state, "users": list(users), "accounts": list(accounts), "owner": owner, **options}
    return block_plan.build(params, "now")


class World:
    """A cluster and its ledger; ``run`` does what the module does, and can be killed after a number of writes."""

    def __init__(self, state=None):
        self.state = state or aw.example()
        self.ledger = Ledger()

    def run(self, *args, kill_after=None, **options):
        plan = block_plan.make_plan(self.state, self.ledger, request(*args, **options))
        rows = block_plan.changes(self.state, plan.wanted)
        steps = [lambda: setattr(self, "ledger", plan.first)]
        for key in sorted({change.key for change in rows.changes}):
            steps.append(lambda key=key: self.apply(plan.wanted, key))
        steps.append(lambda: setattr(self, "ledger", plan.last))
        for step in steps if kill_after is None else steps[:kill_after]:
            step()
        changed = bool(plan.records) or rows.changed
        return plan, changed, len(steps)

    def apply(self, wanted, key):
        for _pass in range(3):
            self.state = aw.settle(apply_changes(self.state, block_plan.changes(self.state, {key: wanted[key]})))

    def own(self):
        return {key: (row.values["qos"], row.values["default_qos"]) for key, row in self.state.associations.items()}

    def blocked(self):
        return {key for key, row in self.state.associations.items() if row.effective_qos == BLOCK}


@pytest.fixture
def world():
    return World()


def test_an_account_is_blocked_with_everything_below_it_and_comes_back_as_it_was(world):
    before = world.own()
    world.run(accounts=["foo"], reason="unpaid")
    under = {("foo", "", ""), ("ml", "", ""), ("data", "", ""), ("ml", "alice", ""), ("ml", "carol", "")}
    assert world.blocked() == under
    assert {key: world.own()[key] for key in under} == dict.fromkeys(under, (BLOCK, "blocked"))
    assert world.run(accounts=["foo"])[1] is False
    world.run("unblocked", accounts=["foo"])
    assert world.own() == before
    assert world.ledger == Ledger()
    with pytest.raises(Refused, match="user nobody has no association"):
        world.run("unblocked", users=["nobody"])
    assert world.run("unblocked", accounts=["foo"])[1] is False


def test_a_user_is_blocked_in_every_account(world):
    before = world.own()
    world.run(users=["carol"])
    assert world.blocked() == {("ml", "carol", ""), ("bar", "carol", "")}
    world.run("unblocked", users=["carol"])
    assert world.own() == before


def test_owners_stack(world):
    before = world.own()
    world.run(accounts=["foo"], owner="billing")
    world.run(users=["carol"], owner="incident-7")
    plan, _changed, _steps = world.run("unblocked", accounts=["foo"], owner="billing")
    assert world.blocked() == {("ml", "carol", ""), ("bar", "carol", "")}
    assert plan.still_blocked == ["user carol in ml: user carol by incident-7"]
    world.run("unblocked", users=["carol"], owner="incident-7")
    assert world.own() == before


def test_the_same_target_by_two_owners(world):
    before = world.own()
    world.run(users=["alice"], owner="billing")
    _plan, changed, _steps = world.run(users=["alice"], owner="incident")
    assert changed
    plan, changed, _steps = world.run("unblocked", users=["alice"], owner="billing")
    assert changed
    assert world.blocked() == {("ml", "alice", "")}
    assert plan.still_blocked
    assert world.run("unblocked", users=["alice"], owner="somebody-else")[1] is False
    world.run("unblocked", users=["alice"], owner="incident")
    assert world.own() == before


def test_an_association_that_came_while_its_account_was_blocked(world):
    world.run(accounts=["foo"])
    made = aw.plan(
        world.state, ["foo"], users=[aw.user("dave", "ml"), aw.user("alice", "ml")], accounts=[aw.account("new", "foo")]
    )
    world.state = aw.applied(world.state, made)
    assert world.own()[("ml", "dave", "")] == (BLOCK, "blocked")
    assert ("new", "", "") in world.blocked()
    world.run("unblocked", accounts=["foo"])
    assert world.own()[("ml", "dave", "")] == (frozenset(), None)
    assert world.blocked() == set()


def test_a_block_goes_along_with_a_move_and_is_lifted_with_its_owners_block(world):
    world.run(accounts=["ml"])
    made = aw.plan(world.state, ["foo"], users=[aw.user("alice", "data")])
    world.state = aw.applied(world.state, made)
    assert ("data", "alice", "") in world.blocked()
    # Another tenant's block must not lift it by the way.
    world.run(accounts=["bar"], owner="other")
    world.run("unblocked", accounts=["bar"], owner="other")
    assert ("data", "alice", "") in world.blocked()


def test_an_account_that_moved_out_of_a_blocked_one_stays_blocked_until_that_is_lifted(world):
    world.run(accounts=["foo"])
    world.state.associations[("data", "", "")].parent = "bar"
    aw.settle(world.state)
    world.run(users=["bob"], owner="other")
    world.run("unblocked", users=["bob"], owner="other")
    assert ("data", "", "") in world.blocked()
    world.run("unblocked", accounts=["foo"])
    assert world.blocked() == set()


def test_a_block_made_by_hand_is_given_back_and_only_force_lifts_it(world):
    row = world.state.associations[("ml", "alice", "")]
    row.values.update(qos=BLOCK, default_qos="blocked")
    aw.settle(world.state)
    world.run(accounts=["foo"])
    plan, _changed, _steps = world.run("unblocked", accounts=["foo"])
    assert world.blocked() == {("ml", "alice", "")}
    plan, changed, _steps = world.run("unblocked", users=["alice"])
    assert not changed
    assert "force lifts it" in plan.still_blocked[0]
    world.run("unblocked", users=["alice"], force=True)
    assert world.blocked() == set()


def test_a_list_stored_as_a_difference_comes_back(world):
    row = world.state.associations[("ml", "alice", "")]
    row.values["qos"] = frozenset({"+low"})
    row.effective_qos = frozenset({"normal", "high", "low"})
    world.run(users=["alice"])
    assert world.own()[("ml", "alice", "")] == (BLOCK, "blocked")
    plan, _changed, _steps = world.run("unblocked", users=["alice"])
    assert plan.wanted[("ml", "alice", "")] == (frozenset({"+low"}), None)
    assert world.own()[("ml", "alice", "")] == (frozenset({"+low"}), None)


def test_a_difference_below_a_blocked_account_keeps_its_default(world):
    """It is a difference to what the account gets back, not to the block."""
    row = world.state.associations[("data", "", "")]
    row.values.update(qos=frozenset({"-normal"}), default_qos="high")
    row.effective_qos = frozenset({"high"})
    world.run(accounts=["foo"])
    plan, _changed, _steps = world.run("unblocked", accounts=["foo"])
    assert plan.wanted[("data", "", "")] == (frozenset({"-normal"}), "high")
    assert plan.warnings == []


def test_a_difference_comes_back_by_commands_that_slurm_takes():
    state = aw.example()
    state.associations[("ml", "alice", "")].values.update(qos=BLOCK, default_qos="blocked")
    wanted = {("ml", "alice", ""): (frozenset({"+low", "-high"}), "low")}
    said = []
    for _pass in range(3):
        rows = block_plan.changes(state, wanted)
        said += [" ".join(command.set_words) for command in block.compile_rows(state, rows)]
        state = apply_changes(state, rows)
    assert said == ["QOS= DefaultQOS=-1", "QOS+=low QOS-=high DefaultQOS=low"]
    assert not block_plan.changes(state, wanted).changed


@pytest.mark.parametrize(("version", "condition"), [((22, 5), " parent=foo"), ((24, 11), "")])
def test_a_difference_of_an_account_comes_back_beside_blocked_users(version, condition):
    """22.05 refuses the default otherwise, for the users below who stay blocked."""
    state = aw.example(version)
    wanted = {("data", "", ""): (frozenset({"-normal"}), "high")}
    rows = block_plan.changes(state, wanted)
    assert " ".join(block.compile_rows(state, rows)[-1].words()) == (
        f"modify account where name=data cluster=c1{condition} set QOS-=normal DefaultQOS=high"
    )


def test_qos_that_went_away_meanwhile(world):
    world.state.associations[("ml", "alice", "")].values.update(qos=frozenset({"low"}), default_qos="low")
    world.state.associations[("ml", "carol", "")].values.update(qos=frozenset({"low", "high"}), default_qos="low")
    aw.settle(world.state)
    world.run(accounts=["ml"])
    world.state.qos -= {"low"}
    with pytest.raises(Refused, match="user alice in ml had QOS low alone, which no longer exists"):
        world.run("unblocked", accounts=["ml"])
    world.state.associations.pop(("ml", "alice", ""))
    plan, _changed, _steps = world.run("unblocked", accounts=["ml"])
    assert world.own()[("ml", "carol", "")] == (frozenset({"high"}), None)
    assert "QOS low no longer exists" in plan.warnings[0]


def test_a_default_that_the_list_no_longer_allows_is_not_given_back(world):
    world.state.associations[("ml", "alice", "")].values.update(default_qos="high")
    world.run(users=["alice"])
    world.state.associations[("foo", "", "")].values["qos"] = frozenset({"normal"})
    aw.settle(world.state)
    plan, _changed, _steps = world.run("unblocked", users=["alice"])
    assert world.own()[("ml", "alice", "")] == (frozenset(), None)
    assert "default QOS high is not in its list any more" in plan.warnings[0]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({}, "neither users nor accounts"),
        ({"users": ["root"]}, "user root is Slurm's own"),
        ({"accounts": ["root"]}, "account root is Slurm's own"),
        ({"users": [""]}, "is refused"),
        ({"users": ["a,b"]}, "is refused"),
        ({"users": ["alicce"]}, "user alicce has no association on cluster c1"),
        ({"accounts": ["fooo"]}, "account fooo does not exist on cluster c1"),
        ({"users": ["alice"], "owner": "a b"}, "owner name"),
        ({"users": ["alice"], "block_qos": "gone"}, "the blocking QOS gone does not exist"),
    ],
)
def test_what_is_refused(world, options, says):
    with pytest.raises(Refused, match=says):
        world.run(**options)
    assert world.ledger == Ledger()


def test_root_is_never_touched(world):
    world.state.associations[(ROOT, "alice", "")] = aw.Association(
        ROOT, "alice", values={**aw.unset_values()}, effective_qos=frozenset({"normal"})
    )
    world.run(users=["alice"])
    assert world.blocked() == {("ml", "alice", ""), (ROOT, "alice", "")}


def test_slurm_accounting_keeps_who_is_on_record_out(world):
    """A user may have no row at the moment, or none in scope."""
    state = aw.example()
    desired = aw.want(["bar"], users=[aw.user("alice", "bar")])
    desired.blocked_users = frozenset({"alice"})
    made = aw.make_plan(state, desired)
    assert made.blocked == ["user alice in bar"]
    desired = aw.want(["new"], accounts=[aw.account("new")], users=[aw.user("zoe", "new")])
    desired.blocked_accounts = frozenset({"new"})
    made = aw.make_plan(state, desired)
    assert made.blocked == ["account new", "user zoe in new"]


TARGETS = st.one_of(
    st.tuples(st.just("users"), st.sampled_from(["alice", "carol", "bob"])),
    st.tuples(st.just("accounts"), st.sampled_from(["foo", "ml", "data", "bar"])),
)
RUNS = st.lists(
    st.tuples(st.sampled_from(["blocked", "unblocked"]), TARGETS, st.sampled_from(["billing", "incident"])), max_size=8
)


@given(RUNS, st.lists(st.integers(0, 9), max_size=8))
def test_any_order_any_kill_and_all_comes_back(runs, kills):
    world = World()
    before = world.own()
    done = set()
    for number, (state, (option, name), owner) in enumerate(runs):
        arguments = {option: [name], "owner": owner}
        if number < len(kills):
            world.run(state, **arguments, kill_after=kills[number])
        world.run(state, **arguments)
        assert world.run(state, **arguments)[1] is False
        if state == "blocked":
            done.add((option, name, owner))
        else:
            done.discard((option, name, owner))
        users = {item[1] for item in done if item[0] == "users"}
        accounts = {item[1] for item in done if item[0] == "accounts"}
        accounts |= {"ml", "data"} if "foo" in accounts else set()
        accounts |= {"barteam"} if "bar" in accounts else set()
        assert world.blocked() == {key for key in before if key[0] in accounts or key[1] in users}
    for option, name, owner in sorted(done):
        world.run("unblocked", **{option: [name]}, owner=owner)
    assert world.own() == before
    assert world.ledger == Ledger()


@given(RUNS)
def test_the_file_holds_the_ledger(runs):
    world = World()
    for state, (option, name), owner in runs:
        world.run(state, **{option: [name]}, owner=owner)
    assert block_ledger.decode(block_ledger.encode(world.ledger)) == world.ledger
