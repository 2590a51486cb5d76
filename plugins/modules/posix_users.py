#!/usr/bin/python
# Copyright: (c) 2026, gpuops.tenancy contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: posix_users
short_description: Have a list of POSIX users on a host, or make sure that they are known
description:
  - Creates local users in bulk, each with a group of the same name and number, or only verifies that the host knows them
    when a directory service is in charge.
  - An account whose number lies below O(uid_min) belongs to the system. Naming one is refused, on every host.
  - It never removes a user and never changes a number.
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
  users:
    description: The users. Numbers that are not given are taken from the range, lowest free first.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: Login name.
        type: str
        required: true
      uid:
        description: Number of the user and of the group. Give the numbers that one host returned to all others.
        type: int
      gecos:
        description: Comment field. Empty leaves that of a user who is there alone; a new one gets the name.
        type: str
        default: ''
      home:
        description: Home directory. Default is C(/home/) and the name.
        type: str
      shell:
        description:
          - Login shell. Without it that of a user who is there stays, and a new one gets C(/bin/bash).
        type: str
  create:
    description: Whether to create users that the host does not know. If V(false), an unknown user is an error.
    type: bool
    default: true
  create_home:
    description: Whether to create the home directory, mode 0700, of a user that is created.
    type: bool
    default: false
  uid_min:
    description: First number for tenants' users. Accounts below it are the system's.
    type: int
    default: 1000
  uid_max:
    description: Last number for tenants' users.
    type: int
    default: 59999
"""

EXAMPLES = r"""
- name: Create alice with the next free number
  gpuops.tenancy.posix_users:
    users:
      - name: alice
  register: numbers

- name: Have her under the same number on this host
  gpuops.tenancy.posix_users:
    users: "{{ numbers.users }}"

- name: Wait for nobody, fail if the directory does not know alice
  gpuops.tenancy.posix_users:
    users:
      - name: alice
    create: false
"""

RETURN = r"""
users:
  description: The users as they are now, or would be in check mode.
  type: list
  elements: dict
  returned: success
  sample: [{name: alice, uid: 1000, gecos: '', home: /home/alice, shell: /bin/bash}]
commands:
  description: Commands that ran, or would run in check mode.
  type: list
  elements: str
  returned: success
plan:
  description: Changes, one for each field of each user.
  type: list
  elements: dict
  returned: success
applied:
  description: Commands that had run when one failed.
  type: list
  elements: str
  returned: on failure while changing
remaining:
  description: Commands that had not run when one failed.
  type: list
  elements: str
  returned: on failure while changing
"""

import shlex

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpuops.tenancy.plugins.module_utils._command import CommandError, run
from ansible_collections.gpuops.tenancy.plugins.module_utils._host import posix_users
from ansible_collections.gpuops.tenancy.plugins.module_utils._lock import Lock, LockError


def argument_spec():
    """Options of the module."""
    return {
        "users": {
            "type": "list",
            "elements": "dict",
            "required": True,
            "options": {
                "name": {"type": "str", "required": True},
                "uid": {"type": "int"},
                "gecos": {"type": "str", "default": ""},
                "home": {"type": "str"},
                "shell": {"type": "str"},
            },
        },
        "create": {"type": "bool", "default": True},
        "create_home": {"type": "bool", "default": False},
        "uid_min": {"type": "int", "default": 1000},
        "uid_max": {"type": "int", "default": 59999},
        "lock_timeout": {"type": "int", "default": 300},
    }


def wanted(params):
    """Options as planner's users."""
    return [
        posix_users.User(
            name=user["name"],
            uid=-1 if user["uid"] is None else user["uid"],
            gid=-1 if user["uid"] is None else user["uid"],
            gecos=user["gecos"],
            home=user["home"] or f"/home/{user['name']}",
            shell=user["shell"] or "",
        )
        for user in params["users"]
    ]


def make_plan(params):
    """Read the host and plan."""
    users = wanted(params)
    current = posix_users.read([user.name for user in users])
    return posix_users.plan(current, users, params["uid_min"], params["uid_max"], params["create"])


def main():
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    params = module.params
    applied = []
    argvs = []
    try:
        changes, users = make_plan(params)
        argvs = posix_users.commands(changes, users, params["create_home"])
        if argvs and not module.check_mode:
            with Lock("posix-users", purpose="posix_users", timeout=params["lock_timeout"]) as lock:
                # Another run may have created some of them while we waited.
                changes, users = make_plan(params)
                argvs = posix_users.commands(changes, users, params["create_home"])
                for argv in argvs:
                    run(argv, timeout=120, pass_fds=lock.fds, ok=(0,))
                    applied.append(shlex.join(argv))
                left, users = make_plan(params)
                if left.changed:
                    module.fail_json(
                        msg="the host does not show what was changed; see remaining",
                        applied=applied,
                        remaining=left.as_list(),
                    )
    except posix_users.UsersError as error:
        module.fail_json(msg=str(error), problems=error.problems)
    except (CommandError, LockError) as error:
        module.fail_json(
            msg=str(error), applied=applied, remaining=[shlex.join(argv) for argv in argvs[len(applied) :]]
        )
    module.exit_json(
        changed=changes.changed,
        commands=[shlex.join(argv) for argv in argvs],
        plan=changes.as_list(),
        diff=changes.diff("users on the host", "users on the host"),
        users=[
            {"name": user.name, "uid": user.uid, "gecos": user.gecos, "home": user.home, "shell": user.shell}
            for user in users
        ],
    )


if __name__ == "__main__":
    main()
