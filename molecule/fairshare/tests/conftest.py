# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What happens once, before the tests look at it: waits overlap, so that the scenario is short."""

from __future__ import annotations

import dataclasses
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import lab
from lab import said, submit, wait_for

STRANGER = "games"  # a user that every Debian has, of a tenant of his own

# (user, options, seconds). Of each team somebody, more of some than of others; emil, dan and one entry of dora's nothing.
JOBS = [
    ("rosa", ["--gres=gpu:2"], 16),
    ("raj", ["--gres=gpu:1"], 9),
    ("ella", ["--gres=gpu:4"], 17),
    ("ines", ["--gres=gpu:1"], 8),
    ("ivan", ["--gres=gpu:1"], 5),
    ("dora", ["--gres=gpu:1"], 9),
    (STRANGER, ["--gres=gpu:1"], 7),
]
# One of each team, all for the whole L40S node, of which somebody more urgent has a part throughout.
WAITING = {"rosa": "normal", "ivan": "normal", "emil": "prepaid-lab", "dan": "normal", "ci-runner": "scavenger"}


@dataclasses.dataclass
class Lab:
    """Jobs that stand for something, and what was measured when all of JOBS had ended and usage was counted."""

    scavenger: str = ""
    urgent: str = ""
    normal: str = ""
    urgent_behind_normal: str = ""
    submitted: float = 0
    sshare: dict = dataclasses.field(default_factory=dict)
    tree: list = dataclasses.field(default_factory=list)
    waiting: dict = dataclasses.field(default_factory=dict)  # user -> priority by fair share
    counted: float = 0
    usage: dict = dataclasses.field(default_factory=dict)


def measured_usage() -> dict:
    return {
        "prepaid": lab.usage("qos", "prepaid-lab"),
        "ella": int(lab.shares()["evaluation-lab", "ella", ""]["RawUsage"]),
        "research": lab.usage("accounts", "research-lab"),
    }


@pytest.fixture(scope="session")
def stranger():
    said("ctl", "sacctmgr", "-i", "add", "account", "other", "fairshare=100", f"cluster={lab.CLUSTER}")
    said("ctl", "sacctmgr", "-i", "add", "user", STRANGER, "account=other", f"cluster={lab.CLUSTER}")
    return STRANGER


@pytest.fixture(scope="session")
def ran(stranger) -> Lab:
    found = Lab()
    # The jobs that proved the accounts have used a little.
    said(
        "ctl",
        "sacctmgr",
        "-i",
        "modify",
        "account",
        "where",
        "name=tenant-lab",
        f"cluster={lab.CLUSTER}",
        "set",
        "RawUsage=0",
    )
    # All GPUs of the L40S node, and somebody with the right to them who has to let the first minute pass.
    found.scavenger = submit("ci-runner", "--partition=l40s", "--gres=gpu:4", "--time=30")
    wait_for(lambda: lab.running(found.scavenger), what="the scavenger")
    found.urgent = submit("ines", "--partition=l40s", "--gres=gpu:1", "--time=30")
    jobs = [submit(user, *options, seconds=seconds) for user, options, seconds in JOBS]
    wait_for(lambda: lab.ended(*jobs), 90, "jobs of five teams")
    # The same with a normal job of another tenant in the place of the scavenger: nothing may happen here.
    found.normal = submit(STRANGER, "--qos=normal", "--gres=gpu:4", "--nodelist=gpu1", "--time=30")
    wait_for(lambda: lab.running(found.normal), what="the normal job")
    found.submitted = lab.now()
    found.urgent_behind_normal = submit("ivan", "--gres=gpu:1", "--nodelist=gpu1", "--time=30")
    queue = {
        user: submit(user, f"--qos={qos}", "--partition=l40s", "--gres=gpu:4", "--time=30")
        for user, qos in WAITING.items()
    }
    lab.count_usage()
    found.counted = lab.now()
    found.sshare = lab.shares()
    found.tree = lab.rows(found.sshare)
    factors = dict(line.split() for line in said("ctl", "sprio", "-h", "-o", "%i %F").splitlines())
    found.waiting = {user: int(factors[number]) for user, number in queue.items()}
    found.usage = measured_usage()
    lab.cancel(*queue.values())
    return found


@pytest.fixture
def jobs():
    """Submits; what it submitted is gone afterwards."""
    made: list[str] = []

    def run(user: str, *options: str, seconds: int = 600) -> str:
        made.append(submit(user, *options, seconds=seconds))
        return made[-1]

    yield run
    if made:
        lab.cancel(*made)
