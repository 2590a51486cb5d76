# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write every result to a file and, on request, kill the run after the N-th task that changed something."""

from __future__ import annotations

DOCUMENTATION = """
name: tenancy_recorder
type: aggregate
short_description: Record results, kill the run at a chosen point
description:
  - E(TENANCY_RECORD) names a file that gets one JSON object per result.
  - E(TENANCY_KILL_AFTER) is the number of changed tasks after which the process group is killed.
  - E(TENANCY_KILL_AT) is the end of the name of a task; the first host on which it changes something is the moment.
requirements:
  - the run is in a process group of its own
"""

import json
import os
import signal

from ansible.plugins.callback import CallbackBase

KEPT = (
    "changed", "commands", "plan", "diff", "msg", "proven", "results", "applied", "remaining", "saved", "blocked", "blocks",
    "still_blocked", "jobs", "documents", "findings", "tenants",
)  # fmt: skip


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "tenancy_recorder"

    def __init__(self):
        super().__init__()
        self.path = os.environ.get("TENANCY_RECORD")
        self.kill_after = int(os.environ.get("TENANCY_KILL_AFTER", "0"))
        self.kill_at = os.environ.get("TENANCY_KILL_AT")
        self.changed_tasks = []

    def _note(self, result, status):
        data = result.result if hasattr(result, "result") else result._result
        task = result.task if hasattr(result, "task") else result._task
        host = result.host if hasattr(result, "host") else result._host
        if self.path:
            kept = {key: data.get(key) for key in KEPT}
            with open(self.path, "a") as stream:
                record = {
                    "task": task.get_name(),
                    "action": task.action,
                    "host": host.get_name(),
                    "status": status,
                    **kept,
                }
                stream.write(json.dumps(record, default=str) + "\n")
        if status == "ok" and data.get("changed") and task._uuid not in self.changed_tasks:
            self.changed_tasks.append(task._uuid)
            if len(self.changed_tasks) == self.kill_after or (self.kill_at and task.get_name().endswith(self.kill_at)):
                os.killpg(os.getpgrp(), signal.SIGKILL)

    def v2_runner_on_ok(self, result):
        self._note(result, "ok")

    def v2_runner_on_failed(self, result, ignore_errors=False):
        self._note(result, "failed")

    def v2_runner_on_unreachable(self, result):
        self._note(result, "unreachable")
