# Copyright: (c) 2026, gpuops.tenancy contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    # What decides which probes there are.
    DOCUMENTATION = r"""
options:
  probes_dir:
    description:
      - Folder on the controller with the site's own probes, C(*.py). See C(docs/attest.md).
      - A relative path starts at the folder of the playbook.
    type: path
  only:
    description:
      - Only these probes.
    type: list
    elements: str
    default: []
  accepted:
    description:
      - Risks that the site has accepted, by the name of the probe, with the reason. They are shown, and do not fail the run.
    type: dict
    default: {}
"""
