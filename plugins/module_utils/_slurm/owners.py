# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whose node it is, in the files and in slurmctld. Pure; private to the gpuops.tenancy collection.

A node that is one tenant's carries the feature ``owner-TENANT``. It changes hands only while it is kept closed by the
hold of playbook reassign_nodes, which lets it go when it has been scrubbed.
"""

from __future__ import annotations

import re
import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import hostlist
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import nodes as node_list
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.conf import read
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.conf.nodes import OWNER

HOLD = "reassign"


def of_features(features: str) -> str:
    """The owner, empty for everybody's node."""
    found = [word[len(OWNER) :] for word in features.split(",") if word.startswith(OWNER)]
    return found[0] if found else ""


def in_file(slurm_conf: str) -> dict[str, str]:
    """Node -> owner, from the text of slurm.conf; DEFAULT lines are applied to what follows."""
    found: dict[str, str] = {}
    default = ""
    for record in read.records(slurm_conf, "NodeName"):
        features = record.get("feature", record.get("features", default))
        if record["nodename"].upper() == "DEFAULT":
            default = features
            continue
        for name in hostlist.expand(record["nodename"]):
            found[name] = of_features(features)
    return found


def in_force(show_node: str) -> dict[str, str]:
    """Node -> owner, from ``scontrol show node``."""
    found = {}
    for record in re.split(r"(?m)^(?=NodeName=)", show_node):
        if record.startswith("NodeName="):
            features = re.search(r"(?m)^\s+AvailableFeatures=(\S*)", record)
            found[record[len("NodeName=") :].split(None, 1)[0]] = of_features(features[1] if features else "")
    return found


def handed_over(old: str, new: str) -> dict[str, tuple[str, str]]:
    """Node -> owner before and after, for nodes that both texts define."""
    before, after = in_file(old), in_file(new)
    return {name: (owner, after[name]) for name, owner in before.items() if name in after and owner != after[name]}


def refusal(changes: t.Mapping[str, tuple[str, str]], show_node: str, busy: t.Mapping[str, t.Sequence[str]]) -> str:
    """Why nodes may not change hands now, or nothing.

    :param show_node: what slurmctld says of the nodes.
    :param busy: node -> ids of the jobs on it.
    """
    running, holds = in_force(show_node), node_list.parse(show_node)
    hit = []
    for name, (before, after) in changes.items():
        if running.get(name) == after:
            # Only this host is behind: it was not reached when the node changed hands.
            continue
        node = holds.get(name)
        held = node is not None and node.closed and any(owner == HOLD for owner, _text in node.holds)
        if not held or busy.get(name):
            hit.append(f"{name} would go from {before or 'everybody'} to {after or 'everybody'}")
    if not hit:
        return ""
    return (
        f"{'; '.join(hit)}: a node changes hands only when it has been emptied and scrubbed; "
        "run playbook gpuops.tenancy.reassign_nodes for it, or take the change of slurm_compute_owner back"
    )
