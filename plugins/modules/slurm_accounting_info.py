#!/usr/bin/python
# Copyright: (c) 2026, gpuops.tenancy contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: slurm_accounting_info
short_description: Read Slurm's accounts, users, associations, limits and QOS
description:
  - Returns what is set, in the shape that M(gpuops.tenancy.slurm_accounting) and M(gpuops.tenancy.slurm_qos) take. What
    is not set is left out, so that feeding the result back changes nothing.
  - What does not exist is named in RV(missing), and is no error. A slurmdbd that does not answer is one.
author:
  - gpuops.tenancy contributors (@gpuops)
extends_documentation_fragment:
  - gpuops.tenancy.attributes
  - gpuops.tenancy.attributes.actiongroup_slurm
  - gpuops.tenancy.attributes.info_module
  - gpuops.tenancy.host.programs
options:
  cluster:
    description:
      - Name of the cluster in slurmdbd.
    type: str
    required: true
  accounts:
    description:
      - Only these accounts and everything below them. By default everything below V(root).
    type: list
    elements: str
  users:
    description:
      - Only these users. Without O(accounts), only the accounts that they are associated with are returned.
    type: list
    elements: str
  view:
    description:
      - V(flat) returns accounts with their parents, V(tree) accounts inside accounts, and V(tenants) also one entry
        for each of O(accounts), or for each account right below V(root).
    type: str
    choices: [flat, tree, tenants]
    default: flat
requirements:
  - Slurm 22.05 or newer, on a host where C(sacctmgr) works
  - root, or another user to whom PrivateData hides nothing
seealso:
  - module: gpuops.tenancy.slurm_accounting
"""

EXAMPLES = r"""
- name: Read a tenant
  gpuops.tenancy.slurm_accounting_info:
    cluster: production
    accounts: [tenant-foo]
  register: tenant

- name: Put it back as it was, what was added since included
  gpuops.tenancy.slurm_accounting:
    cluster: production
    scope: [tenant-foo]
    accounts: "{{ tenant.accounts }}"
    users: "{{ tenant.users }}"

- name: See where a user is
  gpuops.tenancy.slurm_accounting_info:
    cluster: production
    users: [alice]
"""

RETURN = r"""
registered:
  description: Whether slurmdbd knows the cluster.
  type: bool
  returned: success
slurm_version:
  description: Version of Slurm's tools.
  type: str
  returned: success
  sample: "24.11"
accounts:
  description: The accounts, as O(gpuops.tenancy.slurm_accounting#module:accounts) takes them. V(root) is not among them.
  type: list
  elements: dict
  returned: success
  sample: [{"name": "tenant-foo", "parent": "root", "description": "tenant foo", "grp_tres": {"gres/gpu": 128}}]
users:
  description: The users, as O(gpuops.tenancy.slurm_accounting#module:users) takes them.
  type: list
  elements: dict
  returned: success
  sample: [{"name": "alice", "default_account": "ml-team-foo", "associations": [{"account": "ml-team-foo"}]}]
tenants:
  description: Arguments of M(gpuops.tenancy.slurm_accounting) by account.
  type: dict
  returned: O(view=tenants)
qos:
  description: The QOS, as O(gpuops.tenancy.slurm_qos#module:qos) takes them.
  type: list
  elements: dict
  returned: success
  sample: [{"name": "normal", "priority": 10}]
cluster_limits:
  description: What is set on the account V(root), and thereby for the whole cluster.
  type: dict
  returned: success
  sample: {"qos": ["normal"]}
missing:
  description: Accounts and users that were asked for and do not exist.
  type: list
  elements: str
  returned: success
orphans:
  description: Associations whose account is not in the tree, left by somebody who deleted a parent.
  type: list
  elements: str
  returned: success
outdated:
  description:
    - Objects whose path in the database is not where they are, left by somebody who moved an account with accounts below
      it on 23.11 or newer. See C(docs/accounting.md).
  type: list
  elements: str
  returned: success
differences:
  description:
    - Objects whose QOS list is stored as a difference to their parent's. What it comes to is returned, and becomes a
      list of its own where it is fed back.
  type: list
  elements: str
  returned: success
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpuops.tenancy.plugins.module_utils._command import SEARCH_PATH
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import info
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.client import Client, SlurmError


def argument_spec():
    return {
        "cluster": {"type": "str", "required": True},
        "accounts": {"type": "list", "elements": "str"},
        "users": {"type": "list", "elements": "str"},
        "view": {"type": "str", "choices": list(info.VIEWS), "default": info.VIEWS[0]},
        "search_path": {"type": "list", "elements": "path", "default": SEARCH_PATH},
    }


def main():
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    client = Client(module.params["cluster"].lower(), module.params["search_path"])
    try:
        result = info.gather(module.params, client)
    except SlurmError as exc:
        module.fail_json(msg=str(exc), **exc.details)
    for warning in result.pop("warnings"):
        module.warn(warning)
    module.exit_json(changed=False, **result)


if __name__ == "__main__":
    main()
