#!/usr/bin/python
# Copyright: (c) 2026, gpuops.tenancy contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the action plugin of the same name, which does all the work on the controller."""

from __future__ import annotations

DOCUMENTATION = r"""
module: tenant_adopt
short_description: Write tenant documents from what a cluster has
description:
  - Turns accounts, users and limits that were made by hand into tenant documents from which onboarding finds nothing to
    do, and writes what no document can say into a report. Every association is in one of the two.
  - A document that is there already is never written. It counts like a new one, and the report says where it differs
    from Slurm.
  - Works on the controller. Nothing is connected to, and nothing on the cluster is changed.
author:
  - gpuops.tenancy contributors (@gpuops)
requirements:
  - jsonschema >= 4 for the Python of the controller
extends_documentation_fragment:
  - gpuops.tenancy.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  idempotent:
    support: full
options:
  survey:
    description: What M(gpuops.tenancy.slurm_survey_info) returned.
    type: dict
    required: true
  path:
    description:
      - Folder of the documents, made if it is not there. Files are written with mode 0640.
      - A relative path starts at the folder of the playbook.
    type: path
    required: true
  report:
    description: File of the report, in Markdown. Written anew by every run.
    type: path
    required: true
  include:
    description: Accounts below V(root) that are tenants. By default all that may be.
    type: list
    elements: str
    default: []
  exclude:
    description: Accounts below V(root) that are none.
    type: list
    elements: str
    default: []
  posix_users:
    description:
      - What M(gpuops.tenancy.posix_users_info) returned of the users in O(survey). Who is not among them is left out,
        since onboarding would create a login for somebody who left.
      - Without it nobody is left out for that.
    type: list
    elements: dict
  uid_min:
    description: First number of tenants' users. Others are left out, since onboarding refuses them.
    type: int
    default: 1000
  uid_max:
    description: Last number of tenants' users.
    type: int
    default: 59999
  preflight:
    description: What M(gpuops.tenancy.slurm_preflight) said of the cluster's accounts, for the report.
    type: list
    elements: str
    default: []
  operators:
    description: User names of the operators, whom no document may name.
    type: list
    elements: str
    default: []
  platform_account:
    description: The operators' own account, which is no tenant.
    type: str
    default: platform
  reserved_names:
    description: Further names that no tenant, team or user may have.
    type: list
    elements: str
    default: []
  retired_names:
    description: Names that are never given again.
    type: list
    elements: str
    default: []
  ledger:
    description: A file with further such names, see M(gpuops.tenancy.tenant_documents).
    type: path
  block_qos:
    description: Name of the QOS that blocks.
    type: str
    default: blocked
seealso:
  - module: gpuops.tenancy.slurm_survey_info
  - module: gpuops.tenancy.tenant_documents
"""

EXAMPLES = r"""
- name: Read what there is
  gpuops.tenancy.slurm_survey_info:
    cluster: production
  register: found

- name: Write the documents
  gpuops.tenancy.tenant_adopt:
    survey: "{{ found.survey }}"
    path: "{{ tenancy_tenants_dir }}"
    report: "{{ tenancy_tenants_dir }}/../adopt-report.md"
    exclude: [testaccount]
"""

RETURN = r"""
documents:
  description: Files that were written, or in check mode would be.
  type: list
  elements: str
  returned: success
tenants:
  description: Tenants with a document without errors, old or new.
  type: list
  elements: str
  returned: success
findings:
  description: What is in no document, what onboarding will change, and what somebody has to know.
  type: list
  elements: dict
  returned: success
  contains:
    kind:
      description: V(left) stays in Slurm as it is, V(changes) onboarding will change, V(decide) nothing happens by itself.
      type: str
    object:
      description: What it is about.
      type: str
    field:
      description: Which field of it, empty for the whole.
      type: str
    value:
      description: Its value.
      type: str
    why:
      description: Why.
      type: str
    fix:
      description: What to do.
      type: str
summary:
  description: The same in lines for the screen, long lists cut short.
  type: list
  elements: str
  returned: success
report:
  description: File of the report.
  type: str
  returned: success
"""
