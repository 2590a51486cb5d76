#!/usr/bin/python
# Copyright: (c) 2026, gpuops.tenancy contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: slurm_cluster
short_description: Have a cluster registered in slurmdbd
description:
  - Registers the cluster where slurmdbd does not know it yet. Never changes or removes one.
author:
  - gpuops.tenancy contributors (@gpuops)
extends_documentation_fragment:
  - gpuops.tenancy.attributes
  - gpuops.tenancy.attributes.actiongroup_slurm
  - gpuops.tenancy.slurm
attributes:
  check_mode:
    support: full
    details:
      - Reads without waiting for another writer.
  diff_mode:
    support: full
  idempotent:
    support: full
options:
  name:
    description:
      - Name of the cluster, C(ClusterName) of C(slurm.conf).
    type: str
    required: true
  state:
    description:
      - The cluster is registered.
    type: str
    choices: [present]
    default: present
seealso:
  - module: gpuops.tenancy.slurm_accounting
"""

EXAMPLES = r"""
- name: Have the cluster registered
  gpuops.tenancy.slurm_cluster:
    name: production
"""

RETURN = r"""
changed:
  description: Whether the plan holds a change.
  type: bool
  returned: always
commands:
  description: The commands that were run, or in check mode would be run. A real run may do one of them in portions.
  type: list
  elements: str
  returned: success
  sample: ["sacctmgr -i modify account where name=tenant-foo cluster=production set GrpJobs=100"]
plan:
  description: The changes, field by field. An object that appears or goes has an entry with an empty V(field) as well.
  type: list
  elements: dict
  returned: success
  contains:
    kind:
      description: V(add), V(change) or V(remove).
      type: str
    object:
      description: What changes.
      type: str
    field:
      description: Which option of it.
      type: str
    before:
      description: Value before, null where there was none.
      type: raw
    after:
      description: Value after, null where there is none.
      type: raw
    risk:
      description: V(safe), V(disruptive) where it may hold back work, or V(destructive) where it removes something.
      type: str
diff:
  description: The cluster, where it is registered now.
  type: dict
  returned: success
  contains:
    before_header:
      description: What RV(diff.before) shows.
      type: str
    after_header:
      description: What RV(diff.after) shows.
      type: str
    before:
      description: The state read.
      type: str
    after:
      description: The state planned.
      type: str
applied:
  description: Commands that sacctmgr had accepted before the module failed.
  type: list
  elements: str
  returned: failure while writing
remaining:
  description: Commands that were still to do.
  type: list
  elements: str
  returned: failure while writing
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.arguments import COMMON
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.clusters import reconcile
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.runner import run_module


def argument_spec():
    return {
        "name": {"type": "str", "required": True},
        "state": {"type": "str", "choices": ["present"], "default": "present"},
        **COMMON,
    }


def main():
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    run_module(module, "slurm_cluster", reconcile)


if __name__ == "__main__":
    main()
