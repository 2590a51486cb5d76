# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What must hold before a tenant is onboarded. Pure; private to the gpuops.tenancy collection."""

from __future__ import annotations

import dataclasses
import re
import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import fields, values

ENFORCE = ("associations", "limits", "qos")
# munge refuses a credential that is five minutes off; half of that is trouble to come.
MAX_SKEW = 150

# A limit of an association is void where a QOS (or the partition's QOS) sets one of the same kind: the QOS counts alone.
OUTRANKED_BY: dict[str, tuple[str, ...]] = {
    "grp_tres": ("grp_tres",),
    "grp_tres_mins": ("grp_tres_mins",),
    "grp_tres_run_mins": ("grp_tres_run_mins",),
    "grp_jobs": ("grp_jobs",),
    "grp_submit_jobs": ("grp_submit_jobs",),
    "grp_wall": ("grp_wall",),
    "max_jobs": ("max_jobs_per_user", "max_jobs_per_account"),
    "max_submit_jobs": ("max_submit_jobs_per_user", "max_submit_jobs_per_account"),
    "max_tres_per_job": ("max_tres_per_job",),
    "max_tres_per_node": ("max_tres_per_node",),
    "max_tres_mins_per_job": ("max_tres_mins_per_job",),
    "max_wall": ("max_wall",),
}
LIMIT_OPTIONS = sorted({option for options in OUTRANKED_BY.values() for option in options})


@dataclasses.dataclass
class Reading:
    """What the cluster said. ``config``: scontrol show config; ``qos``: name -> option -> normal form;
    ``partitions``: name -> name of its QOS; ``root_qos``: what an account without a list of its own inherits;
    ``skew``: seconds by which this host's clock is ahead of the controller's."""

    config: dict[str, str]
    clusters: list[str]
    qos: dict[str, dict[str, t.Any]]
    partitions: dict[str, str]
    root_qos: list[str]
    skew: float = 0.0


@dataclasses.dataclass(frozen=True)
class Cap:
    """A limit that a document sets. ``where``: for messages; ``qos``: QOS that jobs under it can have."""

    where: str
    option: str
    value: t.Any
    qos: frozenset[str]


def parse_config(text: str) -> dict[str, str]:
    """``scontrol show config`` as a dict."""
    pairs = (line.partition("=") for line in text.splitlines() if "=" in line)
    return {key.strip(): value.strip() for key, _equals, value in pairs}


def parse_partition_qos(text: str) -> dict[str, str]:
    """``scontrol -o show partition``: name -> QOS of the partition, without those that have none."""
    found = {}
    for line in text.splitlines():
        name = re.search(r"(?:^|\s)PartitionName=(\S+)", line)
        qos = re.search(r"(?:^|\s)QoS=(\S+)", line)
        if name and qos and qos[1] != "N/A":
            found[name[1]] = qos[1]
    return found


def caps(accounts: t.Sequence[dict], users: t.Sequence[dict], root_qos: t.Sequence[str]) -> list[Cap]:
    """Every limit of the arguments of slurm_accounting, with the QOS that it meets."""
    lists: dict[str, frozenset[str]] = {}
    found: list[Cap] = []
    below: dict[str, set[str]] = {}
    parents = {account["name"]: account.get("parent") or "root" for account in accounts}
    for account in accounts:
        lists[account["name"]] = frozenset(account.get("qos") or lists.get(parents[account["name"]], root_qos))
    rows = [(user["name"], row) for user in users for row in user.get("associations") or []]
    user_lists = [frozenset(row.get("qos") or lists.get(row["account"], root_qos)) for _name, row in rows]
    # A cap on an account meets the QOS of everybody below it.
    for name, own in [*lists.items(), *((row["account"], own) for (_name, row), own in zip(rows, user_lists))]:
        seen: set[str] = set()
        while name in parents and name not in seen:
            seen.add(name)
            below.setdefault(name, set()).update(own)
            name = parents[name]
    for account in accounts:
        found += _caps_of(account, f"account {account['name']}", frozenset(below[account["name"]]))
    for (name, row), own in zip(rows, user_lists):
        found += _caps_of(row, f"user {name} in {row['account']}", own)
    return found


def _caps_of(row: dict, where: str, qos: frozenset[str]) -> list[Cap]:
    found = []
    for option in OUTRANKED_BY:
        if row.get(option) is None:
            continue
        field = fields.BY_OPTION[option]
        value = values.from_option(field, row[option])
        if value != field.unset:
            found.append(Cap(where, option, value, qos))
    return found


def problems(reading: Reading, cluster: str, wanted: t.Sequence[Cap], named_qos: t.Iterable[str]) -> list[str]:
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
    return found + outranked(reading, wanted)


def outranked(reading: Reading, wanted: t.Sequence[Cap]) -> list[str]:
    """Caps that a QOS, or the QOS of a partition, would make void by a larger limit of the same kind."""
    found = []
    for cap in wanted:
        candidates = [(name, f"QOS {name}") for name in sorted(cap.qos)]
        candidates += [(qos, f"QOS {qos} of partition {name}") for name, qos in sorted(reading.partitions.items())]
        for name, label in candidates:
            for option in OUTRANKED_BY[cap.option]:
                larger = _larger(cap.value, reading.qos.get(name, {}).get(option))
                if larger:
                    found.append(
                        f"{cap.option} of {cap.where} would not hold: {label} sets {option} {larger}, and a QOS outranks an association; "
                        f"lower or remove it there, or do not grant {name}"
                    )
    return found


def _larger(cap: t.Any, other: t.Any) -> str:
    """The part of a QOS's limit that exceeds the cap, as text; empty if none does."""
    if other is None or other in ({}, frozenset()):
        return ""
    if isinstance(cap, dict):
        return ",".join(
            f"{name}={other[name]} (cap {cap[name]})"
            for name in sorted(cap)
            if name in other and other[name] > cap[name]
        )
    return f"{other} (cap {cap})" if other > cap else ""
