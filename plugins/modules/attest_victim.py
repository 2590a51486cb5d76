#!/usr/bin/python
# Copyright: (c) 2026, gpuops.tenancy contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: attest_victim
short_description: Have a canary of another tenant on a node, to be attacked
description:
  - Starts a process of the canary user with a secret, files, IPC objects and a listening port, in a job or as a service, and
    on request a job that waits. She ends when M(gpuops.tenancy.attest_clean) clears up, and by herself after O(seconds).
author:
  - gpuops.tenancy contributors (@gpuops)
extends_documentation_fragment:
  - gpuops.tenancy.attributes
  - gpuops.tenancy.host.programs
  - gpuops.tenancy.host.lock
attributes:
  check_mode:
    support: full
    details: Starts nothing.
  diff_mode:
    support: none
  idempotent:
    support: none
    details: Each run starts a victim.
options:
  program:
    description: The program of the probes, as M(gpuops.tenancy.attest_catalogue) returns it.
    type: str
    required: true
  run_id:
    description: Name of this run.
    type: str
    required: true
  host:
    description: Inventory name of this host.
    type: str
    required: true
  address:
    description: Where others reach this host.
    type: str
    required: true
  user:
    description: The canary.
    type: str
    required: true
  account:
    description: Her account.
    type: str
    required: true
  node:
    description: Slurm's name of this node. If given, the victim is a job on it.
    type: str
    default: ''
  partition:
    description: Partition of the job; by default the first that the node is in.
    type: str
    default: ''
  reservation:
    description: Reservation of the job.
    type: str
    default: ''
  waiting:
    description: Whether to submit a job that waits until tomorrow.
    type: bool
    default: false
  memory:
    description: Memory of the job in MB.
    type: int
    default: 64
  spool_dir:
    description: SlurmdSpoolDir.
    type: path
    default: /var/spool/slurmd
  seconds:
    description: How long the victim lives at most.
    type: int
    default: 540
  deadline:
    description: Seconds until it must be there.
    type: int
    default: 60
"""

EXAMPLES = r"""
- name: Have somebody to attack
  gpuops.tenancy.attest_victim:
    program: "{{ my_catalogue.program }}"
    run_id: "{{ my_run }}"
    host: "{{ inventory_hostname }}"
    address: "{{ tenancy_address_cluster }}"
    user: attest-b1
    account: attest-b
  register: my_victim
"""

RETURN = r"""
victim:
  description: What there is to attack; empty if there is none.
  type: dict
  returned: success
waiting_job:
  description: Number of the job that waits; empty if there is none.
  type: str
  returned: success
problem:
  description: Why there is no victim; empty if there is one. Probes that need one are errors then.
  type: str
  returned: success
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpuops.tenancy.plugins.module_utils._attest import prey
from ansible_collections.gpuops.tenancy.plugins.module_utils._attest.place import PlaceError
from ansible_collections.gpuops.tenancy.plugins.module_utils._command import SEARCH_PATH, CommandError
from ansible_collections.gpuops.tenancy.plugins.module_utils._lock import Lock, LockError


def argument_spec():
    """Options of the module."""
    return {
        "program": {"type": "str", "required": True},
        "run_id": {"type": "str", "required": True},
        "host": {"type": "str", "required": True},
        "address": {"type": "str", "required": True},
        "user": {"type": "str", "required": True},
        "account": {"type": "str", "required": True},
        "node": {"type": "str", "default": ""},
        "partition": {"type": "str", "default": ""},
        "reservation": {"type": "str", "default": ""},
        "waiting": {"type": "bool", "default": False},
        "memory": {"type": "int", "default": 64},
        "spool_dir": {"type": "path", "default": "/var/spool/slurmd"},
        "seconds": {"type": "int", "default": 540},
        "deadline": {"type": "int", "default": 60},
        "search_path": {"type": "list", "elements": "path", "default": SEARCH_PATH},
        "lock_timeout": {"type": "int", "default": 300},
    }


def main():
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    if module.check_mode:
        module.exit_json(changed=False, victim={}, waiting_job="", problem="check mode")
    try:
        with Lock("attest", purpose="attest_victim", timeout=module.params["lock_timeout"]):
            result = prey.release(module.params)
    except (PlaceError, CommandError, LockError, OSError) as error:
        module.fail_json(msg=f"{error}")
    module.exit_json(changed=True, **result)


if __name__ == "__main__":
    main()
