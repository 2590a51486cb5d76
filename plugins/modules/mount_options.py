#!/usr/bin/python
# Copyright: (c) 2026, gpuops.tenancy contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: mount_options
short_description: Options of a mount that systemd or the kernel makes, now and at each boot
description:
  - Remounts a path with options and reads them back; a unit of its own does the same at each boot. For C(/proc), C(/dev/shm)
    and their like, which have no line in F(/etc/fstab).
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
      - The mount point.
    type: path
    required: true
  options:
    description:
      - Options that can be read back, that is C(nosuid), C(nodev), C(noexec) and those with a value. A size needs a unit
        V(k), V(m) or V(g). Without any the unit is removed and the mount stays as it is.
    type: list
    elements: str
    required: true
"""

EXAMPLES = r"""
- name: Nobody sees other people's processes
  gpuops.tenancy.mount_options:
    path: /proc
    options: [hidepid=invisible, gid=900]
"""

RETURN = r"""
changed:
  description: Whether the mount or the unit was changed, or would be.
  returned: always
  type: bool
plan:
  description: The changes.
  returned: always
  type: list
  elements: dict
diff:
  description: Options and unit before and after.
  returned: always
  type: dict
commands:
  description: The command that ran, or would run in check mode.
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

import contextlib
import os
import shlex
import typing as t

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpuops.tenancy.plugins.module_utils import _command, _files, _systemd
from ansible_collections.gpuops.tenancy.plugins.module_utils._host import drop_ins, kernel
from ansible_collections.gpuops.tenancy.plugins.module_utils._lock import Lock, LockError, lock_name
from ansible_collections.gpuops.tenancy.plugins.module_utils._plan import ADD, Change, Plan

ERRORS = (kernel.KernelError, _command.CommandError, LockError, OSError)


def argument_spec() -> dict[str, t.Any]:
    return {
        "path": {"type": "path", "required": True},
        "options": {"type": "list", "elements": "str", "required": True},
        "lock_timeout": {"type": "int", "default": 300},
    }


def unit_name(path: str) -> str:
    """Pure."""
    return f"tenancy-remount{path.rstrip('/').replace('/', '-')}.service"


def unit_text(path: str, command: t.Sequence[str]) -> str:
    """Pure."""
    return (
        kernel.HEADER
        + f"[Unit]\nDescription=Mount options of {path}\nDefaultDependencies=no\nAfter=systemd-remount-fs.service\n"
        "Before=sysinit.target shutdown.target\nConflicts=shutdown.target\n"
        f"[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart={' '.join(command)}\n[Install]\nWantedBy=sysinit.target\n"
    )


def read_mount(path: str) -> kernel.Mount:
    with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as handle:
        return kernel.parse_mount(handle.read(), path)


def run(module: AnsibleModule, result: dict[str, t.Any], fds: t.Sequence[int] = ()) -> None:
    path, options = module.params["path"], module.params["options"]
    command = ["/bin/mount", "-o", ",".join(["remount", *map(kernel.normal, options)]), path]
    unit = os.path.join(_systemd.FOLDER, unit_name(path))
    link = os.path.join(_systemd.FOLDER, "sysinit.target.wants", unit_name(path))
    files = drop_ins.plan({unit: drop_ins.read(unit)}, {unit: unit_text(path, command)} if options else {})
    linked = [] if not options or os.path.islink(link) else [Change(ADD, link)]
    live = kernel.plan_mount(read_mount(path), options)
    plan = Plan([*files, *linked, *live])
    told, values = drop_ins.difference(files), Plan(live).diff("mounts", "mounts")
    result.update(
        changed=plan.changed,
        plan=plan.as_list(),
        diff={**told, "before": told["before"] + values["before"], "after": told["after"] + values["after"]},
        commands=[shlex.join(command)] if live else [],
        remaining=[change.object for change in plan],
    )
    if module.check_mode:
        return
    if live:
        _command.run(command, pass_fds=fds, ok=(0,))
        left = kernel.plan_mount(read_mount(path), options)
        if left:
            raise kernel.KernelError(
                f"{path} was mounted anew and still has not {', '.join(str(change.after) for change in left)}"
            )
        result["applied"].append(path)
    for change in files:
        if change.after is None:
            for name in (link, unit):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(name)
        else:
            _files.write(unit, change.after, 0o644)
        result["applied"].append(unit)
    if linked:
        os.makedirs(os.path.dirname(link), exist_ok=True)
        os.symlink(unit, link)
    result["remaining"] = []


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    result: dict[str, t.Any] = {
        "changed": False, "plan": [], "diff": {}, "commands": [], "applied": [], "remaining": [],
    }  # fmt: skip
    try:
        if module.check_mode:
            run(module, result)
        else:
            with Lock(
                lock_name("mount", module.params["path"]), "mount_options", module.params["lock_timeout"]
            ) as lock:
                run(module, result, lock.fds)
    except ERRORS as exc:
        result["changed"] = bool(result["applied"])
        module.fail_json(msg=str(exc), **result)
    del result["applied"], result["remaining"]
    module.exit_json(**result)


if __name__ == "__main__":
    main()
