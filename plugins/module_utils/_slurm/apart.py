# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether slurmctld upholds what a tenant's document says about sharing nodes. Pure; private to the gpuops.tenancy collection."""

from __future__ import annotations

import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.partitions import Partition

_FIX = "run site.yml first"


def labels(config: t.Mapping[str, str]) -> list[str]:
    """The groups of mcs/group, as every job gets one of them; none where labels are optional or keep nobody apart."""
    if config.get("MCSPlugin") != "mcs/group":
        return []
    options, _colon, groups = config.get("MCSParameters", "").partition(":")
    if not {"enforced", "select"} <= set(options.split(",")):
        return []
    return [name for name in groups.split("|") if name]


def problems(
    config: t.Mapping[str, str], partitions: t.Mapping[str, Partition], wanted: t.Mapping[str, t.Any]
) -> list[str]:
    """One sentence for each thing that is not as the document says.

    :param config: ``scontrol show config``.
    :param wanted: an entry of the filter tenant_isolation.
    """
    tenant, level, group = wanted["tenant"], wanted["level"], wanted["group"]
    listed = labels(config)
    found = []
    if level == "exclusive":
        if group not in listed:
            found.append(
                f"tenant {tenant} is exclusive, and slurmctld does not keep its jobs apart (no {group} in MCSParameters); {_FIX}"
            )
        elif listed[-1] == group:
            found.append(f"{group} is the last group of MCSParameters, where everybody's belongs; {_FIX}")
    elif group in listed:
        found.append(f"tenant {tenant} is {level}, and slurmctld still has it as exclusive; {_FIX}")
    if level == "private_nodes":
        found += _private(tenant, wanted["accounts"], partitions)
    return found


def _private(tenant: str, accounts: t.Sequence[str], partitions: t.Mapping[str, Partition]) -> list[str]:
    own = partitions.get(tenant)
    if own is None:
        return [f"tenant {tenant} has no partition of its own: give it nodes (playbook reassign_nodes)"]
    found = []
    if own.allow_accounts is None:
        found.append(f"partition {tenant} admits every account; {_FIX}")
    else:
        missing = [name for name in accounts if name.lower() not in own.allow_accounts]
        strangers = sorted(own.allow_accounts - {name.lower() for name in accounts})
        if missing:
            found.append(f"partition {tenant} does not admit {', '.join(missing)}; {_FIX}")
        if strangers:
            found.append(f"partition {tenant} also admits {', '.join(strangers)}; {_FIX}")
    for name, partition in sorted(partitions.items()):
        inside = [account for account in accounts if not partition.refuses_account(account.lower())]
        if name != tenant and inside:
            found.append(f"partition {name} admits {', '.join(inside)} to nodes of others; {_FIX}")
    return found
