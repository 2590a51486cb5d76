# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Caps of a tenant that would not hold, because a QOS or the QOS of a partition sets the same limit.

What holds is what ``effective`` says; here is only who meets whom. Pure; private to the gpuops.tenancy collection.
"""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import effective, fields, values
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.effective import Level, Limit
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.effective_report import shown
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.model import chain
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.partitions import Partition


@dataclasses.dataclass(frozen=True)
class Row:
    """What is wanted of one account or association. ``jobs``: (account, QOS) of the jobs that its caps count.
    ``partition``: the only one of a row for a partition."""

    level: Level
    jobs: frozenset[tuple[str, str]]
    partition: str = ""


@dataclasses.dataclass(frozen=True)
class Verdict:
    """``problems``: caps that a larger limit makes void. ``warnings``: caps that jobs of a QOS do not count against."""

    problems: list[str]
    warnings: list[str]


def rows(accounts: t.Sequence[dict], users: t.Sequence[dict], root_qos: t.Sequence[str]) -> list[Row]:
    """From arguments of slurm_accounting, flat. A row that sets no limit is left out."""
    parents = {account["name"]: account.get("parent") or "root" for account in accounts}
    lists: dict[str, frozenset[str]] = {}
    for account in accounts:
        lists[account["name"]] = frozenset(account.get("qos") or lists.get(parents[account["name"]], root_qos))
    members = [(user["name"], row) for user in users for row in user.get("associations") or []]
    # A cap on an account meets the QOS of everybody below it.
    below: dict[str, set[tuple[str, str]]] = {name: {(name, qos) for qos in own} for name, own in lists.items()}
    own_jobs = []
    for _user, row in members:
        names = frozenset(row.get("qos") or lists.get(row["account"], root_qos))
        jobs = frozenset((row["account"], name) for name in names)
        own_jobs.append(jobs)
        for name in chain(row["account"], parents):
            below.setdefault(name, set()).update(jobs)
    for account in accounts:
        for name in chain(parents[account["name"]], parents):
            below.setdefault(name, set()).update(below[account["name"]])
    found = [
        Row(Level(f"account {account['name']}", _caps(account)), frozenset(below[account["name"]]))
        for account in accounts
    ]
    found += [
        Row(Level(f"user {user} in {row['account']}", _caps(row)), jobs, row.get("partition") or "")
        for (user, row), jobs in zip(members, own_jobs)
    ]
    return [row for row in found if row.level.values]


def check(
    wanted: t.Sequence[Row], qos: t.Mapping[str, t.Mapping[str, t.Any]], partitions: t.Mapping[str, Partition]
) -> Verdict:
    levels = {name: Level(f"QOS {name}", given) for name, given in qos.items()}
    problems: dict[str, None] = {}
    warnings: dict[str, None] = {}
    for row in wanted:
        for job, partition in _meetings(row, partitions):
            of_partition = None
            if partition and partition.qos and partition.qos != job and partition.qos in qos:
                of_partition = Level(f"QOS {partition.qos} of partition {partition.name}", qos[partition.qos])
            limits = effective.effective(
                [row.level], levels.get(job), of_partition, partition.level if partition else None
            )
            for option, resource, cap in _each(row.level.values):
                text, larger = _judge(row, option, resource, cap, limits)
                if text:
                    (problems if larger else warnings)[text] = None
    return Verdict(list(problems), list(warnings))


def _meetings(row: Row, partitions: t.Mapping[str, Partition]) -> t.Iterator[tuple[str, Partition | None]]:
    """(QOS of a job, partition) that a job under the row can have. Partitions that bound alike are met once."""
    there = [item for name, item in sorted(partitions.items()) if row.partition in ("", name)]
    for job in sorted({name for _account, name in row.jobs}):
        accounts = {account for account, name in row.jobs if name == job}
        seen = set()
        for item in there:
            bounds = (item.qos, tuple(sorted(item.limits.items())))
            if bounds not in seen and any(not item.refuses(account, job) for account in accounts):
                seen.add(bounds)
                yield job, item
        if not there:
            yield job, None


def _judge(row: Row, option: str, resource: str, cap: int, limits: t.Sequence[Limit]) -> tuple[str, bool]:
    """What to say of a cap, and whether it is a problem."""
    instead = [
        limit
        for limit in limits
        if any((void.level, void.option) == (row.level.name, option) for void in limit.instead_of)
        and limit.resource == resource
    ]
    if not instead:
        return "", False
    holds = min(instead, key=lambda limit: limit.value)
    what = f"{option}{f' {resource}' if resource else ''} {shown(option, cap)} of {row.level.name}"
    says = f"{holds.option}{f' {resource}' if resource else ''} {shown(holds.option, holds.value)}"
    if holds.value > cap:
        return (
            f"{what} would not hold: {holds.level}: {says}, and a QOS outranks an association; "
            "lower or remove it there, or do not grant that QOS"
        ), True
    if effective.counts_together(option) and holds.level.startswith("QOS "):
        return (
            f"{what} is not exact: jobs of {holds.level} count against its own {says} instead, "
            "so that both together may be used; remove it there if the cap is to be exact"
        ), False
    return "", False


def _each(caps: t.Mapping[str, t.Any]) -> t.Iterator[tuple[str, str, int]]:
    for option, value in sorted(caps.items()):
        if isinstance(value, dict):
            for resource, count in sorted(value.items()):
                yield option, resource, count
        else:
            yield option, "", value


def _caps(row: dict) -> dict[str, t.Any]:
    found = {}
    for option in effective.ASSOCIATION_OPTIONS:
        field = fields.BY_OPTION.get(option)
        if field is None or row.get(option) is None:
            continue
        value = values.from_option(field, row[option])
        if value != field.unset:
            found[option] = value
    return found
