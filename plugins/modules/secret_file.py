#!/usr/bin/python
# Copyright: (c) 2026, gpuops.tenancy contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: secret_file
short_description: Make a secret once on the Ansible controller and give it to hosts
description:
  - When the file does not exist on the Ansible controller, it is made there with random bytes and mode 0600, once for all
    hosts, also when many ask at the same time. Then it is copied to the host.
  - The bytes are in no argument, no result, no diff and no log. A file encrypted with ansible-vault is decrypted on the way.
  - An action plugin makes the secret and brings it to the host; a module puts it in place there, one run at a time.
author:
  - gpuops.tenancy contributors (@gpuops)
extends_documentation_fragment:
  - gpuops.tenancy.attributes
  - gpuops.tenancy.host.lock
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
    details:
      - Says that the secret changes, never what it is.
  idempotent:
    support: full
options:
  source:
    description:
      - The file on the Ansible controller. Keep it; encrypt it with ansible-vault if you like.
    type: path
    required: true
  dest:
    description:
      - The file on the host.
    type: path
    required: true
  owner:
    description:
      - User that owns the file on the host.
    type: str
    default: root
  group:
    description:
      - Group of the file on the host.
    type: str
    default: root
  mode:
    description:
      - Mode in octal digits.
    type: str
    default: "0400"
  length:
    description:
      - How many random bytes a new secret has.
    type: int
    default: 128
  in_use:
    description:
      - When O(dest) and any of these exist, the host works with its secret already. Then no other one is made for it, and its own
        is not replaced, since that would cut it off.
    type: list
    elements: path
    default: []
  replace:
    description:
      - Replace another secret on a host that works with it.
    type: bool
    default: false
  staged:
    description:
      - Set by the action plugin, which brings the secret to this place on the host. What is given here is not used.
    type: path
"""

EXAMPLES = r"""
- name: Give every host the same munge key
  gpuops.tenancy.secret_file:
    source: "{{ inventory_dir }}/../secrets/munge.key"
    dest: /etc/munge/munge.key
    owner: munge
    group: munge
    in_use:
      - /etc/slurm/slurm.conf
"""

RETURN = r"""
changed:
  description: Whether the file on the host was changed, or would be.
  returned: always
  type: bool
generated:
  description: Whether this host's task made the secret on the Ansible controller.
  returned: always
  type: bool
plan:
  description: The changes, without the secret.
  returned: always
  type: list
  elements: dict
commands:
  description: Always empty; no program is run.
  returned: always
  type: list
  elements: str
diff:
  description: That the secret changes.
  returned: always
  type: dict
"""

import os
import typing as t

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpuops.tenancy.plugins.module_utils import _secret
from ansible_collections.gpuops.tenancy.plugins.module_utils._lock import Lock, LockError, lock_name


def argument_spec() -> dict[str, t.Any]:
    return {
        "source": {"type": "path", "required": True},
        "dest": {"type": "path", "required": True},
        "owner": {"type": "str", "default": "root"},
        "group": {"type": "str", "default": "root"},
        "mode": {"type": "str", "default": "0400"},
        "length": {"type": "int", "default": 128},
        "in_use": {"type": "list", "elements": "path", "default": []},
        "replace": {"type": "bool", "default": False},
        "lock_timeout": {"type": "int", "default": 300},
        "staged": {"type": "path"},
    }


def run(params: t.Mapping[str, t.Any], result: dict[str, t.Any], write: bool) -> None:
    content = _secret.read(params["staged"]).content if params["staged"] else None
    want = _secret.State(content, params["owner"], params["group"], int(params["mode"], 8))
    now = _secret.read(params["dest"])
    working = any(os.path.exists(path) for path in params["in_use"])
    plan = _secret.plan(params["dest"], params["source"], now, want, working, params["replace"])
    result.update(changed=plan.changed, plan=plan.as_list(), diff=plan.diff(params["dest"], params["dest"]))
    if plan.changed and write:
        result["changed"] = False
        _secret.write(params["dest"], want)
        result["changed"] = True


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    params = module.params
    result: dict[str, t.Any] = {"changed": False, "generated": False, "commands": [], "plan": [], "diff": {}}
    try:
        # Without bytes it only tells whether some may be made.
        if module.check_mode or not params["staged"]:
            run(params, result, False)
        else:
            with Lock(lock_name("secret", params["dest"]), f"secret_file {params['dest']}", params["lock_timeout"]):
                run(params, result, True)
    except (_secret.SecretError, LockError, OSError, ValueError) as exc:
        module.fail_json(msg=str(exc), **result)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
