# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Probes whose answer is seen from outside: whether sshd lets somebody in, and what the controller allows."""

from __future__ import annotations

import os

from ..api import REGISTRY, Probe, failed, probe


@probe(
    "node-login",
    "gets no login on a compute node without a job there",
    "node_login: pam_slurm_adopt before common-account, action_no_jobs=deny",
    ("ssh",),
    actors=("a", "none"),
)
def node_login(world):
    """ssh to a compute node where the user has no job. It runs only if sshd let the user in."""
    return failed(f"logged in as uid {os.getuid()}, process {os.getpid()}")


REGISTRY["job-table"] = Probe(
    "job-table",
    "cannot fill the controller's job table",
    {"": "tenant documents: limits.grp_submit_jobs; slurm_config: MaxJobCount"},
    ("controller",),
    "Compare how many jobs each tenant may have in the queue with four fifths of MaxJobCount; nothing is submitted.",
    None,
    ("root",),
)
