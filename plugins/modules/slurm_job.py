#!/usr/bin/python
# Copyright: (c) 2026, gpuops.tenancy contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: slurm_job
short_description: Hold, release, cancel or requeue selected jobs
description:
  - Acts on the jobs that are in all the lists given, and waits until it is true of each of them, or says of which it is not.
  - Jobs that appear while it runs and belong to the selection are held or cancelled too. Somebody who goes on submitting has
    to be blocked first.
  - Refuses to select everybody's jobs, and to touch more than O(max_jobs).
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
      - Reads without waiting for another writer.
  diff_mode:
    support: full
  idempotent:
    support: partial
    details:
      - A requeued job that has begun again is requeued again by the next run.
options:
  state:
    description:
      - V(held) keeps waiting jobs from beginning. Running ones go on.
      - V(released) lets held jobs begin, whoever holds them.
      - V(cancelled) ends jobs, and takes waiting ones out of the queue.
      - V(requeued) stops running jobs and puts them back into the queue. Jobs that were submitted as not to be requeued are
        reported as failed.
    type: str
    choices: [held, released, cancelled, requeued]
    required: true
  ids:
    description:
      - Ids of jobs, V(123), of tasks of an array, V(123_4) or V(123_[1-9]), or of parts of a heterogeneous job, V(123+1).
        The id of an array or of a heterogeneous job means all of it.
      - One of O(ids), O(users), O(accounts), O(nodes) or O(reservations) is needed, and an empty list is refused.
    type: list
    elements: str
  users:
    description:
      - Users who own the jobs. One whose name the host does not know is named by number.
    type: list
    elements: str
  accounts:
    description:
      - Accounts that the jobs are charged to, not those below them.
    type: list
    elements: str
  states:
    description:
      - States of jobs as C(squeue) names them, such as V(PENDING), V(RUNNING) or V(SUSPENDED), or in short V(PD), V(R), V(S).
    type: list
    elements: str
  nodes:
    description:
      - Nodes or host lists, such as V(gpu[1-3]), that the jobs are on.
    type: list
    elements: str
  partitions:
    description:
      - Partitions that the jobs were submitted to.
    type: list
    elements: str
  reservations:
    description:
      - Reservations that the jobs were submitted to.
    type: list
    elements: str
  max_jobs:
    description:
      - Where it would act on more jobs than this, it refuses before it touches one, and lists them.
    type: int
    default: 100
  wait:
    description:
      - Seconds to wait until all of it is true. A cancelled job that is still completing holds its nodes and GPUs. The module
        fails when one is left.
      - With V(0) it is enough that Slurm has taken the order, and RV(unfinished) says what is left.
    type: int
    default: 60
seealso:
  - module: gpuops.tenancy.slurm_job_info
  - module: gpuops.tenancy.slurm_node
"""

EXAMPLES = r"""
- name: Keep what a user has in the queue from beginning
  gpuops.tenancy.slurm_job:
    users: [mallory]
    state: held

- name: Cancel what two accounts have in the queue
  gpuops.tenancy.slurm_job:
    accounts: [tenant-foo, ml-team-foo]
    states: [PENDING]
    state: cancelled
    max_jobs: 2000
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
  sample: ["scancel 123 124_1"]
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
jobs:
  description: The jobs selected, as they were before.
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
unfinished:
  description: Ids of jobs for which it is not true yet, such as those that are completing.
  type: list
  elements: str
  returned: success, or failure while waiting
applied:
  description: Commands that Slurm had accepted, at least in part, before the module failed.
  type: list
  elements: str
  returned: failure
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import jobs_plan
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.arguments import COMMON
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.jobs_apply import SELECTION, reconcile
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.scheduler import run_module


def argument_spec():
    return {
        "state": {"type": "str", "choices": list(jobs_plan.STATES), "required": True},
        **SELECTION,
        "max_jobs": {"type": "int", "default": 100},
        "wait": {"type": "int", "default": 60},
        **COMMON,
    }


def main():
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    run_module(module, "slurm_job", reconcile)


if __name__ == "__main__":
    main()
