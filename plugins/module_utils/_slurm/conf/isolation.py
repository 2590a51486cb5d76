# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tenants who do not share nodes, in slurm.conf. Private to the gpuops.tenancy collection.

* exclusive: mcs/group with ``enforced,select``. Every job carries a label, the first group of the list that its user is
  in, and a node takes jobs of one label at a time. A tenant's own group comes first, everybody else's last.
* private_nodes: a partition that admits the tenant's accounts only and whose nodes are in no other one. Nodes say whose
  they are in the inventory (``slurm_compute_owner``).
"""

from __future__ import annotations

import dataclasses
import re
import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.conf.nodes import Node
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.conf.version import ConfigError

SHARED, EXCLUSIVE, PRIVATE = "shared", "exclusive", "private_nodes"
# slurm.conf separates groups by '|' and ends the list of options by ':'.
_GROUP = re.compile(r"^[a-z_][a-z0-9_.-]{0,31}$")


@dataclasses.dataclass(frozen=True)
class Isolation:
    """Who is apart. ``groups``: tenant -> Unix group; ``accounts``: tenant with nodes of its own -> its accounts."""

    groups: dict[str, str]
    accounts: dict[str, list[str]]
    everybody: str

    def mcs(self) -> dict[str, str]:
        """Keys of slurm.conf. Without an exclusive tenant there is no label."""
        if not self.groups:
            return {}
        listed = [self.groups[tenant] for tenant in sorted(self.groups)]
        return {"MCSPlugin": "mcs/group", "MCSParameters": f"enforced,select:{'|'.join([*listed, self.everybody])}"}


def read(spec: t.Mapping[str, t.Any]) -> Isolation:
    """From what the filter tenant_isolation made of the tenants' documents, checked."""
    everybody = str(spec.get("everybody_group") or "")
    groups: dict[str, str] = {}
    accounts: dict[str, list[str]] = {}
    for item in spec.get("isolation") or []:
        tenant, level = str(item["tenant"]), str(item["level"])
        if level == EXCLUSIVE:
            groups[tenant] = str(item["group"])
        elif level == PRIVATE:
            accounts[tenant] = [str(name) for name in item["accounts"]]
        elif level != SHARED:
            raise ConfigError(
                f"tenant {tenant}: isolation {level} is not to be had in this cluster; choose shared, exclusive or private_nodes"
            )
    for name in [*groups.values(), everybody] if groups else []:
        if not _GROUP.match(name):
            raise ConfigError(f"{name!r} is no name for a Unix group; at most 32 of a-z, 0-9, '_', '-' and '.'")
    if everybody in groups.values():
        raise ConfigError(f"group {everybody} is for everybody without nodes apart, and a tenant's; rename one")
    return Isolation(groups, accounts, everybody)


def partitions(
    wanted: t.Sequence[t.Mapping[str, t.Any]],
    nodes: t.Sequence[Node],
    isolation: Isolation,
    own: t.Mapping[str, t.Any],
) -> list[dict[str, t.Any]]:
    """The site's partitions without private nodes and closed to their owners, and one partition for each owner.

    :param own: what the owners' partitions have (limits, times ...).
    """
    owners = sorted({node.owner for node in nodes if node.owner})
    for owner in owners:
        if owner not in isolation.accounts:
            names = ", ".join(node.name for node in nodes if node.owner == owner)
            raise ConfigError(
                f"nodes {names} belong to {owner} in the inventory, but no tenant document of that name says "
                "isolation: private_nodes; correct one of them"
            )
    idle = sorted(set(isolation.accounts) - set(owners))
    if idle:
        raise ConfigError(
            f"tenants {', '.join(idle)} are to have nodes of their own, and the inventory gives them none: "
            f"set slurm_compute_owner: {idle[0]} for some hosts, and give them by playbook gpuops.tenancy.reassign_nodes"
        )
    apart = sorted({account for names in isolation.accounts.values() for account in names})
    result: list[dict[str, t.Any]] = []
    for item in wanted:
        admitted = {str(name) for name in item.get("allow_accounts") or []}
        if admitted & set(apart):
            raise ConfigError(
                f"partition {item.get('name')} admits {', '.join(sorted(admitted & set(apart)))}, whose tenants have nodes of "
                "their own and must not run beside others; take them out of allow_accounts"
            )
        if item.get("name") in owners:
            raise ConfigError(f"partition {item['name']} has the name of a tenant with nodes of its own; rename it")
        # Slurm looks at DenyAccounts only where there is no AllowAccounts.
        denied = [] if admitted else [*(item.get("deny_accounts") or []), *apart]
        result.append({**item, **({"deny_accounts": list(dict.fromkeys(denied))} if denied else {})})
    for owner in owners:
        result.append(
            {
                **own,
                "name": owner,
                "nodes": "all",
                "owner": owner,
                "allow_accounts": isolation.accounts[owner],
                "default": False,
                "hidden": True,
            }
        )
    return result
