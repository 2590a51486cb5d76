# Copyright: (c) 2026, gpuops.tenancy contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tenant document to the arguments of the module login_access."""

from __future__ import annotations

DOCUMENTATION = r"""
name: tenant_login_access
short_description: Who of a tenant may log in, and from where
description:
  - All users whose home is the tenant, with the networks of its C(allow_from). Guests are bound by their home tenant.
author:
  - gpuops.tenancy contributors (@gpuops)
positional: _input
options:
  _input:
    description: The document, as M(gpuops.tenancy.tenant_documents) returns it.
    type: dict
    required: true
seealso:
  - plugin: gpuops.tenancy.login_access
    plugin_type: module
"""

EXAMPLES = r"""
- name: Only from the tenant's networks
  ansible.builtin.include_role:
    name: gpuops.tenancy.login_access
  vars:
    login_access_tenants: ["{{ onboard_documents.tenant | gpuops.tenancy.tenant_login_access }}"]
"""

RETURN = r"""
_value:
  description: C(tenant), C(users) and C(allow_from).
  type: dict
"""

from ansible.errors import AnsibleFilterError
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.errors import TenantError
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.login_access import login_access


def tenant_login_access(document):
    try:
        return login_access(document)
    except TenantError as error:
        raise AnsibleFilterError(f"tenant_login_access: {error}") from error


class FilterModule:
    def filters(self):
        return {"tenant_login_access": tenant_login_access}
