#!/usr/bin/python
# Copyright: (c) 2026, gpuops.tenancy contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: attest_run
short_description: Attack a node's isolation as a canary user
description:
  - Opens the doors that a tenant has (ssh, cron, at, a user's systemd, a service, a job) and runs the probes behind each, as
    the user. What they answer is returned; whether that is good, M(gpuops.tenancy.attest_report) says.
  - Probes send no signal but 0 and touch canaries' objects only. Role P(gpuops.tenancy.attest#role) makes those, and cleans up.
author:
  - gpuops.tenancy contributors (@gpuops)
extends_documentation_fragment:
  - gpuops.tenancy.attributes
  - gpuops.tenancy.host.programs
  - gpuops.tenancy.host.lock
attributes:
  check_mode:
    support: full
    details: Attacks nothing; no probe has an answer.
  diff_mode:
    support: N/A
    details: Changes nothing that stays.
  idempotent:
    support: full
    details: Never reports a change.
options:
  program:
    description: The program of the probes, as M(gpuops.tenancy.attest_catalogue) returns it.
    type: str
    required: true
  run_id:
    description: Name of this run.
    type: str
    required: true
  kind:
    description: Whether this is a login node, a compute node that is reserved for attest, one that takes no jobs just now, or another one.
    type: str
    choices: [login, reserved, compute, closed]
    required: true
  node:
    description: Slurm's name of this compute node.
    type: str
    default: ''
  partition:
    description: Partition of the job; by default the first that the node is in.
    type: str
    default: ''
  private:
    description: Why no canary may run a job on this node, such as that it belongs to a tenant. What a job would try is not applicable then.
    type: str
    default: ''
  runs:
    description: Which probes run in which context, as whom.
    type: list
    elements: dict
    required: true
    suboptions:
      context:
        description: How the user gets there.
        type: str
        required: true
      actor:
        description: Which canary.
        type: str
        required: true
      probes:
        description: Names of the probes.
        type: list
        elements: str
        required: true
  facts:
    description: What there is to attack.
    type: dict
    required: true
  job_deadline:
    description: Seconds that the canary's job may wait in the queue. Then its probes are errors.
    type: int
    default: 60
"""

EXAMPLES = r"""
- name: Attack from everywhere
  gpuops.tenancy.attest_run:
    program: "{{ my_catalogue.program }}"
    run_id: "{{ my_run }}"
    kind: login
    runs: "{{ my_catalogue.runs.login }}"
    facts: "{{ my_facts }}"
  register: my_answers
"""

RETURN = r"""
answers:
  description: One for each probe, context and actor.
  type: list
  elements: dict
  returned: success
  contains:
    probe:
      description: Name of the probe.
      type: str
    context:
      description: Where it ran.
      type: str
    actor:
      description: As whom.
      type: str
    verdict:
      description: V(pass), V(FAIL), V(not applicable) or V(error).
      type: str
    evidence:
      description: The errno or the answer.
      type: str
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpuops.tenancy.plugins.module_utils._attest import campaign
from ansible_collections.gpuops.tenancy.plugins.module_utils._attest.place import PlaceError
from ansible_collections.gpuops.tenancy.plugins.module_utils._command import SEARCH_PATH, CommandError
from ansible_collections.gpuops.tenancy.plugins.module_utils._lock import Lock, LockError


def argument_spec():
    """Options of the module."""
    return {
        "program": {"type": "str", "required": True},
        "run_id": {"type": "str", "required": True},
        "kind": {"type": "str", "choices": ["login", "reserved", "compute", "closed"], "required": True},
        "node": {"type": "str", "default": ""},
        "partition": {"type": "str", "default": ""},
        "private": {"type": "str", "default": ""},
        "runs": {
            "type": "list",
            "elements": "dict",
            "required": True,
            "options": {
                "context": {"type": "str", "required": True},
                "actor": {"type": "str", "required": True},
                "probes": {"type": "list", "elements": "str", "required": True},
            },
        },
        "facts": {"type": "dict", "required": True},
        "job_deadline": {"type": "int", "default": 60},
        "search_path": {"type": "list", "elements": "path", "default": SEARCH_PATH},
        "lock_timeout": {"type": "int", "default": 300},
    }


def main():
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    if module.check_mode:
        module.exit_json(changed=False, answers=[])
    try:
        with Lock("attest", purpose="attest_run", timeout=module.params["lock_timeout"]):
            answers = campaign.attack(module.params)
    except (PlaceError, campaign.Superseded, CommandError, LockError, OSError) as error:
        module.fail_json(msg=f"{error}")
    module.exit_json(changed=False, answers=answers)


if __name__ == "__main__":
    main()
