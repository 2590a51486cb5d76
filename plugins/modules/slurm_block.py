#!/usr/bin/python
# Copyright: (c) 2026, gpuops.tenancy contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: slurm_block
short_description: Keep users or whole accounts from running jobs, and give back exactly what they had
description:
  - A blocked association has the blocking QOS as its only and its default QOS. Submissions are refused in every QOS and
    every partition, what waits is held, a requeued job does not start again. What runs goes on (marked as held, which is what stops it
    when it is requeued).
  - What the associations held before is kept in a file of root's on the host that the module runs on, written before the
    first change, and put back by O(state=unblocked) exactly, also where it was inherited.
  - Blocks have owners and stack. Lifting one leaves the others in force.
  - Nothing else lifts a block, M(gpuops.tenancy.slurm_accounting) least of all. It blocks what is new below a blocked account, and
    whatever a blocked user is newly associated with.
  - Every run makes the whole record true, so that one that was killed is finished by the next.
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
  cluster:
    description:
      - Name of the cluster in slurmdbd.
    type: str
    required: true
  users:
    description:
      - Users, with every association that they have on the cluster.
    type: list
    elements: str
    default: []
  accounts:
    description:
      - Accounts, with everything below them. The name of a tenant is the tenant.
    type: list
    elements: str
    default: []
  state:
    description:
      - Whether O(owner) blocks them.
    type: str
    choices: [blocked, unblocked]
    default: blocked
  owner:
    description:
      - In whose name, for example V(suspension) or V(incident-42). A name of small letters, digits, dots and dashes.
    type: str
    required: true
  reason:
    description:
      - Why, for whoever finds the block. By default a reason that is on record stays.
    type: str
  cancel_pending:
    description:
      - Whether jobs that wait are cancelled after the block is in place. Without it they stay in the queue, held, and are released
        when the block is lifted; what somebody else holds stays held. Running jobs are never cancelled here.
    type: bool
    default: false
  force:
    description:
      - Whether O(state=unblocked) also lifts a block that is on nobody's record, such as one that was made by hand, or one whose record
        was lost. Such associations inherit their QOS afterwards, until M(gpuops.tenancy.slurm_accounting) gives them others.
    type: bool
    default: false
  block_qos:
    description:
      - The blocking QOS. It needs GrpSubmitJobs=0, MaxSubmitJobsPerUser=0 and the flags OverPartQOS and DenyOnLimit.
    type: str
    default: blocked
notes:
  - Run it always on the same host, the one on which M(gpuops.tenancy.slurm_accounting) runs. The record is
    C(/var/lib/gpuops-tenancy/blocks-CLUSTER.json); put it into the backup, and on storage that both controllers see where there
    are two.
  - Slurm lets users with an AdminLevel, and coordinators of an account, change associations with C(sacctmgr), the own one
    included. The module warns of them. A further run blocks again what they have lifted.
  - A block keeps people from running jobs. It does not keep them from logging in.
seealso:
  - module: gpuops.tenancy.slurm_accounting
"""

EXAMPLES = r"""
- name: Stop a tenant that does not pay
  gpuops.tenancy.slurm_block:
    cluster: production
    accounts: [tenant-foo]
    owner: suspension
    reason: invoice 4711 is overdue

- name: Stop a user while an incident is looked into, and clear the queue
  gpuops.tenancy.slurm_block:
    cluster: production
    users: [alice]
    owner: incident-42
    reason: a miner in job 1234
    cancel_pending: true

- name: The incident is over, the invoice is not paid
  gpuops.tenancy.slurm_block:
    cluster: production
    users: [alice]
    owner: incident-42
    state: unblocked
"""

RETURN = r"""
changed:
  description: Whether associations, the record or the queue change.
  type: bool
  returned: always
blocks:
  description: All blocks on record, those of others included.
  type: list
  elements: dict
  returned: success
  contains:
    kind:
      description: V(user) or V(account).
      type: str
    name:
      description: Who is blocked.
      type: str
    owner:
      description: By whom.
      type: str
    reason:
      description: Why.
      type: str
    since:
      description: When the block began.
      type: str
still_blocked:
  description: After O(state=unblocked), named associations that other blocks keep blocked, and which.
  type: list
  elements: str
  returned: success
  sample: ["user alice in ml-team-foo: account tenant-foo by suspension"]
jobs:
  description: Jobs of what is named, as they were found. Running ones go on.
  type: list
  elements: dict
  returned: success
  contains:
    id:
      description: Number of the job.
      type: str
    user:
      description: Whose it is.
      type: str
    account:
      description: On which account.
      type: str
    partition:
      description: In which partition.
      type: str
    state:
      description: State of the job.
      type: str
commands:
  description: The commands that were run, or in check mode would be run. A real run may do one of them in portions.
  type: list
  elements: str
  returned: success
plan:
  description: The changes, first those of the record, then jobs to cancel, then associations field by field.
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
  description: Blocks and associations that change.
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
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.block import reconcile
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.runner import run_module


def argument_spec():
    return {
        "cluster": {"type": "str", "required": True},
        "users": {"type": "list", "elements": "str", "default": []},
        "accounts": {"type": "list", "elements": "str", "default": []},
        "state": {"type": "str", "choices": ["blocked", "unblocked"], "default": "blocked"},
        "owner": {"type": "str", "required": True},
        "reason": {"type": "str"},
        "cancel_pending": {"type": "bool", "default": False},
        "force": {"type": "bool", "default": False},
        "block_qos": {"type": "str", "default": "blocked"},
        **COMMON,
    }


def main():
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    run_module(module, "slurm_block", reconcile)


if __name__ == "__main__":
    main()
