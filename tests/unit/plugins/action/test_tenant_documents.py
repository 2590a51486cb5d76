# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The action plugin in a real ansible-playbook run on localhost: options, vault, failures, warnings."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import pytest
import yaml
from ansible_collections.gpuops.tenancy.plugins.action import tenant_documents as action
from ansible_collections.gpuops.tenancy.plugins.modules import tenant_documents as documentation

ROOT = pathlib.Path(__file__).resolve().parents[4]

FOO = """\
schema: 1
name: tenant-foo
users: [Alice, {name: bob, full_name: Bob Clear}]
slurm: {qos: [normal, high], limits: {max_wall: 48:00:00}}
"""
SECRET_FILE = """\
schema: 1
name: tenant-hid
contacts: [ops@hidden-one.example]
users: [{name: carol, full_name: Carol Hidden-Two}]
"""


class Site:
    """A folder with a playbook, documents beside it, and the collection where Ansible finds it."""

    def __init__(self, tmp_path):
        self.path = tmp_path
        self.tenants = tmp_path / "tenants"
        self.tenants.mkdir()
        parent = tmp_path / "collections" / "ansible_collections" / "gpuops"
        parent.mkdir(parents=True)
        (parent / "tenancy").symlink_to(ROOT)
        (tmp_path / "password").write_text("open sesame\n")
        (tmp_path / "elsewhere").mkdir()
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "LC_ALL": "C.UTF-8",
            "ANSIBLE_COLLECTIONS_PATH": str(tmp_path / "collections"),
            "ANSIBLE_LOCALHOST_WARNING": "false",
            "ANSIBLE_INVENTORY_UNPARSED_WARNING": "false",
            "ANSIBLE_HOME": str(tmp_path / "ansible"),
        }

    def document(self, name, text, vault=False):
        path = self.tenants / f"{name}.yml"
        path.write_text(text)
        if vault:
            self.call("vault", "encrypt", "--vault-password-file", str(self.path / "password"), str(path))

    def vaulted(self, text):
        done = self.call("vault", "encrypt_string", "--vault-password-file", str(self.path / "password"), text)
        return done.stdout.strip()

    def call(self, program, *args, check=True, **env):
        return subprocess.run(
            [sys.executable, "-m", "ansible", program, *args],
            cwd=self.path / "elsewhere",
            env={**self.env, **env},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=check,
            timeout=120,
        )

    def run(self, *args, options=None, then=None, **env):
        """(whole output, registered result or None when the task failed, return code)"""
        arguments = dict({"path": "tenants"}, **(options or {}))
        result = str(self.path / "result.json")
        tasks = [
            {"gpuops.tenancy.tenant_documents": arguments, "register": "documents", "ignore_errors": True},
            {
                "ansible.builtin.copy": {
                    "dest": result,
                    "content": then or "{{ documents | to_json }}",
                    "mode": "0600",
                },
                "check_mode": False,
                "no_log": True,
            },
        ]
        play = [{"hosts": "localhost", "connection": "local", "gather_facts": False, "tasks": tasks}]
        (self.path / "play.yml").write_text(yaml.safe_dump(play))
        done = self.call("playbook", *args, str(self.path / "play.yml"), **env)
        return done.stdout + done.stderr, json.loads(pathlib.Path(result).read_text())


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path)


def test_a_tenant_and_a_user(site):
    site.document("tenant-foo", FOO)
    site.document("tenant-bar", "schema: 1\nname: tenant-bar\nusers: [root]\n")
    options = {"tenant": "tenant-foo", "user": "alice", "site_qos": ["normal", "high"]}
    output, result = site.run("--check", options=options)
    assert result["changed"] is False and result["failed"] is False
    assert result["tenant"]["name"] == "tenant-foo"
    assert result["tenant"]["slurm"]["limits"] == {"max_wall": "2-00:00:00"}
    assert result["user"]["name"] == "alice"
    assert [one["name"] for one in result["tenants"]] == ["tenant-foo"]
    assert [one["tenant"] for one in result["broken"]] == ["tenant-bar"]
    shown = " ".join(output.split())
    assert "tenant-foo.yml:3: users[0]: 'Alice' is folded to lower case" in shown
    assert "tenant tenant-bar is left out, its document has 1 problem(s)" in shown
    assert "tenant-bar.yml:3: users[0]: 'root' is a system account or group" in shown


def test_every_problem_in_one_failure(site):
    site.document(
        "tenant-foo", FOO + 'typo: 1\nusers: [slurm]\ndescription: \'{{ lookup("pipe", "touch evaluated") }}\'\n'
    )
    output, result = site.run()
    assert result["failed"] is True and result["changed"] is False
    assert result["msg"].startswith("3 problem(s) in the tenant document(s) of tenant-foo; nothing was changed:\n")
    assert [(one["line"], one["path"]) for one in result["problems"]] == [(5, "typo"), (6, "users"), (7, "description")]
    assert "is given twice (first on line 3)" in output
    assert not list(site.path.rglob("evaluated"))


def test_the_sites_own_rules(site):
    site.document(
        "tenant-foo",
        "schema: 1\nname: tenant-foo\nusers: [anna, gone, left, house, ops, dave]\nslurm: {qos: [stop, odd]}\n",
    )
    (site.path / "ledger.yml").write_text("retired: [{name: Left}]\n")
    options = {
        "tenant": "tenant-foo",
        "operators": ["Anna"],
        "retired_names": ["gone"],
        "ledger": "ledger.yml",
        "reserved_names": ["house"],
        "platform_account": "ops",
        "site_qos": ["normal", "stop"],
        "block_qos": "stop",
    }
    _output, result = site.run(options=options)
    assert [one["path"] for one in result["problems"]] == [
        *(f"users[{number}]" for number in range(5)),
        "slurm.qos[0]",
        "slurm.qos[1]",
    ]
    _output, result = site.run(options={"ledger": "missing.yml"})
    assert "missing.yml:1: cannot be read: No such file or directory" in result["msg"]


def test_vault(site):
    value = site.vaulted("eve@hidden-three.example")
    indented = value.replace("\n", "\n  ").replace("          ", "      ")
    site.document("tenant-foo", FOO + "contacts:\n- " + indented + "\n")
    site.document("tenant-hid", SECRET_FILE, vault=True)
    password = ("--vault-password-file", str(site.path / "password"))
    output, result = site.run(*password, "-vvvv")
    hidden, clear = (
        next(one for one in result["tenants"] if one["name"] == name) for name in ("tenant-hid", "tenant-foo")
    )
    assert clear["contacts"] == ["eve@hidden-three.example"]
    assert hidden["users"][0]["full_name"] == "Carol Hidden-Two"
    assert "hidden" not in output.lower().replace("has been hidden", "")
    assert "is folded to lower case" in output, "warnings are still shown"

    _output, gecos = site.run(
        *password,
        options={"tenant": "tenant-hid"},
        then="{{ (documents.tenant | gpuops.tenancy.tenant_users | first).gecos | to_json }}",
    )
    assert gecos == "Carol Hidden-Two"

    # Without the secret: a warning for another tenant, a failure for this one.
    site.document("tenant-baz", "schema: 1\nname: tenant-baz\n")
    output, result = site.run(options={"tenant": "tenant-baz"})
    assert result["failed"] is False
    assert {one["tenant"] for one in result["broken"]} == {"tenant-foo", "tenant-hid"}
    output, result = site.run(options={"tenant": "tenant-foo"})
    assert (
        "tenant-foo.yml:6: contacts[0]: is vaulted and cannot be read: no vault secret of this run opens it"
        in result["msg"]
    )
    output, result = site.run(options={"tenant": "tenant-hid"})
    assert "tenant-hid.yml:1: cannot be read: it is vaulted, and no vault secret of this run opens it" in result["msg"]
    assert "ANSIBLE_VAULT" not in output


def test_a_typo_in_a_vaulted_file_shows_nothing_of_it(site):
    site.document("tenant-hid", SECRET_FILE + "state: hidden-four\n", vault=True)
    output, result = site.run("-vvvv", "--vault-password-file", str(site.path / "password"))
    assert result["problems"][0]["line"] == 5
    assert "hidden-" not in output.lower()


def test_the_library_is_missing(site):
    site.document("tenant-foo", FOO)
    (site.path / "stub").mkdir()
    (site.path / "stub" / "jsonschema.py").write_text("raise ImportError('not here')\n")
    _output, result = site.run(PYTHONPATH=str(site.path / "stub"))
    assert "are checked with the Python library jsonschema, version 4 or later" in result["msg"]
    assert "Traceback" not in _output


def test_wrong_options(site):
    _output, result = site.run()
    assert result["msg"].endswith("tenants holds no tenant document (*.yml, *.yaml)")
    _output, result = site.run(options={"path": "nowhere"})
    assert "nowhere, cannot be read: No such file or directory" in result["msg"]
    _output, result = site.run(options={"tenent": "x"})
    assert "Unsupported parameters for" in result["msg"] and "tenent" in result["msg"]


def test_the_documentation_names_the_options():
    documented = yaml.safe_load(documentation.DOCUMENTATION)["options"]
    spec = {
        name: {key: value for key, value in option.items() if key != "description"}
        for name, option in documented.items()
    }
    assert spec == action.ARGUMENT_SPEC
