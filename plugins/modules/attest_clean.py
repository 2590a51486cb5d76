#!/usr/bin/python
# Copyright: (c) 2026, gpuops.tenancy contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: attest_clean
short_description: Leave nothing of attest on a host
description:
  - Removes what canaries left, also after a run that was killed. That is their processes, files in shared directories, IPC
    objects, crontabs, at jobs, keys and the run's own folder, and on request the users themselves.
  - A user is a canary only if her passwd entry says so. Anybody else of that name is refused, and nothing is touched.
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
    description: The canaries.
    type: list
    elements: str
    required: true
  remove_users:
    description: Whether local users among them are removed as well, with their homes.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Remove the canaries
  gpuops.tenancy.attest_clean:
    users: [attest-a1, attest-b1]
    remove_users: true
"""

RETURN = r"""
removed:
  description: What was removed, or would be in check mode.
  type: list
  elements: str
  returned: success
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpuops.tenancy.plugins.module_utils._attest import clean
from ansible_collections.gpuops.tenancy.plugins.module_utils._attest.place import PlaceError
from ansible_collections.gpuops.tenancy.plugins.module_utils._command import CommandError
from ansible_collections.gpuops.tenancy.plugins.module_utils._lock import Lock, LockError


def argument_spec():
    """Options of the module."""
    return {
        "users": {"type": "list", "elements": "str", "required": True},
        "remove_users": {"type": "bool", "default": False},
        "lock_timeout": {"type": "int", "default": 300},
    }


def carry_out(steps):
    for _words, act in steps:
        act()
    return [words for words, _act in steps]


def main():
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    params = module.params
    try:
        steps = clean.plan(params["users"])
        users = clean.removals(params["users"]) if params["remove_users"] else []
        removed = [words for words, _act in steps + users]
        if not module.check_mode and removed:
            # Before the lock: whoever holds it belongs to a run that is over, and ends when its file is gone.
            clean.forget(clean.place.RUN)
            with Lock("attest", purpose="attest_clean", timeout=params["lock_timeout"]):
                removed = carry_out(clean.plan(params["users"]))
                if params["remove_users"]:
                    removed += carry_out(clean.removals(params["users"]))
            left = [words for words, _act in clean.plan(params["users"])]
            if params["remove_users"]:
                left += [words for words, _act in clean.removals(params["users"])]
            if left:
                module.fail_json(
                    msg=f"still to do after cleaning: {', '.join(left)}; look at the host", removed=removed
                )
    except (PlaceError, CommandError, LockError, OSError) as error:
        module.fail_json(msg=f"{error}")
    text = "".join(f"{words}\n" for words in removed)
    module.exit_json(changed=bool(removed), removed=removed, diff={"before": text, "after": ""})


if __name__ == "__main__":
    main()
