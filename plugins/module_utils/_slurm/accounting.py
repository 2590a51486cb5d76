# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the accounting modules do, apart from Ansible. Private to the gpuops.tenancy collection."""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils._lock import Lock
from ansible_collections.gpuops.tenancy.plugins.module_utils._plan import REMOVE
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import block_ledger, render, saved
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import desired as wanted
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.changes import AccountingPlan
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.client import Client, SlurmError
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.command import Command
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.compile import compile_plan
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.converge import Work, once
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.model import Key, State
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.plan import make_plan

_SHOWN = 20


@dataclasses.dataclass(frozen=True)
class Reading:
    """What has to be read beyond the usual, see Client.read."""

    texts_of: tuple[str, ...] = ()
    comments: tuple[Key, ...] | None = None
    wckeys: bool = False

    def read(self, client: Client) -> State:
        return client.read(self.texts_of, self.comments, self.wckeys)


def reconcile(params: t.Mapping[str, t.Any], check_mode: bool, client: Client, lock: Lock | None) -> dict[str, t.Any]:
    """slurm_accounting."""
    desired = wanted.build(params)
    return carry_out(lambda state: desired, reading(desired), params, check_mode, client, lock)


def _with_blocks(desired: wanted.Desired, client: Client) -> wanted.Desired:
    """Somebody who is blocked may have no row at the moment, or none in scope."""
    ledger = block_ledger.read(client.cluster)
    return dataclasses.replace(
        desired,
        blocked_users=ledger.names(block_ledger.USER),
        blocked_accounts=ledger.names(block_ledger.ACCOUNT),
    )


def reading(desired: wanted.Desired) -> Reading:
    comments = tuple(key for key, given in desired.rows().items() if "comment" in given)
    wckeys = any("default_wckey" in user.record for user in desired.users.values())
    return Reading(tuple(desired.accounts), comments or None, wckeys)


def carry_out(
    build: t.Callable[[State], wanted.Desired],
    beyond: Reading,
    params: t.Mapping[str, t.Any],
    check_mode: bool,
    client: Client,
    lock: Lock | None,
) -> dict[str, t.Any]:
    """One run.

    :param build: what is wanted, for a state that was read.
    """
    guard = Guard(client, str(params.get("save_dir") or saved.DIRECTORY))
    work = Work(
        read=lambda: beyond.read(client),
        plan=lambda state: make_plan(state, _with_blocks(build(state), client)),
        compile=compile_plan,
        guard=guard.plan,
        last_look=guard.command,
    )
    state, plan, commands = once(client, work, check_mode, lock, float(params.get("server_seconds") or 6))
    warnings = list(plan.warnings)
    if check_mode and plan.changed:
        warnings += _what_would_refuse(client, plan)
    return {
        "changed": plan.changed,
        "plan": plan.as_list(),
        "diff": render.diff(state, plan),
        "commands": commands,
        "unmanaged": plan.unmanaged,
        "blocked": plan.blocked,
        "saved": guard.files,
        "warnings": warnings,
    }


class Guard:
    """What must hold before anything is removed. ``files``: the state before, once it is saved."""

    def __init__(self, client: Client, save_dir: str) -> None:
        self.client = client
        self.save_dir = save_dir
        self.files: list[str] = []

    def plan(self, plan: AccountingPlan) -> None:
        refuse_with_jobs(self.client, plan)
        if plan.whole(REMOVE) and not self.files:
            self.files = saved.keep(self.client, self.save_dir)

    def command(self, command: Command) -> None:
        """An account that goes with a child leaves rows over which slurmdbd 24.11 runs in circles for ever."""
        if command.kind != "delete account":
            return
        going = {key[0] for key in command.items}
        left = sorted(name for name, parent in self.client.parents().items() if parent in going and name not in going)
        if left:
            raise SlurmError(
                f"account {', '.join(left[:_SHOWN])} appeared below what was to be removed; run again to see it planned"
            )


def _what_would_refuse(client: Client, plan: AccountingPlan) -> list[str]:
    """A check reports jobs in the way without failing: what differs has to be seen all the same."""
    try:
        refuse_with_jobs(client, plan)
    except SlurmError as exc:
        return [f"a real run would be refused now: {exc}"]
    return []


def refuse_with_jobs(client: Client, plan: AccountingPlan) -> None:
    """Slurm's own check knows only jobs that have reached the database; one of the last seconds it would orphan."""
    keys = [change.key for change in plan.whole(REMOVE)]
    jobs = client.jobs_of(keys) if keys else []
    if jobs:
        shown = ", ".join(f"{job['id']} ({job['user']} in {job['account']}, {job['state']})" for job in jobs[:_SHOWN])
        more = f" and {len(jobs) - _SHOWN} more" if len(jobs) > _SHOWN else ""
        raise SlurmError(
            f"associations to remove still have jobs: {shown}{more}; cancel them or let them end, then run again"
        )
