#!/usr/bin/python
# Copyright: (c) 2026, gpuops.tenancy contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: slurm_survey_info
short_description: Everything that slurmdbd holds of a cluster that was run by hand
description:
  - Reads accounts, users and associations with all that is set on them, and what a plan has no use for but somebody who
    takes a cluster over has, such as records that are left without an association, names of what was deleted, and rights
    over Slurm as a whole.
  - Changes nothing.
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
  cluster:
    description: Name of the cluster in slurmdbd.
    type: str
    required: true
seealso:
  - module: gpuops.tenancy.slurm_accounting
  - module: gpuops.tenancy.tenant_adopt
"""

EXAMPLES = r"""
- name: Read what there is
  gpuops.tenancy.slurm_survey_info:
    cluster: production
  register: found

- name: Show who has rights over Slurm as a whole
  ansible.builtin.debug:
    msg: "{{ found.survey.users | rejectattr('admin_level', 'equalto', '') | map(attribute='name') | list }}"
"""

RETURN = r"""
survey:
  description: What there is.
  type: dict
  returned: success
  contains:
    cluster:
      description: Name of the cluster.
      type: str
    accounts:
      description:
        - The accounts, parents first, with the options of M(gpuops.tenancy.slurm_accounting) that are set on them, and with
          C(coordinators) (their own, not those of an account above).
        - C(effective_qos) is the QOS list that holds there. C(qos_difference) is given instead of C(qos) where
          somebody stored a difference to the list above, such as C(+high).
      type: list
      elements: dict
    users:
      description: >-
        The users that have an association on this cluster, with C(default_account), C(admin_level) and
        C(default_wckey) (empty for none) and C(associations).
      type: list
      elements: dict
    without_association:
      description: >-
        Records without an association on this cluster, each with C(kind) (V(account) or V(user)), C(name) and
        C(clusters), those on which they have one.
      type: list
      elements: dict
    departed:
      description: >-
        C(accounts) and C(users) that were deleted and whose records Slurm keeps because jobs refer to them. To add such
        a name again revives the old association.
      type: dict
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpuops.tenancy.plugins.module_utils._command import SEARCH_PATH
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.client import Client, SlurmError
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.parse import ParseError
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.survey import survey


def argument_spec():
    return {
        "cluster": {"type": "str", "required": True},
        "search_path": {"type": "list", "elements": "path", "default": SEARCH_PATH},
    }


def main():
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    try:
        found = survey(Client(module.params["cluster"].lower(), module.params["search_path"]))
    except (SlurmError, ParseError) as exc:
        module.fail_json(msg=str(exc), **getattr(exc, "details", {}))
    module.exit_json(changed=False, survey=found)


if __name__ == "__main__":
    main()
