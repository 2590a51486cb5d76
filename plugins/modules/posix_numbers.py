#!/usr/bin/python
# Copyright: (c) 2026, gpuops.tenancy contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: posix_numbers
short_description: Reserve a uid for each user, for good
description:
  - Keeps a ledger of numbers on one host of the cluster. A name gets the same number every time; a number that was given
    to somebody is never given to anybody else, also after the user is gone from every host, because files that she left
    would be inherited.
  - Numbers in the range that the host's users and groups have are entered as well, whoever created them.
  - The host keeps the ledger alone, one run at a time. Give the result to M(gpuops.tenancy.posix_users) on all hosts.
author:
  - gpuops.tenancy contributors (@gpuops)
extends_documentation_fragment:
  - gpuops.tenancy.attributes
  - gpuops.tenancy.host.lock
attributes:
  check_mode:
    support: full
    details:
      - Tells the numbers that a real run would reserve, without reserving them.
  diff_mode:
    support: full
  idempotent:
    support: full
options:
  users:
    description: The users. Keys other than the name are passed on.
    type: list
    elements: dict
    required: true
  ledger:
    description: The file of numbers and names. Back it up; without it departed users' numbers are free again.
    type: path
    default: /var/lib/gpuops-tenancy/numbers.json
  create:
    description: Whether numbers are given here. If V(false), a directory gives them, the ledger is left alone and an unknown user is an error.
    type: bool
    default: true
  uid_min:
    description: First number for tenants' users.
    type: int
    default: 1000
  uid_max:
    description: Last number for tenants' users.
    type: int
    default: 59999
"""

EXAMPLES = r"""
- name: Reserve the numbers
  gpuops.tenancy.posix_numbers:
    users:
      - name: alice
      - name: bob
  register: numbers

- name: Have the users under these numbers on every host
  gpuops.tenancy.posix_users:
    users: "{{ numbers.users }}"
"""

RETURN = r"""
users:
  description: The users, each with its number.
  type: list
  elements: dict
  returned: success
  sample: [{name: alice, uid: 10000}]
commands:
  description: Always empty; no program is run.
  type: list
  elements: str
  returned: success
plan:
  description: What is new in the ledger.
  type: list
  elements: dict
  returned: success
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpuops.tenancy.plugins.module_utils._host import numbers, posix_users
from ansible_collections.gpuops.tenancy.plugins.module_utils._lock import Lock, LockError
from ansible_collections.gpuops.tenancy.plugins.module_utils._plan import Plan


def argument_spec():
    """Options of the module."""
    return {
        "users": {"type": "list", "elements": "dict", "required": True},
        "ledger": {"type": "path", "default": "/var/lib/gpuops-tenancy/numbers.json"},
        "create": {"type": "bool", "default": True},
        "uid_min": {"type": "int", "default": 1000},
        "uid_max": {"type": "int", "default": 59999},
        "lock_timeout": {"type": "int", "default": 300},
    }


def run(params, write):
    """Plan and numbers; with ``write`` they are reserved."""
    names = [str(user.get("name") or "") for user in params["users"]]
    posix_users.check_names(names)
    current = posix_users.read(names)
    if not params["create"]:
        unknown = [name for name in names if name not in current.users]
        if unknown:
            raise posix_users.UsersError([posix_users.UNKNOWN.format(name) for name in unknown])
        return Plan(), {name: current.users[name].uid for name in names}
    before = numbers.read(params["ledger"])
    plan, after, found = numbers.reserve(before, current, names, params["uid_min"], params["uid_max"])
    if plan.changed and write:
        numbers.write(params["ledger"], after)
    return plan, found


def main():
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    params = module.params
    try:
        if module.check_mode or not params["create"]:
            plan, found = run(params, False)
        else:
            with Lock("posix-numbers", purpose="posix_numbers", timeout=params["lock_timeout"]):
                plan, found = run(params, True)
    except posix_users.UsersError as error:
        module.fail_json(msg=str(error), problems=error.problems)
    except (LockError, OSError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(
        changed=plan.changed,
        commands=[],
        plan=plan.as_list(),
        diff=plan.diff(params["ledger"], params["ledger"]),
        users=[{**user, "uid": found[user["name"]]} for user in params["users"]],
    )


if __name__ == "__main__":
    main()
