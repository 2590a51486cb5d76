#!/usr/bin/python
# Copyright: (c) 2026, gpuops.tenancy contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: slurm_qos
short_description: Have the QOS of a site defined exactly so
description:
  - Creates the named QOS and sets the named options, for all clusters of the slurmdbd. Reads once, writes with few
    commands, reads again, and fails when the result differs from the plan.
  - An option that is left out is left alone. Numbers and times are cleared by V(-1), a TRES limit by leaving its name
    out of the dictionary.
  - QOS that are not named are reported and never removed.
author:
  - gpuops.tenancy contributors (@gpuops)
extends_documentation_fragment:
  - gpuops.tenancy.attributes
  - gpuops.tenancy.attributes.actiongroup_slurm
  - gpuops.tenancy.slurm
  - gpuops.tenancy.slurm.saving
  - gpuops.tenancy.slurm_fields_qos
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
  state:
    description:
      - Whether the QOS exist. V(absent) is refused while an association of any cluster, a partition, a job or another
        QOS uses one, because Slurm would strip it from all of them without a word.
    type: str
    choices: [present, absent]
    default: present
  max_removals:
    description:
      - How many QOS O(state=absent) may remove. By default as many as are named.
    type: int
notes:
  - A limit of a QOS outranks the same limit of an association, also where it is larger.
seealso:
  - module: gpuops.tenancy.slurm_accounting
"""

EXAMPLES = r"""
- name: Have the QOS of the site
  gpuops.tenancy.slurm_qos:
    qos:
      - name: normal
        priority: 10
      - name: high
        priority: 100
        preempt: [normal]
        preempt_mode: requeue
        preempt_exempt_time: "00:05:00"
        grace_time: 60
      - name: blocked
        description: Nobody submits with this one
        grp_submit_jobs: 0
        max_submit_jobs_per_user: 0
        flags: [OverPartQOS, DenyOnLimit]

- name: Have one QOS
  gpuops.tenancy.slurm_qos:
    name: night
    max_wall: "08:00:00"

- name: Remove a QOS that nobody uses
  gpuops.tenancy.slurm_qos:
    name: night
    state: absent
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
  sample: ["sacctmgr -i modify qos where name=high set Priority=100"]
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
  description: The QOS that change.
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
unmanaged:
  description: QOS that exist and are not named.
  type: list
  elements: str
  returned: success
saved:
  description: Files on the target with the state before a removal; empty where nothing was removed.
  type: list
  elements: str
  returned: success
  sample: ["/var/lib/gpuops-tenancy/saved/production-20260101T030000.123Z.json"]
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
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import options
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.arguments import COMMON, REMOVAL
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.qos_reconcile import reconcile
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.runner import run_module


def argument_spec():
    return {**options.spec(options.QOS), **REMOVAL, **COMMON}


def main():
    module = AnsibleModule(
        argument_spec=argument_spec(),
        mutually_exclusive=options.exclusive(options.QOS, "qos"),
        required_one_of=[("name", "qos")],
        supports_check_mode=True,
    )
    run_module(module, "slurm_qos", reconcile)


if __name__ == "__main__":
    main()
