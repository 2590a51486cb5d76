# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A change of a document: what a check shows is what a run then does, and what is wrong is refused."""

from __future__ import annotations

import pathlib
import shutil
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
DOCUMENTS = ROOT / "inventories" / "demo" / "tenants"
sys.path.insert(0, str(ROOT / "tests" / "cluster"))
from recorded import playbook
from remote import on, said, wait_for


def accounting() -> str:
    """Everything that a run could change in Slurm."""
    shown = [
        said("ctl", "sacctmgr", "-nP", "show", *what) for what in (["assoc", "wopi"], ["account"], ["user"], ["qos"])
    ]
    return "\n".join(shown)


def users() -> str:
    return "\n".join(said(host, "cat", "/etc/passwd", "/etc/group") for host in ("ctl", "login", "gpu1"))


def onboard(folder, *args, tenant="tenant-foo"):
    return playbook("onboard.yml", "-e", f"tenant={tenant}", "-e", f"tenancy_tenants_dir={folder}", *args).wait()


@pytest.fixture
def documents(tmp_path):
    """A copy of the demo's documents; edit(old, new, name) changes one."""
    folder = tmp_path / "tenants"
    shutil.copytree(DOCUMENTS, folder)

    class Documents:
        path = folder

        @staticmethod
        def edit(old, new, name="tenant-foo"):
            file = folder / f"{name}.yml"
            text = file.read_text()
            assert text.count(old) == 1, f"{old!r} is in the demo document {text.count(old)} times"
            file.write_text(text.replace(old, new))

        @staticmethod
        def write(name, text):
            (folder / f"{name}.yml").write_text(text)

    return Documents


def test_each_edit_is_one_line_of_the_diff_and_one_command(documents):
    documents.edit("max_jobs: 20", "max_jobs: 30")  # change
    documents.edit("    grp_submit_jobs: 2000\n", "")  # clear
    documents.edit("qos: [normal, high]", "qos: [normal]")  # take off a list
    documents.edit("    fairshare: 100\n", "    fairshare: 150\n")
    before = accounting()

    checked = onboard(documents.path, "--check", "--diff")
    assert checked.returncode == 0, checked.output
    assert accounting() == before
    planned = checked.of("slurm_accounting")[-1]
    changes = [(change["object"], change["field"], change["before"], change["after"]) for change in planned["plan"]]
    assert sorted(changes, key=str) == [
        ("account data-team-foo", "fairshare", 100, 150),
        ("account tenant-foo", "grp_submit_jobs", 2000, None),
        ("account tenant-foo", "qos", ["high", "normal"], ["normal"]),
        ("user alice in ml-team-foo", "max_jobs", 20, 30),
    ]
    for text in ("30", "2000", "150"):
        assert text in checked.output

    applied = onboard(documents.path)
    assert applied.returncode == 0, applied.output
    done = applied.of("slurm_accounting")[-1]
    assert done["plan"] == planned["plan"]
    assert done["commands"] == planned["commands"]
    # Two fields of one row go in one command. Since 23.11 users of teams have to be told of the tenant's list.
    assert len([command for command in done["commands"] if not command.endswith(" QOS=")]) == 3
    assert [result["task"] for result in applied.changed] == [done["task"]]

    back = onboard(DOCUMENTS)
    assert back.returncode == 0, back.output
    assert accounting() == before
    assert not onboard(DOCUMENTS).changed


def test_a_new_user_alone(documents):
    documents.edit("users: [carol, dave]", "users: [carol, dave, erin]")
    run = onboard(documents.path, "-e", "user=erin")
    assert run.returncode == 0, run.output
    assert {change["object"] for change in run.of("slurm_accounting")[-1]["plan"]} <= {
        "user erin",
        "user erin in data-team-foo",
    }
    assert run.of("slurm_smoke_test")[0]["proven"] is True
    assert said("login", "id", "-un", "erin") == "erin"
    assert not onboard(documents.path, "-e", "user=erin").changed


def test_a_user_who_left_the_document_is_reported_and_kept():
    run = onboard(DOCUMENTS)
    assert run.returncode == 0, run.output
    assert not run.changed
    assert "erin" in run.output
    assert said("ctl", "sacctmgr", "-nP", "show", "assoc", "user=erin", "format=account") == "data-team-foo"
    said("ctl", "sacctmgr", "-i", "delete", "user", "erin")


def test_a_user_moves_between_teams(documents):
    documents.edit("users: [carol, dave]", "users: [carol]")
    documents.edit("    fairshare: 200\n    users:\n", "    fairshare: 200\n    users:\n      - dave\n")
    run = onboard(documents.path)
    assert run.returncode == 0, run.output
    assert said("ctl", "sacctmgr", "-nP", "show", "assoc", "user=dave", "format=account") == "ml-team-foo"
    assert said("ctl", "sacctmgr", "-nP", "show", "user", "dave", "format=defaultaccount") == "ml-team-foo"
    assert onboard(DOCUMENTS).returncode == 0
    assert said("ctl", "sacctmgr", "-nP", "show", "assoc", "user=dave", "format=account") == "data-team-foo"


MINIMAL = "schema: 1\nname: {name}\ndescription: x\ncontacts: [a@b.example]\nslurm: {{fairshare: 1, qos: [normal], default_qos: normal}}\n"
NEW = MINIMAL.format(name="tenant-new")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("schema: 1\nname: tenant-new\nfairshar: 3\n", "fairshar"),
        (NEW + "users: [zoe]\nusers: [zoe]\n", "users"),
        (NEW.replace("[normal]", "[normal, hihg]") + "users: [zoe]\n", "hihg"),
        (NEW + "teams: [{name: t-one, users: [zoe]}, {name: t-two, users: [zoe]}]\n", "zoe"),
        (NEW + "teams: [{name: ml-team-foo, users: [zoe]}]\n", "ml-team-foo"),
        (NEW + "users: [root]\n", "root"),
        (NEW + "users: [slurm]\n", "slurm"),
        (NEW + "users: ['1003']\n", "1003"),
        (NEW + "users: [1003]\n", "1003"),
        (NEW + "users: [alice]\n", "alice"),
        (NEW + 'users: ["o\'hara"]\n', "o'hara"),
        (NEW + 'users: ["a\\nb"]\n', "line break"),
        (NEW + "users: ['a;b']\n", "a;b"),
        (NEW + "users: ['']\n", "name"),
        (NEW + 'users: [\'{{ lookup("pipe", "id") }}\']\n', "template"),
        (NEW.replace("qos: [normal]", "qos: [blocked]") + "users: [zoe]\n", "the QOS that blocks"),
        (NEW.replace("schema: 1\n", "schema: 1\nstate: suspended\n") + "users: [zoe]\n", "suspended"),
        (NEW + "users: [{name: zoe, limits: {grp_tres: {gpu: 4}}}]\n", "gres/gpu"),
        ("schema: [\n", "tenant-new.yml"),
    ],
)
def test_a_wrong_document_is_one_clear_error_and_nothing_changes(documents, text, says):
    documents.write("tenant-new", text)
    before = accounting(), users()
    run = onboard(documents.path, tenant="tenant-new")
    assert run.returncode == 2, run.output
    assert len(run.errors) == 1
    assert says in run.errors[0]
    if says != "hihg":  # the site's QOS are known to Slurm alone
        assert "tenant-new.yml" in run.errors[0]
    assert (accounting(), users()) == before


def test_upper_case_is_folded_with_a_warning(documents):
    documents.write("tenant-new", NEW + "users: [Zoe]\n")
    run = onboard(documents.path, "--check", tenant="tenant-new")
    assert run.returncode == 0, run.output
    assert "Zoe" in run.output
    assert any("zoe" in str(change["object"]) for change in run.of("slurm_accounting")[-1]["plan"])


def test_wrong_cluster_name():
    run = onboard(DOCUMENTS, "-e", "tenancy_cluster_name=other")
    assert run.returncode == 2
    assert "other" in run.errors[0]


def test_unknown_tenant_names_those_that_exist():
    run = onboard(DOCUMENTS, tenant="tenant-fo")
    assert run.returncode == 2
    assert "tenant-foo" in run.errors[0]


def test_a_qos_that_would_outrank_the_cap(documents):
    said("ctl", "sacctmgr", "-i", "modify", "qos", "high", "set", "GrpTRES=gres/gpu=64")
    try:
        before = accounting()
        run = onboard(DOCUMENTS)
        assert run.returncode == 2
        assert "outranks" in run.errors[0]
        assert accounting() == before
    finally:
        said("ctl", "sacctmgr", "-i", "modify", "qos", "high", "set", "GrpTRES=gres/gpu=-1")


def test_slurmdbd_down():
    before = accounting(), users()
    said("ctl", "systemctl", "stop", "slurmdbd")
    try:
        run = onboard(DOCUMENTS)
        assert run.returncode == 2, run.output
        assert len(run.errors) == 1
        assert "slurmdbd" in run.errors[0]
    finally:
        said("ctl", "systemctl", "start", "slurmdbd")
    wait_for(lambda: on("ctl", "sacctmgr", "-nP", "show", "cluster").returncode == 0, what="slurmdbd")
    assert (accounting(), users()) == before
