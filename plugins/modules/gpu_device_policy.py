#!/usr/bin/python
# Copyright: (c) 2026, gpuops.tenancy contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: gpu_device_policy
short_description: Keep sessions and services that run users' code from the GPUs
description:
  - Writes one systemd drop-in for all user sessions and one for each service that runs users' code. They allow every
    device except those whose driver's name in C(/proc/devices) begins with one of O(drivers).
  - Services that must reach GPUs get a drop-in that allows everything, whatever else says no.
  - Compares what systemd goes by with what was written, and fails where another drop-in overrules it. Whether the devices
    open is not its question; see M(gpuops.tenancy.gpu_access_info).
  - Drop-ins of the same name for units that are no longer named are removed.
author:
  - gpuops.tenancy contributors (@gpuops)
extends_documentation_fragment:
  - gpuops.tenancy.attributes
  - gpuops.tenancy.host.lock
  - gpuops.tenancy.host.busy
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  idempotent:
    support: full
options:
  services:
    description:
      - Services that run users' code, by unit name. A template is written with its C(@). Those that do not exist here
        are kept from the GPUs as soon as they do.
    type: list
    elements: str
    required: true
  exempt_services:
    description:
      - Services that must reach GPUs.
    type: list
    elements: str
    default: []
  exempt_users:
    description:
      - Users whose own sessions reach GPUs. Only accounts of F(/etc/passwd).
    type: list
    elements: str
    default: []
  drivers:
    description:
      - How the names of the drivers begin that are kept away. V(drm) is F(/dev/dri), by which GPUs open, too.
    type: list
    elements: str
    default: [nvi, drm]
  allow:
    description:
      - Devices that are allowed although a driver of O(drivers) serves them, as for C(DeviceAllow) of systemd.
    type: list
    elements: str
    default: []
seealso:
  - module: gpuops.tenancy.gpu_access_info
"""

EXAMPLES = r"""
- name: Only the scheduler gives GPUs
  gpuops.tenancy.gpu_device_policy:
    services: [cron, atd, ssh, user@]
    exempt_services: [slurmd, nvidia-persistenced]
    exempt_users: [root]
"""

RETURN = r"""
changed:
  description: Whether a drop-in was written or removed, or systemd read them anew, or would.
  returned: always
  type: bool
plan:
  description: The changes.
  returned: always
  type: list
  elements: dict
diff:
  description: The drop-ins before and after.
  returned: always
  type: dict
commands:
  description: The commands that ran, or would run in check mode.
  returned: always
  type: list
  elements: str
skipped_for:
  description: Containers for whose sake nothing was changed.
  returned: always
  type: list
  elements: str
  sample: [docker-5f1c.scope]
applied:
  description: Paths that had been changed before the failure.
  returned: failure
  type: list
  elements: str
remaining:
  description: Paths that had not.
  returned: failure
  type: list
  elements: str
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpuops.tenancy.plugins.module_utils import _command, _systemd
from ansible_collections.gpuops.tenancy.plugins.module_utils._host import (
    device_policy,
    drop_ins,
    gpu_containers,
    local_accounts,
)
from ansible_collections.gpuops.tenancy.plugins.module_utils._lock import Lock, LockError

ERRORS = (
    device_policy.PolicyError,
    local_accounts.AccountError,
    gpu_containers.Busy,
    _command.CommandError,
    LockError,
    OSError,
)


def argument_spec() -> dict[str, t.Any]:
    return {
        "services": {"type": "list", "elements": "str", "required": True},
        "exempt_services": {"type": "list", "elements": "str", "default": []},
        "exempt_users": {"type": "list", "elements": "str", "default": []},
        "drivers": {"type": "list", "elements": "str", "default": ["nvi", "drm"]},
        "allow": {"type": "list", "elements": "str", "default": []},
        "busy": gpu_containers.BUSY,
        "lock_timeout": {"type": "int", "default": 300},
    }


def in_force(path: str) -> device_policy.InForce:
    """What systemd goes by for the unit of a drop-in."""
    unit = device_policy.concrete(device_policy.unit_of(path))
    names = ("DevicePolicy", "DeviceAllow", "DropInPaths", "LoadState")
    argv = ["systemctl", "show", unit, *(f"--property={name}" for name in names)]
    return device_policy.parse(unit, _command.run(argv, ok=(0,)).stdout)


def run(module: AnsibleModule, result: dict[str, t.Any], fds: t.Sequence[int] = ()) -> None:
    params = module.params
    uids = local_accounts.uids(params["exempt_users"])
    texts = device_policy.wanted(
        params["services"], params["exempt_services"], uids, params["drivers"], params["allow"]
    )
    plan = drop_ins.plan(device_policy.read(texts), texts)
    # A run that was killed between the files and the reload has left systemd with the old ones.
    stale = any(device_policy.overruled(in_force(path), texts[path]) for path in _systemd.unread(texts))
    if plan.changed or stale:
        result["skipped_for"] = gpu_containers.waits_for(params["busy"], module.warn)
        if result["skipped_for"]:
            return
    result.update(
        changed=plan.changed or stale,
        plan=plan.as_list(),
        diff=drop_ins.difference(plan),
        commands=[" ".join(gpu_containers.RELOAD)] if plan.changed or stale else [],
        remaining=[change.object for change in plan],
    )
    if module.check_mode:
        return
    drop_ins.apply(plan, result)
    if plan.changed or stale:
        gpu_containers.reload(fds)
    wrong = [device_policy.overruled(in_force(path), text) for path, text in texts.items()]
    if any(wrong):
        raise device_policy.PolicyError("; ".join(filter(None, wrong)))


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    result: dict[str, t.Any] = {
        "changed": False, "plan": [], "diff": {}, "commands": [], "skipped_for": [], "applied": [], "remaining": [],
    }  # fmt: skip
    try:
        if module.check_mode:
            run(module, result)
        else:
            with Lock("gpu-device-policy", "gpu_device_policy", module.params["lock_timeout"]) as lock:
                run(module, result, lock.fds)
    except ERRORS as exc:
        result["changed"] = bool(result["applied"])
        module.fail_json(msg=str(exc), **result)
    del result["applied"], result["remaining"]
    module.exit_json(**result)


if __name__ == "__main__":
    main()
