# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who may do what in which QOS and partition: the cluster as read, put to ``effective``. Private to the collection."""

from __future__ import annotations

import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import (
    effective,
    fields,
    partitions,
    qos_definitions,
    values,
)
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.client import Client, SlurmError, failure
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.effective import Level, Limit
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.model import Association, State, chain, label
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.parse import ParseError
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.partitions import Partition

Qos = t.Mapping[str, t.Mapping[str, t.Any]]


def read(client: Client) -> tuple[State, Qos, dict[str, Partition]]:
    done = client.run([client.program("scontrol"), "-o", "show", "partition"])
    if done.rc != 0:
        raise failure(done, "slurmctld has to run: its partitions decide as well")
    try:
        found = partitions.parse(done.stdout)
    except ParseError as exc:
        raise SlurmError(str(exc)) from exc
    return client.read(), qos_definitions.read(client).qos, found


def report(
    state: State,
    qos: Qos,
    there: t.Mapping[str, Partition],
    users: t.Container[str] = (),
    accounts: t.Container[str] = (),
    names: t.Sequence[str] = (),
    only: t.Container[str] = (),
) -> list[dict[str, t.Any]]:
    """One entry for each user, account, partition and QOS. An empty filter takes all; ``names``: of QOS; ``only``:
    partitions. A QOS that is asked for and not granted is an entry as well. Pure."""
    parents = state.parents()
    found = []
    for account, user in sorted({key[:2] for key in state.associations if key[1]}):
        above = chain(account, parents)
        if (users and user not in users) or (accounts and not any(name in accounts for name in above)):
            continue
        for partition in there.values():
            if only and partition.name not in only:
                continue
            row = state.associations.get((account, user, partition.name)) or state.associations.get((account, user, ""))
            if row is None:
                continue
            levels = [Level(label(row.key), row.values)]
            levels += [_level(state.associations[(name, "", "")]) for name in above if state.account_row(name)]
            for name in names or sorted(row.effective_qos):
                found.append(_entry(row, levels, name, qos, partition))
    return found


def _level(row: Association) -> Level:
    return Level(label(row.key), row.values)


def _entry(row: Association, levels: t.Sequence[Level], name: str, qos: Qos, partition: Partition) -> dict[str, t.Any]:
    refused = partition.refuses(row.account, name)
    if name not in row.effective_qos:
        refused = f"QOS {name} is not granted" if name in qos else f"QOS {name} does not exist"
    of_partition = None
    if partition.qos and partition.qos != name:
        of_partition = Level(f"QOS {partition.qos} of partition {partition.name}", qos.get(partition.qos, {}))
    job = Level(f"QOS {name}", qos.get(name, {}))
    return {
        "user": row.user,
        "account": row.account,
        "partition": partition.name,
        "qos": name,
        "allowed": not refused,
        "refused_because": refused,
        "state": partition.state,
        "groups": sorted(partition.allow_groups or ()),
        "limits": [_plain(limit) for limit in effective.effective(levels, job, of_partition, partition.level)],
    }


def _plain(limit: Limit) -> dict[str, t.Any]:
    return {
        "option": limit.option,
        "resource": limit.resource,
        "value": shown(limit.option, limit.value),
        "level": limit.level,
        "instead_of": [
            {"level": void.level, "option": void.option, "value": shown(void.option, void.value)}
            for void in limit.instead_of
        ],
    }


def shown(option: str, value: int) -> int | str:
    """Times as a person writes them."""
    field = fields.QOS_BY_OPTION.get(option) or fields.BY_OPTION.get(option)
    return values.clock(value) if field is not None and field.type == fields.TIME else value
