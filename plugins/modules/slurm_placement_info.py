#!/usr/bin/python
# Copyright: (c) 2026, gpuops.tenancy contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: slurm_placement_info
short_description: On which nodes an account may run jobs
description:
  - Reads nodes and partitions as slurmctld has them.
author:
  - gpuops.tenancy contributors (@gpuops)
extends_documentation_fragment:
  - gpuops.tenancy.attributes
  - gpuops.tenancy.attributes.info_module
  - gpuops.tenancy.attributes.actiongroup_slurm
  - gpuops.tenancy.host.programs
options:
  nodes:
    description: Slurm's names of the nodes.
    type: list
    elements: str
    required: true
  account:
    description: The account.
    type: str
    required: true
  qos:
    description: The QOS of the jobs.
    type: str
    required: true
  partition:
    description: The partition to use. If empty, of those that a node is in and that admit the account the one with the lowest priority tier.
    type: str
    default: ''
"""

EXAMPLES = r"""
- name: Find out where the tenant may run jobs
  gpuops.tenancy.slurm_placement_info:
    nodes: [gpu1, gpu2]
    account: tenant-foo
    qos: normal
  register: my_places
"""

RETURN = r"""
nodes:
  description: What there is to know of each node.
  type: dict
  returned: success
  contains:
    idle:
      description: Whether it is idle, and answers.
      type: bool
    owner:
      description: The tenant to whom the node belongs; empty where it is everybody's.
      type: str
    partition:
      description: The partition for the job; empty where none admits it.
      type: str
    refused:
      description: Why no partition of the node admits the account; empty where one does. Groups are not looked at.
      type: str
idle:
  description: Idle nodes that admit the account.
  type: list
  elements: str
  returned: success
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpuops.tenancy.plugins.module_utils._command import SEARCH_PATH, CommandError, located, run
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import partitions, placement
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.parse import ParseError


def argument_spec():
    """Options of the module."""
    return {
        "nodes": {"type": "list", "elements": "str", "required": True},
        "account": {"type": "str", "required": True},
        "qos": {"type": "str", "required": True},
        "partition": {"type": "str", "default": ""},
        "search_path": {"type": "list", "elements": "path", "default": SEARCH_PATH},
    }


def main():
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    params = module.params
    try:
        scontrol = located("scontrol", params["search_path"])
        shown = run([scontrol, "-a", "-o", "show", "node"], timeout=60, ok=(0,)).stdout
        # With those that are hidden.
        known = partitions.parse(run([scontrol, "-a", "-o", "show", "partition"], timeout=60, ok=(0,)).stdout)
    except (CommandError, ParseError, OSError) as error:
        module.fail_json(msg=str(error))
    found = placement.nodes(shown, known, params["nodes"], params["account"], params["qos"], params["partition"])
    idle = [name for name, one in found.items() if one["idle"] and one["partition"]]
    module.exit_json(changed=False, nodes=found, idle=idle)


if __name__ == "__main__":
    main()
