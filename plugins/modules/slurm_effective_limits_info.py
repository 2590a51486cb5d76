#!/usr/bin/python
# Copyright: (c) 2026, gpuops.tenancy contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: slurm_effective_limits_info
short_description: What a user may really do in a QOS and a partition, and who says so
description:
  - Puts together the limits of the QOS of the job, the QOS of the partition, the association, the accounts above it and the
    partition, in the order that Slurm has, and says for each limit that holds which of them sets it, and what it makes void.
  - A user, an account, a QOS or a partition that does not exist is no failure, only no entry.
author:
  - gpuops.tenancy contributors (@gpuops)
extends_documentation_fragment:
  - gpuops.tenancy.attributes
  - gpuops.tenancy.attributes.info_module
  - gpuops.tenancy.attributes.actiongroup_slurm
  - gpuops.tenancy.host.programs
options:
  cluster:
    description:
      - Name of the cluster.
    type: str
    required: true
  users:
    description:
      - Only these users.
    type: list
    elements: str
    default: []
  accounts:
    description:
      - Only associations of these accounts and of those below them.
    type: list
    elements: str
    default: []
  qos:
    description:
      - Only these QOS. One that a user is not granted has an entry that says so.
    type: list
    elements: str
    default: []
  partitions:
    description:
      - Only these partitions.
    type: list
    elements: str
    default: []
notes:
  - What a partition allows to groups of the hosts is named, not judged.
  - A minute budget of a QOS with UsageFactor 0 never runs out.
seealso:
  - module: gpuops.tenancy.slurm_preflight
"""

EXAMPLES = r"""
- name: See what alice may do in QOS high
  gpuops.tenancy.slurm_effective_limits_info:
    cluster: production
    users: [alice]
    qos: [high]
  register: my_limits

- name: Show the limits that hold for the whole tenant
  gpuops.tenancy.slurm_effective_limits_info:
    cluster: production
    accounts: [tenant-foo]
  register: my_limits
"""

RETURN = r"""
effective:
  description: One entry for each user, account, partition and QOS.
  type: list
  elements: dict
  returned: success
  contains:
    user:
      description: The user.
      type: str
    account:
      description: The account of the association.
      type: str
    partition:
      description: The partition.
      type: str
    qos:
      description: The QOS of the job.
      type: str
    allowed:
      description: Whether such a job gets in at all, limits aside.
      type: bool
    refused_because:
      description: Why not; empty where it does.
      type: str
    state:
      description: State of the partition.
      type: str
    groups:
      description: Groups of the hosts that the partition is for; empty where it is for all.
      type: list
      elements: str
    limits:
      description: The limits that hold.
      type: list
      elements: dict
      contains:
        option:
          description: Which limit, by its name as an option.
          type: str
          sample: grp_tres
        resource:
          description: Of which TRES; empty where the limit is one number.
          type: str
          sample: gres/gpu
        value:
          description: The limit. Memory is in MB, a time is text.
          type: raw
          sample: 128
        level:
          description: Who sets it.
          type: str
          sample: account tenant-foo
        instead_of:
          description: What it makes void.
          type: list
          elements: dict
          contains:
            level:
              description: Who sets that.
              type: str
            option:
              description: Which limit.
              type: str
            value:
              description: The limit that does not hold.
              type: raw
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpuops.tenancy.plugins.module_utils._command import SEARCH_PATH
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import effective_report
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.client import Client, SlurmError


def argument_spec():
    names = {"type": "list", "elements": "str", "default": []}
    return {
        "cluster": {"type": "str", "required": True},
        "users": dict(names),
        "accounts": dict(names),
        "qos": dict(names),
        "partitions": dict(names),
        "search_path": {"type": "list", "elements": "path", "default": SEARCH_PATH},
    }


def main():
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    params = module.params
    client = Client(params["cluster"].lower(), params["search_path"])
    folded = {name: [item.lower() for item in params[name]] for name in ("users", "accounts", "qos")}
    try:
        state, qos, partitions = effective_report.read(client)
    except SlurmError as exc:
        module.fail_json(msg=str(exc), **exc.details)
    found = effective_report.report(
        state, qos, partitions, folded["users"], folded["accounts"], folded["qos"], params["partitions"]
    )
    module.exit_json(changed=False, effective=found)


if __name__ == "__main__":
    main()
