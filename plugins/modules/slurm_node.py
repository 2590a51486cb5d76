#!/usr/bin/python
# Copyright: (c) 2026, gpuops.tenancy contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: slurm_node
short_description: Drain nodes, and resume them without releasing what others keep closed
description:
  - Keeps a hold with its owner's name in the reason of a node, beside the holds of others. Several owners can keep a node
    closed at once; each removes only its own hold, and the node is resumed when the last one goes.
  - A reason without an owner, written by a person or by Slurm itself, is a hold that this module never removes.
  - Reads all nodes once, and changes nodes that change alike by one command. Reads again, and fails where a node is not as wanted.
author:
  - gpuops.tenancy contributors (@gpuops)
extends_documentation_fragment:
  - gpuops.tenancy.attributes
  - gpuops.tenancy.attributes.actiongroup_slurm
  - gpuops.tenancy.slurm.scheduler
  - gpuops.tenancy.host.programs
  - gpuops.tenancy.host.lock
attributes:
  check_mode:
    support: full
    details:
      - Reads without waiting for another writer, and does not wait for jobs.
  diff_mode:
    support: full
  idempotent:
    support: full
options:
  nodes:
    description:
      - Nodes or host lists, such as V(gpu[1-3]).
      - A node that Slurm does not know is an error.
    type: list
    elements: str
    required: true
  state:
    description:
      - V(drain) lets running jobs end and no new ones begin.
      - V(resume) removes the hold of O(owner). A node that nobody else keeps closed takes jobs again.
    type: str
    choices: [drain, resume]
    required: true
  owner:
    description:
      - Who closes the nodes, such as V(incident-42) or V(gpu-layout). Letters, digits, C(.), C(_) and C(-).
    type: str
    required: true
  reason:
    description:
      - Why. Needed unless O(state=resume). Without quotes, C(;) and brackets.
      - A text that differs from the owner's last one replaces it. Leave times of day out for a task that runs often.
    type: str
  wait:
    description:
      - Seconds to wait until no job is on the nodes. The module fails when there still is one, and the nodes stay closed.
      - A suspended job counts, although Slurm may show its node as idle; so does a job that is completing.
      - With V(0) it does not wait, and RV(jobs) says what is on them.
    type: int
    default: 0
notes:
  - There is no V(down) here; with C(ReturnToService=2) slurmctld takes a node that had jobs back at once, and empty of reasons.
    To end what runs on drained nodes, cancel it by M(gpuops.tenancy.slurm_job).
seealso:
  - module: gpuops.tenancy.slurm_job
"""

EXAMPLES = r"""
- name: Empty two nodes before their GPUs are divided anew
  gpuops.tenancy.slurm_node:
    nodes: ["gpu[1-2]"]
    state: drain
    owner: gpu-layout
    reason: new MIG layout
    wait: 3600

- name: Give them back, unless somebody else has closed them too
  gpuops.tenancy.slurm_node:
    nodes: ["gpu[1-2]"]
    state: resume
    owner: gpu-layout
"""

RETURN = r"""
changed:
  description: Whether the plan holds a change.
  type: bool
  returned: always
commands:
  description: The commands that were run, or in check mode would be run.
  type: list
  elements: str
  returned: success
  sample: ["scontrol update 'NodeName=gpu[1-2]' State=DRAIN 'Reason=[gpu-layout] new MIG layout'"]
plan:
  description: The changes, field by field.
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
      description: Which field of it, empty where the object as a whole appears or goes.
      type: str
    before:
      description: Value before, null where there was none.
      type: raw
    after:
      description: Value after, null where there is none.
      type: raw
    risk:
      description: V(safe), V(disruptive) where it may hold back work, or V(destructive) where it ends work or removes something.
      type: str
diff:
  description: What changes, before and after.
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
nodes:
  description: The nodes named, as they are afterwards.
  type: list
  elements: dict
  returned: success
  contains:
    name:
      description: Name.
      type: str
    state:
      description: State, such as V(IDLE), V(MIXED), V(ALLOCATED) or V(DOWN).
      type: str
    flags:
      description: What C(scontrol) shows behind the state, such as V(DRAIN) or V(NOT_RESPONDING).
      type: list
      elements: str
    reason:
      description: The whole reason.
      type: str
    reason_by:
      description: Who wrote it last.
      type: str
    reason_time:
      description: When, in UTC.
      type: str
    owners:
      description: Owners whose holds are in it.
      type: list
      elements: str
    jobs:
      description: Ids of the jobs on it.
      type: list
      elements: str
kept:
  description: Nodes that stay closed after O(state=resume), because there are other holds.
  type: list
  elements: str
  returned: success
jobs:
  description: Jobs that are on the nodes.
  type: list
  elements: dict
  returned: success
  contains:
    id:
      description: Id as C(squeue) prints it, such as V(123), V(123_4) or V(123+1).
      type: str
    array_job_id:
      description: Id of the array that the job is a task of, else empty.
      type: str
    array_task_id:
      description: Number of the task, else empty.
      type: str
    user:
      description: Owner, or the owner's number where the host knows no name.
      type: str
    account:
      description: Account.
      type: str
    partition:
      description: Partition, or several of a waiting job, with commas.
      type: str
    qos:
      description: QOS.
      type: str
    state:
      description: State in Slurm's words, such as V(PENDING).
      type: str
    reason:
      description: Why it waits, else empty.
      type: str
    held:
      description: Whether it waits because somebody holds it.
      type: bool
    priority:
      description: Priority.
      type: int
    nodes:
      description: Nodes that it is on.
      type: list
      elements: str
    node_count:
      description: How many nodes it has, or asks for.
      type: int
    cpus:
      description: How many CPUs it has, or asks for.
      type: int
    gres:
      description: GRES for each node, such as V(gres/gpu:1).
      type: str
    reservation:
      description: Reservation that it was submitted to, else empty.
      type: str
    submit_time:
      description: When it was submitted, in UTC.
      type: str
    start_time:
      description: When it began, or is expected to, in UTC.
      type: str
    end_time:
      description: When it has to end, in UTC.
      type: str
    time_limit:
      description: Time limit.
      type: str
    dependency:
      description: What it waits for.
      type: str
    work_dir:
      description: Working directory. The user's own words, as name and comment are.
      type: str
    name:
      description: Name.
      type: str
    comment:
      description: Comment.
      type: str
applied:
  description: Commands that Slurm had accepted, at least in part, before the module failed.
  type: list
  elements: str
  returned: failure
remaining:
  description: Commands that were still to do.
  type: list
  elements: str
  returned: failure
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import nodes
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.arguments import COMMON
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.nodes_apply import reconcile
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.scheduler import run_module


def argument_spec():
    return {
        "nodes": {"type": "list", "elements": "str", "required": True},
        "state": {"type": "str", "choices": [nodes.DRAIN, nodes.RESUME], "required": True},
        "owner": {"type": "str", "required": True},
        "reason": {"type": "str"},
        "wait": {"type": "int", "default": 0},
        **COMMON,
    }


def main():
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    run_module(module, "slurm_node", reconcile)


if __name__ == "__main__":
    main()
