#!/usr/bin/python
# Copyright: (c) 2026, gpuops.tenancy contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: slurm_database_info
short_description: Which database the slurmdbd of a host works with
description:
  - Reads C(slurmdbd.conf) and what it includes. The password is in no result.
author:
  - gpuops.tenancy contributors (@gpuops)
extends_documentation_fragment:
  - gpuops.tenancy.attributes
  - gpuops.tenancy.attributes.actiongroup_slurm
  - gpuops.tenancy.attributes.info_module
options:
  path:
    description:
      - Directory of the configuration.
    type: path
    default: /etc/slurm
"""

EXAMPLES = r"""
- name: Find out which database slurmdbd works with
  gpuops.tenancy.slurm_database_info:
  register: slurmdbd
"""

RETURN = r"""
configured:
  description: Whether there is a C(slurmdbd.conf).
  returned: always
  type: bool
database:
  description: Host, port and name of the database, empty where there is no C(slurmdbd.conf).
  returned: always
  type: str
  sample: "localhost:3306/slurm_acct_db"
"""

import os
import typing as t

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.conf import include, storage


def argument_spec() -> dict[str, t.Any]:
    return {"path": {"type": "path", "default": "/etc/slurm"}}


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    path = os.path.join(module.params["path"], "slurmdbd.conf")
    if not os.path.lexists(path):
        module.exit_json(changed=False, configured=False, database="")
    try:
        module.exit_json(changed=False, configured=True, database=storage.database(include.expand(path)))
    except (include.IncludeError, OSError) as exc:
        module.fail_json(msg=f"it cannot be known which database slurmdbd works with: {exc}")


if __name__ == "__main__":
    main()
