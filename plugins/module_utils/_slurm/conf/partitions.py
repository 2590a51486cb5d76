# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Partitions: which nodes, how long, and what a GPU costs. Private to the gpuops.tenancy collection."""

from __future__ import annotations

import re
import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import hostlist
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.conf import lines
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.conf.nodes import Node
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.conf.version import ConfigError

_NAME = re.compile(r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$")
_TIME = re.compile(r"^(?:(?P<days>\d+)-)?(?P<first>\d+)(?::(?P<second>\d{2}))?(?::(?P<third>\d{2}))?$")
# Field of a partition, key in slurm.conf.
_KEYS = {
    "max_mem_per_cpu": "MaxMemPerCPU",
    "max_nodes": "MaxNodes",
    "min_nodes": "MinNodes",
    "allow_accounts": "AllowAccounts",
    "deny_accounts": "DenyAccounts",
    "allow_groups": "AllowGroups",
    "allow_qos": "AllowQos",
    "deny_qos": "DenyQos",
    "qos": "QOS",
    "priority_tier": "PriorityTier",
    "priority_job_factor": "PriorityJobFactor",
    "preempt_mode": "PreemptMode",
    "over_subscribe": "OverSubscribe",
    "exclusive_user": "ExclusiveUser",
    "hidden": "Hidden",
    "state": "State",
}
_OWN = {
    "name",
    "nodes",
    "gres",
    "default",
    "max_time",
    "default_time",
    "def_mem_per_cpu",
    "billing_weights",
    "options",
    "owner",
}


def minutes(where: str, text: t.Any) -> int:
    """Slurm's time formats (minutes, MM:SS, HH:MM:SS, D-HH, D-HH:MM, D-HH:MM:SS) in minutes, rounded up."""
    match = _TIME.match(str(text).strip())
    if match is None:
        raise ConfigError(
            f"{where} is {text!r}; write [days-]HH:MM:SS (UNLIMITED is refused: a job could wait for ever)"
        )
    first, second, third = (int(match.group(name) or 0) for name in ("first", "second", "third"))
    if match.group("days") is not None:
        seconds = int(match.group("days")) * 86400 + first * 3600 + second * 60 + third
    elif match.group("third") is not None:
        seconds = first * 3600 + second * 60 + third
    elif match.group("second") is not None:
        seconds = first * 60 + second
    else:
        seconds = first * 60
    if seconds <= 0:
        raise ConfigError(f"{where} is {text!r}; it must be above 0")
    return -(-seconds // 60)


def build(
    partitions: t.Sequence[t.Mapping[str, t.Any]],
    nodes: t.Sequence[Node],
    defaults: t.Mapping[str, t.Any],
    weights: t.Mapping[str, t.Any],
) -> tuple[list[str], int]:
    """The PartitionName lines in the order given, and the longest time limit in minutes."""
    if not partitions:
        raise ConfigError("no partition is defined; name at least one in slurm_config_partitions")
    known = {node.name: node for node in nodes}
    seen: set[str] = set()
    standard: list[str] = []
    result: list[str] = []
    longest = 0
    for item in partitions:
        own = {**defaults, **{key: value for key, value in item.items() if value is not None}}
        name = str(own.get("name", ""))
        where = f"partition {name}"
        if not _NAME.match(name) or name.upper() == "DEFAULT":
            raise ConfigError(f"{name!r} is no partition name")
        if name in seen:
            raise ConfigError(f"{where} is defined twice")
        seen.add(name)
        unknown = sorted(set(own) - _OWN - set(_KEYS))
        if unknown:
            raise ConfigError(f"{where} has no field {', '.join(unknown)}; what Slurm knows besides goes into options")
        if own.get("default"):
            standard.append(name)
        members = _members(where, own, known)
        limit, default = (
            minutes(f"{where}: max_time", own.get("max_time")),
            minutes(f"{where}: default_time", own.get("default_time")),
        )
        if default > limit:
            raise ConfigError(f"{where}: default_time {own['default_time']} is longer than max_time {own['max_time']}")
        longest = max(longest, limit)
        result.append(_line(where, own, members, {**weights, **(own.get("billing_weights") or {})}))
    if len(standard) > 1:
        raise ConfigError(f"partitions {', '.join(standard)} are all marked as default; keep one")
    return result, longest


def _members(where: str, own: t.Mapping[str, t.Any], known: t.Mapping[str, Node]) -> list[Node]:
    wanted = own.get("nodes")
    if wanted is None and not own.get("gres"):
        raise ConfigError(f"{where} names no nodes: give nodes (all, or a list) or gres (gpu:h100)")
    if wanted is None or wanted in ("all", ["all"]):
        names = list(known)
    else:
        try:
            names = hostlist.expand(wanted if isinstance(wanted, str) else ",".join(str(item) for item in wanted))
        except hostlist.HostlistError as exc:
            raise ConfigError(f"{where}: {exc}") from exc
    strangers = [name for name in names if name not in known]
    if strangers:
        raise ConfigError(f"{where} names {hostlist.fold(strangers)}, which the inventory does not define")
    # A node of one tenant is in that tenant's partition and in no other, whatever the others name.
    members = [known[name] for name in names if known[name].owner == str(own.get("owner") or "")]
    if own.get("gres"):
        tres = f"gres/{own['gres']}"
        members = [node for node in members if tres in node.tres()]
    if not members:
        raise ConfigError(
            f"{where} has no nodes: none of those named has gres {own.get('gres') or '(any)'} and no owner; correct it, or take it out"
        )
    return members


def _line(where: str, own: t.Mapping[str, t.Any], members: t.Sequence[Node], weights: t.Mapping[str, t.Any]) -> str:
    memory = own.get("def_mem_per_cpu")
    if memory in (None, "auto"):
        # Without a default, a job that names no memory is given all of the node's.
        memory = min(node.real_memory // node.cpus for node in members)
    return lines.pairs(
        where,
        [
            ("PartitionName", own["name"]),
            ("Nodes", hostlist.fold(node.name for node in members)),
            ("Default", bool(own.get("default"))),
            ("MaxTime", own["max_time"]),
            ("DefaultTime", own["default_time"]),
            ("DefMemPerCPU", memory),
            *((key, own.get(field)) for field, key in _KEYS.items()),
            ("TRESBillingWeights", billing(where, members, weights)),
            *sorted((own.get("options") or {}).items()),
        ],
    )


def billing(where: str, members: t.Iterable[Node], weights: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """Weights by type for the types this partition has.

    Slurm adds up every weight that applies: with gres/gpu=1 and gres/gpu:h100=10 one H100 bills 11 (seen on 22.05
    and 24.11). So the untyped weight only stands in for types without one of their own and is never written beside
    a typed one. A job that asks for gpu:1 without a type is billed by the type it was given.
    """
    result: dict[str, t.Any] = {}
    lowered = {str(key).lower(): value for key, value in weights.items()}
    for key, value in lowered.items():
        if not re.match(r"^\d+(\.\d+)?[KMGTP]?$", str(value)):
            raise ConfigError(
                f"{where}: billing weight {key}={value} must be a number, for memory one per unit (0.25G)"
            )
        if key in ("cpu", "mem", "node"):
            result[{"cpu": "CPU", "mem": "Mem", "node": "Node"}[key]] = value
        elif not re.match(r"^(gres|license|bb)/", key):
            raise ConfigError(f"{where}: billing weight {key!r} is no TRES; write cpu, mem or gres/gpu:TYPE")
    here = sorted({name for node in members for name in node.tres()})
    typed = [name for name in here if ":" in name]
    for name in here:
        base = name.split(":", 1)[0]
        if name in typed:
            weight = lowered.get(name.lower(), lowered.get(base))
        elif any(other.startswith(f"{name}:") for other in typed):
            continue
        else:
            weight = lowered.get(name)
        if weight is not None:
            result[f"GRES/{name.split('/', 1)[1]}"] = weight
    for key, value in lowered.items():
        if re.match(r"^(license|bb)/", key):
            result[key] = value
    return result
