# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""On which nodes an account may run jobs, and in which partition. Pure; private to the gpuops.tenancy collection."""

from __future__ import annotations

import re
import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import owners
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.partitions import Partition


def nodes(
    shown: str, partitions: t.Mapping[str, Partition], wanted: t.Sequence[str], account: str, qos: str, asked: str = ""
) -> dict[str, dict[str, t.Any]]:
    """What there is to know of each node that is wanted.

    :param shown: ``scontrol -o show node``.
    :param asked: the one partition to use; else the least of those that the node is in.
    """
    found = {}
    for line in shown.splitlines():
        words = dict(word.partition("=")[::2] for word in line.split() if "=" in word)
        found[words.get("NodeName", "")] = words
    return {name: _place(found.get(name, {}), partitions, account, qos, asked) for name in wanted}


def _place(
    words: t.Mapping[str, str], partitions: t.Mapping[str, Partition], account: str, qos: str, asked: str
) -> dict[str, t.Any]:
    names = [asked] if asked else [name for name in re.split(r"[,\s]+", words.get("Partitions", "")) if name]
    here = [partitions[name] for name in names if name in partitions]
    open_ = [one for one in here if one.state == "UP" and not one.refuses(account, qos)]
    return {
        # A state with a mark ("IDLE*", "IDLE+DRAIN") is more than idle.
        "idle": words.get("State") == "IDLE",
        "owner": owners.of_features(words.get("AvailableFeatures", "")),
        "partition": min(open_, key=lambda one: one.tier).name if open_ else "",
        "refused": "" if open_ else refusal(here, account, qos),
    }


def refusal(here: t.Sequence[Partition], account: str, qos: str) -> str:
    said = [f"partition {one.name}: {one.refuses(account, qos) or one.state}" for one in here]
    return "; ".join(said) or "Slurm does not know the node, or it is in no partition"
