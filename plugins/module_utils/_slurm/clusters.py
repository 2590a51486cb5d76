# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Registering a cluster in slurmdbd. Private to the gpuops.tenancy collection."""

from __future__ import annotations

import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils._lock import Lock
from ansible_collections.gpuops.tenancy.plugins.module_utils._plan import ADD, Change, Plan
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import values
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.client import Client, columns
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.command import Command
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.converge import Work, once
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.desired import Refused


def reconcile(params: t.Mapping[str, t.Any], check_mode: bool, client: Client, lock: Lock | None) -> dict[str, t.Any]:
    try:
        name = values.check_name("cluster", params["name"])
    except values.ValueProblem as exc:
        raise Refused([str(exc)]) from exc
    work = Work(
        read=lambda: client.read_text(["show", "cluster", columns(("cluster",))]).split(),
        plan=lambda known: make_plan(known, name),
        compile=lambda known, plan: [Command("add", "cluster", "", ((name, "", ""),))] if plan.changed else [],
    )
    _known, plan, commands = once(client, work, check_mode, lock)
    return {
        "changed": plan.changed,
        "plan": plan.as_list(),
        "diff": plan.diff("clusters (now)", "clusters (wanted)"),
        "commands": commands,
    }


def make_plan(known: t.Container[str], name: str) -> Plan:
    return Plan([] if name in known else [Change(ADD, f"cluster {name}")])
