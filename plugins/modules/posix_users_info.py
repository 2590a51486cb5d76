#!/usr/bin/python
# Copyright: (c) 2026, gpuops.tenancy contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: posix_users_info
short_description: Which of these users a host knows
description:
  - Asks the name service of the host, local files and directory alike, for each name.
  - A name that it does not know is left out, and is no error.
author:
  - gpuops.tenancy contributors (@gpuops)
extends_documentation_fragment:
  - gpuops.tenancy.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: N/A
    details: Changes nothing.
  idempotent:
    support: full
options:
  names:
    description: Login names.
    type: list
    elements: str
    required: true
seealso:
  - module: gpuops.tenancy.posix_users
"""

EXAMPLES = r"""
- name: Look up who is in Slurm
  gpuops.tenancy.posix_users_info:
    names: "{{ found.survey.users | map(attribute='name') | list }}"
"""

RETURN = r"""
users:
  description: The users that the host knows, in the order of O(names).
  type: list
  elements: dict
  returned: success
  sample: [{name: alice, uid: 10000, gid: 10000, gecos: Alice Example, home: /home/alice, shell: /bin/bash}]
"""

import dataclasses

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpuops.tenancy.plugins.module_utils._host import posix_users


def argument_spec():
    """Options of the module."""
    return {"names": {"type": "list", "elements": "str", "required": True}}


def main():
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    known = posix_users.read(module.params["names"]).users
    module.exit_json(
        changed=False, users=[dataclasses.asdict(known[name]) for name in module.params["names"] if name in known]
    )


if __name__ == "__main__":
    main()
