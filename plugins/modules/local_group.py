#!/usr/bin/python
# Copyright: (c) 2026, gpuops.tenancy contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: local_group
short_description: Have accounts of the host itself in a group of the host itself
description:
  - Makes the group where it is not in F(/etc/group) and adds members. A directory service is never asked, so what depends
    on the group goes on working when it is down.
  - Members that are not named stay, and a warning names them, unless O(exact=true).
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
  name:
    description:
      - The group.
    type: str
    required: true
  members:
    description:
      - Accounts of F(/etc/passwd).
    type: list
    elements: str
    required: true
  exact:
    description:
      - Whether those that are not named are taken out.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Who may log in without a job
  gpuops.tenancy.local_group:
    name: tenancy-admins
    members: [root, deploy]
"""

RETURN = r"""
changed:
  description: Whether the group was made, or got or lost a member, or would.
  returned: always
  type: bool
others:
  description: Members that were not named, before the change.
  returned: success
  type: list
  elements: str
gid:
  description: The number of the group; none in check mode where there is no such group yet.
  returned: success
  type: int
commands:
  description: Commands that ran, or would run in check mode.
  returned: always
  type: list
  elements: str
plan:
  description: The changes.
  returned: always
  type: list
  elements: dict
diff:
  description: Members before and after.
  returned: always
  type: dict
applied:
  description: Commands that had run before the failure.
  returned: failure
  type: list
  elements: str
remaining:
  description: Commands that had not.
  returned: failure
  type: list
  elements: str
"""

import re
import shlex
import typing as t

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpuops.tenancy.plugins.module_utils import _command
from ansible_collections.gpuops.tenancy.plugins.module_utils._host import local_accounts
from ansible_collections.gpuops.tenancy.plugins.module_utils._lock import Lock, LockError
from ansible_collections.gpuops.tenancy.plugins.module_utils._plan import ADD, CHANGE, Change, Plan

NAME = re.compile(r"^[a-z_][a-z0-9_-]{0,31}$")
ERRORS = (local_accounts.AccountError, _command.CommandError, LockError, OSError)


def argument_spec() -> dict[str, t.Any]:
    return {
        "name": {"type": "str", "required": True},
        "members": {"type": "list", "elements": "str", "required": True},
        "exact": {"type": "bool", "default": False},
        "lock_timeout": {"type": "int", "default": 300},
    }


def make_plan(name: str, members: t.Sequence[str], group: local_accounts.Group | None, exact: bool = False) -> Plan:
    """Pure."""
    plan = Plan()
    if group is None:
        plan.add(Change(ADD, f"group {name}"))
    there = set(group.members if group else ())
    wanted = set(members) if exact else there | set(members)
    if wanted != there:
        plan.add(
            Change(CHANGE if group else ADD, f"group {name}", "members", sorted(there) or None, sorted(wanted) or None)
        )
    return plan


def compile_commands(name: str, plan: Plan) -> list[list[str]]:
    """Pure."""
    commands = []
    for change in plan:
        if not change.field:
            commands.append(["groupadd", "--system", name])
        else:
            before, after = change.before or [], change.after or []
            commands += [["gpasswd", "--add", member, name] for member in after if member not in before]
            commands += [["gpasswd", "--delete", member, name] for member in before if member not in after]
    return commands


def read_and_plan(params: t.Mapping[str, t.Any]) -> tuple[Plan, list[str], int | None]:
    name, members = params["name"], params["members"]
    if not NAME.match(name):
        raise local_accounts.AccountError(f"{name!r} is no name of a group")
    local_accounts.uids(members)
    group = local_accounts.groups().get(name)
    others = sorted(set(group.members if group else ()) - set(members))
    return make_plan(name, members, group, params["exact"]), others, group.gid if group else None


def run(module: AnsibleModule, result: dict[str, t.Any], fds: t.Sequence[int] = ()) -> None:
    plan, others, gid = read_and_plan(module.params)
    commands = compile_commands(module.params["name"], plan)
    shown = [shlex.join(argv) for argv in commands]
    result.update(
        changed=plan.changed,
        plan=plan.as_list(),
        diff=plan.diff("members", "members"),
        commands=shown,
        remaining=list(shown),
        others=others,
        gid=gid,
    )
    if others and not module.params["exact"]:
        name = module.params["name"]
        module.warn(
            f"{', '.join(others)} is in group {name} of this host although nobody named it: name it, or take it out "
            f"(gpasswd --delete NAME {name})"
        )
    if module.check_mode:
        return
    for argv, words in zip(commands, shown):
        _command.run(argv, pass_fds=fds, ok=(0,))
        result["applied"].append(words)
        result["remaining"].remove(words)
    left, _others, result["gid"] = read_and_plan(module.params)
    if left.changed:
        raise local_accounts.AccountError(f"{local_accounts.GROUP} does not show what was changed")


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    result: dict[str, t.Any] = {
        "changed": False, "plan": [], "diff": {}, "commands": [], "others": [], "applied": [], "remaining": [],
    }  # fmt: skip
    try:
        if module.check_mode:
            run(module, result)
        else:
            with Lock("local-groups", "local_group", module.params["lock_timeout"]) as lock:
                run(module, result, lock.fds)
    except ERRORS as exc:
        result["changed"] = bool(result["applied"])
        module.fail_json(msg=str(exc), **result)
    del result["applied"], result["remaining"]
    module.exit_json(**result)


if __name__ == "__main__":
    main()
