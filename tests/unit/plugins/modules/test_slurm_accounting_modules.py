# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""slurm_accounting, slurm_qos and slurm_cluster as Ansible sees them."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import pathlib

import pytest
import yaml
from accounting_world import EMPTY
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.testing import patch_module_args
from ansible_collections.gpuops.tenancy.plugins.module_utils import _lock
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import fields, options
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.arguments import checked_children
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.desired import Refused

WRITERS = ("slurm_accounting", "slurm_account", "slurm_user", "slurm_qos", "slurm_cluster", "slurm_block")
NAMES = (*WRITERS, "slurm_accounting_info", "slurm_effective_limits_info")


def load(name):
    return importlib.import_module(f"ansible_collections.gpuops.tenancy.plugins.modules.{name}")


def documented(module):
    """The options, with those of the fragments."""
    given = yaml.safe_load(module.DOCUMENTATION)
    found = dict(given.get("options") or {})
    for fragment in given["extends_documentation_fragment"]:
        name, part = [*fragment.split(".")[2:], "documentation"][:2]
        source = importlib.import_module(f"ansible_collections.gpuops.tenancy.plugins.doc_fragments.{name}")
        found.update(yaml.safe_load(getattr(source.ModuleDocFragment, part.upper())).get("options") or {})
    return found


def compare(spec, documented, path=""):
    assert set(spec) == set(documented), path
    for name, option in spec.items():
        doc = documented[name]
        for key in ("type", "elements", "default", "choices", "required"):
            assert option.get(key) == doc.get(key), (path, name, key)
        if "options" in option:
            compare(option["options"], doc["suboptions"], f"{path}{name}.")


@pytest.mark.parametrize("name", NAMES)
def test_the_documentation_is_the_argument_spec(name):
    module = load(name)
    compare(module.argument_spec(), documented(module))


@pytest.mark.parametrize("name", NAMES)
def test_examples_and_return_values_can_be_read(name):
    module = load(name)
    used = [task.get(f"gpuops.tenancy.{name}") for task in yaml.safe_load(module.EXAMPLES)]
    assert any(used)
    for arguments in filter(None, used):
        assert set(arguments) <= set(module.argument_spec())
    if name in WRITERS:
        assert {"changed", "commands", "plan", "diff", "applied", "remaining"} <= set(yaml.safe_load(module.RETURN))


def names(table):
    return {field.option for field in table}


def test_every_field_is_an_option_of_accounts_users_or_qos():
    tree = load("slurm_accounting").argument_spec()
    account, user = (load(f"slurm_{kind}").argument_spec() for kind in ("account", "user"))
    for spec in (tree["accounts"]["options"], account, account["accounts"]["options"]):
        assert names(fields.ASSOCIATION + fields.RECORD) | {"coordinators"} <= set(spec)
    for spec in (tree["users"]["options"], user, user["users"]["options"]):
        assert names(fields.USER) | {"default_account"} <= set(spec)
        assert names(fields.ASSOCIATION) <= set(spec["associations"]["options"])
    qos = load("slurm_qos").argument_spec()
    assert names(fields.QOS_FIELDS) <= set(qos["qos"]["options"])
    assert names(fields.QOS_FIELDS) <= set(qos)


def test_the_generated_documentation_is_current():
    path = pathlib.Path(__file__).resolve().parents[3] / "tools" / "gen_field_docs.py"
    spec = importlib.util.spec_from_file_location("gen_field_docs", path)
    generator = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generator)
    for target, text in generator.outputs().items():
        assert target.read_text(encoding="utf-8") == text, "run make docs"


@pytest.mark.parametrize("table", [fields.ASSOCIATION, fields.RECORD, fields.USER, fields.QOS_FIELDS])
def test_the_table_names_nothing_twice(table):
    for attribute in ("option", "set_name", "column"):
        names = [getattr(field, attribute).lower() for field in table]
        assert len(names) == len(set(names))


def test_accounts_inside_accounts_are_checked_to_any_depth():
    spec = options.spec(options.TREE_ACCOUNT)
    tree = [{"name": "a", "accounts": [{"name": "b", "accounts": [{"name": "c", "grp_jobs": "7"}]}]}]
    assert checked_children(tree, spec)[0]["accounts"][0]["accounts"][0]["grp_jobs"] == 7
    tree[0]["accounts"][0]["accounts"][0] = {"name": "c", "grp_job": 7}
    with pytest.raises(Refused, match="account a -> b -> c: grp_job. Supported parameters include"):
        checked_children(tree, spec)
    with pytest.raises(Refused, match="missing required arguments: name"):
        checked_children([{"name": "a", "accounts": [{"grp_jobs": 7}]}], spec)


SACCTMGR = """#!/bin/sh
echo "$*" >> "$0.log"
case "$*" in
*-V) echo "slurm 24.11.5" ;;
*account,id,parentid) printf 'root|1|0\\nfoo|2|1\\n' ;;
*assoc*wopi*) printf 'root||%s\\nfoo||%s\\n' "{empty}" "{empty}" ;;
*assoc*) printf 'root||||n\\nfoo|||root|n\\n' ;;
*show*user*where*) echo "root|root|Administrator|" ;;
*show*account,coord*) printf 'root||None\\nfoo||None\\n' ;;
*show*account,*) printf 'root|\\nfoo|\\n' ;;
*show*qos*name,description*) echo "normal|" ;;
*show*qos*priority*) echo "normal|{qos}" ;;
*show*qos*) echo "normal" ;;
*show*tres*) echo "cpu|" ;;
*show*cluster*) echo "c1" ;;
*) exit {status} ;;
esac
"""


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    """A directory with a sacctmgr that always tells the same and takes every change without making it."""
    locks = tmp_path / "locks"
    locks.mkdir()
    monkeypatch.setattr(_lock.Lock.__init__, "__defaults__", (300.0, (str(locks),)))
    binaries = tmp_path / "bin"
    binaries.mkdir()

    def make(status=0):
        program = binaries / "sacctmgr"
        qos = "|" * (len(fields.QOS_FIELDS) - 2)
        program.write_text(SACCTMGR.format(empty=EMPTY, qos=qos, status=status))
        program.chmod(0o755)
        return [str(binaries)]

    make.log = pathlib.Path(f"{binaries}/sacctmgr.log")
    return make


def run(module, capsys, **arguments):
    with patch_module_args(arguments), pytest.raises(SystemExit) as ended:
        load(module).main()
    return ended.value.code, json.loads(capsys.readouterr().out)


def writes(slurm):
    return [line for line in slurm.log.read_text().splitlines() if "-nP" not in line and "-V" not in line]


TENANT = {"cluster": "c1", "scope": ["foo"], "accounts": [{"name": "foo"}]}


def test_no_change_has_the_full_shape(slurm, capsys):
    status, result = run("slurm_accounting", capsys, search_path=slurm(), **TENANT)
    assert status == 0
    assert {key: result[key] for key in ("changed", "commands", "plan", "unmanaged", "blocked")} == {
        "changed": False,
        "commands": [],
        "plan": [],
        "unmanaged": [],
        "blocked": [],
    }
    assert set(result["diff"]) == {"before_header", "after_header", "before", "after"}


def test_check_mode_writes_nothing_and_says_what_it_would(slurm, capsys):
    wanted = {**TENANT, "accounts": [{"name": "foo", "grp_jobs": 3}]}
    status, result = run("slurm_accounting", capsys, search_path=slurm(), _ansible_check_mode=True, **wanted)
    assert (status, result["changed"]) == (0, True)
    assert result["commands"][0].endswith("/sacctmgr -i modify account where name=foo cluster=c1 set GrpJobs=3")
    assert result["plan"] == [
        {
            "kind": "change",
            "object": "account foo",
            "field": "grp_jobs",
            "before": None,
            "after": 3,
            "risk": "disruptive",
        }
    ]
    assert writes(slurm) == []


def test_a_change_that_does_not_show_when_read_again_fails_with_the_rest(slurm, capsys):
    wanted = {**TENANT, "accounts": [{"name": "foo", "grp_jobs": 3}]}
    status, result = run("slurm_accounting", capsys, search_path=slurm(), **wanted)
    assert status == 1
    assert "these fields differ from the plan: account foo grp_jobs" in result["msg"]
    assert (result["changed"], len(result["applied"]), len(result["remaining"])) == (True, 1, 1)
    assert len(writes(slurm)) == 1


def test_a_refused_command_fails_with_nothing_applied(slurm, capsys):
    wanted = {**TENANT, "accounts": [{"name": "foo", "grp_jobs": 3}]}
    status, result = run("slurm_accounting", capsys, search_path=slurm(status=1), **wanted)
    assert (status, result["changed"], result["applied"], len(result["remaining"])) == (1, False, [], 1)


def test_an_impossible_wish_is_one_message_and_no_process(slurm, capsys):
    status, result = run("slurm_accounting", capsys, search_path=slurm(), **{**TENANT, "scope": []})
    assert status == 1
    assert result["msg"].startswith("scope is empty")
    assert not slurm.log.exists()


def test_folding_is_a_warning(slurm, capsys, monkeypatch):
    said = []
    # Where the controller's code is loaded too, a warning goes to its display instead of the result.
    monkeypatch.setattr(AnsibleModule, "warn", lambda self, message: said.append(message))
    status, _result = run("slurm_accounting", capsys, search_path=slurm(), **{**TENANT, "scope": ["FOO"]})
    assert status == 0
    assert "scope account FOO is written foo in Slurm" in str(said)


def test_another_writer_is_named(slurm, capsys):
    search_path = slurm()
    with _lock.Lock("slurm-accounting-c1", "somebody else", 0):
        status, result = run("slurm_accounting", capsys, search_path=search_path, lock_timeout=0, **TENANT)
        assert status == 1
        assert f"held after 0 s by process {os.getpid()} (somebody else, since" in result["msg"]
        assert not slurm.log.exists()
        assert run("slurm_accounting", capsys, search_path=search_path, _ansible_check_mode=True, **TENANT)[0] == 0


def test_a_missing_program_is_named(slurm, capsys, tmp_path):
    status, result = run("slurm_accounting", capsys, search_path=[str(tmp_path / "none")], **TENANT)
    assert status == 1
    assert f"there is no sacctmgr in {tmp_path}/none" in result["msg"]


def test_qos_in_check_mode(slurm, capsys):
    arguments = {"search_path": slurm(), "qos": [{"name": "high", "priority": 5}], "_ansible_check_mode": True}
    status, result = run("slurm_qos", capsys, **arguments)
    assert status == 0, result
    assert result["commands"][0].endswith("sacctmgr -i add qos name=high Priority=5")
    assert result["unmanaged"] == ["qos normal"]
    assert writes(slurm) == []


@pytest.mark.parametrize(("name", "changed"), [("c1", False), ("C1", False), ("c2", True)])
def test_a_cluster_in_check_mode(slurm, capsys, name, changed):
    status, result = run("slurm_cluster", capsys, search_path=slurm(), name=name, _ansible_check_mode=True)
    assert (status, result["changed"], len(result["commands"])) == (0, changed, int(changed))
