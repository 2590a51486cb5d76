# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What module slurm_block does, apart from Ansible. Private to the gpuops.tenancy collection."""

from __future__ import annotations

import dataclasses
import datetime
import shlex
import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils._lock import Lock
from ansible_collections.gpuops.tenancy.plugins.module_utils._plan import (
    CHANGE,
    DESTRUCTIVE,
    DISRUPTIVE,
    REMOVE,
    Change,
    Plan,
)
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import (
    block_jobs,
    block_ledger,
    block_plan,
    fields,
    qos_definitions,
    render,
    values,
)
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.block_plan import BlockPlan, Request
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.changes import AccountingChange, AccountingPlan
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.client import Client
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.command import Command
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.compile import compile_plan, parents_to_name
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.converge import Work, converge, printable
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.desired import Refused
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.model import Key, State

# What a QOS must hold to stop people whatever QOS their partition has: nothing outranks these.
BLOCKS: dict[str, t.Any] = {
    "grp_submit_jobs": 0,
    "max_submit_jobs_per_user": 0,
    "flags": frozenset(("OverPartQOS", "DenyOnLimit")),
}


def reconcile(params: t.Mapping[str, t.Any], check_mode: bool, client: Client, lock: Lock | None) -> dict[str, t.Any]:
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    request = block_plan.build(params, now)
    cancel = bool(params.get("cancel_pending")) and request.blocked
    if check_mode or lock is None:
        return _run(request, cancel, check_mode, client, ())
    with lock:
        return _run(request, cancel, check_mode, client, lock.fds)


def _run(
    request: Request, cancel: bool, check_mode: bool, client: Client, pass_fds: t.Sequence[int]
) -> dict[str, t.Any]:
    if request.blocked:
        _really_blocks(client, request.block_qos)
    ledger = block_ledger.read(client.cluster)
    state = client.read()
    plan = block_plan.make_plan(state, ledger, request)
    rows = block_plan.changes(state, plan.wanted)
    jobs = client.jobs_of(plan.targets) if plan.targets else []
    gone = [job for job in jobs if job["state"] == "PENDING"] if cancel else []
    free = block_jobs.free(client, plan.covered)
    records = Plan(
        [
            *plan.records,
            *(Change(CHANGE, f"job {job}", "held", False, True, DISRUPTIVE) for job in sorted(free)),
            *(Change(CHANGE, f"job {job}", "held", True, False) for job in plan.release),
            *(Change(REMOVE, f"job {job['id']}", risk=DESTRUCTIVE) for job in gone),
        ]
    )
    cancels = block_jobs.cancel_argv(client, gone)
    commands = [shlex.join(argv) for argv in block_jobs.hold_argv(client, "hold", free)]
    commands += [printable(client, command) for command in compile_rows(state, rows)]
    commands += [shlex.join(argv) for argv in [*block_jobs.hold_argv(client, "release", plan.release), *cancels]]
    if not check_mode:
        commands = _apply(client, state, plan, rows, free, ledger, pass_fds)
        block_jobs.cancel(client, cancels, plan.targets)
        commands += [shlex.join(argv) for argv in cancels]
    return {
        "changed": records.changed or rows.changed,
        "plan": records.as_list() + rows.as_list(),
        "diff": _diff(state, records, rows),
        "commands": commands,
        "blocks": [dataclasses.asdict(plan.last.blocks[name]) for name in sorted(plan.last.blocks)],
        "still_blocked": plan.still_blocked,
        "jobs": jobs,
        "warnings": plan.warnings + _ways_round(state, plan, request),
    }


def _apply(
    client: Client,
    state: State,
    plan: BlockPlan,
    rows: AccountingPlan,
    free: t.Mapping[str, tuple[str, str]],
    ledger: block_ledger.Ledger,
    pass_fds: t.Sequence[int],
) -> list[str]:
    """The order is what makes a kill harmless: what rows held and which jobs we hold is on disk before they change, and
    is dropped only after they have it back."""
    commands: list[str] = []
    while True:
        plan.first.held.update(free)
        plan.last.held.update(free)
        if plan.first != ledger:
            block_ledger.write(client.cluster, plan.first)
            ledger = plan.first.copy()
        commands += block_jobs.hold(client, free)
        work = Work(client.read, lambda current: block_plan.changes(current, plan.wanted), compile_rows)
        if rows.changed:
            commands += converge(client, work, state, rows, pass_fds)
        # What was submitted a moment before the block.
        free = block_jobs.free(client, plan.covered) if rows.changed else {}
        rows = AccountingPlan()
        if not free:
            break
    commands += block_jobs.release(client, plan.release)
    if plan.last != ledger:
        block_ledger.write(client.cluster, plan.last)
    return commands


def compile_rows(state: State, rows: AccountingPlan) -> list[Command]:
    """The same as for accounting, apart from lists that are a difference to the parent's: they go with their default."""
    changes: list[AccountingChange] = t.cast(t.Any, rows.changes)
    apart = {change.key for change in changes if change.field == "qos" and block_plan.is_difference(change.will)}
    plain = AccountingPlan(change for change in changes if change.key not in apart)
    words: dict[Key, list[str]] = {}
    for change in changes:
        if change.key in apart:
            field = fields.BY_OPTION[change.field]
            found = [values.set_word(field, change.was, change.will)]
            if change.field == "qos":
                found = values.difference_words(field, change.will)
            words.setdefault(change.key, []).extend(found)
    commands = compile_plan(state, plain)
    for key, text in words.items():
        entity, partition = ("user", key[2]) if key[1] else ("account", None)
        parents = parents_to_name(state.version, state.parents(), (key,), text)
        commands.append(Command("modify", entity, state.cluster, (key,), tuple(text), partition, parents))
    return commands


def _really_blocks(client: Client, name: str) -> None:
    given = qos_definitions.read(client).qos.get(name)
    if given is None:
        return  # the plan says what to do
    wrong = [
        option
        for option, value in BLOCKS.items()
        if not (value <= given[option] if isinstance(value, frozenset) else value == given[option])
    ]
    if wrong:
        raise Refused(
            [
                f"QOS {name} does not block: it needs grp_submit_jobs 0, max_submit_jobs_per_user 0 and the flags OverPartQOS "
                f"and DenyOnLimit, and {', '.join(wrong)} is otherwise; correct it in slurm_controller_qos and run site.yml"
            ]
        )


def _ways_round(state: State, plan: BlockPlan, request: Request) -> list[str]:
    """Whom Slurm lets change associations, the own one included (tried: a coordinator lifts a block so)."""
    if not request.blocked:
        return []
    users = {key[1] for key in plan.targets if key[1]}
    found = []
    for user in sorted(users & set(state.users)):
        level = state.users[user].admin_level
        if level != "none":
            found.append(
                f"user {user} has AdminLevel {level} and can lift the block by sacctmgr; take it away: "
                f"sacctmgr modify user {user} set AdminLevel=None"
            )
    places: dict[str, set[str]] = {}
    for key in plan.targets:
        for user in state.accounts[key[0]].coordinators if key[0] in state.accounts else ():
            places.setdefault(user, set()).add(key[0])
    for user, accounts in sorted(places.items()):
        names = ",".join(sorted(accounts))
        found.append(
            f"user {user} is coordinator of {names} and can lift the block by sacctmgr; take it away: "
            f"sacctmgr delete coordinator account={names} names={user}"
        )
    return found


def _diff(state: State, records: Plan, rows: AccountingPlan) -> dict[str, str]:
    of_rows = render.diff(state, rows)
    of_records = records.diff("", "")
    return {
        **of_rows,
        "before": of_records["before"] + of_rows["before"],
        "after": of_records["after"] + of_rows["after"],
    }
