# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What becomes of the answers: an attack that could not be made is never a pass."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET

import pytest
from ansible_collections.gpuops.tenancy.plugins.module_utils._attest import answers, api, catalogue, pages, report
from hypothesis import given
from hypothesis import strategies as st

ABOUT = {"cluster": "demo", "run": "0123", "started": "2026-12-01T03:00:00Z"}


@pytest.fixture(scope="module")
def probes():
    found = catalogue.load({})
    return {id: found[id] for id in ("gpu-device", "memory", "see-transactions", "node-login", "job-table")}


def host(name="gpu1", kind="reserved", said=(), problem=""):
    return {"host": name, "kind": kind, "answers": list(said), "problem": problem}


def said(probe, context, verdict, actor="a", evidence="because"):
    return {"probe": probe, "context": context, "actor": actor, "verdict": verdict, "evidence": evidence}


def of(rows, probe, context):
    return next(row for row in rows if (row["probe"], row["context"], row["actor"]) == (probe, context, "a"))


def test_a_host_that_said_nothing_owes_errors(probes):
    rows = report.rows(probes, [host(problem="the host was not reached")], {})
    assert {row["verdict"] for row in rows} == {api.ERROR}
    assert {row["evidence"] for row in rows} == {"the host was not reached"}


def test_verdicts_and_controls(probes):
    rows = report.rows(
        probes, [host(said=[said("gpu-device", "job", api.PASS), said("gpu-device", "cron", api.FAIL)])], {}
    )
    assert rows[0]["verdict"] == api.FAIL and rows[0]["context"] == "cron"
    assert "gpu_access" in rows[0]["control"] and "cron" in rows[0]["control"]
    assert of(rows, "gpu-device", "job")["verdict"] == api.PASS
    assert "ConstrainDevices" in of(rows, "gpu-device", "job")["control"]
    assert of(rows, "gpu-device", "at")["verdict"] == api.ERROR


def test_a_verdict_that_is_none_is_an_error(probes):
    rows = report.rows(
        probes, [host(said=[said("gpu-device", "job", api.PENDING), said("gpu-device", "cron", "fine")])], {}
    )
    assert of(rows, "gpu-device", "job")["verdict"] == of(rows, "gpu-device", "cron")["verdict"] == api.ERROR


def test_what_runs_on_reserved_nodes_alone_is_an_error_where_there_is_none(probes):
    alone = report.rows(probes, [host(kind="compute")], {})
    assert of(alone, "memory", "job")["verdict"] == api.ERROR
    assert of(alone, "memory", "job")["evidence"] == report.NO_NODE
    both = report.rows(probes, [host(kind="compute"), host("gpu2")], {})
    assert [row["verdict"] for row in both if row["probe"] == "memory" and row["host"] == "gpu1"] == [
        api.NOT_APPLICABLE
    ]
    assert [row["verdict"] for row in both if row["probe"] == "memory" and row["host"] == "gpu2"] == [api.ERROR]


def test_accepted_risks_are_shown_with_their_reason_and_pass_stays_pass(probes):
    hosts = [
        host("login", "login", [said("see-transactions", "login", api.FAIL), said("gpu-device", "login", api.FAIL)]),
        host(said=[said("gpu-device", "job", api.PASS)]),
    ]
    rows = report.rows(probes, hosts, {"gpu-device": "ticket 7"})
    assert of(rows, "see-transactions", "login")["verdict"] == api.ACCEPTED
    risk = of(rows, "gpu-device", "login")
    assert (risk["verdict"], risk["evidence"]) == (api.ACCEPTED, "ticket 7. Seen: because")
    assert of(rows, "gpu-device", "job")["verdict"] == api.PASS
    # What could not be tried is no accepted risk.
    assert of(rows, "gpu-device", "cron")["verdict"] == api.ERROR


def test_the_summary_says_what_and_where(probes):
    hosts = [
        host(name, said=[said("gpu-device", "cron", api.FAIL, evidence="/dev/nvidia0 ENXIO")])
        for name in ("gpu1", "gpu2")
    ]
    lines = report.summary(report.rows(probes, hosts, {}))
    assert lines[0].startswith(
        "FAIL gpu-device: a tenant opens no GPU that the scheduler did not give - not on gpu1/cron/a, gpu2/cron/a ("
    )
    assert "control: gpu_access" in lines[0]
    assert lines[-1].endswith("0 pass")


@pytest.mark.parametrize(
    ("account", "qos", "verdict"),
    [
        ({"grp_submit_jobs": 8000}, {}, api.PASS),
        # With those that have just ended it would be full.
        ({"grp_submit_jobs": 8001}, {}, api.FAIL),
        ({}, {}, api.FAIL),
        ({"qos": ["normal"]}, {"max_submit_jobs_per_account": 100}, api.PASS),
        ({"qos": ["normal", "high"]}, {"max_submit_jobs_per_account": 100}, api.FAIL),
        # What one user may have says nothing of all of them.
        ({"qos": ["normal"]}, {"max_submit_jobs_per_user": 100}, api.FAIL),
    ],
)
def test_job_table(account, qos, verdict):
    table = {
        "host": "ctl",
        "problem": "",
        "accounts": [{"name": "tenant-foo", **account}, {"name": "team", "parent": "tenant-foo"}, {"name": "attest-a"}],
        "qos": [{"name": "normal", **qos}, {"name": "high"}],
        "default_qos": ["normal"],
        "config": "MailProg = x\nMaxJobCount             = 10000\nMaxJobId = 5\n",
        "ours": ["attest-a"],
    }
    one = report.controller(table)["answers"][0]
    assert one["verdict"] == verdict
    assert "tenant-foo" in one["evidence"] and "attest-a" not in one["evidence"]
    assert report.controller({**table, "config": ""})["answers"] == []
    assert report.controller({**table, "accounts": []})["answers"] == []


def test_what_all_tenants_may_queue_together_is_named():
    accounts = [{"name": name, "grp_submit_jobs": 6000} for name in ("tenant-foo", "tenant-bar")]
    table = {"accounts": accounts, "qos": [], "default_qos": [], "config": "MaxJobCount = 10000\n", "ours": []}
    one = report.job_table(table)
    assert one["verdict"] == api.PASS
    assert one["evidence"].startswith("MaxJobCount 10000, 8000 for one; together 12000, more than fit; tenant-foo 6000")


def test_a_pass_that_rests_on_a_victim_that_is_gone_is_an_error():
    lines = [{"id": "one", "context": "job", "verdict": "pass", "evidence": "ESRCH", "needs": ["gpu1", api.WAITING, 7]}]
    one = answers.collected(["one"], "job", lines, "why")[0]
    assert answers.still_true(one, {"gpu2": "gone"})["verdict"] == api.PASS
    lost = answers.still_true(one, {"gpu1": "the victim on gpu1 is gone"})
    assert (lost["verdict"], lost["evidence"]) == (
        api.ERROR,
        "the victim on gpu1 is gone; so nothing is proven: ESRCH",
    )
    assert answers.still_true({**one, "verdict": api.FAIL}, {"gpu1": "gone"})["verdict"] == api.FAIL
    assert "needs" not in answers.still_true(one, {}) and "needs" not in lost


def test_an_answer_that_is_missing_or_cut_off_is_an_error():
    lines = [
        {"started": "one", "context": "job"},
        {"id": "one", "context": "job", "verdict": "pass", "evidence": "EPERM"},
    ]
    lines += [
        {"started": "two", "context": "job"},
        {"id": "three", "context": "cron", "verdict": "pass", "evidence": ""},
    ]
    found = {one["probe"]: one for one in answers.collected(["one", "two", "three"], "job", lines, "the job ended")}
    assert found["one"]["verdict"] == api.PASS
    assert (found["two"]["verdict"], found["two"]["evidence"]) == (api.ERROR, "began, and was cut off: the job ended")
    assert (found["three"]["verdict"], found["three"]["evidence"]) == (api.ERROR, "the job ended")


def test_a_user_cannot_claim_a_verdict_of_the_report():
    line = {"id": "one", "context": "job", "verdict": api.ACCEPTED, "evidence": ""}
    assert answers.collected(["one"], "job", [line], "why")[0]["verdict"] == api.ERROR


def test_a_closed_door_proves_that_there_is_no_login_and_nothing_else():
    found = {one["probe"]: one["verdict"] for one in answers.closed(["node-login", "gpu-device"], "ssh", "refused")}
    assert found == {"node-login": api.PASS, "gpu-device": api.NOT_APPLICABLE}


@pytest.mark.parametrize(
    ("alive", "stopped", "verdict"),
    [(True, True, api.FAIL), (False, True, api.PASS), (True, False, api.ERROR), (False, False, api.ERROR)],
)
def test_a_process_left_behind(alive, stopped, verdict):
    one = answers.answer("process-left", "job", api.PENDING, "process 7", {"pid": 7})
    assert answers.settled(one, alive, stopped)["verdict"] == verdict
    other = answers.answer("ptrace", "job", api.FAIL, "traced")
    assert answers.settled(other, alive, stopped) == other


TEXT = st.text(max_size=30)


@given(TEXT, st.sampled_from([api.PASS, api.FAIL, api.NOT_APPLICABLE, api.ERROR]))
def test_whatever_a_probe_says_the_pages_hold_it(evidence, verdict):
    probes = {"gpu-device": catalogue.load({})["gpu-device"]}
    rows = report.rows(probes, [host("login", "login", [said("gpu-device", "login", verdict, evidence=evidence)])], {})
    assert json.loads(pages.as_json(rows, ABOUT))["answers"] == rows
    junit = ET.fromstring(pages.as_junit(rows, ABOUT))
    cases = junit.findall("./testsuite/testcase")
    assert len(cases) == len(rows)
    kinds = {api.FAIL: "failure", api.ERROR: "error", api.NOT_APPLICABLE: "skipped", api.PASS: "system-out"}
    case = next(case for case in cases if case.get("classname") == "attest.login.a")
    assert [child.tag for child in case] == [kinds[verdict]]
    page = pages.as_html(rows, ABOUT)
    assert page.count("<tr>") == len(rows) + 1
    assert "<script" not in page and "http" not in page.replace(evidence, "")


def test_html_is_escaped(probes):
    rows = report.rows(
        probes, [host(said=[said("gpu-device", "job", api.FAIL, evidence="<img src=x onerror=alert(1)>")])], {}
    )
    assert "<img" not in pages.as_html(rows, ABOUT)


def test_of_several_services_the_worst_counts():
    def one(verdict, unit):
        return {**said("gpu-device", "service", verdict), "evidence": unit}

    found = [one(api.NOT_APPLICABLE, "a"), one(api.PASS, "b"), one(api.FAIL, "c"), one(api.ERROR, "d")]
    assert [item["evidence"] for item in answers.worst(found)] == ["c"]
    assert [item["evidence"] for item in answers.worst(found[:2])] == ["b"]
    assert [item["evidence"] for item in answers.worst([found[1], found[3]])] == ["d"]
    assert len(answers.worst([*found, said("gpu-device", "cron", api.PASS)])) == 2
