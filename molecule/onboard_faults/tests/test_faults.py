# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kill it anywhere: the next run starts at once and ends in the same state."""

from __future__ import annotations

import json
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "cluster"))
from definition import definition
from engine import Engine
from recorded import module, playbook
from remote import gpus_seen, on, said, wait_for

HOSTS = ("ctl", "login", "gpu1", "gpu2", "gpu3")
NODES = ("gpu1", "gpu2", "gpu3")
USERS = ("alice", "carol", "dave")
ACCOUNTS = ("ml-team-foo", "data-team-foo", "tenant-foo")
SLOW = "/opt/slow"


FORGET_NUMBERS = """
import json, sys
path = "/var/lib/gpuops-tenancy/numbers.json"
numbers = json.load(open(path))["numbers"]
kept = {number: name for number, name in numbers.items() if name not in sys.argv[1:]}
json.dump({"numbers": kept}, open(path, "w"))
"""


def onboard(*args, **options):
    return playbook("onboard.yml", "-e", "tenant=tenant-foo", "-e", "tenancy_smoke_deadline=30", *args, **options)


def state() -> str:
    """What onboarding leaves: associations, accounts, users, and who is who on the hosts."""
    parts = [
        said("ctl", "sacctmgr", "-nP", "show", "assoc", "wopi", "format=account,user,partition,parentname,share,grptres,grpsubmit,maxjobs,"
             "maxsubmit,grptresmins,qos,defaultqos"),
        said("ctl", "sacctmgr", "-nP", "show", "account", "format=account,description,organization"),
        said("ctl", "sacctmgr", "-nP", "show", "user", "format=user,defaultaccount"),
    ]  # fmt: skip
    parts += ["\n".join(sorted(said(host, "getent", "passwd", *USERS).splitlines())) for host in HOSTS]
    return "\n\n".join(parts)


def forget() -> None:
    """As if tenant-foo had never been."""
    said("ctl", "sh", "-c", "scancel -A " + ",".join(ACCOUNTS))
    for account in ACCOUNTS:
        on("ctl", "sacctmgr", "-i", "delete", "user", "where", f"account={account}")
        on("ctl", "sacctmgr", "-i", "delete", "account", account)
    assert said("ctl", "sacctmgr", "-nP", "show", "assoc", "account=" + ",".join(ACCOUNTS)) == ""
    said("ctl", "python3", "-c", FORGET_NUMBERS, *USERS)
    for host in HOSTS:
        said(
            host,
            "sh",
            "-c",
            f"for u in {' '.join(USERS)}; do userdel -r $u 2>/dev/null; groupdel $u 2>/dev/null; done; true",
        )


def converges_to(expected: str, started: float | None = None) -> None:
    """A run that starts at once ends in the expected state, and a further one changes nothing."""
    again = onboard().wait()
    assert again.returncode == 0, again.output
    assert state() == expected
    third = onboard().wait()
    assert third.returncode == 0, third.output
    assert third.changed == []


@pytest.fixture(scope="module")
def reference() -> str:
    """The state after a run that nobody disturbed."""
    forget()
    run = onboard().wait()
    assert run.returncode == 0, run.output
    tasks = {result["task"] for result in run.changed}
    assert len(tasks) == 3, f"the kill test knows three tasks that change something, not {tasks}"
    return state()


@pytest.mark.parametrize("number", [1, 2, 3])
def test_ansible_killed_after_a_task_that_changed_something(reference, number):
    forget()
    killed = onboard(kill_after=number).wait()
    assert killed.killed, killed.output
    assert len({result["task"] for result in killed.changed}) == number
    converges_to(reference)


@pytest.fixture
def slow_writes():
    """A folder of commands in which sacctmgr waits before it writes, so that a kill meets it in the middle."""
    shim = f'#!/bin/sh\ncase " $* " in *" add "*|*" create "*|*" modify "*) touch {SLOW}/writing; sleep 6;; esac\nexec /usr/bin/sacctmgr "$@"\n'
    said("ctl", "mkdir", "-p", SLOW)
    said(
        "ctl",
        "sh",
        "-c",
        f"for p in /usr/bin/s*; do ln -sf $p {SLOW}/; done; rm {SLOW}/sacctmgr; cat > {SLOW}/sacctmgr; chmod 755 {SLOW}/sacctmgr",
        stdin=shim,
    )
    yield
    said("ctl", "rm", "-rf", SLOW)


def writing() -> bool:
    return on("ctl", "test", "-e", f"{SLOW}/writing").returncode == 0


def test_ansible_killed_in_the_middle_of_the_accounting(reference, slow_writes):
    forget()
    run = onboard("-e", json.dumps({"slurm_config_search_path": [SLOW]}))
    wait_for(writing, what="the first write")
    run.kill()
    assert run.wait().killed
    # The module goes on without its controller and keeps the lock as long as it lives.
    holder = module(
        "ctl",
        "slurm_accounting",
        {"cluster": "demo", "scope": ["tenant-foo"], "accounts": [{"name": "tenant-foo"}], "lock_timeout": 1},
    )
    assert holder.returncode != 0
    assert "still held" in holder.errors[0]
    assert "slurm_accounting" in holder.errors[0]
    converges_to(reference)


def test_module_killed_in_the_middle_of_a_write(reference, slow_writes):
    forget()
    run = onboard("-e", json.dumps({"slurm_config_search_path": [SLOW]}))
    wait_for(writing, what="the first write")
    # Its command line is a bare python3; the lock knows its number.
    said(
        "ctl",
        "sh",
        "-c",
        "kill -9 $(grep -o '\"pid\": [0-9]*' /run/gpuops-tenancy/gpuops-tenancy-slurm-accounting-demo.lock | grep -o '[0-9]*')",
    )
    failed = run.wait()
    assert failed.returncode != 0
    # What it had started still writes: the next run has to wait for that too.
    assert on("ctl", "pgrep", "-f", f"{SLOW}/sacctmgr").returncode == 0
    converges_to(reference)


def test_slurmdbd_killed_in_the_middle(reference, slow_writes):
    forget()
    run = onboard("-e", json.dumps({"slurm_config_search_path": [SLOW]}))
    wait_for(writing, what="the first write")
    said("ctl", "systemctl", "stop", "slurmdbd")
    said("ctl", "sh", "-c", "pkill -9 -x slurmdbd; true")
    failed = run.wait()
    said("ctl", "systemctl", "start", "slurmdbd")
    assert failed.returncode != 0
    result = failed.of("slurm_accounting")[-1]
    assert result["remaining"], result
    wait_for(lambda: on("ctl", "sacctmgr", "-nP", "show", "cluster").returncode == 0, what="slurmdbd")
    converges_to(reference)


def test_slurmdbd_comes_back_after_a_crash(reference):
    said("ctl", "pkill", "-9", "-x", "slurmdbd")
    wait_for(lambda: on("ctl", "sacctmgr", "-nP", "show", "cluster").returncode == 0, what="slurmdbd")
    assert state() == reference


def running_equals_files() -> None:
    """slurmctld's own comparison of what it runs with and the file on each host."""
    for host in HOSTS:
        assert "HASH_VAL" in said(host, "scontrol", "show", "config")
        line = next(
            line for line in said(host, "scontrol", "show", "config").splitlines() if line.startswith("HASH_VAL")
        )
        assert line.split("=", 1)[1].strip() == "Match", f"{host}: {line}"
    for node in NODES:
        # slurmd reads its files at start: none may be younger than it is.
        pid = said(node, "systemctl", "show", "-p", "MainPID", "--value", "slurmd")
        started = said(node, "stat", "-c", "%Y", f"/proc/{pid}")
        newest = max(int(word) for word in said(node, "sh", "-c", "stat -c %Z /etc/slurm/*.conf").split())
        assert int(started) >= newest, f"{node}: slurmd runs with older files"


def test_site_killed_after_every_task_that_changed_something():
    # Logins, devices and firewall have nothing to change here, and would take as long as all else.
    short = ["--skip-tags", "node_login,node_hygiene,gpu_access,firewall"]
    defaults = '{"slurm_config_partition_defaults": {"max_time": "2-00:00:00", "default_time": "00:20:00"}}'
    change = [*short, "-e", defaults]
    kills = 0
    while True:
        run = playbook("site.yml", *change, kill_after=1).wait()
        if not run.killed:
            break
        kills += 1
        assert kills < 40
    assert run.returncode == 0, run.output
    # Each file and each daemon of it was one task: a run was killed between every file and its restart.
    assert kills >= 6, f"only {kills} tasks changed something"
    running_equals_files()
    assert "DefaultTime=00:20:00" in said("ctl", "scontrol", "-o", "show", "partition", "h100")
    assert playbook("site.yml", *change).wait().changed == []
    back = playbook("site.yml", *short).wait()
    assert back.returncode == 0, back.output
    running_equals_files()


def restart(host: str) -> None:
    engine = Engine()
    engine.start()
    engine("restart", "-t", "30", f"{definition()['name']}-{host}", timeout=120)


@pytest.mark.parametrize("host", ["ctl", "gpu1"])
def test_a_reboot_heals_itself(reference, host):
    restart(host)
    wait_for(lambda: on(host, "true").returncode == 0, what="ssh")
    wait_for(
        lambda: on("login", "sinfo", "-h", "-t", "idle", "-o", "%D").stdout.split()
        and set(on("login", "sinfo", "-hN", "-o", "%t").stdout.split()) == {"idle"},
        what="idle nodes",
    )
    assert said("ctl", "systemctl", "list-units", "--state=failed", "--no-legend", "--plain") == ""
    assert state() == reference
    seen = gpus_seen("login", "srun", "-n1", "--gres=gpu:1", user="alice")
    assert sorted(seen.values()) == ["ENXIO", "EPERM", "EPERM", "EPERM"]


def test_the_neighbour_noticed_nothing():
    assert said("login", "srun", "-n1", "id", "-un", user="bob") == "bob"
