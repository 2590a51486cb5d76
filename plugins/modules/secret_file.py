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
  - This is an action plugin; the module file holds its documentation.
author:
  - gpuops.tenancy contributors (@gpuops)
extends_documentation_fragment:
  - gpuops.tenancy.attributes
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
