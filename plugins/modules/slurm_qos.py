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
  - QOS that are not named are reported and never removed. Removing one strips it from every association, even as
    default.
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
  qos:
    description:
      - The QOS of the site. The one that blocks people is one of them.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description:
          - Name of the QOS.
        type: str
        required: true
      description:
        description:
          - Text of the QOS. Slurm folds it to lower case.
        type: str
      priority:
        description:
          - Priority added to jobs. V(-1) sets 0.
        type: int
      flags:
        description:
          - Flags, exactly these. The empty list clears them.
        type: list
        elements: str
      preempt:
        description:
          - QOS whose jobs this one may preempt, exactly these.
        type: list
        elements: str
      preempt_mode:
        description:
          - How its jobs are preempted. The empty string or V(cluster) takes the cluster's mode.
        type: str
      preempt_exempt_time:
        description:
          - Time that a job runs before it may be preempted. Write V(00:05:00); a bare number means minutes.
        type: str
      grace_time:
        description:
          - Seconds between the warning and the preemption. V(-1) sets 0.
        type: int
      usage_factor:
        description:
          - Factor by which usage counts. V(-1) sets 1.
        type: float
      usage_threshold:
        description:
          - Lowest fair share with which a job may run or be submitted.
        type: float
      limit_factor:
        description:
          - Factor by which the TRES limits of associations are multiplied.
        type: float
      grp_tres:
        description:
          - TRES that all running jobs of the QOS may use together.
        type: dict
      grp_tres_mins:
        description:
          - TRES minutes that all jobs of the QOS may use together.
        type: dict
      grp_tres_run_mins:
        description:
          - TRES minutes that all running jobs of the QOS may still need together.
        type: dict
      grp_jobs:
        description:
          - Jobs of the QOS that may run together.
        type: int
      grp_submit_jobs:
        description:
          - Jobs of the QOS that may wait or run together.
        type: int
      grp_wall:
        description:
          - Wall clock time that all jobs of the QOS may use together.
        type: str
      max_tres_per_job:
        description:
          - TRES that one job may use.
        type: dict
      max_tres_per_node:
        description:
          - TRES that one job may use on a node.
        type: dict
      max_tres_mins_per_job:
        description:
          - TRES minutes that one job may use.
        type: dict
      max_wall:
        description:
          - Wall clock time of one job.
        type: str
      max_tres_per_user:
        description:
          - TRES that the running jobs of one user may use together.
        type: dict
      max_jobs_per_user:
        description:
          - Running jobs of one user.
        type: int
      max_submit_jobs_per_user:
        description:
          - Waiting and running jobs of one user.
        type: int
      max_tres_per_account:
        description:
          - TRES that the running jobs of one account may use together.
        type: dict
      max_jobs_per_account:
        description:
          - Running jobs of one account.
        type: int
      max_submit_jobs_per_account:
        description:
          - Waiting and running jobs of one account.
        type: int
      min_tres_per_job:
        description:
          - TRES that a job has to ask for at least.
        type: dict
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
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import fields
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.arguments import COMMON
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.qos_definitions import reconcile
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.runner import run_module


def argument_spec():
    qos = {"name": {"type": "str", "required": True}, **fields.specs(fields.QOS_FIELDS)}
    return {"qos": {"type": "list", "elements": "dict", "required": True, "options": qos}, **COMMON}


def main():
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    run_module(module, "slurm_qos", reconcile)


if __name__ == "__main__":
    main()
