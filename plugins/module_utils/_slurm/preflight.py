# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What must hold before a tenant is onboarded. Pure; private to the gpuops.tenancy collection."""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.partitions import Partition

ENFORCE = ("associations", "limits", "qos")
# munge refuses a credential that is five minutes off; half of that is trouble to come.
MAX_SKEW = 150


@dataclasses.dataclass
class Reading:
    """What the cluster said. ``config``: scontrol show config; ``qos``: name -> option -> normal form;
    ``root_qos``: what an account without a list of its own inherits; ``skew``: seconds by which this host's clock is ahead of the controller's."""

    config: dict[str, str]
    clusters: list[str]
    qos: dict[str, dict[str, t.Any]]
    partitions: dict[str, Partition]
    root_qos: list[str]
    skew: float = 0.0


def parse_config(text: str) -> dict[str, str]:
    """``scontrol show config`` as a dict."""
    pairs = (line.partition("=") for line in text.splitlines() if "=" in line)
    return {key.strip(): value.strip() for key, _equals, value in pairs}


def problems(reading: Reading, cluster: str, named_qos: t.Iterable[str]) -> list[str]:
    """One sentence for each thing that must be put right first."""
    found = []
    running = reading.config.get("ClusterName", "")
    if running.lower() != cluster.lower():
        found.append(
            f"slurmctld here runs cluster {running!r}, not {cluster!r}; set tenancy_cluster_name or the inventory right"
        )
    if cluster.lower() not in (name.lower() for name in reading.clusters):
        known = ", ".join(reading.clusters) or "none"
        found.append(f"slurmdbd knows no cluster {cluster!r} (it knows: {known}); run site.yml first")
    enforced = reading.config.get("AccountingStorageEnforce", "").split(",")
    missing = [flag for flag in ENFORCE if flag not in enforced]
    if missing:
        found.append(
            f"AccountingStorageEnforce is {','.join(enforced)!r} and lacks {', '.join(missing)}: "
            "limits would be written and not enforced; run site.yml first"
        )
    if abs(reading.skew) > MAX_SKEW:
        found.append(
            f"the clock of this host is {reading.skew:+.0f} s off the Ansible controller's; munge refuses what is 300 s off"
        )
    for name in sorted(set(named_qos) - set(reading.qos)):
        found.append(
            f"QOS {name!r} does not exist (there are: {', '.join(sorted(reading.qos))}); add it to slurm_controller_qos and run site.yml"
        )
    return found
