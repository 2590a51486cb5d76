#!/usr/bin/python
# Copyright: (c) 2026, gpuops.tenancy contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: slurm_user
short_description: Have Slurm users, one or several, exactly so
description:
  - Creates, changes and removes users with their associations, default account, admin level and the accounts that they
    coordinate, by the same plan as M(gpuops.tenancy.slurm_accounting), for where a whole tree is too much to say.
  - An option that is left out is left alone. Numbers and times are cleared by V(-1), a TRES limit by leaving its name
    out of the dictionary, QOS lists by an empty list, a default QOS and texts by an empty string.
author:
  - gpuops.tenancy contributors (@gpuops)
extends_documentation_fragment:
  - gpuops.tenancy.attributes
  - gpuops.tenancy.attributes.actiongroup_slurm
  - gpuops.tenancy.slurm
  - gpuops.tenancy.slurm.saving
  - gpuops.tenancy.slurm_fields_user
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
  state:
    description:
      - Whether the users exist. V(absent) removes the associations that they have within O(scope); with its last
        association a user is gone.
    type: str
    choices: [present, absent]
    default: present
  scope:
    description:
      - Accounts below which this run may touch anything, and where the listed associations are all that the user has.
        By default nothing is removed.
      - Required for O(state=absent).
    type: list
    elements: str
  max_removals:
    description:
      - How many associations O(state=absent) may remove. A plan with more is refused as a whole. By default as many as
        users are named, so that a user with several is removed only where that is said.
    type: int
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
  - Coordinators may add users and raise limits below their account. Tenants rarely need one.
seealso:
  - module: gpuops.tenancy.slurm_accounting
  - module: gpuops.tenancy.slurm_account
"""

EXAMPLES = r"""
- name: Have a user in one more account, with a limit there
  gpuops.tenancy.slurm_user:
    cluster: production
    name: alice
    associations:
      - {account: ml-team-foo, max_jobs: 20}

- name: Have two operators
  gpuops.tenancy.slurm_user:
    cluster: production
    users:
      - {name: olga, associations: [{account: platform}], admin_level: operator}
      - {name: otto, associations: [{account: platform}], admin_level: operator}

- name: Remove a user with up to two associations from a tenant
  gpuops.tenancy.slurm_user:
    cluster: production
    scope: [tenant-foo]
    name: bob
    state: absent
    max_removals: 2
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
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.arguments import COMMON, REMOVAL
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.runner import run_module
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.single import reconcile_users


def argument_spec():
    return {
        "cluster": {"type": "str", "required": True},
        **options.spec(options.USER),
        **REMOVAL,
        "scope": {"type": "list", "elements": "str"},
        "block_qos": {"type": "str", "default": "blocked"},
        "server_seconds": {"type": "float", "default": 6},
        **COMMON,
    }


def main():
    module = AnsibleModule(
        argument_spec=argument_spec(),
        mutually_exclusive=options.exclusive(options.USER, "users"),
        required_one_of=[("name", "users")],
        required_if=[("state", "absent", ("scope",))],
        supports_check_mode=True,
    )
    run_module(module, "slurm_user", reconcile_users)


if __name__ == "__main__":
    main()
