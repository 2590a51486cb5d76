# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A private /tmp, prolog and epilog, and what is left behind a job. On gpu1, by users of tenants that share."""

from __future__ import annotations

import json
import time

import pytest
from apart import cancel, field, idle, node, on, run, said, state, submit, wait_for, wait_state

NODE = "gpu1"
HERE = ("-w", NODE)
BUGS = "/run/gpuops-tenancy-hooks/bugs.json"


def srun(user: str, script: str):
    return on("login", "srun", "-n1", "--mem=100", "--time=5", "--chdir=/", *HERE, "sh", "-c", script, user=user)


@pytest.fixture
def hook():
    """Puts a script on the node, and takes it away again."""
    placed = []

    def place(context: str, name: str, text: str, mode: str = "0755") -> None:
        path = f"/etc/slurm/{context}.d/{name}"
        placed.append(path)
        said(NODE, "tee", path, stdin=text)
        said(NODE, "chmod", mode, path)

    said(NODE, "rm", "-f", BUGS)
    yield place
    said(NODE, "rm", "-f", *placed, BUGS)
    if "DRAIN" in node(NODE)["State"]:
        said("ctl", "scontrol", "update", f"NodeName={NODE}", "State=RESUME")


def bugs() -> dict[str, int]:
    done = on(NODE, "cat", BUGS)
    return {name: entry["count"] for name, entry in json.loads(done.stdout or "{}").items()}


def log(job: str) -> list[str]:
    """What the node's journal has of this job."""
    said(NODE, "journalctl", "--sync")
    lines = said(NODE, "journalctl", "-q", "-t", "slurm-hooks", "-o", "cat", "--no-pager").splitlines()
    return [line for line in lines if f"job={job} " in line]


def ended(job: str, seconds: float = 60) -> None:
    wait_state(job, "COMPLETED", "CANCELLED", "FAILED", seconds=seconds)
    wait_for(lambda: node(NODE)["State"].split("+")[-1] != "COMPLETING", 60)


# --- a private /tmp ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["/tmp", "/dev/shm"])
def test_a_job_sees_neither_the_nodes_files_nor_another_jobs(place):
    said(NODE, "touch", f"{place}/of-the-node")
    holder = submit("bob", *HERE, script=f"echo secret > {place}/of-bob; chmod 644 {place}/of-bob; sleep 60")
    wait_state(holder, "RUNNING")
    time.sleep(1)
    # Not even another job of the same user.
    for user in ("bob", "eve"):
        done = srun(user, f"ls -A {place}; touch {place}/mine && echo writable")
        assert done.stdout.split() == ["writable"], (user, done.stdout, done.stderr)
    assert on(NODE, "test", "-e", f"{place}/of-bob").returncode != 0
    cancel(holder)
    ended(holder)
    said(NODE, "rm", f"{place}/of-the-node")


def test_nothing_of_a_jobs_tmp_outlives_it():
    done = srun("bob", "echo secret > /tmp/x; echo secret > /dev/shm/y; df --output=target /tmp | tail -1")
    assert done.stdout.strip() == "/tmp"
    idle(NODE)
    assert on(NODE, "find", "/var/spool/slurm-tmp", "-mindepth", "1", "-not", "-path", f"*/{NODE}").stdout == ""
    assert said(NODE, "find", "/tmp", "/dev/shm", "-user", "bob") == ""


def test_a_step_of_the_job_has_its_tmp_too():
    script = "echo hello > /tmp/a; srun -n1 cat /tmp/a > /home/bob/seen 2>&1"
    said(NODE, "install", "-d", "-o", "bob", "/home/bob")
    job = submit("bob", *HERE, script=script)
    ended(job)
    assert said(NODE, "cat", "/home/bob/seen") == "hello"
    said(NODE, "rm", "-rf", "/home/bob")


# --- prolog and epilog ------------------------------------------------------------------------------------------------

BROKEN = {
    "50-syntax": ("#!/bin/sh\nif then fi\n", "0755"),
    "51-traceback": ("#!/usr/bin/python3\nimport no_such_module\n", "0755"),
    "52-no-x-bit": ("#!/bin/sh\nexit 86\n", "0644"),
    "53-hangs": ("#!/bin/sh\ntrap '' TERM\nsleep 600\nsleep 600\n", "0755"),
    "54-status-only": ("#!/bin/sh\nexit 86\n", "0755"),
}


@pytest.mark.parametrize("context", ["prolog", "epilog"])
def test_broken_scripts_cost_no_node_and_no_job(hook, context):
    for name, (text, mode) in BROKEN.items():
        hook(context, name, text, mode)
    job = submit("bob", *HERE, script="exit 0")
    ended(job)
    assert state(job) == "COMPLETED"
    idle(NODE)
    assert bugs() == {f"{context}/{name}": 1 for name in BROKEN}
    lines = log(job)
    for name in BROKEN:
        assert len([line for line in lines if f"{context} " in line and f"script={name} result=bug" in line]) == 1, (
            lines
        )
    # The epilog's own script comes after them.
    assert any("script=90-clean result=ok" in line for line in lines)


def test_a_node_that_its_prolog_finds_broken_is_drained_and_the_job_runs_elsewhere(hook):
    hook(
        "prolog",
        "50-check",
        "#!/bin/sh\n[ \"$SLURMD_NODENAME\" != gpu1 ] || { echo 'node: GPU 3 is gone'; exit 86; }\n",
    )
    job = submit("bob", "--no-requeue", *HERE)
    wait_for(lambda: "DRAIN" in node(NODE)["State"], 60, lambda: str(node(NODE)))
    wait_for(lambda: state(job) in ("PENDING", "CANCELLED", "FAILED", "NODE_FAIL"), 60, lambda: state(job))
    assert any("result=node" in line and "GPU 3 is gone" in line for line in log(job))
    cancel(job)
    job = submit("bob", "--requeue", *HERE)
    said("ctl", "scontrol", "update", f"NodeName={NODE}", "State=RESUME")
    wait_for(lambda: "DRAIN" in node(NODE)["State"], 60, lambda: str(node(NODE)))
    wait_state(job, "PENDING")
    # Not held: when a node can take it, it runs.
    said(NODE, "rm", "/etc/slurm/prolog.d/50-check")
    said("ctl", "scontrol", "update", f"NodeName={NODE}", "State=RESUME")
    wait_state(job, "RUNNING", seconds=180)


def test_a_node_that_its_epilog_finds_broken_is_drained_and_the_job_is_done(hook):
    hook("epilog", "95-check", "#!/bin/sh\necho 'node: ECC errors'\nexit 86\n")
    job = submit("bob", *HERE, script="exit 0")
    wait_for(lambda: "DRAIN" in node(NODE)["State"], 60, lambda: str(node(NODE)))
    wait_state(job, "COMPLETED")
    assert bugs() == {}


def test_an_epilog_goes_on_while_slurmd_restarts(hook):
    hook("epilog", "50-slow", "#!/bin/sh\necho in >> /run/said\nsleep 3\necho out >> /run/said\n")
    said(NODE, "rm", "-f", "/run/said")
    job = submit("bob", *HERE, script="exit 0")
    wait_for(lambda: on(NODE, "test", "-e", "/run/said").returncode == 0, 60)
    said(NODE, "systemctl", "restart", "slurmd")
    idle(NODE)
    assert state(job) == "COMPLETED"
    words = said(NODE, "cat", "/run/said").split()
    # Asked for again, perhaps, and never twice at the same time.
    assert words and words == ["in", "out"] * (len(words) // 2)
    said(NODE, "rm", "/run/said")


def test_a_dispatcher_that_is_broken_itself_costs_no_node(hook):
    said(NODE, "mv", "/usr/local/libexec/gpuops-tenancy/hooks.json", "/run/hooks.json")
    try:
        job = submit("bob", *HERE, script="exit 0")
        ended(job)
        assert state(job) == "COMPLETED"
        idle(NODE)
        assert any("the dispatcher ended with 1" in line for line in log(job))
    finally:
        said(NODE, "mv", "/run/hooks.json", "/usr/local/libexec/gpuops-tenancy/hooks.json")


# --- leftovers --------------------------------------------------------------------------------------------------------


def leave(user: str, *argv: str) -> int:
    """A process of the user outside every job, as one that got away from its job would be."""
    unit = f"left-{user}-{time.monotonic_ns()}"
    said(NODE, "systemd-run", "--quiet", f"--unit={unit}", f"--uid={user}", "--", *argv)
    return int(said(NODE, "systemctl", "show", "-P", "MainPID", unit))


def lives(pid: int) -> bool:
    return on(NODE, "test", "-d", f"/proc/{pid}").returncode == 0


def objects(user: str) -> None:
    """System V objects, a message queue, and files."""
    for what in ("-M", "-Q", "-S"):
        size = {"-M": "64", "-Q": "", "-S": "1"}[what]
        said(NODE, "runuser", "-u", user, "--", "ipcmk", what, *([size] if size else []))
    said(NODE, "sh", "-c", "mountpoint -q /dev/mqueue || { mkdir -p /dev/mqueue; mount -t mqueue none /dev/mqueue; }")
    for path in ("/dev/mqueue", "/dev/shm", "/tmp", "/var/tmp"):
        said(NODE, "runuser", "-u", user, "--", "touch", f"{path}/left-{user}")


def owned(user: str) -> list[str]:
    found = said(NODE, "find", "/dev/mqueue", "/dev/shm", "/tmp", "/var/tmp", "-user", user).split()
    for kind in ("-m", "-q", "-s"):
        found += [line for line in said(NODE, "ipcs", kind).splitlines() if f" {user} " in line]
    return found


def test_the_last_job_of_a_user_takes_everything_of_hers_along_and_nothing_else():
    strangers = leave("eve", "sleep", "9999")
    objects("eve")
    first, second = submit("bob", *HERE), submit("bob", *HERE)
    wait_state(first, "RUNNING")
    wait_state(second, "RUNNING")
    mine = leave("bob", "sleep", "9999")
    holder = leave("bob", "sh", "-c", "exec 3</dev/full; sleep 9999 & wait")
    objects("bob")
    assert len(owned("bob")) == 7
    cancel(first)
    wait_for(lambda: any("90-clean" in line for line in log(first)), 30)
    # It may be the other job's; but a GPU is held by jobs alone.
    assert lives(mine) and len(owned("bob")) == 7 and state(second) == "RUNNING"
    assert not lives(holder)
    assert any(f"has other jobs here: {second}" in line for line in log(first))
    cancel(second)
    wait_for(lambda: any("90-clean" in line for line in log(second)), 30)
    assert not lives(mine) and owned("bob") == []
    assert lives(strangers) and len(owned("eve")) == 7
    # And hers go with hers.
    ended(submit("eve", *HERE, script="exit 0"))
    wait_for(lambda: not lives(strangers) and owned("eve") == [], 30)


def test_two_jobs_that_end_together_leave_nothing():
    jobs = [submit("bob", *HERE) for _number in range(2)]
    for job in jobs:
        wait_state(job, "RUNNING")
    mine = leave("bob", "sleep", "9999")
    assert lives(mine)
    cancel(*jobs)
    wait_for(lambda: not lives(mine), 30)


def test_a_user_who_is_exempt_is_left_alone():
    mine = leave("bob", "sleep", "9999")
    said(NODE, "groupadd", "-f", "sudo")
    said(NODE, "gpasswd", "-a", "bob", "sudo")
    try:
        job = submit("bob", *HERE, script="exit 0")
        ended(job)
        wait_for(lambda: any("bob is in group sudo" in line for line in log(job)), 30, lambda: str(log(job)))
        assert lives(mine)
    finally:
        said(NODE, "gpasswd", "-d", "bob", "sudo")
        said(NODE, "kill", "-9", str(mine))


@pytest.mark.parametrize("context", ["prolog", "epilog"])
def test_no_part_of_it_talks_to_slurmctld(context):
    uid = said(NODE, "id", "-u", "bob")
    # One job for both: its epilog takes off the list what its prolog has put there.
    job = "4000001"
    program = f"/usr/local/libexec/gpuops-tenancy/{context}"
    said("ctl", "systemctl", "stop", "slurmctld")
    try:
        said(
            NODE,
            "env",
            "-i",
            f"SLURM_JOB_ID={job}",
            f"SLURM_JOB_UID={uid}",
            f"SLURMD_NODENAME={NODE}",
            program,
            timeout=15,
        )
    finally:
        said("ctl", "systemctl", "start", "slurmctld")
    if context == "epilog":
        assert any("script=90-clean result=ok" in line for line in log(job))
    wait_for(lambda: on("ctl", "scontrol", "ping").returncode == 0, 60)


def test_a_busy_cluster_is_converged_again_without_touching_its_jobs():
    job = submit("bob", *HERE, script="echo mine > /tmp/x; while sleep 1; do [ -s /tmp/x ] || exit 1; done")
    wait_state(job, "RUNNING")
    old = said(NODE, "slurmd", "-V").split()[1].startswith("22.05")
    for settings in ({"slurm_config_hooks": False, "slurm_config_private_tmp": True}, {}):
        done = run("site.yml", settings=settings)
        assert done.returncode == 0, done.output[-4000:]
        assert state(job) == "RUNNING" and field(job, "%r") == "None"
    after = submit("bob", *HERE, script="exit 0")
    if not old:
        # A node that once did not answer in time waits for the next time that it is asked.
        ended(after, 150)
        assert state(job) == "RUNNING"
    # 22.05 has forgotten the node's label, and lets nobody in until it is empty.
    cancel(job)
    ended(after)
    assert state(after) == "COMPLETED"
    idle(NODE)
    assert old or on(NODE, "find", "/var/spool/slurm-tmp", "-mindepth", "1", "-not", "-path", f"*/{NODE}").stdout == ""
