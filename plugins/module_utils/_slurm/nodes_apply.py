# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""slurm_node, from arguments to result. Private to the gpuops.tenancy collection."""

from __future__ import annotations

import itertools
import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils._plan import Plan
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import hostlist, jobs, nodes
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.scheduler import Scheduler, until

Jobs = dict[str, list[jobs.Job]]


def reconcile(params: t.Mapping[str, t.Any], check_mode: bool, scheduler: Scheduler) -> dict[str, t.Any]:
    wanted = nodes.build(params)
    with scheduler.alone(check_mode):
        plan, commands, read = _converge(wanted, check_mode, scheduler)
    # Others may write while this one waits.
    wait = 0 if check_mode or wanted.state == nodes.RESUME else int(params.get("wait") or 0)
    readings = itertools.chain((read,), iter(scheduler.nodes, None))
    empty, (now, holding) = until(lambda: _emptiness(wanted, next(readings), scheduler.jobs()), wait)
    result = {
        "changed": plan.changed,
        "plan": plan.as_list(),
        "diff": plan.diff("nodes (now)", "nodes (wanted)"),
        "commands": commands,
        "nodes": [
            {**node.as_dict(), "jobs": [job.id for job in holding[node.name]]} for node in nodes.named(now, wanted)
        ],
        "jobs": [job.as_dict() for job in _each_once(holding)],
        "kept": nodes.kept(now, wanted) if wanted.state == nodes.RESUME else [],
    }
    if wait and not empty:
        held = "; ".join(
            f"{name} by {', '.join(job.label for job in found) or 'a job that ends'}"
            for name, found in holding.items()
            if found or not _quiet(now[name])
        )
        raise scheduler.failed(
            f"after {wait} s jobs still hold nodes: {held}; the nodes stay closed: wait, or cancel the jobs", **result
        )
    return result


def _converge(
    wanted: nodes.Wanted, check_mode: bool, scheduler: Scheduler
) -> tuple[Plan, list[str], dict[str, nodes.Node]]:
    """The plan, its commands, and the nodes as they are afterwards."""
    read = scheduler.nodes()
    plan = nodes.make_plan(read, wanted)
    commands = nodes.compile_plan(plan)
    printed = [scheduler.printable("scontrol", words) for words in commands]
    if check_mode or not plan.changed:
        return plan, printed, read
    for words in commands:
        scheduler.write("scontrol", words, "[" in words[1] or "," in words[1])
    done, (read, left) = scheduler.settled(lambda: _as_planned(wanted, scheduler.nodes()))
    if not done:
        names = hostlist.fold(change.node for change in t.cast("list[nodes.NodeChange]", left.changes))
        remaining = [scheduler.printable("scontrol", words) for words in nodes.compile_plan(left)]
        raise scheduler.failed(f"state {wanted.state} did not come true on {names}", remaining=remaining)
    return plan, printed, read


def _as_planned(wanted: nodes.Wanted, read: dict[str, nodes.Node]) -> tuple[bool, tuple[dict[str, nodes.Node], Plan]]:
    plan = nodes.make_plan(read, wanted)
    return not plan.changed, (read, plan)


def _emptiness(
    wanted: nodes.Wanted, read: dict[str, nodes.Node], queue: list[jobs.Job]
) -> tuple[bool, tuple[dict[str, nodes.Node], Jobs]]:
    holding = jobs.on_nodes(queue, wanted.nodes)
    empty = not any(holding.values()) and all(_quiet(node) for node in nodes.named(read, wanted))
    return empty, (read, holding)


def _quiet(node: nodes.Node) -> bool:
    return "COMPLETING" not in node.flags and node.state not in ("ALLOCATED", "MIXED", "COMPLETING")


def _each_once(holding: Jobs) -> list[jobs.Job]:
    return list({job.id: job for found in holding.values() for job in found}.values())
