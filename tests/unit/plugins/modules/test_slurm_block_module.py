# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""slurm_block and slurm_effective_limits_info as Ansible sees them."""

from __future__ import annotations

import importlib
import json
import pathlib

import pytest
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.testing import patch_module_args
from ansible_collections.gpuops.tenancy.plugins.module_utils import _lock
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import block_ledger, fields
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.client import row_fields

VERSION = (24, 11)
# Keeps the QOS of each row in a file, and takes every change.
SACCTMGR = """#!/bin/sh
echo "sacctmgr $*" >> "$0.log"
here=$(dirname "$0")
own=$(cat "$here/own" 2>/dev/null)
case "$*" in
*-V) echo "slurm 24.11.5" ;;
*account,id,parentid) printf 'root|1|0\\nfoo|2|1\\n' ;;
*assoc*wopi*)
    printf 'root|||{row}\\n' n ""
    [ -n "$own" ] && set -- blocked blocked blocked blocked || set -- n n "" ""
    printf 'foo|||{row}\\n' "$1" "$2"
    printf 'foo|al||{row}\\n' "$3" "$4" ;;
*assoc*) q=${{own%%|*}}; printf 'root||||n\\nfoo|||root|%s\\nfoo|al|||%s\\n' "${{q:-n}}" "${{q:-n}}" ;;
*show*account,coordinators*) printf 'root||\\nfoo|%s|\\n' "$(cat "$here/coordinator" 2>/dev/null)" ;;
*show*user*) echo "al|foo|None|" ;;
*show*qos*name,description*) printf 'n|\\nblocked|\\n' ;;
*show*qos*priority*) printf 'n|{empty}\\nblocked|{blocks}\\n' ;;
*show*qos*) printf 'n\\nblocked\\n' ;;
*show*tres*) echo "cpu|" ;;
*"set QOS=blocked"*) echo "blocked|blocked" > "$here/own" ;;
*"set QOS"*) rm -f "$here/own" ;;
esac
"""
SQUEUE = """#!/bin/sh
echo "squeue $*" >> "$(dirname "$0")/sacctmgr.log"
case "$*" in *%A*) cat "$(dirname "$0")/jobs" 2>/dev/null ;; esac
exit 0
"""
SCONTROL = """#!/bin/sh
echo "scontrol $*" >> "$(dirname "$0")/sacctmgr.log"
case "$1" in
-o) echo "PartitionName=p QoS=N/A MaxTime=01:00:00 State=UP" ;;
hold) echo "7|al|foo|JobHeldAdmin" > "$(dirname "$0")/jobs" ;;
release) echo "7|al|foo|None" > "$(dirname "$0")/jobs" ;;
esac
"""


def blocking() -> str:
    given = {"grp_submit_jobs": "0", "max_submit_jobs_per_user": "0", "flags": "DenyOnLimit,OverPartQOS"}
    table = [field for field in fields.existing(fields.QOS_FIELDS, VERSION) if field.type != fields.TEXT]
    return "|".join(given.get(field.option, "") for field in table)


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    locks = tmp_path / "locks"
    locks.mkdir()
    monkeypatch.setattr(_lock.Lock.__init__, "__defaults__", (300.0, (str(locks),)))
    monkeypatch.setattr(block_ledger, "DIRECTORY", str(tmp_path / "state"))
    row = "|".join("%s" if field.option in ("qos", "default_qos") else "" for field in row_fields(VERSION)) + "|"
    blocks = blocking()
    texts = {"sacctmgr": SACCTMGR.format(row=row, empty="|" * blocks.count("|"), blocks=blocks)}
    for name, text in {**texts, "squeue": SQUEUE, "scontrol": SCONTROL, "scancel": "#!/bin/sh\n"}.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    return tmp_path


def run(slurm, capsys, name="slurm_block", **arguments):
    given = {
        "cluster": "c1",
        "search_path": [str(slurm), "/usr/bin", "/bin"],
        **({"owner": "me"} if name == "slurm_block" else {}),
        **arguments,
    }
    module = importlib.import_module(f"ansible_collections.gpuops.tenancy.plugins.modules.{name}")
    with patch_module_args(given), pytest.raises(SystemExit) as ended:
        module.main()
    return ended.value.code, json.loads(capsys.readouterr().out)


def writes(slurm) -> list[str]:
    lines = pathlib.Path(f"{slurm}/sacctmgr.log").read_text().splitlines()
    return [line for line in lines if " modify " in line or line.startswith(("scontrol hold", "scontrol release"))]


def test_block_and_unblock(slurm, capsys):
    (slurm / "jobs").write_text("7|al|foo|Priority\n")
    status, checked = run(slurm, capsys, accounts=["foo"], reason="why", _ansible_check_mode=True)
    assert (status, checked.get("msg"), checked["changed"], writes(slurm)) == (0, None, True, [])
    assert not (slurm / "state").exists()
    status, done = run(slurm, capsys, accounts=["foo"], reason="why")
    assert status == 0
    assert (done["plan"], done["commands"], done["diff"]) == (checked["plan"], checked["commands"], checked["diff"])
    # Held before anything changes.
    assert writes(slurm)[0] == "scontrol hold 7"
    assert done["blocks"] == [
        {"kind": "account", "name": "foo", "owner": "me", "reason": "why", "since": done["blocks"][0]["since"]}
    ]
    assert "block of account foo by me" in done["diff"]["after"]
    assert (slurm / "own").exists()
    assert run(slurm, capsys, accounts=["foo"])[1]["changed"] is False
    status, back = run(slurm, capsys, accounts=["foo"], state="unblocked")
    assert (status, back["changed"], back["blocks"], back["still_blocked"]) == (0, True, [], [])
    assert writes(slurm)[-1] == "scontrol release 7"
    assert not (slurm / "own").exists()
    assert run(slurm, capsys, accounts=["foo"], state="unblocked")[1]["changed"] is False


def test_the_record_is_on_disk_before_the_first_change(slurm, capsys):
    (slurm / "jobs").write_text("7|al|foo|Priority\n")
    program = slurm / "scontrol"
    program.write_text(SCONTROL.replace("hold) ", f"hold) cp {slurm}/state/blocks-c1.json {slurm}/seen; "))
    run(slurm, capsys, users=["al"])
    seen = json.loads((slurm / "seen").read_text())
    assert seen["blocks"][0]["name"] == "al"
    assert seen["rows"][0]["qos"] == []
    assert seen["held"] == [{"account": "foo", "job": "7", "user": "al"}]


def test_jobs_that_cannot_be_listed_stop_it(slurm, capsys):
    (slurm / "squeue").write_text("#!/bin/sh\necho 'Unable to contact slurm controller' >&2\nexit 1\n")
    status, result = run(slurm, capsys, users=["al"])
    assert status == 1
    assert "cannot be listed" in result["msg"]
    assert writes(slurm) == []
    assert not (slurm / "state").exists()


def test_a_blocking_qos_that_does_not_block_is_refused(slurm, capsys):
    status, result = run(slurm, capsys, users=["al"], block_qos="n")
    assert status == 1
    assert "QOS n does not block" in result["msg"]
    assert writes(slurm) == []


def test_a_coordinator_is_named(slurm, capsys, monkeypatch):
    said = []
    monkeypatch.setattr(AnsibleModule, "warn", lambda self, message: said.append(message))
    (slurm / "coordinator").write_text("al")
    assert run(slurm, capsys, users=["al"])[0] == 0
    assert "al is coordinator of foo and can lift the block" in said[0]


def test_effective_limits(slurm, capsys):
    status, result = run(slurm, capsys, "slurm_effective_limits_info", users=["AL"])
    assert (status, result["changed"]) == (0, False)
    (entry,) = result["effective"]
    assert (entry["user"], entry["qos"], entry["partition"], entry["allowed"]) == ("al", "n", "p", True)
    assert entry["limits"] == [
        {"option": "max_wall", "resource": "", "value": "01:00:00", "level": "partition p", "instead_of": []}
    ]
    assert run(slurm, capsys, "slurm_effective_limits_info", users=["nobody"])[1]["effective"] == []
