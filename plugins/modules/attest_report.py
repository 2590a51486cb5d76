#!/usr/bin/python
# Copyright: (c) 2026, gpuops.tenancy contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the action plugin of the same name, which does all the work on the controller."""

from __future__ import annotations

DOCUMENTATION = r"""
module: attest_report
short_description: Judge what the isolation probes answered, and write the report
description:
  - Writes C(attest.json), C(attest.xml) (JUnit) and C(attest.html), a page that needs nothing else, on the controller.
  - Whatever a host owes an answer to and did not answer is an error, never a pass.
author:
  - gpuops.tenancy contributors (@gpuops)
extends_documentation_fragment:
  - gpuops.tenancy.attributes
  - gpuops.tenancy.attest
attributes:
  check_mode:
    support: full
    details: Writes no file.
  diff_mode:
    support: none
  idempotent:
    support: full
    details: Never reports a change; the files are those of this run.
options:
  hosts:
    description: The hosts.
    type: list
    elements: dict
    required: true
    suboptions:
      host:
        description: Inventory name.
        type: str
      kind:
        description: V(login), V(reserved), V(compute), V(closed) or V(controller).
        type: str
      answers:
        description: As M(gpuops.tenancy.attest_run) returns them.
        type: list
        elements: dict
      problem:
        description: Why there are none.
        type: str
  job_table:
    description:
      - What probe C(job-table) is judged by; the C(host) it was read on, C(accounts) and C(qos) as
        M(gpuops.tenancy.slurm_accounting_info) returns them, C(default_qos) of the cluster, C(config) as C(scontrol show config) prints it,
        accounts that are C(ours), and the C(problem) if nothing could be read.
    type: dict
    required: true
  cluster:
    description: Name of the cluster.
    type: str
    required: true
  run_id:
    description: Name of the run.
    type: str
    required: true
  started:
    description: When the run began.
    type: str
    required: true
  path:
    description: Folder for the files; it is made where it is missing.
    type: path
    required: true
seealso:
  - module: gpuops.tenancy.attest_run
"""

EXAMPLES = r"""
- name: Report
  gpuops.tenancy.attest_report:
    hosts:
      - {host: login1, kind: login, answers: "{{ my_answers.answers }}", problem: ''}
    job_table: {host: ctl1, accounts: [], qos: [], default_qos: [], config: '', ours: [], problem: ''}
    cluster: production
    run_id: "{{ my_catalogue.run_id }}"
    started: "2026-12-01T03:00:00Z"
    path: /var/lib/attest
  register: my_report
"""

RETURN = r"""
counts:
  description: How many answers have which verdict.
  type: dict
  returned: success
files:
  description: The files.
  type: list
  elements: str
  returned: success
summary:
  description: What is wrong, and the numbers.
  type: list
  elements: str
  returned: success
good:
  description: Whether nothing failed and everything could be tried.
  type: bool
  returned: success
"""
