# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each field that can be set: set, unchanged, changed, cleared, unchanged."""

from __future__ import annotations

import pytest
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import fields, qos_definitions
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.client import Client

# option: (set, printed, changed, printed, cleared, printed)
ROW = {
    "fairshare": ("5", "5", "parent", "parent", "-1", "1"),
    "priority": (3, "3", 0, "0", -1, ""),
    "grp_tres": ({"cpu": 4, "gres/gpu": 2}, "cpu=4,gres/gpu=2", {"gres/gpu:h100": 1}, "gres/gpu:h100=1", {}, ""),
    "grp_tres_mins": ({"gres/gpu": 100}, "gres/gpu=100", {"cpu": 5}, "cpu=5", {}, ""),
    "grp_tres_run_mins": ({"gres/gpu": 100}, "gres/gpu=100", {"gres/gpu": 0}, "gres/gpu=0", {}, ""),
    "grp_jobs": (5, "5", 0, "0", -1, ""),
    "grp_submit_jobs": (5, "5", 6, "6", -1, ""),
    "grp_wall": ("1-00:00:00", "1-00:00:00", 90, "01:30:00", "-1", ""),
    "max_jobs": (5, "5", 4, "4", -1, ""),
    "max_submit_jobs": (50, "50", 40, "40", -1, ""),
    "max_tres_per_job": ({"mem": "64G"}, "mem=64G", {"node": 2}, "node=2", {}, ""),
    "max_tres_per_node": ({"gres/gpu": 4}, "gres/gpu=4", {"gres/gpu": 3}, "gres/gpu=3", {}, ""),
    "max_tres_mins_per_job": ({"cpu": 10}, "cpu=10", {"mem": 1024}, "mem=1G", {}, ""),
    "max_wall": ("12:00:00", "12:00:00", "00:30:00", "00:30:00", "-1", ""),
    "qos": (["normal", "tst-high"], "normal,tst-high", ["tst-low"], "tst-low", [], ""),
    "default_qos": ("tst-high", "tst-high", "tst-low", "tst-low", "", ""),
}
QOS = {
    "description": ("One", "one", "two", "two", "", ""),
    "priority": (3, "3", 4, "4", -1, "0"),
    "flags": (["denyonlimit", "NoDecay"], "DenyOnLimit,NoDecay", ["OverPartQOS"], "OverPartQOS", [], ""),
    "preempt": (["tst-low"], "tst-low", ["normal", "tst-low"], "normal,tst-low", [], ""),
    "preempt_mode": ("requeue", "requeue", "cancel", "cancel", "", "cluster"),
    "preempt_exempt_time": ("00:05:00", "00:05:00", "00:10:00", "00:10:00", "-1", ""),
    "grace_time": (300, "00:05:00", 60, "00:01:00", -1, "00:00:00"),
    "usage_factor": (0.5, "0.500000", 2, "2.000000", -1, "1.000000"),
    "usage_threshold": (0.5, "0.500000", 0.25, "0.250000", -1, ""),
    "limit_factor": (2, "2.000000", 3, "3.000000", -1, ""),
    "grp_tres": ({"cpu": 4}, "cpu=4", {"gres/gpu": 1}, "gres/gpu=1", {}, ""),
    "grp_tres_mins": ({"cpu": 4}, "cpu=4", {"cpu": 5}, "cpu=5", {}, ""),
    "grp_tres_run_mins": ({"cpu": 4}, "cpu=4", {"cpu": 5}, "cpu=5", {}, ""),
    "grp_jobs": (5, "5", 0, "0", -1, ""),
    "grp_submit_jobs": (5, "5", 0, "0", -1, ""),
    "grp_wall": (90, "01:30:00", "1-00:00:00", "1-00:00:00", "-1", ""),
    "max_tres_per_job": ({"cpu": 4}, "cpu=4", {"cpu": 5}, "cpu=5", {}, ""),
    "max_tres_per_node": ({"cpu": 4}, "cpu=4", {"cpu": 5}, "cpu=5", {}, ""),
    "max_tres_mins_per_job": ({"cpu": 4}, "cpu=4", {"cpu": 5}, "cpu=5", {}, ""),
    "max_wall": (90, "01:30:00", 60, "01:00:00", -1, ""),
    "max_tres_per_user": ({"gres/gpu": 4}, "gres/gpu=4", {"cpu": 5}, "cpu=5", {}, ""),
    "max_jobs_per_user": (5, "5", 4, "4", -1, ""),
    "max_submit_jobs_per_user": (5, "5", 0, "0", -1, ""),
    "max_tres_per_account": ({"gres/gpu": 4}, "gres/gpu=4", {"cpu": 5}, "cpu=5", {}, ""),
    "max_jobs_per_account": (5, "5", 4, "4", -1, ""),
    "max_submit_jobs_per_account": (5, "5", 4, "4", -1, ""),
    "min_tres_per_job": ({"cpu": 1}, "cpu=1", {"mem": 1024}, "mem=1G", {}, ""),
}


def test_the_tables_know_every_field():
    assert set(ROW) == {field.option for field in fields.ASSOCIATION}
    assert set(QOS) == {field.option for field in fields.QOS_FIELDS}


@pytest.mark.parametrize("on", ["account", "user"])
def test_each_field_of_a_row(ctl, tenant, reconcile, user, on):
    name = f"{tenant}-al" if on == "user" else ""
    for step in (0, 2, 4):
        given = {option: values[step] for option, values in ROW.items()}
        # A user's own default needs the list of the account only where the user has none.
        above = {"qos": ["normal", "tst-high", "tst-low"]}
        accounts = [{"name": tenant, **(above if on == "user" else given)}]
        users = [user(name, tenant, **given)] if on == "user" else []
        result = reconcile(accounts, users)
        planned = {change["field"] for change in result["plan"] if change["object"].startswith(on)}
        assert planned >= set(ROW), set(ROW) - planned
        printed = ctl.columns([field.column for field in fields.ASSOCIATION], tenant, name)
        for field in fields.ASSOCIATION:
            assert printed[field.column] == ROW[field.option][step + 1], (field.option, step)


@pytest.mark.parametrize("option", ["description", "organization"])
def test_texts_of_an_account(ctl, tenant, reconcile, option):
    for text in ("One, two = three; $HOME `x` \\ é", "other", ""):
        reconcile([{"name": tenant, option: text}])
        assert ctl.show("account", "where", f"name={tenant}", f"format={option}") == [[text.lower()]]


def test_a_new_account_without_texts(ctl, tenant, reconcile):
    reconcile([{"name": tenant, "description": "", "organization": ""}])
    assert ctl.show("account", "where", f"name={tenant}", "format=description,organization") == [["", ""]]


def test_coordinators(ctl, tenant, reconcile, user):
    team = f"{tenant}-team"
    al, bo = f"{tenant}-al", f"{tenant}-bo"
    users = [user(al, tenant), user(bo, tenant)]

    def tree(above, below):
        return [{"name": tenant, "coordinators": above, "accounts": [{"name": team, "coordinators": below}]}]

    # The one who coordinates both cannot be seen on the child until she leaves the parent: two passes, one run.
    for above, below in (([al], [bo]), ([al, bo], [bo]), ([], [bo]), ([al], []), ([], [])):
        reconcile(tree(above, below), users)
        listed = dict(ctl.show("account", "where", f"name={tenant},{team}", "withcoord", "format=account,coordinators"))
        assert listed[tenant] == ",".join(above)
        assert listed[team] == ",".join(sorted({*above, *below}))


def test_each_field_of_a_qos(ctl, tenant):
    names = [f"{tenant}-q1", f"{tenant}-q2"]
    try:
        for step in (0, 2, 4):
            given = {option: values[step] for option, values in QOS.items()}
            arguments = {"qos": [{"name": name, **given} for name in names]}
            result = qos_definitions.reconcile(arguments, False, Client("", runner=ctl.run), None)
            assert result["changed"]
            assert not qos_definitions.reconcile(arguments, False, Client("", runner=ctl.run), None)["changed"]
            assert "qos normal" in result["unmanaged"]
            columns = ",".join(field.column for field in fields.QOS_FIELDS)
            (printed,) = ctl.show("qos", "where", f"name={names[1]}", f"format={columns}")
            for field, text in zip(fields.QOS_FIELDS, printed):
                assert text == QOS[field.option][step + 1], (field.option, step)
    finally:
        ctl.sacctmgr("delete", "qos", "where", f"name={','.join(names)}")
