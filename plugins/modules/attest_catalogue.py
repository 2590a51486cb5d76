#!/usr/bin/python
# Copyright: (c) 2026, gpuops.tenancy contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the action plugin of the same name, which does all the work on the controller."""

from __future__ import annotations

DOCUMENTATION = r"""
module: attest_catalogue
short_description: Read the catalogue of isolation probes
description:
  - Reads the probes of the collection and those of the site, checks them, and says which run where.
  - Puts them into one program for the nodes. Nothing is connected to and nothing is changed.
author:
  - gpuops.tenancy contributors (@gpuops)
extends_documentation_fragment:
  - gpuops.tenancy.attributes
  - gpuops.tenancy.attest
attributes:
  check_mode:
    support: full
  diff_mode:
    support: N/A
    details: Changes nothing.
  idempotent:
    support: full
notes:
  - In a play over several hosts use C(run_once).
seealso:
  - module: gpuops.tenancy.attest_run
  - module: gpuops.tenancy.attest_report
"""

EXAMPLES = r"""
- name: Read the catalogue
  gpuops.tenancy.attest_catalogue:
    probes_dir: "{{ inventory_dir }}/../probes"
  run_once: true
  register: my_catalogue
"""

RETURN = r"""
program:
  description: The program of the probes, in base64.
  type: str
  returned: success
runs:
  description: For each kind of host, which probes run in which context as whom.
  type: dict
  returned: success
  sample: {"login": [{"context": "login", "actor": "a", "probes": ["see-jobs"]}]}
probes:
  description: Names of the probes.
  type: list
  elements: str
  returned: success
run_id:
  description: A new name for this run.
  type: str
  returned: success
"""
