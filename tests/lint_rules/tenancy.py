# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The project's own rules for ansible-lint."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ansiblelint.rules import AnsibleLintRule

if TYPE_CHECKING:
    from ansiblelint.file_utils import Lintable
    from ansiblelint.utils import Task

# Modules that change nothing on a host, so that nothing of theirs can drift.
READ_ONLY = {
    "assert",
    "debug",
    "fail",
    "set_fact",
    "include_vars",
    "validate_argument_spec",
    "setup",
    "stat",
    "slurp",
    "getent",
    "meta",
    "import_tasks",
    "include_tasks",
    "import_role",
    "include_role",
    "import_playbook",
    "wait_for",
    "wait_for_connection",
    "add_host",
    "group_by",
    "pause",
    "package_facts",
    "service_facts",
    "find",
    "tenant_documents",
}


class TenancyAreaRule(AnsibleLintRule):
    """A managing task names its area and object, so that a drift report can say what a core module changed."""

    id = "tenancy-area"
    description = "Tasks in roles that manage something carry vars tenancy_area and tenancy_object."
    severity = "HIGH"
    tags = ["gpuops"]
    version_changed = "1.0.0"

    def matchtask(self, task: Task, file: Lintable | None = None) -> bool | str:
        """Only tasks of roles: a playbook's own tasks only read, show or call roles."""
        if file is None or "roles" not in file.path.parts:
            return False
        module = task["action"]["__ansible_module__"].rsplit(".", 1)[-1]
        if module in READ_ONLY or module.endswith(("_info", "_facts", "_preflight")):
            return False
        if task.get("changed_when") is False:
            return False
        missing = {"tenancy_area", "tenancy_object"} - set(task.get("vars") or {})
        return f"{module} manages something: add vars {', '.join(sorted(missing))}" if missing else False


class TenancyNoLogRule(AnsibleLintRule):
    """no_log on a task hides the plan and the diff: secrets are hidden by no_log on module arguments."""

    id = "tenancy-no-log"
    description = "No task-level no_log."
    severity = "HIGH"
    tags = ["gpuops"]
    version_changed = "1.0.0"

    def matchtask(self, task: Task, file: Lintable | None = None) -> bool | str:
        """Any file."""
        raw: dict[str, Any] = task.raw_task if hasattr(task, "raw_task") else task
        return "take no_log off the task and set it on the module's argument" if "no_log" in raw else False
