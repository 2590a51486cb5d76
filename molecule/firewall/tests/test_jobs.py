# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Jobs work behind the firewall, by way of the tree too, and only because the matrix has a row for it."""

from __future__ import annotations

import pathlib
import sys
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from ways import converge, counter, on, role, said, wait_for

NODES = ["gpu1", "gpu2", "gpu3"]
SRUN = ["srun", "-Q", "-p", "all", "-N", "3", "-t", "2", "hostname"]


@pytest.fixture(autouse=True)
def idle():
    wait_for(lambda: said("ctl", "sinfo", "-h", "-p", "all", "-o", "%T").split() == ["idle"], 120, "idle nodes")
    yield


def through(row: str) -> int:
    return sum(counter(node, f"in_{row}") for node in NODES)


def test_a_job_on_three_nodes_goes_by_way_of_one_of_them():
    shown = said("ctl", "scontrol", "show", "config")
    assert "TreeWidth               = 2" in shown
    before = through("slurmd_fanout")
    assert sorted(said("login", *SRUN, user="alice").split()) == NODES
    assert through("slurmd_fanout") > before


def test_it_does_not_work_without_the_row():
    assert role(hosts="slurm_compute", extra={"firewall_rows_off": ["slurmd_fanout"]}).wait().returncode == 0
    try:
        done = on("login", "timeout", "60", *SRUN, user="alice", timeout=90)
        assert done.returncode != 0 or sorted(done.stdout.split()) != NODES
    finally:
        said("ctl", "scancel", "-u", "alice")
        converge()
    wait_for(lambda: sorted(on("login", *SRUN, user="alice").stdout.split()) == NODES, 180, "srun on three nodes")


def test_srun_in_a_job_and_sbatch_and_accounting():
    for node in NODES:
        said(node, "chmod", "1777", "/srv")
    inner = "srun -Q -N3 hostname | sort | tr '\\n' ' '; sacct -nXP -o jobid -j $SLURM_JOB_ID"
    job = said(
        "login",
        "sbatch",
        "--parsable",
        "-W",
        "-p",
        "all",
        "-N3",
        "-t",
        "2",
        # No directory of the job's own, and none that is cleaned up behind it.
        "-D",
        "/srv",
        "-o",
        "%j.out",
        "--wrap",
        inner,
        user="alice",
    )
    node = said("ctl", "scontrol", "show", "job", job, "-o").split("BatchHost=")[1].split()[0]
    output = said(node, "cat", f"/srv/{job}.out")
    assert output.split() == [*NODES, job]


LISTEN = """
import socket
one = socket.create_server(("", 29500))
one.settimeout(30)
print(one.accept()[0].recv(5).decode())
"""
TALK = """
import socket, time
for _attempt in range(100):
    try:
        socket.create_connection(("gpu1", 29500)).send(b"hello")
        break
    except OSError:
        time.sleep(0.2)
"""


def test_two_nodes_of_a_job_talk_to_each_other():
    """As NCCL's bootstrap and torchrun do."""
    choose = 'if [ "$SLURMD_NODENAME" = gpu1 ]; then exec python3 -c "$LISTEN"; else exec python3 -c "$TALK"; fi'
    srun = ["srun", "-Q", "-p", "all", "-w", "gpu1,gpu2", "-N2", "-t", "1", "sh", "-c", choose]
    assert said("login", "env", f"LISTEN={LISTEN}", f"TALK={TALK}", *srun, user="alice") == "hello"


def test_reconverging_a_busy_node_kills_no_job():
    job = said(
        "login",
        "sbatch",
        "--parsable",
        "-p",
        "all",
        "-w",
        "gpu1",
        "-t",
        "5",
        "-o",
        "/dev/null",
        "--wrap",
        "sleep 240",
        user="alice",
    )
    try:
        wait_for(lambda: said("ctl", "squeue", "-h", "-j", job, "-o", "%T") == "RUNNING", what="the job")
        # From nothing, which is the hardest: connections are there that the kernel has not tracked yet.
        assert role(hosts="gpu1,ctl", extra={"firewall_mode": "absent"}).wait().returncode == 0
        time.sleep(1)
        assert role(hosts="gpu1,ctl").wait().returncode == 0
        assert said("ctl", "squeue", "-h", "-j", job, "-o", "%T") == "RUNNING"
        wait_for(
            lambda: said("ctl", "sinfo", "-h", "-n", "gpu1", "-p", "all", "-o", "%T") in ("mixed", "allocated"),
            what="gpu1",
        )
    finally:
        said("ctl", "scancel", job)
