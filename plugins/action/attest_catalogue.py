# Copyright: (c) 2026, gpuops.tenancy contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the catalogue of probes on the controller; documented in plugins/modules/attest_catalogue.py."""

from __future__ import annotations

import secrets

from ansible.plugins.action import ActionBase
from ansible_collections.gpuops.tenancy.plugins.module_utils._attest import catalogue, planning

ARGUMENT_SPEC = {
    "probes_dir": {"type": "path"},
    "only": {"type": "list", "elements": "str", "default": []},
    "accepted": {"type": "dict", "default": {}},
}


class ActionModule(ActionBase):
    TRANSFERS_FILES = False
    _requires_connection = False
    _supports_check_mode = True

    def run(self, tmp=None, task_vars=None):
        result = super().run(tmp, task_vars)
        result["changed"] = False
        _validation, options = self.validate_argument_spec(ARGUMENT_SPEC)
        folder = options["probes_dir"] and self._loader.path_dwim(options["probes_dir"])
        try:
            site = catalogue.site_files(folder)
            probes = planning.selected(catalogue.load(site), options["only"], options["accepted"])
        except (catalogue.CatalogueError, planning.SelectionError) as error:
            result.update(failed=True, msg=str(error))
            return result
        result.update(
            program=catalogue.program(site),
            runs={kind: planning.runs(planning.planned(probes, kind)) for kind in planning.KINDS},
            probes=sorted(probes),
            run_id=secrets.token_hex(8),
        )
        return result
