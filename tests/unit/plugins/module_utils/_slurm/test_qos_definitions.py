# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import fields, qos_definitions
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.desired import Refused
from hypothesis import given, settings
from hypothesis import strategies as st

TRES = frozenset({"cpu", "gres/gpu"})


def unset(**given_values):
    return {**{field.option: field.unset for field in fields.QOS_FIELDS}, **given_values}


def state(**named):
    return qos_definitions.QosState({name: unset(**values) for name, values in named.items()}, TRES)


def words(before, *qos):
    plan = qos_definitions.make_plan(before, qos_definitions.build({"qos": list(qos)}))
    return [" ".join(command.words()) for command in qos_definitions.compile_plan(before, plan)]


def test_the_blocking_qos():
    block = {
        "name": "blocked",
        "grp_submit_jobs": 0,
        "max_submit_jobs_per_user": 0,
        "flags": ["OverPartQOS", "DenyOnLimit"],
    }
    assert words(state(normal={}), block) == [
        "add qos name=blocked Flags=DenyOnLimit,OverPartQOS GrpSubmitJobs=0 MaxSubmitJobsPerUser=0"
    ]
    there = state(
        blocked={
            "grp_submit_jobs": 0,
            "max_submit_jobs_per_user": 0,
            "flags": frozenset({"OverPartQOS", "DenyOnLimit"}),
        }
    )
    assert words(there, block) == []


def test_new_ones_may_preempt_each_other():
    assert words(state(), {"name": "a", "preempt": ["b"]}, {"name": "b"}) == [
        "add qos name=a,b",
        "modify qos where name=a set Preempt=b",
    ]


def test_the_same_change_is_one_command():
    assert words(state(a={}, b={}), {"name": "a", "max_wall": 60}, {"name": "b", "max_wall": "01:00:00"}) == [
        "modify qos where name=a,b set MaxWall=01:00:00"
    ]


def test_clearing():
    there = state(
        a={
            "flags": frozenset({"NoDecay"}),
            "preempt": frozenset({"b"}),
            "priority": 3,
            "grp_tres": {"cpu": 1},
            "max_wall": 60,
        },
        b={},
    )
    cleared = {
        "name": "a",
        "flags": [],
        "preempt": [],
        "priority": -1,
        "grp_tres": {},
        "max_wall": -1,
        "usage_factor": -1,
    }
    assert words(there, cleared) == [
        "modify qos where name=a set Priority=0 Flags=-1 Preempt= GrpTRES=cpu=-1 MaxWall=-1"
    ]


@pytest.mark.parametrize(
    ("qos", "message"),
    [
        ([{"name": "a", "preempt": ["nosuch"]}], "QOS a: preempt names nosuch, which does not exist"),
        ([{"name": "a", "grp_tres": {"gpu": 1}}], "grp_tres names gpu, which slurmdbd does not track"),
        ([{"name": "a"}, {"name": "A"}], "QOS a is named twice"),
        ([{"name": "a b"}], "QOS name 'a b' is refused"),
        ([{"name": "a", "grace_time": -5}], "grace_time: -5 is out of range"),
        ([{"name": "a", "usage_factor": -0.5}], "usage_factor: -0.5 is negative"),
    ],
)
def test_what_cannot_be_meant_is_refused(qos, message):
    with pytest.raises(Refused, match=message):
        words(state(), *qos)


options = st.fixed_dictionaries(
    {"name": st.sampled_from(["a", "b", "c"])},
    optional={
        "priority": st.integers(-1, 3),
        "flags": st.lists(st.sampled_from(fields.FLAG_NAMES), unique=True, max_size=2),
        "preempt": st.lists(st.sampled_from(["normal"]), max_size=1),
        "grp_tres": st.dictionaries(st.sampled_from(sorted(TRES)), st.integers(0, 3)),
        "max_wall": st.sampled_from([-1, 1, "1-00:00:00"]),
        "usage_factor": st.sampled_from([-1, 0, 0.5]),
    },
)
definitions = st.lists(options, unique_by=lambda item: item["name"])


@settings(max_examples=100, deadline=None)
@given(definitions, definitions)
def test_a_second_plan_is_empty_and_unnamed_qos_stay(first, second):
    there = state(normal={"priority": 7})
    for wanted in (first, second):
        built = qos_definitions.build({"qos": wanted})
        before = there
        there = qos_definitions.apply_changes(before, qos_definitions.make_plan(before, built))
        assert not qos_definitions.make_plan(there, built).changed
        assert all(there.qos[name] == before.qos[name] for name in set(before.qos) - set(built))
        for name, values in built.items():
            assert values.items() <= there.qos[name].items()


def removal(there, *names, used=None, max_removals=9):
    there.used = used or {}
    plan = qos_definitions.plan_removal(there, names, max_removals)
    return [" ".join(command.words()) for command in qos_definitions.compile_plan(there, plan)]


def test_what_nobody_uses_goes_in_one_command():
    assert removal(state(a={}, b={"preempt": frozenset({"a"})}), "a", "b", "nosuch") == ["delete qos where name=a,b"]
    assert removal(state(), "a") == []


@pytest.mark.parametrize(
    ("used", "message"),
    [
        ({"a": ["account foo on c1"]}, "QOS a is in use: account foo on c1; take it away"),
        ({"a": [f"user u{n}" for n in range(12)]}, "user u9 and 2 more"),
        ({}, "QOS a is in use: preempted by QOS b"),
    ],
)
def test_what_somebody_uses_stays(used, message):
    there = state(a={}, b={"preempt": frozenset() if used else frozenset({"a"})})
    with pytest.raises(Refused, match=message):
        removal(there, "a", used=used)


def test_more_than_said_stays():
    with pytest.raises(Refused, match=r"would remove 2 QOS, more than max_removals \(1\): a, b"):
        removal(state(a={}, b={}), "a", "b", max_removals=1)
