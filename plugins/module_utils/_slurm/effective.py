# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which limits hold for a job of a user in a QOS and a partition, and who says so.

Slurm's order, tried with jobs on 22.05 and 24.11 (scenario limits): the QOS of the partition, the QOS of the
job (the other way round with OverPartQOS), the association, the accounts above it. What a QOS sets, for one TRES or as
one number, makes the same limit of associations void, also where it is the larger one. Pure; private to the collection.
"""

from __future__ import annotations

import dataclasses
import typing as t

Values = t.Mapping[str, t.Any]


@dataclasses.dataclass(frozen=True)
class Level:
    """Somebody who sets limits. ``name`` is for people; ``values``: option -> normal form, as read or as wanted."""

    name: str
    values: Values = dataclasses.field(default_factory=dict)

    @property
    def flags(self) -> frozenset[str]:
        return frozenset(flag.lower() for flag in self.values.get("flags") or ())


@dataclasses.dataclass(frozen=True)
class Setting:
    """A limit that somebody sets and that does not hold."""

    level: str
    option: str
    value: int


@dataclasses.dataclass(frozen=True)
class Limit:
    """A limit that holds. ``resource``: the TRES, empty where the limit is one number. ``instead_of``: what is void."""

    option: str
    resource: str
    value: int
    level: str
    instead_of: tuple[Setting, ...] = ()


@dataclasses.dataclass(frozen=True)
class Kind:
    """A limit of associations. ``qos``: which limits of a QOS make it void. ``group``: it counts everything below the
    row that sets it, so that the limits of all rows hold; else the nearest row's does."""

    option: str
    qos: tuple[str, ...]
    group: bool
    tres: bool = False


def _same(option: str, group: bool, tres: bool = False) -> Kind:
    return Kind(option, (option,), group, tres)


KINDS: tuple[Kind, ...] = (
    _same("grp_tres", True, True),
    _same("grp_tres_mins", True, True),
    _same("grp_tres_run_mins", True, True),
    _same("grp_jobs", True),
    _same("grp_jobs_accrue", True),
    _same("grp_submit_jobs", True),
    _same("grp_wall", True),
    Kind("max_jobs", ("max_jobs_per_user", "max_jobs_per_account"), False),
    Kind("max_jobs_accrue", ("max_jobs_accrue_per_user", "max_jobs_accrue_per_account"), False),
    Kind("max_submit_jobs", ("max_submit_jobs_per_user", "max_submit_jobs_per_account"), False),
    _same("max_tres_per_job", False, True),
    _same("max_tres_per_node", False, True),
    _same("max_tres_mins_per_job", False, True),
    _same("max_wall", False),
)
# A QOS alone has these; they make nothing void.
QOS_TRES = (
    "max_tres_per_user",
    "max_tres_per_account",
    "max_tres_run_mins_per_user",
    "max_tres_run_mins_per_account",
    "min_tres_per_job",
)
ASSOCIATION_OPTIONS = tuple(kind.option for kind in KINDS)
# Flags and a factor decide as well.
READ_OF_QOS = (
    "flags",
    "limit_factor",
    *dict.fromkeys(option for kind in KINDS for option in kind.qos),
    *QOS_TRES,
)

# The manual says "[Grp|Max]TRES": these it is, and neither minutes nor what a job uses on a node.
_FACTORED = ("grp_tres", "max_tres_per_job")

# What a partition sets bounds whatever holds otherwise, unless the QOS of the job (not its own) has the flag: option, resource, the partition's
# own name for it, flag, whether it is a least instead of a most.
_BOUNDS = (
    ("max_wall", "", "max_time", "partitiontimelimit", False),
    ("max_tres_per_job", "node", "max_nodes", "partitionmaxnodes", False),
    ("min_tres_per_job", "node", "min_nodes", "partitionminnodes", True),
)


def counts_together(option: str) -> bool:
    """Whether what a row and a QOS count under this limit are different jobs."""
    return any(kind.option == option and (kind.group or len(kind.qos) > 1) for kind in KINDS)


def ranked(job: Level | None, partition: Level | None) -> list[Level]:
    """The QOS of a job and of its partition, the stronger one first."""
    if job and partition and job.name == partition.name:
        return [job]
    both = [partition, job]
    if job and "overpartqos" in job.flags:
        both.reverse()
    return [level for level in both if level]


def effective(
    rows: t.Sequence[Level], job_qos: Level | None, partition_qos: Level | None = None, partition: Level | None = None
) -> list[Limit]:
    """Every limit that holds, in the order of KINDS.

    :param rows: the association of the user, then the accounts above it, nearest first.
    :param partition: ``values``: max_time (seconds), max_nodes, min_nodes; what is left out does not bound.
    """
    levels = ranked(job_qos, partition_qos)
    found: list[Limit] = []
    for kind in KINDS:
        for resource in _resources(kind, rows, levels):
            found += _kind(kind, resource, rows, levels)
    for option in QOS_TRES:
        for resource in _names(option, levels):
            found += _first(option, resource, levels)
    return _bounded(found, job_qos, partition)


def _kind(kind: Kind, resource: str, rows: t.Sequence[Level], levels: t.Sequence[Level]) -> list[Limit]:
    ours = [limit for option in kind.qos for limit in _first(option, resource, levels)]
    set_by = [(row, _value(row, kind.option, resource)) for row in rows]
    theirs = [(row, value) for row, value in set_by if value is not None]
    if not kind.group:
        theirs = theirs[:1]
    if ours:
        void = tuple(Setting(row.name, kind.option, value) for row, value in theirs)
        return [dataclasses.replace(limit, instead_of=limit.instead_of + void) for limit in ours]
    return [_factored(Limit(kind.option, resource, value, row.name), levels) for row, value in theirs]


def _factored(limit: Limit, levels: t.Sequence[Level]) -> Limit:
    """LimitFactor multiplies some of what an association sets, never what a QOS sets. Of two the stronger counts."""
    if limit.option not in _FACTORED:
        return limit
    for level in levels:
        factor = level.values.get("limit_factor")
        if factor is not None:
            was = Setting(limit.level, limit.option, limit.value)
            name = f"{limit.level} x {factor:g} (LimitFactor of {level.name})"
            return Limit(limit.option, limit.resource, int(limit.value * factor), name, (was,))
    return limit


def _first(option: str, resource: str, levels: t.Sequence[Level]) -> list[Limit]:
    values = [(level, _value(level, option, resource)) for level in levels]
    there = [(level, value) for level, value in values if value is not None]
    if not there:
        return []
    weaker = tuple(Setting(level.name, option, value) for level, value in there[1:])
    return [Limit(option, resource, there[0][1], there[0][0].name, weaker)]


def _bounded(found: list[Limit], job_qos: Level | None, partition: Level | None) -> list[Limit]:
    if partition is None:
        return found
    flags = job_qos.flags if job_qos else frozenset()
    for option, resource, own, flag, least in _BOUNDS:
        value = partition.values.get(own)
        if value is None:
            continue
        same = [limit for limit in found if (limit.option, limit.resource) == (option, resource)]
        bound = Limit(option, resource, value, partition.name)
        if not same:
            if flag not in flags:
                found.append(bound)
            continue
        limit = same[0]
        if flag in flags or (limit.value >= value if least else limit.value <= value):
            stays, goes = limit, bound
        else:
            stays, goes = bound, limit
        void = (Setting(goes.level, option, goes.value),)
        found[found.index(limit)] = dataclasses.replace(stays, instead_of=limit.instead_of + void)
    return found


def _resources(kind: Kind, rows: t.Sequence[Level], levels: t.Sequence[Level]) -> list[str]:
    if not kind.tres:
        return [""]
    names = set(_names(kind.option, rows))
    for option in kind.qos:
        names.update(_names(option, levels))
    return sorted(names)


def _names(option: str, levels: t.Iterable[Level]) -> list[str]:
    return sorted({name for level in levels for name in level.values.get(option) or ()})


def _value(level: Level, option: str, resource: str) -> int | None:
    value = level.values.get(option)
    if not resource:
        return value
    return (value or {}).get(resource)
