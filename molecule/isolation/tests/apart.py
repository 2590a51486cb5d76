# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs of the playbooks with this scenario's inventory, and jobs of its users."""

from __future__ import annotations

import json
import pathlib
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "cluster"))
import yaml
from recorded import playbook
from remote import on, said, wait_for

TENANTS = pathlib.Path(__file__).resolve().parents[1] / "tenants"
OWN = "tenant-own"
OWNERS = {"gpu2": OWN, "gpu3": OWN}
SETTINGS = {
    "tenancy_tenants_dir": str(TENANTS),
    "slurm_config_partitions": [{"name": "main", "nodes": "all", "default": True}],
    "slurm_config_options": {
        # Jobs start as soon as they can.
        "SchedulerParameters": "bf_continue,bf_window=1440,bf_interval=1,batch_sched_delay=0,sched_min_interval=0,nohold_on_prolog_fail",
        "SlurmctldParameters": "",
    },
    "slurm_compute_hooks_script_timeout": 4,
    # One that can be opened here, as a GPU without its driver cannot.
    "slurm_compute_clean_devices": ["/dev/nvidia[0-9]*", "/dev/full"],
    "slurm_compute_clean_timeout": 5,
    # A container does not come back by itself.
    "slurm_compute_scrub_reboot": False,
    "slurm_compute_scrub_directories": ["/local"],
    "firewall_mode": "enforce",
    "firewall_management": [
        "{{ hostvars['ctl'].tenancy_address_management | regex_replace('[.][0-9]+$', '.0/24') }}",
        "{{ hostvars['ctl'].tenancy_address_management_6 | regex_replace('::.*$', '::/64') }}",
    ],
}
# One that needs no cron, which fires once a minute.
QUICK = {"reassign_probes": ["node-login"]}


def start(name: str, *args: str, owners: dict | None = None, **more):
    """A playbook of the collection, by name, started with the owners of nodes in the inventory."""
    with tempfile.NamedTemporaryFile("w", suffix=".yml", delete=False) as extra:
        hosts = {host: {"slurm_compute_owner": owner} for host, owner in (OWNERS if owners is None else owners).items()}
        yaml.safe_dump({"all": {"hosts": hosts}}, extra)
    settings = {**SETTINGS, **more.pop("settings", {})}
    return playbook(name, "-i", extra.name, "-e", json.dumps(settings), *args, **more)


def run(name: str, *args: str, **more):
    return start(name, *args, **more).wait()


def good(done):
    assert done.returncode == 0, done.output[-6000:]
    return done


def submit(user: str, *options: str, script: str = "sleep 600") -> str:
    """A batch job of one CPU; its id."""
    done = try_submit(user, *options, script=script)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def try_submit(user: str, *options: str, script: str = "sleep 600"):
    argv = ["sbatch", "--parsable", "-n1", "-c1", "--mem=100", "--time=10", "--chdir=/", "--output=/dev/null", *options]
    return on("login", *argv, user=user, stdin=f"#!/bin/sh\n{script}\n")


def state(job: str) -> str:
    return said("ctl", "squeue", "-h", "-j", job, "-o", "%T", "-t", "all") if job else ""


def field(job: str, letter: str) -> str:
    return said("ctl", "squeue", "-h", "-j", job, "-o", letter, "-t", "all")


def wait_state(job: str, *states: str, seconds: float = 60) -> str:
    return wait_for(
        lambda: (now := state(job)) in states and now,
        seconds,
        lambda: said("ctl", "scontrol", "show", "job", job) + said("ctl", "sinfo", "-hNo", "%N %t %E"),
    )


def cancel(*jobs: str) -> None:
    if jobs:
        on("ctl", "scancel", *jobs)
        for job in jobs:
            wait_state(job, "CANCELLED", "COMPLETED", "FAILED", "")


def node(name: str) -> dict[str, str]:
    return dict(
        word.split("=", 1) for word in said("ctl", "scontrol", "-o", "show", "node", name).split() if "=" in word
    )


def neighbours(one: str, other: str) -> bool:
    """Whether a job on one node could reach a job on the other. Nobody listens there: refused is reached."""
    return on(one, "timeout", "2", "bash", "-c", f"exec 3<>/dev/tcp/{other}/29500").returncode != 124


def idle(*names: str) -> None:
    """No job, no epilog, and nothing that keeps them closed."""
    for name in names:
        wait_for(lambda name=name: node(name)["State"] == "IDLE", 60, lambda name=name: str(node(name)))
