# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import jobs, jobs_plan
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.desired import Refused
from hypothesis import given
from hypothesis import strategies as st

# Lines of squeue -h -a -r --local, 22.05.8 (gres:gpu) and 24.11.5, the separator written as |.
LINES = """\
4_0|4|0|bob|tb|h100|normal|PENDING|BeginTime|100250||1|1|N/A|(null)|2026-11-29T23:14:52|2026-11-30T00:14:52|2026-11-30T00:44:52|30:00|(null)|/tmp|wrap|(null)
4_2|4|2|bob|tb|h100|normal|PENDING|JobHeldAdmin|0||1|1|N/A|(null)|2026-11-29T23:14:52|N/A|N/A|30:00|(null)|/tmp|wrap|(null)
5+1|6|N/A|bob|tb|h100|normal|PENDING|None|100250||1|1|N/A|(null)|2026-11-29T23:14:52|N/A|N/A|30:00|(null)|/tmp|wrap|(null)
2|2|N/A|alice|ta|h100|normal|PENDING|JobHeldUser|0||1|1|N/A|(null)|2026-11-29T23:14:52|N/A|N/A|30:00|(null)|/tmp|wrap|(null)
1|1|N/A|alice|ta|h100|normal|SUSPENDED|JobHeldAdmin|0|gpu[1-2]|2|2|gres:gpu:1|(null)|2026-11-29T23:14:52|N/A|N/A|30:00|(null)|/tmp|my job|c
3_1|3|1|alice|ta|h100|normal|RUNNING|None|100250|gpu1|1|1|gres/gpu:1|k1|2026-11-29T23:14:52|2026-11-29T23:14:55|2026-11-29T23:44:55|30:00|(null)|/tmp|wrap|(null)
"""
MARK = "0123456789abcdef"


def printed(*rows):
    return "".join(f"|{MARK}|".join(row) + f"|{MARK}.\n" for row in rows)


def queue(lines=LINES):
    return {job.id: job for job in jobs.parse(printed(*(line.split("|") for line in lines.splitlines())), MARK)}


def job(number="7", state="PENDING", user="alice", **given):
    return jobs.Job(number, user, "ta", state, array=number, **given)


def test_parse():
    found = queue()
    assert list(found) == ["4_0", "4_2", "5+1", "2", "1", "3_1"]
    assert [one.id for one in found.values() if one.held] == ["4_2", "2"]
    assert (found["4_0"].array, found["5+1"].array, found["5+1"].leader) == ("4", "5+1", "5")
    assert (found["1"].nodes, found["1"].on_nodes, found["1"].held) == (("gpu1", "gpu2"), True, False)
    assert (found["1"].values["gres"], found["3_1"].values["gres"]) == ("gres/gpu:1", "gres/gpu:1")
    assert {key: found["3_1"].as_dict()[key] for key in ("array_job_id", "reservation", "comment", "reason")} == {
        "array_job_id": "3",
        "reservation": "k1",
        "comment": "",
        "reason": "",
    }


def test_the_columns_asked_for_are_those_read():
    assert printed([f"%{letter}" for letter in jobs.COLUMNS.values()]) == jobs.squeue_words(MARK)[-1] + "\n"


texts = st.text(st.sampled_from("a|\n.1 "), max_size=12)


@given(texts, texts)
def test_no_name_and_no_comment_can_pass_for_a_job(name, comment):
    rows = [line.split("|") for line in LINES.splitlines()[:2]]
    rows[0][-2:] = [name, comment]
    first, second = jobs.parse(printed(*rows), MARK)
    assert (first.id, second.id) == ("4_0", "4_2")
    assert (first.values["name"], first.values["comment"]) == (name, comment)


@pytest.mark.parametrize("text", [printed(["1", "2"]), "slurm_load_jobs error: Unable to contact\n", "1|2"])
def test_what_cannot_be_read_is_an_error(text):
    with pytest.raises(ValueError, match="squeue"):
        jobs.parse(text, MARK)


def test_nothing_is_no_job():
    assert jobs.parse("", MARK) == []


@pytest.mark.parametrize(
    ("given_", "expected"),
    [
        ({"ids": ["4"]}, ["4_0", "4_2"]),
        ({"ids": ["4_[1-2]", "2"]}, ["4_2", "2"]),
        ({"ids": ["5"]}, ["5+1"]),
        ({"users": ["alice"], "states": ["pd"]}, ["2"]),
        ({"users": ["alice"], "states": ["RUNNING", "suspended"]}, ["1", "3_1"]),
        ({"accounts": ["TB"]}, ["4_0", "4_2", "5+1"]),
        ({"nodes": ["gpu[2-9]"]}, ["1"]),
        ({"reservations": ["k1"]}, ["3_1"]),
        ({"partitions": ["a100"]}, []),
        ({"users": ["nosuch"]}, []),
        ({}, ["4_0", "4_2", "5+1", "2", "1", "3_1"]),
    ],
)
def test_selection(given_, expected):
    wanted = jobs.selection(given_)
    assert [one.id for one in queue().values() if wanted.holds(one)] == expected


@pytest.mark.parametrize(
    ("given_", "message"),
    [
        ({"users": []}, "users is empty"),
        ({"users": ["alice", " "]}, "users is empty or holds an empty entry"),
        ({"ids": ["4;5"]}, "4;5 is no id of a job"),
        ({"ids": ["-1"]}, "-1 is no id of a job"),
        ({"ids": ["4_[1-"]}, "brackets"),
        ({"states": ["PENDING", "GONE"]}, "GONE is no state of a job"),
    ],
)
def test_a_selection_that_cannot_be_meant(given_, message):
    with pytest.raises(Refused, match=message):
        jobs.selection(given_)


@pytest.mark.parametrize(
    "given_", [{}, {"states": ["R"]}, {"partitions": ["h100"]}, {"states": ["R"], "partitions": ["x"]}]
)
def test_everything(given_):
    with pytest.raises(Refused, match="everybody's jobs"):
        jobs.refuse_everything(jobs.selection(given_))


@pytest.mark.parametrize("option", ["ids", "users", "accounts", "nodes", "reservations"])
def test_what_is_enough(option):
    jobs.refuse_everything(jobs.selection({option: ["1"]}))


@pytest.mark.parametrize(
    ("state", "ids"),
    [
        ("held", ["4_0", "5+1"]),
        ("released", ["4_2", "2"]),
        ("cancelled", ["4_0", "4_2", "5+1", "2", "1", "3_1"]),
        ("requeued", ["1", "3_1"]),
    ],
)
def test_plan(state, ids):
    plan = jobs_plan.make_plan(list(queue().values()), state, 100)
    assert [change.object for change in plan] == [f"job {number}" for number in ids]
    ((program, words),) = jobs_plan.compile_plan(plan, state)
    if state == "cancelled":
        assert (program, words) == ("scancel", ids)
    else:
        assert (program, words[1:]) == ("scontrol", [",".join(ids)])


@pytest.mark.parametrize("state", jobs_plan.STATES)
def test_jobs_that_have_ended_or_are_ending_are_left_alone(state):
    ended = [job("1", "CANCELLED"), job("2", "COMPLETED"), job("3", "COMPLETING")]
    assert not jobs_plan.make_plan(ended, state, 0).changed


def test_the_cap_counts_what_was_done_before():
    with pytest.raises(Refused, match=r"^2 jobs would be held, more than max_jobs 1 allows: 1 .alice, PENDING., 2 "):
        jobs_plan.make_plan([job("1"), job("2")], "held", 1)
    with pytest.raises(Refused, match=r"^2 are done; 1 jobs would be held, more than max_jobs 2"):
        jobs_plan.make_plan([job("1")], "held", 2, 2)
    many = [job(str(number)) for number in range(30)]
    with pytest.raises(Refused, match=r"19 \(alice, PENDING\) and 10 more;"):
        jobs_plan.make_plan(many, "held", 1)
    assert len(jobs_plan.make_plan(many, "held", 30)) == 30


def test_many_jobs_are_few_commands():
    plan = jobs_plan.make_plan([job(str(number)) for number in range(450)], "cancelled", 450)
    assert [len(words) for _program, words in jobs_plan.compile_plan(plan, "cancelled")] == [200, 200, 50]


@pytest.mark.parametrize(
    ("state", "before", "now", "left"),
    [
        ("held", job(), job(held=True), False),
        ("held", job(), job(state="RUNNING"), True),
        ("held", job(), job(state="CANCELLED"), False),
        ("released", job(held=True), job(held=True), True),
        ("released", job(held=True), job(state="RUNNING"), False),
        ("cancelled", job(), job(), True),
        ("cancelled", job(state="RUNNING"), job(state="COMPLETING"), True),
        ("cancelled", job(state="RUNNING"), job(state="CANCELLED"), False),
        ("cancelled", job(state="RUNNING"), job("8", state="RUNNING"), False),
        ("requeued", job(state="RUNNING", start_time="1"), job(state="RUNNING", start_time="1"), True),
        ("requeued", job(state="RUNNING", start_time="1"), job(state="COMPLETING", start_time="2"), True),
        ("requeued", job(state="RUNNING", start_time="1"), job(), False),
        ("requeued", job(state="RUNNING", start_time="1"), job(state="RUNNING", start_time="2"), False),
    ],
)
def test_what_has_not_come_true(state, before, now, left):
    assert jobs_plan.unfinished({before.id: before}, [now], state) == ([now] if left else [])


def test_jobs_on_nodes_are_those_that_still_hold_them():
    found = jobs.on_nodes(
        [
            job("1", "RUNNING", nodes=("gpu1", "gpu2")),
            job("2", "SUSPENDED", nodes=("gpu1",)),
            job("3", "COMPLETING", nodes=("gpu1",)),
            job("4", "COMPLETED", nodes=("gpu1",)),
            job("5", "PENDING"),
            job("6", "RUNNING", nodes=("gpu9",)),
        ],
        ["gpu1", "gpu2"],
    )
    assert {name: [one.id for one in held] for name, held in found.items()} == {"gpu1": ["1", "2", "3"], "gpu2": ["1"]}
