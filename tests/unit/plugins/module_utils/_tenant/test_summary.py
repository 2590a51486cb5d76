# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import copy

import pytest
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.errors import TenantError
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.summary import smoke_jobs, summary

LEVEL = {"fairshare": 1, "priority": None, "limits": {}, "qos": [], "default_qos": None}


def person(name, *accounts):
    return {"name": name, "full_name": None, "email": None, "ssh_keys": [], "home": "foo", "guest": False, "member_of": [],
            "default_account": accounts[0], "associations": [{**LEVEL, "account": account, "partition": ""} for account in accounts]}  # fmt: skip


DOCUMENT = {
    "schema": 1,
    "name": "foo",
    "file": "foo.yml",
    "state": "present",
    "description": "tenant foo",
    "organization": "foo",
    "isolation": "shared",
    "contacts": [],
    "slurm": {
        **LEVEL,
        "fairshare": 300,
        "limits": {"grp_tres": {"gres/gpu": 4}, "grp_jobs": 9},
        "qos": ["high"],
        "default_qos": "high",
    },
    "teams": [{**LEVEL, "name": "ml", "description": "ml", "organization": "foo"}],
    "users": [person("alice", "ml", "data"), person("bob", "ml")],
    "storage": {"home": None, "scratch": None},
    "network": {"allow_from": []},
    "gpu": {"sharing": "exclusive"},
    "retention_days": 30,
}


def said(proof=(), accounting=None, **options):
    return "\n".join(summary(copy.deepcopy(DOCUMENT), list(proof), accounting or {}, ["login1"], **options))


def test_one_job_for_each_account_as_its_first_user():
    assert smoke_jobs(DOCUMENT) == [{"user": "alice", "account": "ml"}, {"user": "alice", "account": "data"}]


def test_one_job_for_each_account_of_one_user():
    assert smoke_jobs(DOCUMENT, "bob") == [{"user": "bob", "account": "ml"}]


def test_an_association_for_one_partition_proves_last():
    document = copy.deepcopy(DOCUMENT)
    alice, bob = document["users"]
    alice["associations"][0]["partition"] = alice["associations"][1]["partition"] = "h100"
    assert smoke_jobs(document) == [
        {"user": "bob", "account": "ml"},
        {"user": "alice", "account": "data", "partition": "h100"},
    ]


def test_a_user_who_is_not_in_the_document():
    with pytest.raises(TenantError):
        smoke_jobs(DOCUMENT, "mallory")


def test_limits_and_people_are_named():
    text = said()
    assert "grp_jobs 9; grp_tres gres/gpu=4" in text
    assert "bob: ml" in text
    assert "2 users" in text


def test_what_is_not_proven_is_called_so():
    proof = {
        "user": "alice",
        "account": "ml",
        "proven": False,
        "reason": "PENDING after 60 s (Resources)",
        "state": "NOT_PROVEN",
    }
    assert "NOT PROVEN for alice in ml: PENDING after 60 s (Resources)" in said([proof])


def test_blocks_and_leftovers_are_not_hidden():
    text = said(accounting={"blocked": ["user eve in ml"], "unmanaged": ["user erin in ml"]})
    assert "BLOCKED, and left so: user eve in ml" in text
    assert "still there: user erin in ml" in text


def test_thousands_of_users_are_counted_not_listed():
    document = copy.deepcopy(DOCUMENT)
    document["users"] = [person(f"u{number}", "ml") for number in range(1000)]
    lines = summary(document, [], {}, ["login1"])
    assert "1000 users" in lines
    assert "  and 950 more" in lines
    assert len(lines) < 70
