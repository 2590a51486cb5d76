# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""slurm_reservation: each option made, changed, unchanged; times that move; jobs that are in the way."""

from __future__ import annotations

import datetime
import time

import pytest
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.client import SlurmError
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.desired import Refused

START = "2031-03-03T08:00:00Z"
DAY = {"start_time": START, "duration": "02:00:00"}


def at(seconds):
    return datetime.datetime.fromtimestamp(time.time() + seconds, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


# option: made with, then changed to, and what is read for each
STEPS = {
    "start_time": [("2031-03-03T09:00:00+01:00", START), ("2031-03-02T08:00:00Z", "2031-03-02T08:00:00Z")],
    "end_time": [("2031-03-03T12:00:00Z", "2031-03-03T12:00:00Z"), ("2031-03-04T08:00:00Z", "2031-03-04T08:00:00Z")],
    "duration": [
        ("90", "2031-03-03T09:30:00Z"),
        ("infinite", "2032-03-02T08:00:00Z"),
        ("1-00:00:00", "2031-03-04T08:00:00Z"),
    ],
    "nodes": [(["gpu[1-2]"], ["gpu1", "gpu2"]), (["gpu3"], ["gpu3"]), (["ALL"], ["gpu1", "gpu2", "gpu3"])],
    "node_count": [(1, 1), (2, 2)],
    "partition": [("h100", "h100"), ("a100", "a100")],
    "users": [(["root"], ["root"]), (["games", "daemon"], ["daemon", "games"])],
    "accounts": [(["one"], ["one"]), (["other", "one"], ["one", "other"])],
    "flags": [
        (["maint", "ignore_jobs"], {"MAINT", "IGNORE_JOBS"}),
        (["FLEX", "MAGNETIC", "PURGE_COMP=10"], {"FLEX", "MAGNETIC", "PURGE_COMP=00:10:00"}),
        (["PURGE_COMP", "STATIC_ALLOC", "WEEKLY"], {"PURGE_COMP=00:05:00", "STATIC", "WEEKLY"}),
        ([], set()),
    ],
}


@pytest.mark.parametrize("option", STEPS)
def test_each_option(ctl, reservation, accounts, option):
    names = {"one": accounts["games"], "other": accounts["daemon"]}
    given = {**DAY, "users": ["root"]}
    if option in ("start_time", "end_time"):
        given.pop("duration")
        given["end_time"] = "2031-03-03T12:00:00Z"
    if option == "partition" or option not in ("nodes", "node_count"):
        given["nodes"] = ["gpu1"]
    if option == "accounts":
        given["users"] = []
    for value, expected in STEPS[option]:
        if option == "accounts":
            value, expected = ([names[name] for name in words] for words in (value, expected))
            expected = sorted(expected)
        result = reservation(**{**given, option: value})
        assert result["changed"]
        found = result["reservation"]
        if option == "flags":
            assert set(found["flags"]) - {"SPEC_NODES"} == expected
        else:
            assert found["end_time" if option == "duration" else option] == expected


def test_several_options_at_once_are_one_command(reservation, accounts):
    reservation(**DAY, nodes=["gpu1"], users=["root"])
    result = reservation(
        start_time="2031-04-03T08:00:00Z", duration="60", nodes=["gpu2"], users=[], accounts=[accounts["games"]]
    )
    assert len(result["commands"]) == 1
    assert {change["field"] for change in result["plan"]} == {"start_time", "end_time", "nodes", "users", "accounts"}


def test_now_and_how_long_it_counts(reservation):
    made = reservation(start_time="now", duration="60", nodes=["gpu1"], users=["root"])["reservation"]
    assert made["active"]
    longer = reservation(start_time="now", duration="120", nodes=["gpu1"])
    assert [change["field"] for change in longer["plan"]] == ["end_time"]
    assert longer["reservation"]["start_time"] == made["start_time"]
    assert not reservation(duration="120")["changed"]
    with pytest.raises(Refused, match="has begun at .* and cannot be moved to 2031-03-03T08:00:00Z"):
        reservation(**DAY)


def test_now_begins_one_that_is_to_come(reservation):
    reservation(**DAY, nodes=["gpu1"], users=["root"])
    found = reservation(start_time="now", duration="60", nodes=["gpu1"])["reservation"]
    assert found["active"]


def test_a_beginning_that_was_missed(reservation):
    begin, end = at(-600), at(3000)
    found = reservation(start_time=begin, duration="60", nodes=["gpu1"], users=["root"])["reservation"]
    assert (found["active"], found["end_time"]) == (True, end)


def test_what_counts_from_the_run_counts_from_the_first(reservation):
    found = reservation(start_time="now+2hours", end_time="now+1day", nodes=["gpu1"], users=["root"])["reservation"]
    assert found["start_time"] > at(7000)
    assert found["end_time"] > at(86000)


def test_one_that_recurs_may_have_moved_on(reservation):
    daily = {"duration": "60", "nodes": ["gpu1"], "users": ["root"], "flags": ["DAILY"]}
    made = reservation(start_time=at(-3 * 86400 + 7200), **daily)["reservation"]
    assert at(7100) < made["start_time"] <= at(7200)


def test_everybody_but_some(reservation, accounts):
    found = reservation(**DAY, nodes=["gpu1"], users=["-games"], accounts=[accounts["games"]])["reservation"]
    assert found["users"] == ["-games"]
    # Slurm would take daemon off the list, and say that it went well.
    with pytest.raises(Refused, match="Slurm cannot change users from -games to -daemon; remove it and make it anew"):
        reservation(users=["-daemon"])


def test_a_flag_that_stays_is_refused(ctl, reservation):
    reservation(**DAY, nodes=["gpu1"], users=["root"], flags=["OVERLAP", "FLEX"])
    with pytest.raises(Refused, match="Slurm cannot change flag OVERLAP afterwards"):
        reservation(flags=["FLEX"])


def test_a_name_that_exists_nowhere_is_refused_before_anything(ctl, reservation, accounts):
    for words, message in (
        ({"nodes": ["gpu[1-9]"]}, r"Slurm knows no node gpu\[4-9\]"),
        ({"users": ["nosuch"]}, "this host knows no user nosuch"),
        ({"accounts": ["nosuch", accounts["games"]]}, "Slurm knows no account nosuch"),
    ):
        with pytest.raises(Refused, match=message):
            reservation(**{**DAY, "nodes": ["gpu1"], "users": ["root"], **words})
    assert ctl.writes == []


def test_what_slurm_refuses_is_said_in_its_words(reservation):
    reservation(**DAY, nodes=["gpu1"], users=["root"])
    with pytest.raises(SlurmError, match="Slurm says: .*Requested reservation overlaps with another reservation"):
        reservation(name="tstother", **DAY, nodes=["gpu1"], users=["root"], check=False)


def test_tres(ctl, reservation):
    made = reservation(**DAY, tres={"cpu": 2}, partition="a100", users=["root"])["reservation"]
    assert (made["nodes"], made["tres"]["cpu"]) == (["gpu3"], 2)
    with pytest.raises(Refused, match="Slurm cannot change it to cpu=1 afterwards"):
        reservation(tres={"cpu": 1})
    gpus = {**DAY, "name": "tstgpus", "tres": {"gres/gpu": 2}, "partition": "h100", "users": ["root"]}
    if " 22.05" in ctl.said("scontrol", "-V"):
        with pytest.raises(SlurmError, match="TRES type 'gres/gpu' not supported with reservations"):
            reservation(**gpus, check=False)
    else:
        assert reservation(**gpus)["reservation"]["tres"]["gres/gpu"] == 2


def test_a_removal_is_refused_while_jobs_are_in_it(ctl, reservation, submit, accounts):
    name = reservation(start_time="now", duration="60", nodes=["gpu1"], accounts=[accounts["games"]])["reservation"][
        "name"
    ]
    running = submit(f"--reservation={name}", on="gpu1")
    waiting = submit(f"--reservation={name}", "--begin=now+1hour")
    array = submit(f"--reservation={name}", "--begin=now+1hour", "--array=1-2")
    other = submit("--begin=now+1hour")
    with pytest.raises(Refused, match=f"{running} .games, RUNNING.*set force|{waiting} .games, PENDING.*set force"):
        reservation(state="absent")
    assert name in ctl.scheduler().reservations()
    result = reservation(state="absent", force=True)
    assert {one["id"] for one in result["jobs"]} == {running, waiting, f"{array}_1", f"{array}_2"}
    assert result["reservation"] == {}
    assert set(ctl.queue()) == {waiting, other, f"{array}_1", f"{array}_2"}
    assert {one.reservation for one in ctl.queue().values()} == {""}


def test_absent_is_absent(ctl, reservation):
    assert not reservation(state="absent")["changed"]
    reservation(**DAY, nodes=["gpu1"], users=["root"])
    assert len(reservation(state="absent")["commands"]) == 1
