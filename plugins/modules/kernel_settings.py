#!/usr/bin/python
# Copyright: (c) 2026, gpuops.tenancy contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: kernel_settings
short_description: Kernel settings, in a file for the next boot and in the kernel now
description:
  - Writes a file for C(sysctl.d), sets the values in the running kernel and reads them back.
  - A host that may not set a value, since it is a container, is told so by a warning and in RV(unset); it is no failure,
    and no change either.
author:
  - gpuops.tenancy contributors (@gpuops)
extends_documentation_fragment:
  - gpuops.tenancy.attributes
  - gpuops.tenancy.host.lock
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  idempotent:
    support: full
options:
  path:
    description:
      - The file.
    type: path
    required: true
  settings:
    description:
      - Names and values. Without any the file is removed; the kernel keeps what it has until it boots.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Nobody looks into other processes
  gpuops.tenancy.kernel_settings:
    path: /etc/sysctl.d/60-tenancy-ptrace.conf
    settings: {kernel.yama.ptrace_scope: "1"}
"""

RETURN = r"""
changed:
  description: Whether the file or the kernel was changed, or would be.
  returned: always
  type: bool
unset:
  description: Settings that this host cannot set or does not have, one sentence each.
  returned: always
  type: list
  elements: str
plan:
  description: The changes.
  returned: always
  type: list
  elements: dict
diff:
  description: The file and the kernel before and after.
  returned: always
  type: dict
commands:
  description: Always empty; no command is run.
  returned: always
  type: list
  elements: str
applied:
  description: What had been changed before the failure.
  returned: failure
  type: list
  elements: str
remaining:
  description: What had not.
  returned: failure
  type: list
  elements: str
"""

import os
import typing as t

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpuops.tenancy.plugins.module_utils import _files
from ansible_collections.gpuops.tenancy.plugins.module_utils._host import drop_ins, kernel
from ansible_collections.gpuops.tenancy.plugins.module_utils._lock import Lock, LockError, lock_name
from ansible_collections.gpuops.tenancy.plugins.module_utils._plan import Plan

ERRORS = (kernel.KernelError, LockError, OSError)


def argument_spec() -> dict[str, t.Any]:
    return {
        "path": {"type": "path", "required": True},
        "settings": {"type": "dict", "required": True},
        "lock_timeout": {"type": "int", "default": 300},
    }


def run(module: AnsibleModule, result: dict[str, t.Any]) -> None:
    path = module.params["path"]
    settings = {key: str(value) for key, value in module.params["settings"].items()}
    text = kernel.text(settings)
    plan = drop_ins.plan({path: drop_ins.read(path)}, {path: text} if text else {})
    current = {key: kernel.read_setting(key) for key in settings}
    result["unset"] = [f"this kernel has no {key}" for key, value in current.items() if value is None]
    live = []
    for change in kernel.plan_settings(settings, current):
        if os.access(kernel.setting_path(change.field), os.W_OK):
            live.append(change)
        else:
            result["unset"].append(kernel.READ_ONLY.format(change.field))
    whole = Plan([*plan, *live])
    difference, values = drop_ins.difference(plan), Plan(live).diff("kernel", "kernel")
    result.update(
        changed=whole.changed,
        plan=whole.as_list(),
        diff={
            **difference,
            "before": difference["before"] + values["before"],
            "after": difference["after"] + values["after"],
        },
        remaining=[*(change.object for change in plan), *(change.field for change in live)],
    )
    for sentence in result["unset"]:
        module.warn(sentence)
    if module.check_mode:
        return
    for change in plan:
        if change.after is None:
            os.unlink(path)
        else:
            _files.write(path, change.after, 0o644)
        result["applied"].append(path)
        result["remaining"].remove(path)
    for change in live:
        kernel.write_setting(change.field, str(change.after))
        result["applied"].append(change.field)
        result["remaining"].remove(change.field)
    left = kernel.plan_settings(settings, {key: kernel.read_setting(key) for key in settings})
    wrong = [change for change in left if change.field in result["applied"]]
    if wrong:
        told = ", ".join(f"{change.field} is {change.before} instead of {change.after}" for change in wrong)
        raise kernel.KernelError(f"the kernel took another value: {told}")


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    result: dict[str, t.Any] = {
        "changed": False, "plan": [], "diff": {}, "commands": [], "unset": [], "applied": [], "remaining": [],
    }  # fmt: skip
    try:
        if module.check_mode:
            run(module, result)
        else:
            with Lock(lock_name("kernel", module.params["path"]), "kernel_settings", module.params["lock_timeout"]):
                run(module, result)
    except ERRORS as exc:
        result["changed"] = bool(result["applied"])
        module.fail_json(msg=str(exc), **result)
    del result["applied"], result["remaining"]
    module.exit_json(**result)


if __name__ == "__main__":
    main()
