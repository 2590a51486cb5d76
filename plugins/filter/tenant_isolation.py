# Copyright: (c) 2026, gpuops.tenancy contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tenant documents to who shares nodes with whom."""

from __future__ import annotations

DOCUMENTATION = r"""
name: tenant_isolation
short_description: How far each tenant is apart from the others
description:
  - What slurm.conf has to know of the key C(isolation) of all documents.
  - Refuses C(private_cluster), which needs an inventory of its own, and a user who is in two exclusive tenants, since Slurm
    tells tenants apart by a group of the user.
author:
  - gpuops.tenancy contributors (@gpuops)
positional: _input
options:
  _input:
    description: The documents, as C(tenants) of M(gpuops.tenancy.tenant_documents) holds them.
    type: list
    elements: dict
    required: true
seealso:
  - plugin: gpuops.tenancy.tenant_documents
    plugin_type: module
"""

EXAMPLES = r"""
- name: Who is apart
  ansible.builtin.debug:
    msg: "{{ documents.tenants | gpuops.tenancy.tenant_isolation | rejectattr('level', 'equalto', 'shared') }}"
"""

RETURN = r"""
_value:
  description:
    - C(tenant), C(level), C(accounts) (its own and those of its teams), C(group) (the Unix group of its users where it is exclusive) and
      C(users) of each tenant, by name.
  type: list
  elements: dict
"""

from ansible.errors import AnsibleFilterError
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.errors import TenantError
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.isolation import isolation


def tenant_isolation(documents):
    try:
        return isolation(documents)
    except TenantError as error:
        raise AnsibleFilterError(f"tenant_isolation: {error}") from error


class FilterModule:
    def filters(self):
        return {"tenant_isolation": tenant_isolation}
