#!/usr/bin/python
# Copyright: (c) 2026, gpuops.tenancy contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: posix_groups
short_description: Groups with their members, many at once
description:
  - Makes groups, and puts users into them and out of them, in a bounded number of commands. Or, where a directory service has
    the groups, verifies that they are so.
  - Users that the host does not know (yet) are left out, and named in the result.
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
  groups:
    description:
      - The groups. A group of the system (number below 1000) is refused.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description:
          - Name of the group.
        type: str
        required: true
      members:
        description:
          - Users that are in it.
        type: list
        elements: str
        default: []
      without:
        description:
          - Users that are not.
        type: list
        elements: str
        default: []
      exact:
        description:
          - Whether nobody but O(groups[].members) is in it.
        type: bool
        default: false
  create:
    description:
      - Whether the groups are kept in C(/etc/group) of this host. With V(false) whatever differs is an error.
    type: bool
    default: true
"""

EXAMPLES = r"""
- name: Who runs jobs apart from others
  gpuops.tenancy.posix_groups:
    groups:
      - {name: mcs-tenant-foo, members: [alice, carol], exact: true}
      - {name: mcs-shared, members: [bob], without: [alice, carol]}
"""

RETURN = r"""
commands:
  description: What was run, or would be.
  type: list
  elements: str
  returned: success
plan:
  description: Changes, one for each group that is new and one for each whose members change.
  type: list
  elements: dict
  returned: success
unknown:
  description: Users that this host does not know.
  type: list
  elements: str
  returned: success
problems:
  description: Why the groups cannot be had as asked.
  type: list
  elements: str
  returned: failure
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
from ansible_collections.gpuops.tenancy.plugins.module_utils._host import posix_groups
from ansible_collections.gpuops.tenancy.plugins.module_utils._lock import Lock, LockError


def argument_spec():
    """Options of the module."""
    return {
        "groups": {
            "type": "list",
            "elements": "dict",
            "required": True,
            "options": {
                "name": {"type": "str", "required": True},
                "members": {"type": "list", "elements": "str", "default": []},
                "without": {"type": "list", "elements": "str", "default": []},
                "exact": {"type": "bool", "default": False},
            },
        },
        "create": {"type": "bool", "default": True},
        "lock_timeout": {"type": "int", "default": 300},
    }


def wanted(params):
    """Options as planner's groups."""
    return [
        posix_groups.Wanted(one["name"], tuple(one["members"]), tuple(one["without"]), one["exact"])
        for one in params["groups"]
    ]


def make_plan(params):
    """Read the host and plan."""
    groups = wanted(params)
    host = posix_groups.read(groups)
    changes, after = posix_groups.plan(host, groups, params["create"])
    unknown = sorted({name for one in groups for name in one.members if name not in host.effective})
    return changes, posix_groups.commands(changes, after), unknown


def main():
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    params = module.params
    applied = []
    argvs = []
    try:
        changes, argvs, unknown = make_plan(params)
        if argvs and not module.check_mode:
            # The one of posix_users: both write /etc/group.
            with Lock("posix-users", purpose="posix_groups", timeout=params["lock_timeout"]) as lock:
                changes, argvs, unknown = make_plan(params)
                for argv in argvs:
                    run(argv, timeout=120, pass_fds=lock.fds, ok=(0,))
                    applied.append(shlex.join(argv))
                left, _argvs, unknown = make_plan(params)
                if left.changed:
                    module.fail_json(
                        msg="the host does not show what was changed; see remaining",
                        applied=applied,
                        remaining=left.as_list(),
                    )
    except posix_groups.GroupsError as error:
        module.fail_json(msg=str(error), problems=error.problems)
    except (CommandError, LockError, OSError) as error:
        module.fail_json(
            msg=str(error), applied=applied, remaining=[shlex.join(argv) for argv in argvs[len(applied) :]]
        )
    module.exit_json(
        changed=changes.changed,
        commands=[shlex.join(argv) for argv in argvs],
        plan=changes.as_list(),
        diff=changes.diff("groups on the host", "groups on the host"),
        unknown=unknown,
    )


if __name__ == "__main__":
    main()
