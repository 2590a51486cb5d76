# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import apart


@pytest.fixture(scope="session", autouse=True)
def tenants():
    """The site with its private nodes, and all tenants. Made once for a cluster."""
    if apart.on("ctl", "sacctmgr", "-nP", "show", "user", "frank", "format=user").stdout.strip():
        return
    # The nodes are new to Slurm's users, but not to Slurm: they change hands as on any cluster.
    nodes = ",".join(apart.OWNERS)
    apart.good(
        apart.run("reassign_nodes.yml", "-e", json.dumps({"nodes": list(apart.OWNERS)}), "-e", f"confirm={nodes}")
    )
    for document in sorted(apart.TENANTS.glob("*.yml")):
        apart.good(apart.run("onboard.yml", "-e", f"tenant={document.stem}"))


@pytest.fixture(autouse=True)
def no_jobs_left(tenants):
    yield
    for user in ("alice", "bob", "carol", "eve", "frank", "grace"):
        apart.on("ctl", "scancel", "-u", user)
    apart.wait_for(lambda: not apart.said("ctl", "squeue", "-h", "-o", "%i"), 60)
