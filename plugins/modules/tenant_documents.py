#!/usr/bin/python
# Copyright: (c) 2026, gpuops.tenancy contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the action plugin of the same name, which does all the work on the controller."""

from __future__ import annotations

DOCUMENTATION = r"""
module: tenant_documents
short_description: Read and check the tenant documents of a cluster
description:
  - Reads every tenant document (C(*.yml), C(*.yaml)) of a folder on the controller, checks each against the JSON Schema
    and the documents against each other, and returns them with every key filled in and every unit converted.
  - Nothing is connected to and nothing is changed. All problems of a document are reported in one failure, each with
    file, line, path and fix.
  - Documents are data. A template expression in one is refused, never evaluated.
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
    support: N/A
    details: Changes nothing.
  idempotent:
    support: full
options:
  path:
    description:
      - Folder that holds the documents, one tenant per file, each named after its tenant.
      - A relative path starts at the folder of the playbook.
    type: path
    required: true
  tenant:
    description:
      - Name of the tenant to return in RV(tenant).
      - Problems of other tenants' documents are then warnings, unless they touch this tenant. The names that such a
        document claims still count, so that no name is given away twice.
      - Without it, a problem of any document is a failure.
    type: str
  user:
    description: Name of a user that O(tenant) must list; returned in RV(user).
    type: str
  operators:
    description: User names of the operators, which no document may name.
    type: list
    elements: str
    default: []
  platform_account:
    description: The operators' own account in Slurm, which no document may name.
    type: str
    default: platform
  reserved_names:
    description: Further names that no tenant, team or user may have, besides the system's own.
    type: list
    elements: str
    default: []
  retired_names:
    description: Names of tenants, teams and users that left. Slurm would revive their associations and history.
    type: list
    elements: str
    default: []
  ledger:
    description:
      - A YAML file with a list C(retired) of names, or of mappings with a C(name), which are added to O(retired_names).
      - A file that is missing or not understood is an error, since an empty ledger would give names away again.
    type: path
  site_qos:
    description:
      - Names of the QOS that the site defines. A document that names another one is refused.
      - Without it the names are not checked here.
    type: list
    elements: str
  block_qos:
    description: Name of the QOS that blocks, which no document may name.
    type: str
    default: blocked
notes:
  - Files that are vaulted as a whole are read with the vault secrets of the run, and so are C(!vault) values where the
    schema allows them (contacts, networks, and what concerns a person). Such a value is never part of a message, and
    the result is not printed when it holds one.
  - In a play over several hosts use C(run_once).
seealso:
  - plugin: gpuops.tenancy.tenant_accounting
    plugin_type: filter
  - plugin: gpuops.tenancy.tenant_users
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Read the tenants
  gpuops.tenancy.tenant_documents:
    path: "{{ tenancy_tenants_dir }}"
    tenant: tenant-foo
    operators: [anna, ben]
    ledger: "{{ inventory_dir }}/../ledger.yml"
    site_qos: [normal, high, low]
  run_once: true
  register: onboard_documents

- name: Refuse a suspended tenant
  ansible.builtin.assert:
    that: onboard_documents.tenant.state == 'present'
    fail_msg: "{{ onboard_documents.tenant.name }} is suspended"
"""

RETURN = r"""
tenants:
  description: All documents without problems, in the order of their files.
  type: list
  elements: dict
  returned: success
  sample: [{name: tenant-foo, state: present}]
tenant:
  description: The document of O(tenant); null when none is selected.
  type: dict
  returned: success
  contains:
    schema:
      description: Version of the format.
      type: int
    name:
      description: Name of the tenant.
      type: str
    file:
      description: The file it was read from.
      type: str
    state:
      description: V(present) or V(suspended). A suspended tenant must not be onboarded.
      type: str
    description:
      description: What the tenant is, in lower case.
      type: str
    organization:
      description: Organization in Slurm, in lower case.
      type: str
    isolation:
      description: V(shared), V(exclusive), V(private_nodes) or V(private_cluster).
      type: str
    contacts:
      description: Mail addresses.
      type: list
      elements: str
    slurm:
      description:
        - C(fairshare), C(priority) (or null), C(limits) (only those that are set), C(qos) (empty is inherited),
          C(default_qos) (or null) of the tenant's account.
      type: dict
    teams:
      description: Teams, with C(name), C(description), C(organization) and the keys of C(slurm).
      type: list
      elements: dict
    users:
      description:
        - One entry per user, with C(name), C(full_name), C(email), C(ssh_keys), C(home), C(guest), C(member_of),
          C(default_account) (null for a guest) and C(associations), each an C(account) with C(partition) (empty for all)
          and the keys of C(slurm).
      type: list
      elements: dict
    storage:
      description: Quotas C(home) and C(scratch), each null or C(hard_bytes) and C(soft_bytes) (or null).
      type: dict
    network:
      description: C(allow_from), a list of networks.
      type: dict
    gpu:
      description: C(sharing).
      type: dict
    retention_days:
      description: Days that data are kept after a departure.
      type: int
user:
  description: The entry of O(user) in the tenant's C(users); null when none is selected.
  type: dict
  returned: success
broken:
  description: Documents of other tenants that have problems and were left out.
  type: list
  elements: dict
  returned: success
  contains:
    tenant:
      description: Name of the tenant, from the document or else from the file's name.
      type: str
    file:
      description: The file.
      type: str
    problems:
      description: C(file), C(line), C(path) and C(message) of each problem.
      type: list
      elements: dict
problems:
  description: C(file), C(line), C(path) and C(message) of each problem.
  type: list
  elements: dict
  returned: failure
"""
