# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node definition proposed from what a host reports. Private to the gpuops.tenancy collection."""

from __future__ import annotations

import re
import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import hostlist
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.conf.read import records
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.conf.version import ConfigError

_FIELDS = {
    "boards": "Boards",
    "sockets": "SocketsPerBoard",
    "cores_per_socket": "CoresPerSocket",
    "threads_per_core": "ThreadsPerCore",
}
UNKNOWN_TYPE = "fill-in"


def propose(report: str, devices: t.Sequence[str], gpus: str = "") -> dict[str, t.Any]:
    """The value for slurm_compute_node.

    :param report: what ``slurmd -C`` printed.
    :param devices: paths below /dev; only whole GPUs (nvidia0, nvidia1 ...) count.
    :param gpus: what ``nvidia-smi --query-gpu=name --format=csv,noheader`` printed, or nothing.
    """
    found = records(report, "NodeName")
    if not found:
        raise ConfigError("'slurmd -C' printed no NodeName line; run it on the host and look at what it says")
    seen = found[0]
    node: dict[str, t.Any] = {"cpus": int(seen["cpus"])}
    for field, key in _FIELDS.items():
        if int(seen.get(key.lower(), 1)) > 1:
            node[field] = int(seen[key.lower()])
    node["real_memory"] = round_down(int(seen["realmemory"]))
    files = sorted((path for path in devices if re.search(r"/nvidia\d+$", path)), key=hostlist.natural)
    if files:
        kinds = {short_name(line) for line in gpus.splitlines() if line.strip()} or {UNKNOWN_TYPE}
        if len(kinds) == 1:
            node["gres"] = [{"name": "gpu", "type": kinds.pop(), "count": len(files), "file": hostlist.fold(files)}]
        else:
            # Which file is which model cannot be told from here.
            node["gres"] = [{"name": "gpu", "type": UNKNOWN_TYPE, "count": len(files), "file": hostlist.fold(files)}]
    return node


def round_down(megabytes: int) -> int:
    """Memory to promise: a kernel update may take a little, and a node with less than promised is taken out."""
    step = 1000 if megabytes >= 10_000 else 100
    return max(megabytes // step * step, 1)


def short_name(model: str) -> str:
    """'NVIDIA H100 80GB HBM3' -> 'h100'."""
    words = re.sub(r"[^A-Za-z0-9 -]", " ", model).lower().replace("-", " ").split()
    for word in words:
        if re.match(r"^[a-z]{1,3}\d{2,4}[a-z]{0,2}$", word):
            return word
    return "-".join(word for word in words if word != "nvidia") or UNKNOWN_TYPE
