# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Another munge key for a cluster that works: together, no job lost, whoever misses it is closed and catches up."""

from __future__ import annotations

import base64
import hashlib
import pathlib
import shlex
import sys
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tests" / "cluster"))
import watch
from definition import definition, inventory_folder
from engine import Engine
from recorded import playbook
from remote import on, said, wait_for

HOSTS = ("ctl", "login", "gpu1", "gpu2", "gpu3")
KEY = inventory_folder().parent / "secrets" / "munge.key"
NAME = f"rotation{int(time.time())}"
OVER = f"/var/tmp/{NAME}.over"
ENDED = "CD,F,TO,CA,NF"
NEXT = KEY.with_name("munge.key.next")


def fingerprints() -> set[str]:
    return {said(host, "sha256sum", "/etc/munge/munge.key").split()[0] for host in HOSTS}


def switched() -> list[float]:
    """When each munged began."""
    found = []
    for host in HOSTS:
        pid = said(host, "systemctl", "show", "-p", "MainPID", "--value", "munge")
        found.append(float(said(host, "stat", "-c", "%.Y", f"/proc/{pid}")))
    return found


def trusted(writer: str, reader: str) -> bool:
    text = said(writer, "munge", "--no-input")
    return on(reader, "unmunge", "-o", "/dev/null", stdin=text).returncode == 0


def everybody_trusts_everybody() -> None:
    assert len(fingerprints()) == 1
    assert all(trusted("ctl", host) and trusted(host, "ctl") for host in HOSTS)
    assert all(on(host, "test", "-e", "/etc/munge/munge.key.next").returncode for host in HOSTS)
    assert fingerprints() == {hashlib.sha256(KEY.read_bytes()).hexdigest()}
    assert not NEXT.exists()


def rotate(*args: str, kill_at: str = ""):
    return playbook("rotate_munge_key.yml", *args, kill_at=kill_at).wait()


def new_key(*args: str, kill_at: str = ""):
    return rotate("-e", "munge_new_key=true", *args, kill_at=kill_at)


def state(node: str) -> str:
    return said("ctl", "sinfo", "-haN", "-n", node, "-o", "%T|%E").splitlines()[0]


@pytest.fixture(scope="module")
def rotated():
    """A rotation that tells all it can, while jobs run, end and begin."""
    before = fingerprints()
    for host in HOSTS:
        on(host, "rm", "-f", OVER)
    long = (
        f"srun -n1 -t 15 -J {NAME} sh -c 'until test -e {OVER}; do sleep 0.5; done; echo survived' >/tmp/long.out 2>&1"
    )
    said("login", "systemd-run", "--unit=long", "--collect", "--uid=alice", "sh", "-c", long)
    short = f"until test -e {OVER}; do sbatch -Q -t 2 -o /dev/null -J {NAME} --wrap 'sleep 1'; sleep 1; done"
    said("login", "systemd-run", "--unit=churn", "--collect", "--uid=alice", "sh", "-c", short)
    wait_for(lambda: "RUNNING" in said("login", "squeue", "-h", "-n", NAME, "-o", "%T", user="alice"), what="a job")
    checked = new_key("--check", "--diff")
    assert checked.returncode == 0, checked.output[-3000:]
    assert fingerprints() == before
    assert not NEXT.exists()
    run = new_key("-vvv", "--diff")
    assert run.returncode == 0, run.output[-3000:]
    # Some more jobs, with the new key alone.
    ended = len(ends())
    wait_for(lambda: len(ends()) >= ended + 3, what="jobs that end after the switch")
    for host in HOSTS:
        said(host, "touch", OVER)
    return before, checked, run


def ends() -> list[str]:
    """States of the jobs that have ended."""
    return said(
        "ctl", "sacct", "-nXPa", "--name", NAME, "-s", ENDED, "-S", "now-1hour", "-E", "now", "-o", "state"
    ).split()


def test_all_have_another_key_at_the_same_moment(rotated):
    before, checked, run = rotated
    everybody_trusts_everybody()
    assert fingerprints() != before
    moments = switched()
    assert max(moments) - min(moments) < 3, moments
    # The plan was true: what was to be switched was.
    switches = [
        sorted((result["host"], str(result["plan"])) for result in it.of("munge_key_switch")) for it in (checked, run)
    ]
    assert switches[0] == switches[1]
    assert len(switches[0]) == len(HOSTS)


def test_no_job_is_lost_and_a_running_srun_survives(rotated):
    del rotated
    wait_for(
        lambda: not said("login", "squeue", "-h", user="alice") and on("login", "pgrep", "-x", "srun").returncode,
        180,
        lambda: said("login", "squeue", user="alice"),
    )
    assert said("login", "cat", "/tmp/long.out").splitlines()[-1] == "survived"
    states = said("login", "sacct", "-nXP", "--name", NAME, "-o", "state", user="alice").split()
    assert len(states) >= 10
    assert set(states) == {"COMPLETED"}
    seen: list[set[str]] = []

    def idle() -> bool:
        seen.append({state(node) for node in ("gpu1", "gpu2", "gpu3")})
        return seen[-1] == {"idle|none"}

    # Where the switch swallowed the end of a job, slurmctld learns of it when it asks the nodes again (100 s).
    wait_for(idle, 240, what=lambda: f"idle nodes instead of {seen[-1]}")


def test_the_key_is_in_no_output(rotated):
    _before, _checked, run = rotated
    secrets = {"munge key": base64.b64decode(said("ctl", "base64", "/etc/munge/munge.key"))}
    assert watch.found(run.output.encode(), secrets) == []
    assert "module_args" in run.output


def test_without_being_asked_it_changes_nothing(rotated):
    del rotated
    before = fingerprints(), switched()
    run = rotate()
    assert run.returncode == 0, run.output[-3000:]
    assert run.changed == []
    assert (fingerprints(), switched()) == before


def test_a_limit_is_refused(rotated):
    del rotated
    run = new_key("--limit", "ctl,gpu1")
    assert run.returncode != 0
    assert "Leave out --limit" in " ".join(run.errors)
    everybody_trusts_everybody()


def test_killed_wherever_the_state_changes_it_ends_with_one_key(rotated):
    del rotated
    before = fingerprints()
    run = new_key(kill_at="Bring it to each host that lacks it; nothing changes by that")
    assert run.killed, run.output[-3000:]
    # Some hosts have been told the moment then, and switch by themselves; the others have not.
    run = rotate(kill_at="Switch at that moment")
    assert run.killed, run.output[-3000:]
    run = rotate(kill_at="From now on the key is the cluster's")
    assert run.killed, run.output[-3000:]
    run = rotate()
    assert run.returncode == 0, run.output[-3000:]
    everybody_trusts_everybody()
    assert fingerprints() != before


def test_who_misses_it_is_closed_and_catches_up(rotated):
    del rotated
    engine = Engine()
    engine.start()
    container = f"{definition()['name']}-gpu3"
    engine("exec", container, "sh", "-c", "systemctl stop ssh.socket ssh.service; pkill -x sshd; pkill sshd-; true")
    try:
        run = new_key()
    finally:
        engine("exec", container, "systemctl", "start", "ssh")
    assert run.returncode == 4, run.output[-3000:]
    assert "Without the key: gpu3" in run.output
    assert "drain" in state("gpu3")
    assert state("gpu3").endswith("|[munge-key] missed the new key")
    assert not trusted("ctl", "gpu3")
    assert trusted("ctl", "gpu2")
    began = switched()
    caught = rotate()
    assert caught.returncode == 0, caught.output[-3000:]
    everybody_trusts_everybody()
    # The others were not touched.
    assert [old == new for old, new in zip(began, switched())] == [True, True, True, True, False]
    wait_for(lambda: state("gpu3") == "idle|none", 60, lambda: state("gpu3"))
    assert said("login", *shlex.split("srun -n1 -p a100 hostname"), user="alice") == "gpu3"


def test_somebody_elses_drain_stays(rotated):
    del rotated
    said("ctl", "scontrol", "update", "NodeName=gpu3", "State=DRAIN", "Reason=disk")
    run = rotate()
    assert run.changed == []
    assert state("gpu3").endswith("|disk")
    said("ctl", "scontrol", "update", "NodeName=gpu3", "State=RESUME")
