#!/usr/bin/python
# Copyright: (c) 2026, gpuops.tenancy contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: slurm_reservation
short_description: Have a reservation, or have it gone
description:
  - Reads first, changes only what differs, and reads again. What is not given is left as it is.
  - Times that scontrol prints have no zone; here they are read and returned in UTC.
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
      - Reads without waiting for another writer. Whether the resources are free at that time is found out by the real run.
  diff_mode:
    support: full
  idempotent:
    support: full
options:
  name:
    description:
      - Name of the reservation.
    type: str
    required: true
  state:
    description:
      - V(absent) is refused while jobs are in the reservation or wait for it, unless O(force) is set.
    type: str
    choices: [present, absent]
    default: present
  start_time:
    description:
      - A point in time such as V(2026-12-24T08:00:00+01:00) or V(2026-12-24T07:00:00Z); without an offset it is that of the
        host's own zone. Or V(now), or V(now+2hours) (minutes, hours, days, weeks).
      - What counts from V(now) counts from the run that makes the reservation; V(now) also begins one that is still to come.
      - Slurm cannot move a reservation that has begun. A point that has passed is fulfilled by one that has begun, and one that
        recurs by any later occurrence.
      - A new reservation begins at once where this is not given.
    type: str
  end_time:
    description:
      - Written like O(start_time).
    type: str
  duration:
    description:
      - Minutes, or V([D-]HH:MM:SS) in quotes (YAML makes a number of 12:00:00), or V(infinite), which in Slurm is a year.
    type: str
  nodes:
    description:
      - Nodes or host lists, such as V(gpu[1-3]), or V(ALL).
    type: list
    elements: str
  node_count:
    description:
      - How many nodes; Slurm chooses which.
    type: int
  tres:
    description:
      - What is reserved, by TRES, such as C(cpu) or C(gres/gpu); Slurm chooses where. Only counts that are given are compared,
        since Slurm adds to them.
      - Slurm cannot change this afterwards. 22.05 refuses GRES here.
    type: dict
  partition:
    description:
      - Partition to take nodes from.
    type: str
  users:
    description:
      - Exactly these users may use it. With V(-) before each name, everybody else.
      - With O(accounts) as well, a job has to fit both.
    type: list
    elements: str
  accounts:
    description:
      - Exactly these accounts may use it, and those below them. With V(-) before each name, every other.
    type: list
    elements: str
  flags:
    description:
      - Exactly these of the flags that can be set. V(PURGE_COMP) takes a time, V(PURGE_COMP=00:10:00).
      - C(NO_HOLD_JOBS_AFTER_END), C(OVERLAP), C(REPLACE), C(REPLACE_DOWN) and C(TIME_FLOAT) cannot be taken off again.
    type: list
    elements: str
  force:
    description:
      - Remove the reservation although it has jobs. Those that run in it are cancelled, those that wait for it are taken out of
        it and stay in the queue.
    type: bool
    default: false
notes:
  - Slurm counts whole minutes in O(duration), and rounds up.
seealso:
  - module: gpuops.tenancy.slurm_job
"""

EXAMPLES = r"""
- name: Eight nodes for a tenant's week
  gpuops.tenancy.slurm_reservation:
    name: tenant-foo-training
    accounts: [tenant-foo]
    node_count: 8
    partition: h100
    start_time: "2026-12-07T08:00:00+01:00"
    duration: "7-00:00:00"
    flags: [FLEX]

- name: Maintenance from now on
  gpuops.tenancy.slurm_reservation:
    name: maintenance
    users: [root]
    nodes: [ALL]
    start_time: now
    duration: infinite
    flags: [MAINT, IGNORE_JOBS]

- name: Maintenance is over
  gpuops.tenancy.slurm_reservation:
    name: maintenance
    state: absent
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
  sample: ["scontrol update ReservationName=maintenance EndTime=2026-12-24T12:00:00"]
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
reservation:
  description: The reservation afterwards, or in check mode as it is; empty where there is none.
  type: dict
  returned: success
  contains:
    name:
      description: Name.
      type: str
    start_time:
      description: When it begins, in UTC.
      type: str
    end_time:
      description: When it ends, in UTC.
      type: str
    nodes:
      description: Its nodes.
      type: list
      elements: str
    node_count:
      description: How many nodes it has.
      type: int
    tres:
      description: What it holds.
      type: dict
    partition:
      description: Its partition, else empty.
      type: str
    users:
      description: Its users.
      type: list
      elements: str
    accounts:
      description: Its accounts.
      type: list
      elements: str
    flags:
      description: Its flags, those included that Slurm sets by itself.
      type: list
      elements: str
    active:
      description: Whether it has begun.
      type: bool
jobs:
  description: Jobs that a removal by force cancels or takes out of the reservation.
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
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.arguments import COMMON
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.reservations_apply import reconcile
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.scheduler import run_module


def argument_spec():
    return {
        "name": {"type": "str", "required": True},
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "start_time": {"type": "str"},
        "end_time": {"type": "str"},
        "duration": {"type": "str"},
        "nodes": {"type": "list", "elements": "str"},
        "node_count": {"type": "int"},
        "tres": {"type": "dict"},
        "partition": {"type": "str"},
        "users": {"type": "list", "elements": "str"},
        "accounts": {"type": "list", "elements": "str"},
        "flags": {"type": "list", "elements": "str"},
        "force": {"type": "bool", "default": False},
        **COMMON,
    }


def main():
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    run_module(module, "slurm_reservation", reconcile)


if __name__ == "__main__":
    main()
