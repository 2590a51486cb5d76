# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The action plugin in real ansible-playbook runs on localhost: what it writes, and what it never does."""

from __future__ import annotations

import json
import os
import pathlib
import stat
import subprocess
import sys

import pytest
import yaml
from accounting_world import world
from ansible_collections.gpuops.tenancy.plugins.action import tenant_adopt as action
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.survey import compose
from ansible_collections.gpuops.tenancy.plugins.modules import tenant_adopt as documentation

ROOT = pathlib.Path(__file__).resolve().parents[4]


def survey():
    state = world(
        {"foo": ("root", {"coordinators": ["u"]}), "bar": ("root", {})}, {"u": ("foo", {"foo": {}, "bar": {}})}
    )
    return compose(state, [], {"account": [], "user": []})


class Site:
    def __init__(self, path):
        self.path, self.tenants, self.report = path, path / "tenants", path / "report.md"
        parent = path / "collections" / "ansible_collections" / "gpuops"
        parent.mkdir(parents=True)
        (parent / "tenancy").symlink_to(ROOT)

    def run(self, *args, **options):
        given = {"survey": survey(), "path": "tenants", "report": "report.md", **options}
        result = self.path / "result.json"
        tasks = [
            {"gpuops.tenancy.tenant_adopt": given, "register": "adopted", "ignore_errors": True},
            {
                "ansible.builtin.copy": {"dest": str(result), "content": "{{ adopted | to_json }}", "mode": "0600"},
                "check_mode": False,
                "diff": False,
            },
        ]
        play = [{"hosts": "localhost", "connection": "local", "gather_facts": False, "tasks": tasks}]
        (self.path / "play.yml").write_text(yaml.safe_dump(play))
        done = subprocess.run(
            [sys.executable, "-m", "ansible", "playbook", *args, str(self.path / "play.yml")],
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(self.path),
                "LC_ALL": "C.UTF-8",
                "ANSIBLE_COLLECTIONS_PATH": str(self.path / "collections"),
                "ANSIBLE_HOME": str(self.path / "ansible"),
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        )
        return done.stdout, json.loads(result.read_text())


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path)


def test_a_check_shows_what_a_run_then_writes(site):
    output, checked = site.run("--check", "--diff")
    assert not site.tenants.exists() and not site.report.exists()
    _output, written = site.run("--diff")
    assert checked["changed"] and written["changed"]
    assert checked["documents"] == written["documents"] and len(written["documents"]) == 2
    assert checked["diff"] == written["diff"] and checked["findings"] == written["findings"]
    for one in written["diff"]:
        assert (site.path / one["after_header"]).read_text() == one["after"] or one["after_header"].startswith("/")
        assert one["after"].splitlines()[-1] in output
    for name in ("foo", "bar"):
        assert stat.S_IMODE((site.tenants / f"{name}.yml").stat().st_mode) == 0o640
    assert yaml.safe_load((site.tenants / "foo.yml").read_text())["users"] == [{"name": "u", "member_of": ["bar"]}]
    assert "coordinators" in site.report.read_text()
    assert sorted(path.name for path in site.tenants.iterdir()) == ["bar.yml", "foo.yml"]


def test_a_document_is_never_written_again(site):
    site.run()
    mine = "schema: 1\nname: foo\ndescription: my own words\n"
    (site.tenants / "foo.yml").write_text(mine)
    (site.tenants / "bar.yml").unlink()
    _output, result = site.run()
    assert (site.tenants / "foo.yml").read_text() == mine
    assert [pathlib.Path(path).name for path in result["documents"]] == ["bar.yml"]
    assert ["account foo", "description"] in [[one["object"], one["field"]] for one in result["findings"]]
    _output, again = site.run()
    assert again["documents"] == []
    _output, third = site.run()
    assert third["changed"] is False


def test_a_file_that_appears_meanwhile_is_not_replaced(tmp_path):
    there = tmp_path / "foo.yml"
    there.write_text("mine")
    with pytest.raises(FileExistsError):
        action._create(str(there), "theirs")
    assert there.read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["foo.yml"]


def test_a_folder_that_cannot_be_written_is_one_clear_error(site):
    (site.path / "tenants").write_text("a file")
    _output, result = site.run()
    assert result["failed"] and "tenants" in result["msg"] and "\n" not in result["msg"]


def test_options_and_documentation_agree():
    documented = yaml.safe_load(documentation.DOCUMENTATION)["options"]
    assert set(documented) == set(action.ARGUMENT_SPEC)
    for name, spec in action.ARGUMENT_SPEC.items():
        told = documented[name]
        assert told["type"] == spec["type"] and told.get("elements") == spec.get("elements")
        assert told.get("default") == spec.get("default") and told.get("required", False) == spec.get("required", False)
