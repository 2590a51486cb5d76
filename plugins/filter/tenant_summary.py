# Copyright: (c) 2026, gpuops.tenancy contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run hands over to the tenant."""

from __future__ import annotations

DOCUMENTATION = r"""
name: tenant_summary
short_description: What a run hands over to the tenant
description:
  - Lines of text for a person. What is not proven is said to be not proven.
author:
  - gpuops.tenancy contributors (@gpuops)
positional: _input
options:
  _input:
    description: The document, as M(gpuops.tenancy.tenant_documents) returns it.
    type: dict
    required: true
  proof:
    description: The RV(gpuops.tenancy.slurm_smoke_test#module:results).
    type: list
    elements: dict
    required: true
  accounting:
    description: Result of M(gpuops.tenancy.slurm_accounting).
    type: dict
    required: true
  login_hosts:
    description: Where to log in.
    type: list
    elements: str
    required: true
  user:
    description: Limits the users that are listed to this one.
    type: str
"""

EXAMPLES = r"""
- name: Show what was built
  ansible.builtin.debug:
    msg: "{{ documents.tenant | gpuops.tenancy.tenant_summary(proof=proof.results, accounting=result, login_hosts=['login1']) }}"
"""

RETURN = r"""
_value:
  description: The lines.
  type: list
  elements: str
"""

from ansible.errors import AnsibleFilterError
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.errors import TenantError
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.summary import summary


def tenant_summary(document, proof, accounting, login_hosts, user=None):
    try:
        return summary(document, proof, accounting, login_hosts, user)
    except TenantError as error:
        raise AnsibleFilterError(f"tenant_summary: {error}") from error


class FilterModule:
    def filters(self):
        return {"tenant_summary": tenant_summary}
