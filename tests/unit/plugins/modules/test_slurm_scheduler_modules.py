# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""slurm_node, slurm_job, slurm_job_info and slurm_reservation as Ansible sees them."""

from __future__ import annotations

import importlib
import json

import pytest
import yaml
from ansible.module_utils.testing import patch_module_args
from ansible_collections.gpuops.tenancy.plugins.module_utils import _lock
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import scheduler

NAMES = ("slurm_node", "slurm_job", "slurm_job_info", "slurm_reservation")


def load(name):
    return importlib.import_module(f"ansible_collections.gpuops.tenancy.plugins.modules.{name}")


def documented(module):
    found = yaml.safe_load(module.DOCUMENTATION)
    for fragment in found["extends_documentation_fragment"]:
        file, _dot, part = fragment[len("gpuops.tenancy.") :].partition(".")
        fragments = importlib.import_module(f"ansible_collections.gpuops.tenancy.plugins.doc_fragments.{file}")
        text = getattr(fragments.ModuleDocFragment, part.upper() or "DOCUMENTATION")
        found["options"].update(yaml.safe_load(text)["options"])
    return found["options"]


@pytest.mark.parametrize("name", NAMES)
def test_the_documentation_is_the_argument_spec(name):
    module = load(name)
    options = documented(module)
    spec = module.argument_spec()
    assert set(spec) == set(options)
    for option, given in spec.items():
        for key in ("type", "elements", "default", "choices", "required"):
            assert given.get(key) == options[option].get(key), (option, key)


@pytest.mark.parametrize("name", NAMES)
def test_examples_and_return_values_can_be_read(name):
    module = load(name)
    for task in yaml.safe_load(module.EXAMPLES):
        assert set(task[f"gpuops.tenancy.{name}"]) <= set(module.argument_spec())
    promised = set(yaml.safe_load(module.RETURN))
    assert (
        promised >= {"jobs"}
        if name.endswith("_info")
        else promised >= {"changed", "commands", "plan", "diff", "applied"}
    )


def test_every_column_of_a_job_is_documented():
    columns = {*importlib.import_module(scheduler.job_list.__name__).COLUMNS, "held"}
    for name in ("slurm_node", "slurm_job", "slurm_job_info", "slurm_reservation"):
        assert set(yaml.safe_load(load(name).RETURN)["jobs"]["contains"]) == columns


# One for each program: what it is told goes to a log, what it says and its status come from files beside it.
PROGRAM = """#!/usr/bin/env python3
import os, re, sys
here, name = os.path.split(os.path.abspath(__file__))
with open(os.path.join(here, "log"), "a") as log:
    log.write(" ".join([name, *sys.argv[1:]]) + "\\n")
kind = "nodes" if sys.argv[-1] == "node" else "reservations" if sys.argv[-1] == "reservation" else name
try:
    text = open(os.path.join(here, kind + ".says")).read()
except OSError:
    sys.stderr.write("Unable to contact slurm controller (connect failure)")
    sys.exit(1)
if name == "squeue":
    between, after = re.match(r"%i(.*?)%.*%k(.*)", sys.argv[-1]).groups()
    text = "".join(line.replace("|", between) + after + "\\n" for line in text.splitlines())
print(text, end="")
sys.exit(text.startswith("refused"))
"""
NODES = (
    "NodeName=gpu1 Arch=x86_64\n   State=IDLE ThreadsPerCore=1\n\n"
    "NodeName=gpu2 Arch=x86_64\n   State=IDLE+DRAIN X=1\n   Reason=bad fan [root@now]\n"
)
QUEUE = (
    "11|11|N/A|alice|ta|h100|normal|RUNNING|None|9|gpu1|1|1|N/A|(null)|x|x|x|30:00|(null)|/|wrap|(null)\n"
    "12|12|N/A|alice|ta|h100|normal|PENDING|Resources|9||1|1|N/A|(null)|x|x|x|30:00|(null)|/|wrap|(null)\n"
)


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    """A Slurm that always says the same, and takes orders without carrying them out."""
    locks = tmp_path / "locks"
    locks.mkdir()
    monkeypatch.setattr(_lock.Lock.__init__, "__defaults__", (300.0, (str(locks),)))
    monkeypatch.setattr(scheduler, "SETTLE", 0.0)
    monkeypatch.setattr(scheduler, "REFUSED", 0.0)
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("scontrol", "squeue", "scancel", "sacctmgr"):
        (folder / name).write_text(PROGRAM)
        (folder / name).chmod(0o755)
    for name, text in {
        "nodes": NODES,
        "reservations": "No reservations in the system\n",
        "squeue": QUEUE,
        "scontrol": "",
        "scancel": "",
        "sacctmgr": "root\nta\n",
    }.items():
        (folder / f"{name}.says").write_text(text)
    return folder


def run(slurm, capsys, module, **arguments):
    with (
        patch_module_args({"search_path": [str(slurm), "/usr/bin", "/bin"], **arguments}),
        pytest.raises(SystemExit) as ended,
    ):
        load(module).main()
    return ended.value.code, json.loads(capsys.readouterr().out)


def writes(slurm):
    lines = (slurm / "log").read_text().splitlines() if (slurm / "log").exists() else []
    return [line for line in lines if " show " not in line and not line.startswith("squeue")]


DRAIN = {"nodes": ["gpu[1-2]"], "state": "drain", "owner": "us", "reason": "ours"}
RESERVE = {"name": "r", "start_time": "now", "duration": "60", "nodes": ["gpu1"], "accounts": ["ta"]}


def test_a_check_says_what_a_run_would_do_and_does_nothing(slurm, capsys):
    status, result = run(slurm, capsys, "slurm_node", **DRAIN, wait=99, _ansible_check_mode=True)
    assert (status, result["changed"], len(result["commands"])) == (0, True, 2)
    assert [(node["name"], node["jobs"]) for node in result["nodes"]] == [("gpu1", ["11"]), ("gpu2", [])]
    status, result = run(slurm, capsys, "slurm_job", users=["alice"], state="cancelled", _ansible_check_mode=True)
    assert (status, result["commands"]) == (0, [f"{slurm}/scancel 11 12"])
    assert "job 11:\n  state: RUNNING\n" in result["diff"]["before"]
    status, result = run(slurm, capsys, "slurm_reservation", **RESERVE, _ansible_check_mode=True)
    assert (status, result["reservation"]) == (0, {})
    assert result["commands"][0].endswith("ReservationName=r StartTime=now Duration=60 Nodes=gpu1 Accounts=ta")
    assert writes(slurm) == []


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("slurm_node", DRAIN, "state drain did not come true on gpu[1-2]"),
        ("slurm_job", {"users": ["alice"], "state": "held"}, "these jobs are not held: 12 (alice, PENDING)"),
        ("slurm_reservation", RESERVE, "reservation r is not as wanted"),
    ],
)
def test_what_does_not_show_when_read_again_is_a_failure(slurm, capsys, name, arguments, message):
    status, result = run(slurm, capsys, name, **arguments)
    assert (status, result["changed"]) == (1, True)
    assert message in result["msg"]
    assert len(result["applied"]) == len(writes(slurm)) > 0
    (slurm / "scontrol.says").write_text("refused: nobody knows why\n")
    status, result = run(slurm, capsys, name, **arguments)
    assert (status, result["applied"], result["changed"]) == (1, [], False)
    assert "Slurm says: refused: nobody knows why" in result["msg"]


def test_a_command_for_several_nodes_may_have_been_half_done(slurm, capsys):
    (slurm / "nodes.says").write_text(NODES.replace("+DRAIN", ""))
    (slurm / "scontrol.says").write_text("refused: Invalid node state specified\n")
    status, result = run(slurm, capsys, "slurm_node", **DRAIN)
    assert (status, result["changed"], len(result["applied"])) == (1, True, 1)


@pytest.mark.parametrize("missing", ["squeue", "nodes"])
def test_a_controller_that_does_not_answer_is_one_clear_error(slurm, capsys, missing):
    (slurm / f"{missing}.says").unlink()
    status, result = run(slurm, capsys, "slurm_node", **{**DRAIN, "state": "resume"})
    assert status == 1
    assert "slurmctld does not answer; start it, and run again" in result["msg"]
    assert writes(slurm) == []


def test_no_node_at_all_is_no_state_to_plan_from(slurm, capsys):
    (slurm / "nodes.says").write_text("")
    status, result = run(slurm, capsys, "slurm_node", **DRAIN)
    assert (status, "names no node at all" in result["msg"]) == (1, True)


def test_waiting_in_vain_reports_the_jobs(slurm, capsys):
    (slurm / "nodes.says").write_text("NodeName=gpu1 A=1\n   State=MIXED+DRAIN T=1\n   Reason=[us] x [root@now]\n")
    status, result = run(slurm, capsys, "slurm_node", **{**DRAIN, "nodes": ["gpu1"], "reason": "x"}, wait=1)
    assert (status, result["changed"]) == (1, False)
    assert "after 1 s jobs still hold nodes: gpu1 by 11 (alice, RUNNING)" in result["msg"]
    assert [job["id"] for job in result["jobs"]] == ["11"]


def test_another_writer_is_named_and_does_not_stop_a_check(slurm, capsys):
    with _lock.Lock(scheduler.LOCK, "somebody else", 0):
        status, result = run(slurm, capsys, "slurm_job", users=["alice"], state="held", lock_timeout=0)
        assert (status, "(somebody else, since" in result["msg"]) == (1, True)
        assert run(slurm, capsys, "slurm_job", users=["alice"], state="held", _ansible_check_mode=True)[0] == 0
        assert run(slurm, capsys, "slurm_job_info")[0] == 0
    assert writes(slurm) == []


def test_a_refusal_is_made_before_anything_is_asked(slurm, capsys):
    for name, arguments in (
        ("slurm_node", {**DRAIN, "owner": "a b"}),
        ("slurm_job", {"states": ["PENDING"], "state": "cancelled"}),
        ("slurm_reservation", {**RESERVE, "name": "a b"}),
    ):
        assert run(slurm, capsys, name, **arguments)[0] == 1
    assert not (slurm / "log").exists()


def test_info(slurm, capsys):
    status, result = run(slurm, capsys, "slurm_job_info", users=["alice", "nosuch"], states=["R"])
    assert (status, [job["id"] for job in result["jobs"]]) == (0, ["11"])
    assert run(slurm, capsys, "slurm_job_info", users=[])[1]["jobs"] == []


def test_a_name_that_slurm_does_not_know(slurm, capsys):
    status, result = run(
        slurm, capsys, "slurm_reservation", **{**RESERVE, "accounts": ["nosuch"]}, _ansible_check_mode=True
    )
    assert (status, "Slurm knows no account nosuch" in result["msg"]) == (1, True)
