# Copyright: (c) 2026, gpuops.tenancy contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Jobs that prove that a tenant can work."""

from __future__ import annotations

DOCUMENTATION = r"""
name: tenant_smoke_jobs
short_description: Jobs that prove that a tenant can work
description:
  - One job for each account that has users, as the first of them, for O(gpuops.tenancy.slurm_smoke_test#module:jobs).
author:
  - gpuops.tenancy contributors (@gpuops)
positional: _input
options:
  _input:
    description: The document, as M(gpuops.tenancy.tenant_documents) returns it.
    type: dict
    required: true
  user:
    description: Limits the jobs to this user, one for each account of hers.
    type: str
"""

EXAMPLES = r"""
- name: Run a job in each account
  gpuops.tenancy.slurm_smoke_test:
    jobs: "{{ documents.tenant | gpuops.tenancy.tenant_smoke_jobs }}"
"""

RETURN = r"""
_value:
  description: A C(user) and an C(account) for each job.
  type: list
  elements: dict
"""

from ansible.errors import AnsibleFilterError
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.errors import TenantError
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.summary import smoke_jobs


def tenant_smoke_jobs(document, user=None):
    try:
        return smoke_jobs(document, user)
    except TenantError as error:
        raise AnsibleFilterError(f"tenant_smoke_jobs: {error}") from error


class FilterModule:
    def filters(self):
        return {"tenant_smoke_jobs": tenant_smoke_jobs}
