#!/usr/bin/python
# Copyright: (c) 2026, gpuops.tenancy contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: systemd_drop_in
short_description: A drop-in of a unit, and systemd going by it
description:
  - Writes or removes one drop-in and has systemd read its units anew, also where an earlier run was killed before that.
  - Nothing that runs is restarted. M(gpuops.tenancy.daemon) does that for a service that is older than its drop-in.
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
  unit:
    description:
      - The unit, like V(ssh.service), a template like V(user@.service), or V(user-.slice) for the slices of all users.
    type: str
    required: true
  name:
    description:
      - Name of the file, which ends in C(.conf).
    type: str
    required: true
  content:
    description:
      - Its text. Without it the drop-in is removed.
    type: str
    default: ""
"""

EXAMPLES = r"""
- name: No user may have more than half of the login node
  gpuops.tenancy.systemd_drop_in:
    unit: user-.slice
    name: 51-tenancy-limits.conf
    content: |
      [Slice]
      MemoryMax=50%
      TasksMax=2000
"""

RETURN = r"""
changed:
  description: Whether the file changed or systemd read its units anew, or would.
  returned: always
  type: bool
path:
  description: The drop-in.
  returned: always
  type: str
plan:
  description: The changes.
  returned: always
  type: list
  elements: dict
diff:
  description: The file before and after.
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
from ansible_collections.gpuops.tenancy.plugins.module_utils import _command
from ansible_collections.gpuops.tenancy.plugins.module_utils._host import (
    device_policy,
    drop_ins,
    gpu_containers,
)
from ansible_collections.gpuops.tenancy.plugins.module_utils._lock import Lock, LockError

ERRORS = (drop_ins.DropInError, gpu_containers.Busy, _command.CommandError, LockError, OSError)


def argument_spec() -> dict[str, t.Any]:
    return {
        "unit": {"type": "str", "required": True},
        "name": {"type": "str", "required": True},
        "content": {"type": "str", "default": ""},
        "busy": gpu_containers.BUSY,
        "lock_timeout": {"type": "int", "default": 300},
    }


def run(module: AnsibleModule, result: dict[str, t.Any], fds: t.Sequence[int] = ()) -> None:
    params = module.params
    path = drop_ins.path(params["unit"], params["name"])
    text = params["content"]
    result["path"] = path
    texts = {path: text if text.endswith("\n") else f"{text}\n"} if text else {}
    plan = drop_ins.plan({path: drop_ins.read(path)}, texts)
    unit = device_policy.concrete(params["unit"])
    stale = drop_ins.owed(unit, path)
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
    if not result["changed"] or module.check_mode:
        return
    drop_ins.apply(plan, result)
    gpu_containers.reload(fds)
    if drop_ins.owed(unit, path):
        raise drop_ins.DropInError(f"systemd has read its units anew, and does not go by {path} as it is for {unit}")


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    result: dict[str, t.Any] = {
        "changed": False, "path": "", "plan": [], "diff": {}, "commands": [], "skipped_for": [], "applied": [],
        "remaining": [],
    }  # fmt: skip
    try:
        if module.check_mode:
            run(module, result)
        else:
            with Lock("systemd-drop-ins", "systemd_drop_in", module.params["lock_timeout"]) as lock:
                run(module, result, lock.fds)
    except ERRORS as exc:
        result["changed"] = bool(result["applied"])
        module.fail_json(msg=str(exc), **result)
    del result["applied"], result["remaining"]
    module.exit_json(**result)


if __name__ == "__main__":
    main()
