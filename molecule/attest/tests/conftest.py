# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""One run of everything while another tenant works; the tests look at what it said and left."""

from __future__ import annotations

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from attested import Attested, attest, traces
from listener import outside
from remote import said, wait_for


@pytest.fixture(scope="session")
def before() -> dict[str, list[str]]:
    return traces()


@pytest.fixture(scope="session")
def work(before):
    """Jobs of alice on two of three nodes; the other is the only one that attest may reserve."""
    jobs = [
        said("login", "sbatch", "--parsable", "-n1", f"-w{node}", "--gres=gpu:1", "--mem=100", "--time=30", "--chdir=/", "--output=/dev/null",
             "--wrap=sleep 1700", user="alice")
        for node in ("gpu1", "gpu2")
    ]  # fmt: skip
    wait_for(
        lambda: set(said("ctl", "squeue", "-h", "-j", ",".join(jobs), "-o", "%T").split()) == {"RUNNING"},
        what="alice's jobs",
    )
    state = said("ctl", "squeue", "-h", "-j", ",".join(jobs), "-o", "%i %T %S %N")
    yield jobs, state
    said("login", "scancel", *jobs, user="alice")
    wait_for(lambda: not said("ctl", "squeue", "-h", "-u", "alice"), what="the end of alice's jobs")


@pytest.fixture(scope="session")
def attested(work, tmp_path_factory) -> Attested:
    with outside() as address:
        folder = tmp_path_factory.mktemp("attest") / "report"
        return attest(folder, attest_outside_targets=[address], attest_scratch=["/srv/scratch"])
