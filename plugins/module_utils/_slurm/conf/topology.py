# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""topology.conf from the switches in the inventory. Private to the gpuops.tenancy collection.

No program reads this file without being a running daemon, so what a parser would find is checked here.
"""

from __future__ import annotations

import re
import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import hostlist
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.conf import lines
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.conf.nodes import Node
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.conf.version import ConfigError

_NAME = re.compile(r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$")


def build(nodes: t.Sequence[Node], switches: t.Sequence[t.Mapping[str, t.Any]]) -> str:
    """The file, or an empty string where the inventory names no switch.

    Leaf switches are those that nodes name in ``switch``; ``switches`` says what stands above them.
    """
    leaves: dict[str, list[str]] = {}
    for node in nodes:
        if node.switch:
            leaves.setdefault(node.switch, []).append(node.name)
    if not leaves and not switches:
        return ""
    loose = [node.name for node in nodes if not node.switch]
    if loose:
        raise ConfigError(f"topology: {hostlist.fold(loose)} names no switch while others do; give every node one")
    above = _above(switches, leaves)
    _one_root(above, leaves)
    body = [
        lines.pairs(f"switch {name}", [("SwitchName", name), ("Nodes", hostlist.fold(leaves[name]))])
        for name in _ordered(leaves)
    ]
    body += [
        lines.pairs(f"switch {name}", [("SwitchName", name), ("Switches", hostlist.fold(above[name]))])
        for name in _ordered(above)
    ]
    return lines.HEADER + "".join(f"{line}\n" for line in body)


def _above(switches: t.Sequence[t.Mapping[str, t.Any]], leaves: t.Mapping[str, t.Any]) -> dict[str, list[str]]:
    above: dict[str, list[str]] = {}
    for item in switches:
        name, below = str(item.get("name", "")), [str(child) for child in item.get("switches") or []]
        if name in above or name in leaves:
            raise ConfigError(f"topology: switch {name} is defined twice")
        if not below:
            raise ConfigError(f"topology: switch {name} connects nothing; name the switches below it")
        above[name] = below
    for name in [*leaves, *above]:
        if not _NAME.match(name):
            raise ConfigError(f"topology: {name!r} is no switch name")
    for name, below in above.items():
        for child in below:
            if child not in leaves and child not in above:
                raise ConfigError(f"topology: switch {name} connects {child}, which no node and no switch names")
    return above


def _one_root(above: t.Mapping[str, list[str]], leaves: t.Mapping[str, t.Any]) -> None:
    """Every switch below exactly one other, but for one: otherwise Slurm sees islands or loops."""
    parents: dict[str, str] = {}
    for name, below in above.items():
        for child in below:
            if child in parents:
                raise ConfigError(f"topology: switch {child} is below both {parents[child]} and {name}; keep one")
            parents[child] = name
    roots = [name for name in [*leaves, *above] if name not in parents]
    if len(roots) != 1:
        found = ", ".join(sorted(roots)) or "none"
        raise ConfigError(
            f"topology: there must be one switch above all others, found {found}; add it to slurm_config_switches"
        )
    reached: set[str] = set()
    waiting = [roots[0]]
    while waiting:
        name = waiting.pop()
        reached.add(name)
        waiting.extend(above.get(name, []))
    lost = sorted({*leaves, *above} - reached)
    if lost:
        raise ConfigError(f"topology: {', '.join(lost)} form a loop")


def _ordered(names: t.Iterable[str]) -> list[str]:
    return sorted(names, key=hostlist.natural)
