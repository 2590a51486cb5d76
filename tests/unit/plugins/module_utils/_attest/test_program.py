# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program itself, run as an unprivileged user; and what the modules understand of sshd and Slurm."""

from __future__ import annotations

import base64
import json
import os
import pathlib
import pwd
import shutil
import subprocess
import sys
import tempfile

import pytest
from ansible_collections.gpuops.tenancy.plugins.module_utils._attest import (
    api,
    campaign,
    catalogue,
    place,
    runner,
    slurm_node,
    sshd,
)
from ansible_collections.gpuops.tenancy.plugins.module_utils._attest.probes import (
    devices,
    network,
    processes,
    slurm_write,
)

SITE = """
import os, time
from attest.api import NotProven, failed, passed, probe, skipped

CONTROL = {"control": "nothing", "contexts": ("login", "container")}

@probe("site-pass", "is held", **CONTROL)
def one(world):
    \"\"\"Try.\"\"\"
    return passed(f"{os.getuid()} {world.context} {world.actor} {world.gpus} {[one['host'] for one in world.here]}")

@probe("site-broken", "is a bug", **CONTROL)
def two(world):
    \"\"\"Try.\"\"\"
    return 1 / 0

@probe("site-nothing", "returns nothing", **CONTROL)
def three(world):
    \"\"\"Try.\"\"\"

@probe("site-unproven", "could not be tried", **CONTROL)
def four(world):
    \"\"\"Try.\"\"\"
    world.run(["no-such-program"])

@probe("site-exit", "ends the process", **CONTROL)
def five(world):
    \"\"\"Try.\"\"\"
    os._exit(3)

@probe("site-leak", "sees nothing", **CONTROL)
def six(world):
    \"\"\"Try.\"\"\"
    return failed(", ".join(world.foreign("attest-b1 attest-bx xattest-b s3cret")))
"""
FACTS = {
    "host": "gpu1",
    "users": {"a": "attest-a1", "b": "attest-b1"},
    "accounts": {"a": "attest-a", "b": "attest-b"},
    "victims": [{"host": "gpu1", "secret": "s3cret"}, {"host": "gpu2", "secret": "other"}],
    "targets": {},
}
PROBES = ["site-pass", "site-broken", "site-nothing", "site-unproven", "site-exit", "site-leak"]


# An interpreter that an unprivileged user can start as well; root's own may lie in root's home.
PYTHON = shutil.which("python3", path="/usr/bin:/usr/local/bin") if os.getuid() == 0 else sys.executable
needs_python = pytest.mark.skipif(PYTHON is None, reason="no python3 in /usr/bin that an unprivileged user could start")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("attest")
    (path / "attest.pyz").write_bytes(base64.b64decode(catalogue.program({"own": SITE})))
    # Up to what everybody may read anyway: with xdist it lies a level deeper.
    for part in (path, *path.parents):
        if part == pathlib.Path(tempfile.gettempdir()):
            break
        part.chmod(0o755)
    path.chmod(0o777)
    return path


def run(folder, name, as_root=False, **spec):
    out = folder / f"{name}.jsonl"
    file = folder / f"{name}.json"
    file.write_text(json.dumps({"actor": "a", "facts": FACTS, "out": str(out), **spec}))
    who = {"user": 65534, "group": 65534, "extra_groups": []} if os.getuid() == 0 and not as_root else {}
    done = subprocess.run(
        [PYTHON, str(folder / "attest.pyz"), str(file)],
        capture_output=True,
        text=True,
        timeout=120,
        cwd="/",
        check=False,
        **who,
    )
    return done, place.lines(str(out))


@needs_python
def test_each_probe_has_an_answer_and_none_takes_the_others_along(folder):
    done, lines = run(folder, "login", parts=[{"context": "login", "probes": PROBES}])
    assert done.returncode == 0, done.stderr
    found = {line["id"]: (line["verdict"], line["evidence"]) for line in lines if "id" in line}
    uid = 65534 if os.getuid() == 0 else os.getuid()
    assert found["site-pass"] == (api.PASS, f"{uid} login a 0 ['gpu1']")
    assert found["site-broken"] == (api.ERROR, "ZeroDivisionError: division by zero (own.py:15)")
    assert found["site-nothing"][0] == api.ERROR and "no outcome" in found["site-nothing"][1]
    assert found["site-unproven"] == (api.ERROR, "there is no no-such-program on this host")
    assert found["site-exit"][0] == api.ERROR
    assert found["site-leak"] == (api.FAIL, "attest-b1, the other tenant's secret")
    assert lines[-1]["done"]


@needs_python
def test_a_second_start_of_the_same_does_nothing(folder):
    first = run(folder, "again", parts=[{"context": "login", "probes": ["site-pass"]}])[1]
    done, second = run(folder, "again", parts=[{"context": "login", "probes": ["site-pass"]}])
    assert (done.returncode, second) == (0, first)


@needs_python
def test_a_container_answers_too_or_says_that_there_is_none(folder):
    _done, lines = run(folder, "container", gpus=1, parts=[{"context": "container", "probes": ["site-pass"]}])
    answer = next(line for line in lines if "id" in line)
    assert answer["context"] == "container"
    assert answer["evidence"].startswith("0 container a 1") or answer["verdict"] == api.NOT_APPLICABLE


@needs_python
@pytest.mark.skipif(os.getuid() != 0, reason="only root can be refused as root")
def test_root_is_refused(folder):
    done, lines = run(folder, "root", as_root=True, parts=[{"context": "login", "probes": ["site-pass"]}])
    assert done.returncode == 1 and lines == []
    assert "never run as root" in done.stderr


def test_a_probe_that_hangs_is_an_error(monkeypatch):
    monkeypatch.setattr(runner, "PROBE_TIMEOUT", 0.5)
    world = runner.World({"actor": "a", "facts": FACTS}, "login")
    hanging = api.Probe("x", "y", {"": "z"}, ("login",), "w", lambda world: __import__("time").sleep(60))
    outcome = runner.attempt(hanging, world)
    assert (outcome.verdict, outcome.evidence) == (api.ERROR, "no answer within 0.5 s")


def test_lines_of_a_user_are_data(tmp_path):
    path = tmp_path / "answers"
    path.write_bytes(b'{"id": "one"}\nnot json\n[1]\n\xff\n{"id": "two"}\n{"id": "cut')
    assert place.lines(str(path)) == [{"id": "one"}, {"id": "two"}]
    assert place.lines(str(tmp_path / "missing")) == []
    (tmp_path / "link").symlink_to("/etc/passwd")
    assert place.read(str(tmp_path / "link")) == ""


def entry(home="/home/attest-a1"):
    return pwd.struct_passwd(("attest-a1", "x", 10001, 10001, place.MARK, home, "/bin/bash"))


@pytest.mark.parametrize(
    ("words", "path"),
    [
        ([".ssh/authorized_keys", ".ssh/authorized_keys2"], "/home/attest-a1/.ssh/authorized_keys"),
        (["/etc/ssh/authorized_keys.d/%u"], "/etc/ssh/authorized_keys.d/attest-a1"),
        ([".ssh/authorized_keys", "/etc/keys/%u"], "/etc/keys/attest-a1"),
        (["%h/keys"], "/home/attest-a1/keys"),
    ],
)
def test_where_a_key_goes(words, path):
    assert sshd.place_of_keys({"authorizedkeysfile": words}, entry()) == path


def test_no_place_for_a_key():
    for words in ([], ["none"]):
        with pytest.raises(sshd.NoWay):
            sshd.place_of_keys({"authorizedkeysfile": words}, entry())


ACCEPTED = "debug1: Server accepts key: /run/gpuops-attest/key\n"


@pytest.mark.parametrize(
    ("log", "lists", "kind"),
    [
        (
            ACCEPTED + "Access denied by pam_slurm_adopt: you have no active jobs on this node\nConnection closed",
            {},
            "jobless",
        ),
        # Some other module of PAM.
        (ACCEPTED + "Connection closed by 127.0.0.1 port 22", {}, "closed"),
        (ACCEPTED + "Access denied by pam_slurm_adopt: no idea", {}, "closed"),
        (ACCEPTED + "Authenticated to 127.0.0.1\nConnection closed by 127.0.0.1", {}, "broken"),
        (ACCEPTED + "Authenticated to 127.0.0.1\nbash: python3: command not found", {}, "broken"),
        ("attest-a1@127.0.0.1: Permission denied (publickey).", {}, "broken"),
        ("attest-a1@127.0.0.1: Permission denied (publickey).", {"allowgroups": ["staff"]}, "closed"),
        ("ssh: connect to host 127.0.0.1 port 22: Connection refused", {}, "broken"),
    ],
)
def test_what_a_refusal_proves(log, lists, kind):
    assert sshd.refusal(log, lists)[0] == kind


@pytest.mark.parametrize(
    ("context", "actor", "kind", "control", "ssh_to_jobs", "expected"),
    [
        # Want of a job is what a node is to refuse for; anything else is one only where a job made the difference.
        ("ssh", "a", "jobless", False, True, True),
        ("ssh", "a", "closed", True, True, True),
        ("ssh", "a", "closed", False, True, False),
        ("ssh", "a", "closed", False, False, True),
        ("ssh", "a", "broken", True, False, False),
        # Who has a job gets in, unless nobody may.
        ("ssh-job", "a", "jobless", False, True, False),
        ("ssh-job", "a", "closed", False, True, False),
        ("ssh-job", "a", "closed", False, False, True),
        # Login nodes are there for users.
        ("login", "a", "closed", False, True, False),
        ("login", "a", "closed", False, False, False),
        ("login", "capped", "closed", True, True, False),
        ("login", "none", "closed", True, True, True),
        ("login", "none", "closed", False, True, False),
    ],
)
def test_which_refused_login_is_what_the_site_wants(context, actor, kind, control, ssh_to_jobs, expected):
    door = campaign.contexts.Entry(context, actor, f"attest-{actor}1", ["gpu-device"])
    assert campaign.expected(door, kind, control, ssh_to_jobs) is expected


class Key:
    lists: dict = {}


@pytest.mark.parametrize(
    ("context", "log", "verdicts"),
    [
        ("ssh", ACCEPTED + "pam_slurm_adopt: you have no active jobs on this node", ["pass", "not applicable"]),
        ("ssh", ACCEPTED + "Connection closed", ["error", "error"]),
        ("ssh-job", ACCEPTED + "pam_slurm_adopt: you have no active jobs on this node", ["error", "error"]),
        ("login", ACCEPTED + "Connection closed", ["error", "error"]),
    ],
)
def test_a_refused_login_is_an_error_unless_it_is_the_claim(tmp_path, context, log, verdicts):
    (tmp_path / "log").write_text(log)
    door = campaign.contexts.Entry(context, "a", "attest-a1", ["node-login", "gpu-device"], log=str(tmp_path / "log"))
    door.key = Key()
    found = campaign.judged(door, {"ssh_to_jobs": True})
    assert [one["verdict"] for one in found] == verdicts, found
    assert all("sshd knew the key" in one["evidence"] for one in found)


@pytest.mark.parametrize(
    ("text", "closed"),
    [
        ("You (attest-a1) are not allowed to use this program (crontab)", True),
        ("You do not have permission to use at.", True),
        ("crontabs/attest-a1: No space left on device", False),
    ],
)
def test_only_a_refusal_closes_cron_and_at(text, closed):
    door = campaign.contexts.Entry("cron", "a", "attest-a1", [])
    campaign.contexts.refused(door, "cron", campaign.contexts.Completed(["x"], 1, "", text))
    assert (bool(door.closed), bool(door.broken)) == (closed, not closed)


def victim(**more):
    with open("/proc/self/stat") as stream:
        start = stream.read().rsplit(")", 1)[1].split()[19]
    return {"host": "gpu1", "pids": [os.getpid()], "start": start, "job": "", **more}


def test_a_victim_that_is_gone_is_found(monkeypatch):
    states = {"7": "RUNNING None", "8": "", "9": "PENDING BeginTime"}
    monkeypatch.setattr(slurm_node, "state", lambda job, path: states[job])
    facts = {
        "host": "gpu1",
        "victims": [
            victim(),
            victim(host="gpu2", job="7", start="0"),
            victim(host="gpu3", job="8"),
            victim(host="x", job="8"),
        ],
        "pending_job": "9",
    }
    assert list(campaign.missing(facts, {"gpu1", "gpu2", "gpu3", api.WAITING}, [])) == ["gpu3"]
    gone = campaign.missing({**facts, "victims": [victim(start="0")], "pending_job": "7"}, {"gpu1", api.WAITING}, [])
    assert set(gone) == {"gpu1", api.WAITING}
    assert campaign.missing({**facts, "victims": [victim(start="0")]}, set(), []) == {}


@pytest.mark.parametrize(
    ("status", "stderr", "says"),
    [(-9, "", "SIGKILL"), (1, "Traceback\nMemoryError\n", "MemoryError"), (1, "MemoryError: no", "MemoryError: no")],
)
def test_what_stops_who_takes_too_much_memory(status, stderr, says):
    assert catalogue.load({}) and processes.stopped(status, stderr) == says


@pytest.mark.parametrize(
    ("status", "stderr"),
    [(1, ""), (2, "can't open file"), (-15, ""), (-6, ""), (1, "OSError: [Errno 28] No space left"), (127, "")],
)
def test_whatever_else_ends_it_proves_nothing(status, stderr):
    with pytest.raises(api.NotProven):
        processes.stopped(status, stderr)


@pytest.mark.parametrize(
    ("stdout", "stderr", "rc", "state"),
    [
        ("RUNNING None\n", "", 0, "RUNNING None"),
        ("", "slurm_load_jobs error: Invalid job id specified", 1, ""),
        ("", "", 0, ""),
        ("", "slurm_load_jobs error: Unable to contact slurm controller", 1, "UNKNOWN ("),
    ],
)
def test_a_controller_that_is_silent_ends_no_job(monkeypatch, stdout, stderr, rc, state):
    monkeypatch.setattr(slurm_node, "run", lambda argv, **more: campaign.contexts.Completed(argv, rc, stdout, stderr))
    found = slurm_node.state("7", [])
    assert found.startswith(state) and bool(found) == bool(state)


def in_job(monkeypatch, shown, gpus=1, files=(((("/dev/nvidia0",), ("/dev/nvidia1",), ("/dev/nvidia2",))),)):
    monkeypatch.setattr(runner.World, "run", lambda self, argv: (0, shown, ""))
    return runner.World({"actor": "a", "facts": {**FACTS, "gpu_files": files}, "gpus": gpus}, "job")


@pytest.mark.parametrize(
    ("shown", "gpus", "given"),
    [
        ("Nodes=gpu1 CPU_IDs=0 Mem=100 GRES=gpu:h100:1(IDX:2)", 1, ["/dev/nvidia2"]),
        ("Nodes=gpu1 GRES=gpu:2(IDX:0,2)", 2, ["/dev/nvidia0", "/dev/nvidia2"]),
        ("Nodes=gpu1 GRES=gpu:a:1(IDX:0),gpu:b:2(IDX:1-2)", 3, ["/dev/nvidia0", "/dev/nvidia1", "/dev/nvidia2"]),
    ],
)
def test_which_devices_a_job_was_given(monkeypatch, shown, gpus, given):
    assert in_job(monkeypatch, shown, gpus).devices == [given]


@pytest.mark.parametrize("shown", ["", "GRES=gpu:1(IDX:7)", "GRES=gpu:2(IDX:0-1)", "GRES=shard:1(IDX:0)"])
def test_a_job_whose_devices_are_not_known_proves_nothing(monkeypatch, shown):
    world = in_job(monkeypatch, shown)
    with pytest.raises(api.NotProven):
        _devices = world.devices


def test_without_the_files_of_gres_conf_devices_are_counted(monkeypatch):
    assert in_job(monkeypatch, "GRES=gpu:1(IDX:0)", files=()).devices is None


@pytest.mark.parametrize(
    ("through", "given", "verdict"),
    [
        ({"/dev/nvidia1"}, [["/dev/nvidia1"]], "pass"),
        # One, but another's.
        ({"/dev/nvidia0"}, [["/dev/nvidia1"]], "FAIL"),
        ({"/dev/nvidia0"}, [["/dev/nvidia1"], ["/dev/nvidia0"]], "pass"),
        ({"/dev/nvidia0", "/dev/nvidia1"}, [["/dev/nvidia1"]], "FAIL"),
        (set(), [["/dev/nvidia1"]], "pass"),
        ({"/dev/nvidia0"}, None, "pass"),
        ({"/dev/nvidia0", "/dev/nvidia1"}, None, "FAIL"),
    ],
)
def test_the_right_device_is_what_counts(monkeypatch, through, given, verdict):
    monkeypatch.setattr(devices, "opened", lambda path: "ENXIO" if path in through else "EPERM")
    assert devices.attack(["/dev/nvidia0", "/dev/nvidia1"], 1, "GPU", given).verdict == verdict


PARTITIONS = """
PartitionName=open AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL
PartitionName=mine AllowGroups=ALL AllowAccounts=x,attest-a AllowQos=ALL
PartitionName=other AllowGroups=ALL AllowAccounts=tenant-foo AllowQos=ALL
PartitionName=denied AllowGroups=ALL AllowAccounts=ALL DenyAccounts=attest-a,x AllowQos=ALL
PartitionName=staff AllowGroups=staff AllowAccounts=ALL AllowQos=ALL
PartitionName=fast AllowGroups=ALL AllowAccounts=ALL AllowQos=high
PartitionName=slow AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL DenyQos=normal
"""


def test_which_partitions_are_not_for_the_user():
    own = {"Accounts": {"attest-a"}, "Groups": {"attest-a1"}, "Qos": {"normal"}}
    found = [
        name
        for name, values in slurm_write.partitions(PARTITIONS)
        if any(slurm_write.closed(values, what, mine) for what, mine in own.items())
    ]
    assert found == ["other", "denied", "staff", "fast", "slow"]


@pytest.mark.parametrize(("there", "verdict"), [(["192.0.2.1:443"], "FAIL"), ([], "error")])
def test_an_outside_address_that_nobody_reaches_proves_nothing(monkeypatch, there, verdict):
    monkeypatch.setattr(network, "connect", lambda target: "")
    probe = catalogue.load({})["net-outside"]
    facts = {**FACTS, "targets": {"outside": ["192.0.2.1:443"], "outside_there": there}}
    assert runner.judged(probe, runner.World({"actor": "a", "facts": facts}, "job")).verdict == verdict
    facts = {**FACTS, "targets": {}}
    assert runner.judged(probe, runner.World({"actor": "a", "facts": facts}, "job")).verdict == api.NOT_APPLICABLE


@pytest.mark.parametrize(
    ("gres", "count"),
    [
        ("gpu:h100:4", 4),
        ("gpu:4(S:0-1)", 4),
        ("gpu:a100:2(S:0),gpu:h100:6(S:1),shard:8", 8),
        ("craynetwork:1", 0),
        ("(null)", 0),
        ("gpu:1g.10gb:7", 7),
    ],
)
def test_how_many_gpus_a_node_has(gres, count):
    assert slurm_node.gpus({"Gres": gres}) == count


def test_a_process_is_known_by_number_and_start():
    with open("/proc/self/stat") as stream:
        start = stream.read().rsplit(")", 1)[1].split()[19]
    assert campaign.alive({"pid": os.getpid(), "start": start})
    assert not campaign.alive({"pid": os.getpid(), "start": "1"})
    assert not campaign.alive({"pid": "x"})
    assert not campaign.alive(None)


def test_nobody_else_is_taken_for_a_canary():
    assert place.is_canary(entry())
    assert not place.is_canary(pwd.struct_passwd(("alice", "x", 10001, 10001, "Alice", "/home/alice", "/bin/bash")))
    assert not place.is_canary(pwd.struct_passwd(("attest-a1", "x", 0, 0, place.MARK, "/root", "/bin/bash")))
    with pytest.raises(place.PlaceError, match="no canary"):
        place.account("daemon")
    with pytest.raises(place.PlaceError, match="unknown here"):
        place.account("no-such-user-here")
