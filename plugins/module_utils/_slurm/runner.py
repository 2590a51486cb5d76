# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""From a module's arguments to its result, the same for all accounting modules. Private to the collection."""

from __future__ import annotations

import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils._lock import Lock, LockError, lock_name
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.client import Client, SlurmError
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.desired import Refused

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

Work = t.Callable[[dict[str, t.Any], bool, Client, t.Optional[Lock]], dict[str, t.Any]]


def run_module(module: AnsibleModule, purpose: str, work: Work) -> None:
    params = module.params
    cluster = params.get("cluster") or ""
    client = Client(cluster.lower(), params["search_path"])
    try:
        lock = None if module.check_mode else writer_lock(cluster, purpose, params["lock_timeout"])
        result = work(params, module.check_mode, client, lock)
    except (Refused, SlurmError, LockError) as exc:
        details = getattr(exc, "details", {})
        module.fail_json(msg=str(exc), changed=bool(details.get("applied")), **details)
    for warning in result.pop("warnings", []):
        module.warn(warning)
    module.exit_json(**result)


def writer_lock(cluster: str, purpose: str, timeout: float) -> Lock:
    """QOS and clusters belong to the whole database: without a cluster the lock is the database's."""
    return Lock(lock_name("slurm-accounting", cluster or "database"), purpose, timeout)
