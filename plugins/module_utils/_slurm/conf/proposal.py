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


def propose(
    report: str, devices: t.Sequence[str], gpus: str = "", information: t.Sequence[str] = ()
) -> dict[str, t.Any]:
    """The value for slurm_compute_node.

    :param report: what ``slurmd -C`` printed.
    :param devices: paths below /dev; only whole GPUs (nvidia0, nvidia1 ...) count.
    :param gpus: what ``nvidia-smi --query-gpu=name --format=csv,noheader`` printed, or nothing.
    :param information: the driver's files /proc/driver/nvidia/gpus/*/information, which say which device is which model.
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
        # Without the driver's word it cannot be told which file is which model.
        common = kinds.pop() if len(kinds) == 1 else UNKNOWN_TYPE
        known = dict(filter(None, map(model_of, information)))
        grouped: dict[str, list[str]] = {}
        for path in files:
            grouped.setdefault(known.get(path.rpartition("/")[2], common), []).append(path)
        node["gres"] = [
            {"name": "gpu", "type": kind, "count": len(paths), "file": hostlist.fold(paths)}
            for kind, paths in grouped.items()
        ]
    return node


def round_down(megabytes: int) -> int:
    """Memory to promise: a kernel update may take a little, and a node with less than promised is taken out."""
    step = 1000 if megabytes >= 10_000 else 100
    return max(megabytes // step * step, 1)


def model_of(information: str) -> tuple[str, str] | None:
    """Name of the device file and type, from what the driver says of one GPU."""
    words = {
        key.strip(): value.strip() for key, _colon, value in (row.partition(":") for row in information.splitlines())
    }
    number = words.get("Device Minor", "")
    if not number.isdigit() or not words.get("Model"):
        return None
    return f"nvidia{number}", short_name(words["Model"])


def short_name(model: str) -> str:
    """'NVIDIA H100 80GB HBM3' -> 'h100'."""
    words = re.sub(r"[^A-Za-z0-9 -]", " ", model).lower().replace("-", " ").split()
    for word in words:
        if re.match(r"^[a-z]{1,3}\d{2,4}[a-z]{0,2}$", word):
            return word
    return "-".join(word for word in words if word != "nvidia") or UNKNOWN_TYPE
