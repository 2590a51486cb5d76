# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import nodes
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.desired import Refused
from hypothesis import given
from hypothesis import strategies as st

# scontrol show node, 22.05.8 and 24.11.5.
V22_05 = """\
NodeName=gpu1 Arch=x86_64 CoresPerSocket=1
   CPUAlloc=0 CPUEfctv=2 CPUTot=2 CPULoad=2.58
   AvailableFeatures=(null)
   ActiveFeatures=(null)
   Gres=gpu:h100:4
   NodeAddr=127.0.0.1 NodeHostName=ctl Port=17001 Version=22.05.8
   OS=Linux 6.18.44 #1 SMP PREEMPT_DYNAMIC @0
   RealMemory=2000 AllocMem=0 FreeMem=18858 Sockets=2 Boards=1
   State=IDLE+DRAIN ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A
   Partitions=h100
   BootTime=2026-11-29T19:16:59 SlurmdStartTime=2026-11-29T23:13:09
   LastBusyTime=2026-11-29T23:13:09
   CfgTRES=cpu=2,mem=2000M,billing=130,gres/gpu=4,gres/gpu:h100=4
   AllocTRES=
   CapWatts=n/a
   CurrentWatts=0 AveWatts=0
   ExtSensorsJoules=n/s ExtSensorsWatts=0 ExtSensorsTemp=n/s
   Reason=bad fan [root@2026-11-29T23:13:53]
          second line State=IDLE

NodeName=gpu2 Arch=x86_64 CoresPerSocket=1
   CPUAlloc=0 CPUEfctv=2 CPUTot=2 CPULoad=2.58
   State=IDLE+NOT_RESPONDING ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A
   Partitions=h100
   Comment=my Reason=fake State=DRAIN

"""
V24_11 = """\
NodeName=gpu1 Arch=x86_64 CoresPerSocket=1
   NodeAddr=127.0.0.1 NodeHostName=ctl Port=17001 Version=24.11.5
   OS=Linux 6.18.44 #1 SMP PREEMPT_DYNAMIC @0
   State=DOWN+DRAIN ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A
   Partitions=h100
   LastBusyTime=2026-11-29T23:13:20 ResumeAfterTime=None
   CurrentWatts=0 AveWatts=0

   Reason=[ir-1] gpu holder outside of a job; bad fan, see x=y [root@2026-11-29T23:13:53]

NodeName=gpu3 Arch=x86_64 CoresPerSocket=1
   State=IDLE* ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A
   Reason=alone [slurm@2026-11-29T23:13:53]

"""


def node(reason="", state="IDLE", flags=("DRAIN",), name="gpu1"):
    return nodes.Node(name, state, frozenset(flags), reason)


def wanted(state="drain", owner="us", reason="ours", names=("gpu1",)):
    return nodes.Wanted(tuple(names), state, owner, reason)


def applied(current, plan):
    """What scontrol makes of the commands of a plan."""
    found = dict(current)
    for _update, named, *words in nodes.compile_plan(plan):
        for name in nodes.hostlist.expand(named.partition("=")[2]):
            given = dict(word.split("=", 1) for word in words)
            before = found[name]
            if given.get("State") == "RESUME":
                found[name] = nodes.Node(name, "IDLE")
            else:
                flags = before.flags | ({"DRAIN"} if given.get("State") == "DRAIN" else frozenset())
                found[name] = nodes.Node(name, before.state, flags, given["Reason"])
    return found


def test_parse():
    first, second = list(nodes.parse(V22_05).values())
    assert (first.name, first.shown, first.reason) == ("gpu1", "IDLE+DRAIN", "bad fan second line State=IDLE")
    assert (first.reason_by, first.reason_time) == ("root", "2026-11-29T23:13:53")
    assert (second.state, second.flags, second.reason, second.holds) == ("IDLE", {"NOT_RESPONDING"}, "", ())
    first, second = list(nodes.parse(V24_11).values())
    assert first.shown == "DOWN+DRAIN"
    assert first.holds == (("ir-1", "gpu holder outside of a job"), ("", "bad fan, see x=y"))
    assert (second.shown, second.reason, second.closed, second.holds) == ("IDLE+NOT_RESPONDING", "alone", False, ())


def test_a_node_without_a_state_cannot_be_read():
    with pytest.raises(ValueError, match="no state of node gpu1"):
        nodes.parse("NodeName=gpu1 Arch=x86_64\n   CPUAlloc=0\n")


@pytest.mark.parametrize(
    ("reason", "holds"),
    [
        ("", ()),
        ("bad fan", (("", "bad fan"),)),
        ("bad fan; [us] ours", (("", "bad fan; [us] ours"),)),
        ("[us] ours", (("us", "ours"),)),
        ("[a] x; [b] y; z; w", (("a", "x"), ("b", "y"), ("", "z; w"))),
        ("[us]ours", (("", "[us]ours"),)),
    ],
)
def test_holds(reason, holds):
    assert nodes.parse_holds(reason) == holds
    assert nodes.show_holds(holds) == reason


def test_one_command_for_nodes_that_change_alike():
    current = {name: node(name=name, flags=()) for name in ("gpu1", "gpu2", "gpu3")}
    current["gpu2"] = node("bad fan", name="gpu2")
    plan = nodes.make_plan(current, wanted(names=current))
    assert nodes.compile_plan(plan) == [
        ["update", "NodeName=gpu[1,3]", "State=DRAIN", "Reason=[us] ours"],
        ["update", "NodeName=gpu2", "State=DRAIN", "Reason=[us] ours; bad fan"],
    ]
    assert [change.risk for change in plan if change.field == "state"] == ["disruptive"] * 2
    assert not nodes.make_plan(applied(current, plan), wanted(names=current)).changed


@pytest.mark.parametrize(
    ("before", "words"),
    [
        (node("[us] ours"), ["State=RESUME"]),
        (node("[us] another text"), ["State=RESUME"]),
        (node("[us] ours", state="DOWN", flags=()), ["State=RESUME"]),
        (node("[us] ours; bad fan"), ["Reason=bad fan"]),
        (node("[other] theirs; [us] ours"), ["Reason=[other] theirs"]),
        (node("[other] theirs"), None),
        (node("ours"), None),
        (node(""), None),
        (node("[us] stale", flags=()), None),
        (node("Not responding", state="DOWN", flags=("NOT_RESPONDING",)), None),
    ],
)
def test_resume_takes_back_only_its_own(before, words):
    commands = nodes.compile_plan(nodes.make_plan({"gpu1": before}, wanted("resume")))
    assert commands == ([["update", "NodeName=gpu1", *words]] if words else [])


def test_slurmctlds_own_word_for_a_node_that_is_away_is_not_kept():
    away = node("Not responding", state="DOWN", flags=("NOT_RESPONDING",))
    plan = nodes.make_plan({"gpu1": away}, wanted())
    assert nodes.compile_plan(plan)[0][-1] == "Reason=[us] ours"
    # But where somebody drained it, the words may be his.
    plan = nodes.make_plan({"gpu1": node("Not responding")}, wanted())
    assert nodes.compile_plan(plan)[0][-1] == "Reason=[us] ours; Not responding"


def test_kept_are_those_that_others_hold():
    current = {"gpu1": node("[us] ours"), "gpu2": node("x", name="gpu2"), "gpu3": node(name="gpu3", flags=())}
    assert nodes.kept(current, wanted("resume", names=current)) == ["gpu2"]


owners = st.sampled_from(["a", "b", "incident-42"])
words = st.text("abc =,()[]@:", min_size=1, max_size=12).map(str.strip).filter(bool)


@given(foreign=words | st.just(""), steps=st.lists(st.tuples(owners, st.booleans(), st.sampled_from(["x", "y z"]))))
def test_whatever_owners_do_a_strangers_reason_survives(foreign, steps):
    strange = any(owner for owner, _text in nodes.parse_holds(foreign))
    current = {"gpu1": node(foreign, flags=("DRAIN",) if foreign else ())}
    held = {}
    for owner, drain, reason in steps:
        plan = nodes.make_plan(current, wanted("drain" if drain else "resume", owner, reason))
        current = applied(current, plan)
        assert not nodes.make_plan(current, wanted("drain" if drain else "resume", owner, reason)).changed
        held = {**held, owner: reason} if drain else {key: text for key, text in held.items() if key != owner}
        if not strange:
            assert dict(hold for hold in current["gpu1"].holds if hold[0]) == held
            assert current["gpu1"].closed == bool(held or foreign)
            assert current["gpu1"].reason.endswith(foreign)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"nodes": []}, "nodes is empty"),
        ({"nodes": [""]}, "nodes holds an empty name"),
        ({"nodes": ["gpu[1-"]}, "brackets"),
        ({"owner": "a b"}, "owner 'a b' is refused"),
        ({"owner": ""}, "owner '' is refused"),
        ({"reason": "a; [b] c"}, "is refused: remove quotes"),
        ({"reason": "a\nb"}, "is refused: remove quotes"),
        ({"reason": ""}, "state drain needs a reason"),
    ],
)
def test_what_is_refused(params, message):
    with pytest.raises(Refused, match=message):
        nodes.build({"nodes": ["gpu1"], "state": "drain", "owner": "us", "reason": "x", **params})


def test_unknown_nodes_are_named_together():
    with pytest.raises(Refused, match=r"Slurm knows no node x\[1-2\]; it knows gpu1"):
        nodes.make_plan({"gpu1": node()}, wanted(names=["gpu1", "x1", "x2"]))
