# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The whole of site.yml on a node with a job, and on a node that is new. Last: it takes back what the scenario prepared."""

from __future__ import annotations

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from access import job, on, said, site, wait_for
from remote import OPEN_GPUS

PROBE = "/opt/jobs/open-gpus"
SEEN = "/opt/jobs/seen"
# Something in slurm.conf, in slurmd's unit (so that it has to restart), and in the device policies.
CHANGES = {
    "slurm_config_partition_defaults": {"max_time": "1-00:00:00", "default_time": "00:25:00"},
    "slurm_config_max_processes": 30000,
    "gpu_access_services_extra": ["site-app", "another"],
}


def slurmd(node: str) -> tuple[str, str]:
    return tuple(on(node, "systemctl", word, "slurmd").stdout.strip() for word in ("is-active", "is-enabled"))


def main_pid(node: str) -> str:
    return said(node, "systemctl", "show", "--property=MainPID", "--value", "slurmd")


def test_a_whole_run_that_changes_things_opens_no_window_in_a_job():
    said("gpu1", "install", "-d", "-m", "1777", "/opt/jobs")
    said(
        "gpu1",
        "sh",
        "-c",
        f"cat > {PROBE} && chmod 0755 {PROBE} && rm -f {SEEN}",
        stdin=f"#!/usr/bin/python3\n{OPEN_GPUS}",
    )
    watch = f"while :; do echo $(date +%s) $({PROBE} | sort); sleep 0.1; done > {SEEN} 2>&1"
    with job("alice", "gpu1", "--gres=gpu:1", script=watch) as number:
        wait_for(lambda: on("gpu1", "test", "-s", SEEN).returncode == 0, 20, "the probe in the job")
        began, before = int(said("gpu1", "date", "+%s")), main_pid("gpu1")
        changed = site(**CHANGES)
        assert changed.returncode == 0, changed.output
        assert main_pid("gpu1") != before, "slurmd was not restarted, so this shows nothing"
        assert {result["host"] for result in changed.changed} >= {"ctl", "gpu1"}
        back = site()
        assert back.returncode == 0, back.output
        ended = int(said("gpu1", "date", "+%s"))
        shown = said("ctl", "scontrol", "show", "job", number)
        assert "JobState=RUNNING" in shown and "Restarts=0" in shown
        lines = said("gpu1", "cat", SEEN).splitlines()
    # The last one may be half a line.
    rows = [line.split() for line in lines[:-1]]
    times = [int(row[0]) for row in rows if began <= int(row[0]) <= ended]
    gaps = [later - earlier for earlier, later in zip([began, *times], [*times, ended], strict=True)]
    assert max(gaps) < 15, "the probe did not run all the time"
    answers = {tuple(row[1:]) for row in rows}
    assert len(answers) == 1, answers
    assert sorted(answers.pop()[1::2]) == ["ENXIO", "EPERM", "EPERM", "EPERM"]


@pytest.fixture
def new():
    """gpu3 as it is when it has never been at work."""
    said("gpu3", "systemctl", "disable", "--now", "slurmd")
    yield "gpu3"
    on("gpu3", "rm", "-f", "/dev/nvidia9")
    said("gpu3", "systemctl", "enable", "--now", "slurmd")


def test_a_new_node_takes_no_job_before_it_is_isolated(new):
    said(new, "mknod", "-m", "666", "/dev/nvidia9", "c", "195", "9")
    # As its package leaves it.
    said(new, "systemctl", "enable", "slurmd")
    failed = site("--limit", new)
    assert failed.returncode != 0
    assert "/dev/nvidia9 is not in gres.conf" in failed.output
    assert f"{new} is not isolated" in failed.output
    assert slurmd(new) == ("inactive", "disabled"), "a reboot would let jobs in"
    said(new, "rm", "/dev/nvidia9")
    part = site("--limit", new, "--tags", "slurm_compute")
    assert part.returncode != 0
    assert "this run has left steps out" in part.output
    said(new, "systemctl", "enable", "slurmd")
    killed = site("--limit", new, kill_at="Keep slurmd from starting before the node is isolated")
    assert killed.killed, killed.output
    assert slurmd(new) == ("inactive", "disabled")
    whole = site("--limit", new)
    assert whole.returncode == 0, whole.output
    assert slurmd(new) == ("active", "enabled")
    wait_for(lambda: said("ctl", "sinfo", "-h", "-n", new, "-o", "%T") == "idle", 60, "the node")
    again = site("--limit", new)
    assert (again.returncode, again.changed) == (0, []), again.output
