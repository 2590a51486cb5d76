# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""suspend.yml and resume.yml, the tenant document's state, and onboarding meanwhile."""

from __future__ import annotations

import pathlib
import shutil
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "cluster"))
from recorded import module, playbook
from remote import on, said

DOCUMENTS = ROOT / "inventories" / "demo" / "tenants"


def run(name: str, *args: str, folder=DOCUMENTS):
    return playbook(f"{name}.yml", "-e", "tenant=tenant-foo", "-e", f"tenancy_tenants_dir={folder}", *args).wait()


def accounting() -> str:
    return "\n\n".join(
        said("ctl", "sacctmgr", "-nP", "show", *what) for what in (["assoc", "wopi"], ["assoc"], ["user"])
    )


def gets_in() -> bool:
    done = on("login", "sbatch", "--time=1", "--chdir=/", "--output=/dev/null", "--wrap=true", user="alice")
    return done.returncode == 0


@pytest.fixture
def suspended_document(tmp_path):
    folder = tmp_path / "tenants"
    shutil.copytree(DOCUMENTS, folder)
    file = folder / "tenant-foo.yml"
    file.write_text(file.read_text().replace("schema: 1\n", "schema: 1\nstate: suspended\n"))
    return folder


def test_suspend_and_resume(suspended_document):
    before = accounting()
    checked = run("suspend", "--check", "--diff")
    assert checked.returncode == 0, checked.output
    assert accounting() == before
    done = run("suspend", "-e", "reason='invoice 4711'")
    assert done.returncode == 0, done.output
    assert done.of("slurm_block")[-1]["plan"][-1] == checked.of("slurm_block")[-1]["plan"][-1]
    assert "still says state: present" in done.output
    assert {result["state"] for result in done.of("slurm_smoke_test")[0]["results"]} == {"REFUSED"}
    assert not gets_in()
    assert done.of("slurm_block")[-1]["blocks"][0]["reason"] == "invoice 4711"

    again = run("suspend", folder=suspended_document)
    assert again.returncode == 0, again.output
    assert not again.changed
    assert "still says state: present" not in again.output

    onboarded = run("onboard")
    assert onboarded.returncode == 0, onboarded.output
    assert "BLOCKED, and left so" in onboarded.output
    assert not onboarded.changed
    assert not gets_in()
    for name in ("onboard", "resume"):
        refused = run(name, folder=suspended_document)
        assert refused.returncode == 2
        assert "suspended" in refused.errors[0]
    assert not gets_in()

    back = run("resume")
    assert back.returncode == 0, back.output
    assert accounting() == before
    assert gets_in()
    assert "proven: a job ran in ml-team-foo" in back.output
    assert not run("resume").changed


def test_another_owners_block_outlives_the_suspension():
    incident = {"cluster": "demo", "owner": "incident", "users": ["alice"]}
    before = accounting()
    assert module("ctl", "slurm_block", incident).returncode == 0
    assert run("suspend").returncode == 0
    back = run("resume")
    assert back.returncode == 0, back.output
    assert "STILL BLOCKED: user alice in ml-team-foo: user alice by incident" in back.output
    assert not gets_in()
    assert module("ctl", "slurm_block", {**incident, "state": "unblocked"}).returncode == 0
    assert accounting() == before


def test_unknown_tenant():
    done = playbook("suspend.yml", "-e", "tenant=tenant-fo").wait()
    assert done.returncode == 2
    assert "tenant-foo" in done.errors[0]
