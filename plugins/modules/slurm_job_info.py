#!/usr/bin/python
# Copyright: (c) 2026, gpuops.tenancy contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: slurm_job_info
short_description: Jobs in the queue
description:
  - Returns the jobs that are in all the lists given, or all jobs. Whoever is named and not there is no error.
  - Names, comments and directories of jobs may hold anything, line breaks included; they cannot pass for other jobs.
author:
  - gpuops.tenancy contributors (@gpuops)
extends_documentation_fragment:
  - gpuops.tenancy.attributes
  - gpuops.tenancy.attributes.actiongroup_slurm
  - gpuops.tenancy.slurm.scheduler
  - gpuops.tenancy.host.programs
  - gpuops.tenancy.attributes.info_module
options:
  ids:
    description:
      - Ids of jobs, V(123), of tasks of an array, V(123_4) or V(123_[1-9]), or of parts of a heterogeneous job, V(123+1).
        The id of an array or of a heterogeneous job means all of it.
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
      - Without this, jobs that have ended and that Slurm still remembers are left out.
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
seealso:
  - module: gpuops.tenancy.slurm_job
"""

EXAMPLES = r"""
- name: What a user is running
  gpuops.tenancy.slurm_job_info:
    users: [alice]
    states: [RUNNING, SUSPENDED, COMPLETING]
  register: running
"""

RETURN = r"""
jobs:
  description: The jobs, in the order of C(squeue).
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
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.arguments import COMMON
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.jobs_apply import SELECTION, info
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.scheduler import run_module


def argument_spec():
    return {**SELECTION, "search_path": COMMON["search_path"]}


def main():
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    run_module(module, "slurm_job_info", info)


if __name__ == "__main__":
    main()
