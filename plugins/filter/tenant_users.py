# Copyright: (c) 2026, gpuops.tenancy contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tenant document to POSIX users."""

from __future__ import annotations

DOCUMENTATION = r"""
name: tenant_users
short_description: The POSIX users of a tenant document
description:
  - Lists the users of a tenant document, as M(gpuops.tenancy.tenant_documents) returns it, one entry per user, in the
    order of the document.
  - Guests are left out, because their home tenant creates them and sets their keys.
author:
  - gpuops.tenancy contributors (@gpuops)
positional: _input
options:
  _input:
    description: The document.
    type: dict
    required: true
  user:
    description: Limits the result to this user.
    type: str
  guests:
    description: Lists guests too, with C(guest) true and without keys.
    type: bool
    default: false
seealso:
  - plugin: gpuops.tenancy.tenant_documents
    plugin_type: module
"""

EXAMPLES = r"""
- name: Wait for the users
  ansible.builtin.getent:
    database: passwd
    key: "{{ item.name }}"
  loop: "{{ onboard_documents.tenant | gpuops.tenancy.tenant_users }}"
  loop_control:
    label: "{{ item.name }}"
"""

RETURN = r"""
_value:
  description:
    - C(name), C(gecos) (empty without a C(full_name)), C(email) (or null), C(ssh_keys), C(tenant), C(home_tenant), C(guest), C(accounts),
      C(default_account) (null for a guest) of each user.
  type: list
  elements: dict
"""

from ansible.errors import AnsibleFilterError
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.errors import TenantError
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.users import users


def tenant_users(document, user=None, guests=False):
    try:
        return users(document, user, guests)
    except TenantError as error:
        raise AnsibleFilterError(f"tenant_users: {error}") from error


class FilterModule:
    def filters(self):
        return {"tenant_users": tenant_users}
