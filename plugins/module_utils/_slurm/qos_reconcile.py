# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What slurm_qos does, apart from Ansible. Private to the gpuops.tenancy collection."""

from __future__ import annotations

import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils._lock import Lock
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import saved
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.client import Client
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.converge import Work, once
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.qos_definitions import (
    build,
    compile_plan,
    make_plan,
    plan_removal,
    read,
)


def reconcile(params: t.Mapping[str, t.Any], check_mode: bool, client: Client, lock: Lock | None) -> dict[str, t.Any]:
    wanted = build(params)
    files: list[str] = []
    if params.get("state") == "absent":
        most = params.get("max_removals")
        most = len(wanted) if most is None else most
        save_dir = str(params.get("save_dir") or saved.DIRECTORY)
        work = Work(
            lambda: read(client, wanted),
            lambda state: plan_removal(state, wanted, most),
            compile_plan,
            lambda plan: files.extend([] if files else saved.keep(client, save_dir)),
        )
    else:
        work = Work(lambda: read(client), lambda state: make_plan(state, wanted), compile_plan)
    state, plan, commands = once(client, work, check_mode, lock)
    return {
        "changed": plan.changed,
        "plan": plan.as_list(),
        "diff": plan.diff("QOS definitions (now)", "QOS definitions (wanted)"),
        "commands": commands,
        "unmanaged": [f"qos {name}" for name in sorted(set(state.qos) - set(wanted))],
        "saved": files,
    }
