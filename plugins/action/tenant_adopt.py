# Copyright: (c) 2026, gpuops.tenancy contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes tenant documents of an existing cluster on the controller; documented in plugins/modules/tenant_adopt.py."""

from __future__ import annotations

import json
import os
import tempfile

from ansible_collections.gpuops.tenancy.plugins.action import tenant_documents
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant import adopt, adopt_findings, folder, names
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.adopt_tree import Options
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.errors import TenantError

POLICY = ("operators", "platform_account", "reserved_names", "retired_names", "ledger", "block_qos")
ARGUMENT_SPEC = {
    "survey": {"type": "dict", "required": True},
    "path": {"type": "path", "required": True},
    "report": {"type": "path", "required": True},
    "include": {"type": "list", "elements": "str", "default": []},
    "exclude": {"type": "list", "elements": "str", "default": []},
    "posix_users": {"type": "list", "elements": "dict"},
    "uid_min": {"type": "int", "default": 1000},
    "uid_max": {"type": "int", "default": 59999},
    "preflight": {"type": "list", "elements": "str", "default": []},
    **{name: tenant_documents.ARGUMENT_SPEC[name] for name in POLICY},
}
MODE = 0o640


class ActionModule(tenant_documents.ActionModule):
    def run(self, tmp=None, task_vars=None):
        result = super(tenant_documents.ActionModule, self).run(tmp, task_vars)
        result["changed"] = False
        _validation, options = self.validate_argument_spec(ARGUMENT_SPEC)
        where, report = self._path(options["path"]), self._path(options["report"])
        try:
            found = self._adopt(options, where)
        except TenantError as error:
            result.update(failed=True, msg=str(error))
            return result
        cluster = options["survey"]["cluster"]
        text = adopt_findings.report(cluster, found.documents, found.findings)
        files = {os.path.join(where, f"{name}.yml"): text for name, text in found.texts.items()}
        old = _content(report)
        diff = [_diff(path, None, new) for path, new in files.items()]
        if old != text:
            diff.append(_diff(report, old, text))
        result.update(
            changed=bool(diff),
            documents=sorted(files),
            tenants=sorted(found.documents),
            findings=[one.as_dict(cluster) for one in found.findings],
            report=report,
            summary=adopt_findings.screen(cluster, found.findings),
            diff=diff if self._task.diff else [],
        )
        if self._task.check_mode:
            return result
        try:
            for path, new in files.items():
                _create(path, new)
            if old != text:
                _create(report, text, replace=True)
        except OSError as error:
            what = error.filename2 or error.filename
            result.update(failed=True, msg=f"{what} cannot be written: {error.strerror}; run again when it can")
        return result

    def _adopt(self, options, where):
        paths = folder.files(where, may_be_empty=True) if os.path.lexists(where) else []
        posix = options["posix_users"]
        return adopt.adopt(
            # Plain text: Ansible's own kind of it cannot be written as YAML.
            json.loads(json.dumps(options["survey"])),
            Options(
                policy=self._policy({**options, "site_qos": None}),
                include=frozenset(names.fold(name) for name in options["include"]),
                exclude=frozenset(names.fold(name) for name in options["exclude"]),
                posix=None if posix is None else {one["name"]: one for one in posix},
                uid_min=options["uid_min"],
                uid_max=options["uid_max"],
            ),
            [self._read(path) for path in paths],
            tuple(options["preflight"]),
        )


def _content(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return stream.read()
    except OSError:
        return None


def _diff(path, before, after):
    return {"before_header": path, "after_header": path, "before": before or "", "after": after}


def _create(path, text, replace=False):
    """Whole or not at all, and never over a file that is there, unless it is to be replaced."""
    directory = os.path.dirname(os.path.abspath(path))
    os.makedirs(directory, mode=0o750, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(prefix=".adopt-", dir=directory)
    try:
        with open(descriptor, "w", encoding="utf-8") as stream:
            os.fchmod(descriptor, MODE)
            stream.write(text)
        if replace:
            os.replace(temporary, path)
        else:
            os.link(temporary, path)
    finally:
        if os.path.lexists(temporary):
            os.unlink(temporary)
