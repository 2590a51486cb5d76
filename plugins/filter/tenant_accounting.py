# Copyright: (c) 2026, gpuops.tenancy contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tenant document to the arguments of the module slurm_accounting."""

from __future__ import annotations

DOCUMENTATION = r"""
name: tenant_accounting
short_description: What a tenant document wants in Slurm's accounting
description:
  - Turns a tenant document, as M(gpuops.tenancy.tenant_documents) returns it, into arguments of
    C(gpuops.tenancy.slurm_accounting).
  - Every field that a document can name is stated for each account and each association. Where the document is silent
    it is cleared, so that deleting a line from a document clears the limit.
author:
  - gpuops.tenancy contributors (@gpuops)
positional: _input
options:
  _input:
    description: The document.
    type: dict
    required: true
  user:
    description:
      - Limits the result to the associations of this user. No account is named then, so that none is created or
        changed.
    type: str
seealso:
  - plugin: gpuops.tenancy.tenant_documents
    plugin_type: module
"""

EXAMPLES = r"""
- name: Show what the tenant wants in Slurm
  ansible.builtin.debug:
    msg: "{{ onboard_documents.tenant | gpuops.tenancy.tenant_accounting }}"

- name: Show what one of its users wants
  ansible.builtin.debug:
    msg: "{{ onboard_documents.tenant | gpuops.tenancy.tenant_accounting(user='alice') }}"
"""

RETURN = r"""
_value:
  description:
    - The options C(scope), C(accounts) (flat, parents first) and C(users) of C(gpuops.tenancy.slurm_accounting).
  type: dict
"""

from ansible.errors import AnsibleFilterError
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.accounting import arguments
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.errors import TenantError


def tenant_accounting(document, user=None):
    try:
        return arguments(document, user)
    except TenantError as error:
        raise AnsibleFilterError(f"tenant_accounting: {error}") from error


class FilterModule:
    def filters(self):
        return {"tenant_accounting": tenant_accounting}
