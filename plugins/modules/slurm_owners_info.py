#!/usr/bin/python
# Copyright: (c) 2026, gpuops.tenancy contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: slurm_owners_info
short_description: Whose nodes are, as slurmctld has it
description:
  - Reads the feature that marks a node as one tenant's, and whether the node is kept closed while it changes hands.
author:
  - gpuops.tenancy contributors (@gpuops)
extends_documentation_fragment:
  - gpuops.tenancy.attributes
  - gpuops.tenancy.attributes.actiongroup_slurm
  - gpuops.tenancy.host.programs
attributes:
  check_mode:
    support: full
  diff_mode:
    support: N/A
    details: Changes nothing.
  idempotent:
    support: full
options:
  nodes:
    description:
      - Names of nodes. One that Slurm does not know is an error.
    type: list
    elements: str
    required: true
"""

EXAMPLES = r"""
- name: Whose is it
  gpuops.tenancy.slurm_owners_info:
    nodes: [gpu3]
"""

RETURN = r"""
owners:
  description: What is known of each node.
  type: dict
  returned: success
  contains:
    owner:
      description: The tenant, empty where the node is everybody's.
      type: str
    held:
      description: Whether playbook C(reassign_nodes) keeps it closed.
      type: bool
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpuops.tenancy.plugins.module_utils._command import SEARCH_PATH, CommandError, located, run
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import nodes, owners


def argument_spec():
    """Options of the module."""
    return {
        "nodes": {"type": "list", "elements": "str", "required": True},
        "search_path": {"type": "list", "elements": "path", "default": SEARCH_PATH},
    }


def main():
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    params = module.params
    try:
        shown = run([located("scontrol", params["search_path"]), "show", "node"], timeout=60, ok=(0,)).stdout
        known, holds = owners.in_force(shown), nodes.parse(shown)
    except (CommandError, ValueError, OSError) as error:
        module.fail_json(msg=str(error))
    unknown = [name for name in params["nodes"] if name not in known]
    if unknown:
        module.fail_json(msg=f"Slurm knows no node {', '.join(unknown)}; run site.yml first, or correct the name")
    found = {
        name: {
            "owner": known[name],
            "held": holds[name].closed and any(owner == owners.HOLD for owner, _text in holds[name].holds),
        }
        for name in params["nodes"]
    }
    module.exit_json(changed=False, owners=found)


if __name__ == "__main__":
    main()
