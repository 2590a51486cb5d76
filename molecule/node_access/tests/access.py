# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Users who come in by ssh, jobs that wait for them, and the playbook as the scenario runs it."""

from __future__ import annotations

import contextlib
import json
import pathlib
import shlex
import subprocess
import sys

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "cluster"))
from definition import inventory_folder, state
from recorded import Run, Started, playbook
from remote import OPEN_GPUS, on, said, wait_for

KEYS = "/etc/ssh/authorized_keys.d"
DENIED = {f"nvidia{n}": "EPERM" for n in range(4)}
# cgroup.procs of the job would do as well, but this is what a program sees.
WHERE = "cat /proc/self/cgroup"


def give_key(user: str, *hosts: str) -> None:
    """As the directory, or onboarding, would: one file that only root writes."""
    public = (state() / "id.pub").read_text()
    for host in hosts:
        said(host, "sh", "-c", f"cat > {KEYS}/{user} && chmod 0644 {KEYS}/{user}", stdin=public)


def ssh_argv(host: str, user: str, *argv: str) -> list[str]:
    """A connection of its own: sharing root's would try nothing."""
    options = ["-o", "ControlMaster=no", "-o", "ControlPath=none", "-o", "LogLevel=INFO", "-l", user]
    return ["ssh", "-F", str(state() / "ssh_config"), *options, host, shlex.join(argv)]


def ssh(host: str, user: str, *argv: str, stdin: str | None = None):
    return subprocess.run(
        ssh_argv(host, user, *argv), input=stdin, capture_output=True, text=True, timeout=90, check=False
    )


def gpus(output: str) -> dict[str, str]:
    return dict(line.split() for line in output.splitlines() if line.startswith("nvidia"))


def gpus_by_ssh(host: str, user: str) -> dict[str, str]:
    done = ssh(host, user, "python3", "-c", OPEN_GPUS)
    assert done.returncode == 0, done.stderr
    return gpus(done.stdout)


def sorted_answers(seen: dict[str, str]) -> list[str]:
    return sorted(seen.values())


@contextlib.contextmanager
def job(user: str, node: str, *options: str, script: str = "sleep 600"):
    """A running job of a user on a node."""
    number = said(
        "login", "sbatch", "--parsable", "-n1", "--mem=100", f"-w{node}", "--time=10", "--chdir=/tmp", "--output=/dev/null", *options,
        stdin=f"#!/bin/sh\n{script}\n", user=user,
    )  # fmt: skip
    try:
        wait_for(
            lambda: said("login", "squeue", "-h", "-j", number, "-o", "%T", user=user) == "RUNNING", 60, "a running job"
        )
        # Allotted is not yet there: sshd asks the node.
        wait_for(lambda: "extern" in on(node, "scontrol", "listpids", number).stdout, 30, "the job on its node")
        yield number
    finally:
        on("login", "scancel", number, user=user)
        wait_for(
            lambda: not on("login", "squeue", "-h", "-j", number, user=user).stdout.strip(), 60, "the end of the job"
        )


def site(*args: str, kill_at: str = "", **variables) -> Run:
    """The whole of site.yml, with the scenario's variables and others."""
    (own,) = yaml.safe_load((ROOT / "molecule" / "node_access" / "converge.yml").read_text())
    return playbook("site.yml", "-e", json.dumps({**own["vars"], **variables}), *args, kill_at=kill_at).wait()


def converge(*args: str, **options) -> Started:
    """The scenario's own playbook, with its variables."""
    argv = [str(pathlib.Path(sys.executable).parent / "ansible-playbook"), "-i", str(inventory_folder())]
    return Started([*argv, str(ROOT / "molecule" / "node_access" / "converge.yml"), *args], **options)
