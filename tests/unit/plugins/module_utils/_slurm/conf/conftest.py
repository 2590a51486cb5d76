# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import copy

import pytest

SPEC = {
    "cluster_name": "demo",
    "controllers": [{"name": "ctl", "address": "172.29.20.10"}],
    "database_host": "172.29.20.10",
    "user": "slurm",
    "state_dir": "/var/spool/slurmctld",
    "spool_dir": "/var/spool/slurmd",
    "log_dir": "/var/log/slurm",
    "partitions": [
        {"name": "h100", "gres": "gpu:h100", "default": True},
        {"name": "a100", "gres": "gpu:a100"},
    ],
    "partition_defaults": {"max_time": "1-00:00:00", "default_time": "00:30:00"},
    "billing_weights": {"cpu": 1.0, "mem": "0.25G", "gres/gpu:h100": 32.0, "gres/gpu": 16.0},
    "switches": [{"name": "spine", "switches": ["leaf1", "leaf2"]}],
}


def definition(name, kind="h100", switch="leaf1"):
    gres = [{"name": "gpu", "type": kind, "count": 4, "file": "/dev/nvidia[0-3]"}]
    return {
        "name": name, "address": f"172.29.20.{20 + int(name[3:])}", "cpus": 2, "real_memory": 2000,
        "gres": gres, "switch": switch,
    }  # fmt: skip


@pytest.fixture
def spec():
    return copy.deepcopy(SPEC)


@pytest.fixture
def definitions():
    return [definition("gpu1"), definition("gpu2"), definition("gpu3", "a100", "leaf2")]
