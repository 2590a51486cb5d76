# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is removed is saved before, and comes back exactly."""

from __future__ import annotations

import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "cluster"))
from recorded import module, playbook
from remote import on, said

FIELDS = (
    "account,user,partition,parentname,share,priority,grptres,grptresmins,grpjobs,grpsubmit,maxjobs,maxsubmit,maxtres,"
    "maxwall,qos,defaultqos"
)
TENANT = "gone"
QOS = "gone-qos"
TREE = {
    "cluster": "demo",
    "scope": [TENANT],
    "accounts": [
        {
            "name": TENANT,
            "description": "Gone = but, not for good",
            "grp_tres": {"gres/gpu": 4, "gres/gpu:h100": 2, "mem": "64G"},
            "qos": ["normal", QOS],
            "default_qos": "normal",
            "accounts": [{"name": "gone-team", "fairshare": "parent", "max_wall": "1-00:00:00"}],
        }
    ],
    "users": [
        {
            "name": "gone-al",
            "default_account": "gone-team",
            "associations": [
                {"account": "gone-team", "max_jobs": 3, "default_qos": QOS, "qos": [QOS]},
                {"account": "gone-team", "partition": "h100", "max_tres_per_job": {"gres/gpu": 1}},
                {"account": TENANT},
            ],
        }
    ],
}


def shown() -> str:
    words = ("sacctmgr", "-nP", "show")
    rows = said(
        "ctl", *words, "assoc", "where", "cluster=demo", f"account={TENANT},gone-team", "wopi", f"format={FIELDS}"
    )
    accounts = said("ctl", *words, "account", "where", f"name={TENANT},gone-team", "format=account,description")
    users = said("ctl", *words, "user", "where", "name=gone-al", "format=user,defaultaccount")
    qos = said("ctl", *words, "qos", "where", f"name={QOS}", "format=name,priority,maxtrespu,flags")
    return "\n".join([*sorted(rows.splitlines()), accounts, users, qos])


def remove(module_name: str, **arguments) -> dict:
    run = module("ctl", module_name, arguments)
    assert run.returncode == 0, run.output
    return run.of(module_name)[-1]


def restore(saved: str, *args: str):
    given = json.dumps({"saved": saved, "tenants": [TENANT]})
    return playbook("restore_accounting.yml", "-e", given, *args).wait()


def test_a_tenant_and_a_qos_come_back():
    try:
        qos = {"name": QOS, "priority": 7, "max_tres_per_user": {"gres/gpu": 2}, "flags": ["DenyOnLimit"]}
        for name, arguments in (("slurm_qos", qos), ("slurm_accounting", TREE)):
            assert module("ctl", name, arguments).returncode == 0
        before = shown()

        gone = remove("slurm_account", cluster="demo", name=TENANT, state="absent", scope=["root"], max_removals=5)
        files = gone["saved"]
        assert sorted(file.rsplit(".", 1)[1] for file in files) == ["dump", "json"]
        assert said("ctl", "stat", "-c", "%U %a", *files).split("\n") == ["root 600"] * 2
        assert remove("slurm_qos", name=QOS, state="absent")["saved"]
        assert TENANT not in said("ctl", "sacctmgr", "-nP", "show", "assoc", "where", "cluster=demo", "format=account")
        saved = next(file for file in files if file.endswith(".json"))

        checked = restore(saved, "--check", "--diff")
        assert shown() != before
        assert checked.returncode == 0, checked.output
        assert f"that may use {QOS} can be planned only once" in " ".join(checked.output.split())
        back = restore(saved)
        assert back.returncode == 0, back.output
        assert shown() == before
        again = restore(saved)
        assert again.returncode == 0, again.output
        assert again.changed == []
    finally:
        for account in ("gone-team", TENANT):
            on(
                "ctl",
                "sacctmgr",
                "-i",
                "delete",
                "user",
                "where",
                f"account={account}",
                "cluster=demo",
                "partition=h100",
            )
            on("ctl", "sacctmgr", "-i", "delete", "user", "where", f"account={account}", "cluster=demo")
        for account in ("gone-team", TENANT):
            on("ctl", "sacctmgr", "-i", "delete", "user", "where", f"account={account}", "cluster=demo")
            on("ctl", "sacctmgr", "-i", "delete", "account", "where", f"name={account}", "cluster=demo")
        on("ctl", "sacctmgr", "-i", "delete", "qos", "where", f"name={QOS}")


def test_another_clusters_file_and_a_tenant_that_is_not_in_it_are_refused():
    gone = {"schema": 1, "cluster": "elsewhere", "tenants": {TENANT: {}}, "qos": []}
    said("ctl", "sh", "-c", "cat > /root/elsewhere.json", stdin=json.dumps(gone))
    refused = restore("/root/elsewhere.json")
    assert refused.returncode != 0
    assert "is of cluster elsewhere" in refused.errors[0]
    said("ctl", "rm", "/root/elsewhere.json")
