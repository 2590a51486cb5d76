# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import dataclasses

import pytest
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import hostlist, moments
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import reservations as model
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.desired import Refused
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.reservations_plan import compile_plan, make_plan
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.values import ValueProblem
from hypothesis import given
from hypothesis import strategies as st

NOW = moments.from_slurm("2026-11-29T23:00:00")
HOUR, DAY = 3600, 86400
V22_05 = (
    "ReservationName=r6 StartTime=2027-04-02T08:00:00 EndTime=2027-04-02T10:00:00 Duration=02:00:00 Nodes=gpu[1-2] NodeCnt=2 "
    "CoreCnt=4 Features=(null) PartitionName=h100 Flags=WEEKLY,SPEC_NODES,STATIC,PART_NODES,NO_HOLD_JOBS_AFTER_END TRES=cpu=4 "
    "Users=root Groups=(null) Accounts=(null) Licenses=(null) State=INACTIVE BurstBuffer=(null) Watts=n/a MaxStartDelay=(null)\n"
    "ReservationName=p 9 StartTime=2028-07-02T08:00:00 EndTime=2028-07-02T08:30:00 Duration=00:30:00 Nodes=gpu1 NodeCnt=1 "
    "CoreCnt=2 Features=(null) PartitionName=h100 Flags= TRES=cpu=2 Users=(null) Groups=(null) Accounts=ta,tb Licenses=(null) "
    "State=INACTIVE BurstBuffer=(null) Watts=n/a MaxStartDelay=(null)\n"
)
V24_11 = (
    "ReservationName=k4 StartTime=2027-03-01T08:00:00 EndTime=2027-03-01T10:00:00 Duration=02:00:00 Nodes=gpu1 NodeCnt=1 "
    "CoreCnt=2 Features=(null) PartitionName=h100 Flags=   NodeName=gpu1 CoreIDs=0-1 TRES=cpu=2,gres/gpu=2 Users=root "
    "Groups=(null) Accounts=(null) Licenses=(null) State=ACTIVE BurstBuffer=(null) MaxStartDelay=(null)\n"
)


def build(state="present", **given_):
    return model.build({"name": "r", "state": state, **given_})


def plan(current, now=NOW, **given_):
    wanted = build(**given_)
    return compile_plan(make_plan(now, {} if current is None else {"r": current}, wanted), wanted)


def there(start=NOW + HOUR, end=NOW + 3 * HOUR, **given_):
    return model.Reservation("r", start, end, **{"nodes": frozenset({"gpu1"}), "users": frozenset({"root"}), **given_})


def slurm(commands, current, now):
    """What slurmctld makes of commands, as measured on both releases."""
    for words in commands:
        row = {} if current is None else dataclasses.asdict(current)
        row.setdefault("flags", frozenset())
        length = None
        for word in words[1:]:
            key, sign, value = word.partition("=")
            if key == "StartTime":
                row["start"] = _time(value, now)
            elif key == "EndTime":
                row["end"] = _time(value, now)
            elif key == "Duration":
                length = moments.YEAR if value == "UNLIMITED" else int(value) * 60
            elif key == "Nodes":
                row["nodes"] = frozenset({"gpu1", "gpu2"} if value == "ALL" else hostlist.expand(value))
                row["flags"] = (
                    (row["flags"] - {"ALL_NODES"}) | {"SPEC_NODES"} | ({"ALL_NODES"} if value == "ALL" else set())
                )
            elif key in ("Users", "Accounts"):
                row[key.lower()] = frozenset(filter(None, value.split(",")))
            elif key == "PartitionName":
                row["partition"] = value
            elif key == "NodeCnt":
                row["node_count"] = int(value)
            elif key in ("Flags", "Flags+"):
                names = {flag.partition("=")[0] for flag in value.split(",")}
                row["flags"] = frozenset(
                    [flag for flag in row["flags"] if flag.partition("=")[0] not in names] + value.split(",")
                )
            elif key == "Flags-":
                row["flags"] = row["flags"] - set(value.split(","))
            else:
                assert (key, sign) in (("ReservationName", "="), ("reservation", "")), word
        if length is not None:
            row["end"] = row["start"] + length
        row.setdefault("name", "r")
        assert row["end"] > row["start"]
        current = model.Reservation(**row)
    return current


def _time(text, now):
    return now + int(text[4:-7] or 0) if text.startswith("now") else moments.from_slurm(text)


def test_parse():
    first, second = list(model.parse(V22_05).values())
    assert (first.name, first.nodes, first.partition, first.users) == ("r6", {"gpu1", "gpu2"}, "h100", {"root"})
    assert first.flags == {"WEEKLY", "SPEC_NODES", "STATIC", "PART_NODES", "NO_HOLD_JOBS_AFTER_END"}
    assert (moments.shown(first.start), first.end - first.start, first.active) == ("2027-04-02T08:00:00Z", 7200, False)
    assert (second.name, second.flags, second.users, second.accounts) == ("p 9", frozenset(), frozenset(), {"ta", "tb"})
    (third,) = list(model.parse(V24_11).values())
    assert (third.flags, third.nodes, third.tres, third.active) == (
        frozenset(),
        {"gpu1"},
        {"cpu": 2, "gres/gpu": 2},
        True,
    )
    assert model.parse("No reservations in the system\n") == {}
    with pytest.raises(ValueError, match="among the reservations"):
        model.parse("slurm_load_reservations error\n")


def test_a_new_one_is_one_command():
    assert plan(
        None, start_time="now", duration="60", nodes=["gpu1", "gpu2"], accounts=["TA"], flags=["maint", "flex"]
    ) == [
        [
            *("create", "reservation", "ReservationName=r", "StartTime=now", "Duration=60", "Nodes=gpu[1-2]"),
            *("Accounts=ta", "Flags=FLEX,MAINT"),
        ]
    ]


@pytest.mark.parametrize(
    ("given_", "words"),
    [
        ({"duration": "60"}, ["StartTime=now", "Duration=60"]),
        ({"duration": "infinite"}, ["StartTime=now", "Duration=UNLIMITED"]),
        ({"start_time": "now+2hours", "duration": "1"}, ["StartTime=now+7200seconds", "Duration=1"]),
        (
            {"start_time": "2027-01-01T08:00:00Z", "duration": "60"},
            ["StartTime=2027-01-01T08:00:00", "EndTime=2027-01-01T09:00:00"],
        ),
        ({"start_time": "2026-11-29T22:30:00Z", "duration": "60"}, ["StartTime=now", "EndTime=2026-11-29T23:30:00"]),
        (
            {"start_time": "2026-11-29T23:30:00+02:00", "end_time": "now+1day"},
            ["StartTime=now", "EndTime=now+86400seconds"],
        ),
        # The next Monday at eight, for one that began a month ago.
        (
            {"start_time": "2026-11-02T08:00:00Z", "duration": "60", "flags": ["WEEKLY"]},
            ["StartTime=2026-11-30T08:00:00", "EndTime=2026-11-30T09:00:00"],
        ),
    ],
)
def test_times_of_a_new_one(given_, words):
    ((*_create, first, second, _nodes, _users),) = (
        [word for word in command if not word.startswith("Flags")]
        for command in plan(None, nodes=["gpu1"], users=["root"], **given_)
    )
    assert [first, second] == words


@pytest.mark.parametrize(
    ("current", "given_", "words"),
    [
        (there(), {"start_time": "2026-11-30T00:00:00Z", "duration": "120"}, None),
        (there(), {"duration": "2:00:00"}, None),
        (there(), {"duration": "60"}, ["EndTime=2026-11-30T01:00:00"]),
        (there(), {"start_time": "now"}, ["StartTime=now"]),
        (there(), {"start_time": "now", "duration": "60"}, ["StartTime=now", "Duration=60"]),
        (there(), {"start_time": "now+5days"}, None),
        (there(), {"end_time": "now+5days"}, None),
        (there(NOW - HOUR), {"start_time": "now", "duration": "4:00:00"}, None),
        (there(NOW - HOUR), {"start_time": "2026-11-29T21:00:00Z", "duration": "5:00:00"}, None),
        (
            there(NOW - HOUR),
            {"start_time": "2026-11-29T21:00:00Z", "duration": "6:00:00"},
            ["EndTime=2026-11-30T03:00:00"],
        ),
        (there(end=NOW + HOUR + 365 * DAY), {"duration": "unlimited"}, None),
        (there(flags=frozenset({"DAILY"})), {"start_time": "2026-11-01T00:00:00Z", "duration": "120"}, None),
        (there(flags=frozenset({"DAILY"})), {"end_time": "2026-11-01T02:00:00Z"}, None),
        (
            there(flags=frozenset({"DAILY"})),
            {"start_time": "2026-11-01T01:00:00Z", "duration": "120"},
            ["StartTime=2026-11-30T01:00:00", "EndTime=2026-11-30T03:00:00"],
        ),
    ],
)
def test_times_of_one_that_is_there(current, given_, words):
    assert plan(current, **given_) == ([["update", "ReservationName=r", *words]] if words else [])


@pytest.mark.parametrize(
    ("current", "given_", "words"),
    [
        (there(), {"nodes": ["gpu1"], "users": ["root"], "flags": []}, None),
        (there(flags=frozenset({"SPEC_NODES", "ALL_NODES"})), {"nodes": ["all"], "flags": []}, None),
        (
            there(partition="h100", flags=frozenset({"PART_NODES"})),
            {"nodes": ["ALL"], "partition": "h100", "flags": []},
            None,
        ),
        (there(), {"nodes": ["ALL"]}, [["Nodes=ALL"]]),
        (there(), {"users": [], "accounts": ["ta"]}, [["Users=", "Accounts=ta"]]),
        (there(flags=frozenset({"MAINT"})), {"flags": ["FLEX"]}, [["Flags+=FLEX"], ["Flags-=MAINT"]]),
        (there(flags=frozenset({"PURGE_COMP=00:05:00"})), {"flags": ["purge_comp"]}, None),
        (
            there(flags=frozenset({"PURGE_COMP=00:05:00"})),
            {"flags": ["PURGE_COMP=10"]},
            [["Flags+=PURGE_COMP=00:10:00"]],
        ),
        (there(flags=frozenset({"STATIC"})), {"flags": ["static_alloc"]}, None),
        (there(flags=frozenset({"FIRST_CORES"})), {"flags": []}, None),
        (there(tres={"cpu": 2, "gres/gpu": 2}), {"tres": {"gres/gpu": 2}}, None),
        (there(node_count=2), {"node_count": 3}, [["NodeCnt=3"]]),
    ],
)
def test_the_rest_of_one_that_is_there(current, given_, words):
    assert plan(current, **given_) == [["update", "ReservationName=r", *some] for some in words or []]


@pytest.mark.parametrize(
    ("current", "given_", "message"),
    [
        (None, {"users": ["root"], "nodes": ["gpu1"]}, "does not exist, and cannot be made: give duration or end_time"),
        (None, {"duration": "1", "nodes": ["gpu1"]}, "give users or accounts"),
        (None, {"duration": "1", "users": ["root"]}, "give nodes, node_count or tres"),
        (
            there(NOW - HOUR),
            {"start_time": "2027-01-01T08:00:00Z"},
            "has begun at 2026-11-29T22:00:00Z and cannot be moved",
        ),
        (
            there(),
            {"end_time": "2026-11-29T22:00:00Z"},
            "would end at 2026-11-29T22:00:00Z, before it begins or before now",
        ),
        (there(), {"end_time": "2026-11-29T23:30:00Z"}, "before it begins"),
        (there(flags=frozenset({"OVERLAP"})), {"flags": []}, "cannot change flag OVERLAP"),
        (there(), {"flags": ["TIME_FLOAT"]}, "cannot change flag TIME_FLOAT"),
        (there(tres={"cpu": 2}), {"tres": {"cpu": 3}}, "cannot change it to cpu=3"),
        (there(users=frozenset({"-a"})), {"users": ["-b"]}, "cannot change users from -a to -b"),
    ],
)
def test_what_slurm_could_not_do(current, given_, message):
    with pytest.raises(Refused, match=message):
        plan(current, **given_)


@pytest.mark.parametrize(
    ("given_", "message"),
    [
        ({"name": "a b"}, "name 'a b' is refused"),
        ({"name": ""}, "name '' is refused"),
        ({"start_time": "tomorrow"}, "start_time: 'tomorrow' is no point in time"),
        ({"duration": "soon"}, "duration: 'soon' is no time"),
        ({"duration": "0"}, "is no length of time"),
        ({"nodes": []}, "nodes: is empty"),
        ({"nodes": ["gpu1"], "node_count": 1}, "nodes and node_count exclude each other"),
        ({"duration": "1", "end_time": "now"}, "end_time and duration exclude each other"),
        ({"node_count": 0}, "0 is no number of nodes"),
        ({"users": ["a", "-b"]}, "either all begin with '-'"),
        ({"users": ["a,b"]}, "'a,b' is no name"),
        ({"users": [], "accounts": []}, "nobody could use it"),
        ({"flags": ["SPEC_NODES"]}, "'SPEC_NODES' is no flag that can be set"),
        ({"flags": ["MAINT=1"]}, "is no flag that can be set"),
        ({"tres": {"gpu": -1}}, "negative"),
    ],
)
def test_what_cannot_be_meant(given_, message):
    with pytest.raises(Refused, match=message):
        build(**given_)


def test_removal():
    assert plan(there(), state="absent") == [["delete", "ReservationName=r"]]
    assert plan(None, state="absent") == []
    (change,) = make_plan(NOW, {"r": there()}, build(state="absent"))
    assert change.risk == "destructive"


def test_no_zone_is_the_hosts_own(monkeypatch):
    import time

    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        assert moments.shown(moments.moment("2026-12-24T08:00:00").at) == "2026-12-24T07:00:00Z"
    finally:
        monkeypatch.undo()
        time.tzset()


@given(st.integers(0, 2**32))
def test_moments_round_trip(at):
    assert moments.from_slurm(moments.to_slurm(at)) == at
    assert moments.moment(moments.shown(at)).at == at


def test_what_is_no_moment():
    with pytest.raises(ValueProblem, match="no point in time"):
        moments.moment("08:00")


times = st.one_of(
    st.just({}),
    st.builds(
        lambda start, length: {"start_time": start, "duration": length},
        st.sampled_from(
            ["now", "now+2hours", "2026-11-29T22:59:00Z", "2026-12-01T08:00:00Z", "2027-01-01T08:00:00+01:00"]
        ),
        st.sampled_from(["60", "1-00:00:00", "infinite"]),
    ),
    st.builds(lambda end: {"end_time": end}, st.sampled_from(["2028-01-01T08:00:00Z", "now+800days"])),
)
wishes = st.tuples(
    times,
    st.fixed_dictionaries(
        {},
        optional={
            "nodes": st.sampled_from([["gpu1"], ["gpu[1-2]"], ["ALL"]]),
            "users": st.sampled_from([["root"], ["a", "b"]]),
            "accounts": st.sampled_from([[], ["ta"], ["ta", "tb"]]),
            "flags": st.lists(
                st.sampled_from(["MAINT", "FLEX", "PURGE_COMP=10", "PURGE_COMP", "STATIC_ALLOC"]),
                max_size=3,
                unique_by=lambda flag: flag[:5],
            ),
        },
    ),
).map(lambda parts: {**parts[0], **parts[1]})


@given(st.lists(wishes, min_size=1, max_size=4))
def test_what_slurm_makes_of_a_plan_is_what_was_wanted(steps):
    first = {"start_time": "now+1hour", "duration": "120", "nodes": ["gpu1"], "users": ["root"]}
    now, current = NOW, slurm(plan(None, **first), None, NOW)
    for given_ in steps:
        # Minutes pass between the runs of a playbook.
        now += 600
        try:
            commands = plan(current, now, **given_)
        except Refused as exc:
            assert "cannot be moved" in str(exc) or "would end" in str(exc)
            continue
        current = slurm(commands, current, now)
        for later in (0, 3, 300):
            assert plan(current, now + later, **given_) == []
