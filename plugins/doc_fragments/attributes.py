# Copyright: (c) 2026, gpuops.tenancy contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    # A module that extends this states its support for each attribute.
    DOCUMENTATION = r"""
options: {}
attributes:
  check_mode:
    description: Can run without changing anything, and says what a real run would change.
  diff_mode:
    description: Shows what was changed, or would be changed, when in diff mode.
  idempotent:
    description: When run twice in a row with the same arguments, the second run changes nothing.
"""

    ACTIONGROUP_SLURM = r"""
options: {}
attributes:
  action_group:
    description: Use C(group/gpuops.tenancy.slurm) in C(module_defaults) to set defaults for this module.
    support: full
    membership:
      - gpuops.tenancy.slurm
"""

    INFO_MODULE = r"""
options: {}
attributes:
  check_mode:
    support: full
    details:
      - This module only reads.
  diff_mode:
    support: N/A
    details:
      - This module only reads.
  idempotent:
    support: full
    details:
      - This module only reads.
"""
