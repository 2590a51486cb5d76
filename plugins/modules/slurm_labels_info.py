#!/usr/bin/python
# Copyright: (c) 2026, gpuops.tenancy contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: slurm_labels_info
short_description: Which MCS label the jobs of each user get
description:
  - Works out, on the host of slurmctld, what its plugin C(mcs/group) does with C(enforced) - the label of a job is the first group of
    the list that its user is in, and a user who is in none of them cannot submit any more.
  - Reads the users from the accounting database and their groups from this host.
author:
  - gpuops.tenancy contributors (@gpuops)
extends_documentation_fragment:
  - gpuops.tenancy.attributes
  - gpuops.tenancy.attributes.actiongroup_slurm
  - gpuops.tenancy.host.programs
attributes:
  check_mode:
    support: full
  diff_mode:
    support: N/A
    details: Changes nothing.
  idempotent:
    support: full
options:
  groups:
    description:
      - The groups of C(MCSParameters), in their order.
    type: list
    elements: str
    required: true
  except_comment:
    description:
      - Users whose passwd entry has this comment are left out, since they are nobody's, such as the canaries of role
        P(gpuops.tenancy.attest#role).
    type: str
    default: ''
  config_dir:
    description:
      - Directory of the configuration. A host without C(slurm.conf) there has no users to ask for.
    type: path
    default: /etc/slurm
"""

EXAMPLES = r"""
- name: Who could not submit any more
  gpuops.tenancy.slurm_labels_info:
    groups: [mcs-tenant-foo, mcs-shared]
  register: labels
"""

RETURN = r"""
labels:
  description: Label of each user of the accounting database that this host knows, empty for none.
  type: dict
  returned: success
unlabelled:
  description: Users whose jobs would be refused.
  type: list
  elements: str
  returned: success
missing:
  description: Groups that this host does not know; slurmctld passes over them in silence.
  type: list
  elements: str
  returned: success
"""

import os

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpuops.tenancy.plugins.module_utils._command import SEARCH_PATH, CommandError, located, run
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import labels


def argument_spec():
    """Options of the module."""
    return {
        "groups": {"type": "list", "elements": "str", "required": True},
        "except_comment": {"type": "str", "default": ""},
        "config_dir": {"type": "path", "default": "/etc/slurm"},
        "search_path": {"type": "list", "elements": "path", "default": SEARCH_PATH},
    }


def users(params):
    """Everybody with an association."""
    if not os.path.exists(os.path.join(params["config_dir"], "slurm.conf")):
        return []
    program = located("sacctmgr", params["search_path"])
    done = run([program, "-nP", "show", "assoc", "format=user"], timeout=120, ok=(0,))
    return sorted({name for name in done.stdout.split() if name and name != "root"})


def main():
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    params = module.params
    try:
        gids = labels.numbers(params["groups"])
        found = labels.labels(params["groups"], gids, labels.members_of(users(params), params["except_comment"]))
    except (CommandError, OSError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(
        changed=False,
        labels=found,
        unlabelled=sorted(name for name, label in found.items() if not label),
        missing=[name for name in params["groups"] if name not in gids],
    )


if __name__ == "__main__":
    main()
