# Copyright: (c) 2026, gpuops.tenancy contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes the report of attest on the controller; documented in plugins/modules/attest_report.py."""

from __future__ import annotations

import os

from ansible.plugins.action import ActionBase
from ansible_collections.gpuops.tenancy.plugins.module_utils._attest import catalogue, pages, planning, report

ARGUMENT_SPEC = {
    "probes_dir": {"type": "path"},
    "only": {"type": "list", "elements": "str", "default": []},
    "accepted": {"type": "dict", "default": {}},
    "hosts": {"type": "list", "elements": "dict", "required": True},
    "job_table": {"type": "dict", "required": True},
    "cluster": {"type": "str", "required": True},
    "run_id": {"type": "str", "required": True},
    "started": {"type": "str", "required": True},
    "path": {"type": "path", "required": True},
}
PAGES = {"attest.json": pages.as_json, "attest.xml": pages.as_junit, "attest.html": pages.as_html}


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
            every = catalogue.load(catalogue.site_files(folder))
            probes = planning.selected(every, options["only"], options["accepted"])
        except (catalogue.CatalogueError, planning.SelectionError) as error:
            result.update(failed=True, msg=str(error))
            return result
        rows = report.rows(probes, [*options["hosts"], report.controller(options["job_table"])], options["accepted"])
        about = {"cluster": options["cluster"], "run": options["run_id"], "started": options["started"]}
        files = [os.path.join(self._loader.path_dwim(options["path"]), name) for name in PAGES]
        if not self._task.check_mode:
            os.makedirs(os.path.dirname(files[0]), mode=0o750, exist_ok=True)
            for file, make in zip(files, PAGES.values()):
                with open(f"{file}.new", "w", encoding="utf-8", errors="replace") as stream:
                    stream.write(make(rows, about))
                os.replace(f"{file}.new", file)
        counts = report.counts(rows)
        result.update(
            counts=counts,
            files=files,
            summary=report.summary(rows),
            good=bool(rows) and not any(counts[verdict] for verdict in report.BAD),
        )
        return result
