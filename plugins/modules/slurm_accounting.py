#!/usr/bin/python
# Copyright: (c) 2026, gpuops.tenancy contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: slurm_accounting
short_description: Have a tree of Slurm accounts, users, associations and limits exactly so
description:
  - Reads the accounting of a cluster once, plans, writes with few commands, and reads again. It fails when the result
    differs from the plan, because neither exit statuses nor messages of C(sacctmgr) prove anything.
  - An option that is left out is left alone. Numbers and times are cleared by V(-1), a TRES limit by leaving its name
    out of the dictionary, QOS lists by an empty list, a default QOS by an empty string.
  - Nothing outside O(scope) is changed, except the default account of a user who is named.
  - Names are folded to lower case with a warning, as Slurm does.
author:
  - gpuops.tenancy contributors (@gpuops)
extends_documentation_fragment:
  - gpuops.tenancy.attributes
  - gpuops.tenancy.attributes.actiongroup_slurm
  - gpuops.tenancy.slurm
  - gpuops.tenancy.slurm.saving
  - gpuops.tenancy.slurm_fields_tree
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
  scope:
    description:
      - Accounts at the top of the subtrees that may be touched. The accounts themselves may be changed and created, never
        removed, and never moved away from a parent that is outside the scope.
    type: list
    elements: str
    required: true
  exclusive:
    description:
      - Whether accounts and associations in O(scope) that are not named are removed. Otherwise they are reported in
        RV(unmanaged).
    type: bool
    default: false
  max_removals:
    description:
      - How many unnamed accounts and associations O(exclusive) may remove. A plan with more is refused as a whole.
      - Associations that a named user has besides the listed ones do not count.
    type: int
    default: 0
  max_removal_share:
    description:
      - The same as a part of all accounts and associations in O(scope), from V(0) to V(1), because a number that suits a
        large tenant may be all of a small one. Both have to allow a removal.
    type: float
    default: 0.5
  block_qos:
    description:
      - An account or association with this QOS as its only one is blocked. Its QOS list and default QOS are left alone,
        whatever the arguments say, and new associations below it or of a blocked user are blocked as well.
    type: str
    default: blocked
  server_seconds:
    description:
      - How long one command should keep the server busy. The number of objects per command follows what the last ones
        took.
    type: float
    default: 6
notes:
  - Quote times in YAML. C(12:30:00) without quotes is the number 45000 to YAML.
  - An association with running or waiting jobs is not removed; the jobs are listed.
  - The description and the organization of an account are the same on all clusters of one slurmdbd.
seealso:
  - module: gpuops.tenancy.slurm_accounting_info
  - module: gpuops.tenancy.slurm_account
  - module: gpuops.tenancy.slurm_user
  - module: gpuops.tenancy.slurm_qos
  - module: gpuops.tenancy.slurm_cluster
"""

EXAMPLES = r"""
- name: Have a tenant with a team and two users
  gpuops.tenancy.slurm_accounting:
    cluster: production
    scope: [tenant-foo]
    accounts:
      - name: tenant-foo
        description: Tenant Foo
        fairshare: 300
        grp_tres: {gres/gpu: 128}
        grp_jobs: 200
        qos: [normal, high]
        default_qos: normal
        accounts:
          - name: ml-team-foo
            fairshare: 200
    users:
      - name: alice
        associations:
          - account: ml-team-foo
            max_jobs: 20
            grp_tres_mins: {gres/gpu: 10000}
      - name: bob
        default_account: ml-team-foo
        associations:
          - account: ml-team-foo
          - account: tenant-foo

- name: Clear a limit
  gpuops.tenancy.slurm_accounting:
    cluster: production
    scope: [tenant-foo]
    accounts:
      - name: tenant-foo
        grp_jobs: -1
        grp_tres: {}

- name: Remove what is not named, but never more than five objects
  gpuops.tenancy.slurm_accounting:
    cluster: production
    scope: [tenant-foo]
    accounts: "{{ my_accounts }}"
    users: "{{ my_users }}"
    exclusive: true
    max_removals: 5
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
  description: The accounts and users that change, as a tree with one line each, and the accounts above them.
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
  description: Accounts and associations in O(scope) that are not named.
  type: list
  elements: str
  returned: success
  sample: ["user mallory in ml-team-foo"]
blocked:
  description: Named objects that are blocked, and whose QOS were therefore left alone.
  type: list
  elements: str
  returned: success
  sample: ["account tenant-foo"]
saved:
  description: Files on the target with the state before a removal; empty where nothing was removed.
  type: list
  elements: str
  returned: success
  sample: ["/var/lib/gpuops-tenancy/saved/production-20260101T030000.123Z.json"]
removals:
  description: What was to be removed, where that is more than allowed.
  type: list
  elements: str
  returned: refusal because of too many removals
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
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.accounting import reconcile
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.arguments import COMMON, SAVING, checked_children
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.runner import run_module


def argument_spec():
    return {
        "cluster": {"type": "str", "required": True},
        "scope": {"type": "list", "elements": "str", "required": True},
        **options.spec(options.TREE),
        "exclusive": {"type": "bool", "default": False},
        "max_removals": {"type": "int", "default": 0},
        "max_removal_share": {"type": "float", "default": 0.5},
        "block_qos": {"type": "str", "default": "blocked"},
        "server_seconds": {"type": "float", "default": 6},
        **SAVING,
        **COMMON,
    }


def main():
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)

    def work(params, check_mode, client, lock):
        accounts = checked_children(params["accounts"], options.spec(options.TREE_ACCOUNT))
        return reconcile({**params, "accounts": accounts}, check_mode, client, lock)

    run_module(module, "slurm_accounting", work)


if __name__ == "__main__":
    main()
