#!/usr/bin/python
# Copyright: (c) 2026, gpuops.tenancy contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: pam_profile
short_description: Profiles of pam-auth-update that are on or off
description:
  - Turns profiles of Debian's C(pam-auth-update) on or off and reads C(/etc/pam.d/common-*) again. A profile that was turned
    off this way stays off when its package is upgraded, since a line deleted by hand would stop all updates of the file.
  - On a system without C(pam-auth-update) it only verifies that the files in C(/etc/pam.d) are as asked.
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
  profiles:
    description:
      - Profile and the PAM module that tells whether it is on.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description:
          - Name of the profile, a file in C(/usr/share/pam-configs).
        type: str
        required: true
      module:
        description:
          - The module that it puts into the common files, like V(pam_systemd.so).
        type: str
        required: true
      enabled:
        description:
          - Whether it is on.
        type: bool
        required: true
"""

EXAMPLES = r"""
- name: A login must not leave the job it was adopted by
  gpuops.tenancy.pam_profile:
    profiles:
      - {name: systemd, module: pam_systemd.so, enabled: false}
"""

RETURN = r"""
changed:
  description: Whether a profile was turned on or off, or would be.
  returned: always
  type: bool
commands:
  description: The command that ran, or would run in check mode.
  returned: always
  type: list
  elements: str
plan:
  description: The changes.
  returned: always
  type: list
  elements: dict
diff:
  description: The profiles before and after.
  returned: always
  type: dict
"""

import glob
import os
import re
import shlex
import typing as t

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpuops.tenancy.plugins.module_utils import _command
from ansible_collections.gpuops.tenancy.plugins.module_utils._lock import Lock, LockError
from ansible_collections.gpuops.tenancy.plugins.module_utils._plan import CHANGE, Change, Plan

COMMON = "/etc/pam.d/common-*"
ALL = "/etc/pam.d/*"
KNOWN = "/usr/share/pam-configs"


class ProfileError(Exception):
    """pam-auth-update did not do what was asked."""


ERRORS = (ProfileError, _command.CommandError, LockError, OSError)


def argument_spec() -> dict[str, t.Any]:
    return {
        "profiles": {
            "type": "list",
            "elements": "dict",
            "required": True,
            "options": {
                "name": {"type": "str", "required": True},
                "module": {"type": "str", "required": True},
                "enabled": {"type": "bool", "required": True},
            },
        },
        "lock_timeout": {"type": "int", "default": 300},
    }


def modules_in(texts: t.Iterable[str]) -> set[str]:
    """Every PAM module that some line of the files asks. Pure."""
    found: set[str] = set()
    for text in texts:
        for line in text.splitlines():
            found |= set(re.findall(r"(?:^|[\s/])(pam_\w+\.so)\b", line.split("#", 1)[0]))
    return found


def make_plan(profiles: t.Iterable[t.Mapping[str, t.Any]], there: t.Container[str]) -> Plan:
    """Pure."""
    plan = Plan()
    for profile in profiles:
        now = profile["module"] in there
        if now != profile["enabled"]:
            plan.add(Change(CHANGE, f"profile {profile['name']}", "enabled", now, profile["enabled"]))
    return plan


def compile_command(plan: Plan) -> list[str]:
    """Pure."""
    words = ["pam-auth-update"]
    for change in plan:
        words += ["--enable" if change.after else "--disable", change.object.partition(" ")[2]]
    return words


def unknown(plan: Plan, folder: str = KNOWN) -> list[str]:
    """Profiles that no package has brought, so that they cannot be turned on."""
    names = [change.object.partition(" ")[2] for change in plan if change.after]
    return [name for name in names if not os.path.exists(os.path.join(folder, name))]


def kept_by_update() -> bool:
    return bool(glob.glob(COMMON))


def read() -> set[str]:
    texts = []
    for path in glob.glob(COMMON) or glob.glob(ALL):
        with open(path, encoding="utf-8", errors="surrogateescape") as handle:
            texts.append(handle.read())
    if not texts:
        raise ProfileError(f"there is no {ALL}: this host has no PAM")
    return modules_in(texts)


def refusal(plan: Plan) -> str:
    """Why pam-auth-update cannot do it; nothing where it can."""
    wanted = ", ".join(f"{change.object.partition(' ')[2]} {'on' if change.after else 'off'}" for change in plan)
    if not kept_by_update():
        return f"this host's PAM is not kept by pam-auth-update: turn {wanted} by its own means (authselect), and run again"
    missing = unknown(plan)
    if missing:
        return f"{KNOWN} has no {', '.join(missing)}: install the package that brings it (systemd: libpam-systemd)"
    return ""


def run(module: AnsibleModule, result: dict[str, t.Any], fds: t.Sequence[int] = ()) -> None:
    profiles = module.params["profiles"]
    plan = make_plan(profiles, read())
    command = compile_command(plan)
    result.update(
        changed=plan.changed,
        plan=plan.as_list(),
        diff=plan.diff("profiles", "profiles"),
        commands=[shlex.join(command)] if plan.changed else [],
    )
    if not plan.changed:
        return
    why = refusal(plan)
    if why and not module.check_mode:
        raise ProfileError(why)
    if why:
        module.warn(why)
    if module.check_mode:
        return
    _command.run(command, pass_fds=fds, env={"DEBIAN_FRONTEND": "noninteractive"}, ok=(0,))
    left = make_plan(profiles, read())
    if left.changed:
        names = ", ".join(change.object for change in left)
        raise ProfileError(
            f"pam-auth-update has left {names} as it was, since {COMMON} were changed by hand: look at the differences, "
            "then run 'pam-auth-update --force'"
        )


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    result: dict[str, t.Any] = {"changed": False, "plan": [], "diff": {}, "commands": []}
    try:
        if module.check_mode:
            run(module, result)
        else:
            with Lock("pam-profiles", "pam_profile", module.params["lock_timeout"]) as lock:
                run(module, result, lock.fds)
    except ERRORS as exc:
        result["changed"] = False
        module.fail_json(msg=str(exc), **result)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
