# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reservations: plan and commands. Pure; private to the gpuops.tenancy collection."""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils._plan import (
    ADD,
    CHANGE,
    DESTRUCTIVE,
    DISRUPTIVE,
    REMOVE,
    SAFE,
    Change,
    Plan,
)
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import hostlist, moments, tres
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.desired import Refused
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.reservations import (
    ALL,
    FLAG_NAMES,
    STICKY,
    Reservation,
    Wanted,
    period,
)
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.values import clock


@dataclasses.dataclass(frozen=True)
class ReservationChange(Change):
    """``words``: of one command of scontrol; flags that go need a command of their own."""

    words: tuple[str, ...] = ()
    apart: bool = False


def make_plan(now: int, current: t.Mapping[str, Reservation], wanted: Wanted) -> Plan:
    there = current.get(wanted.name)
    name = f"reservation {wanted.name}"
    if not wanted.present:
        return Plan([] if there is None else [ReservationChange(REMOVE, name, risk=DESTRUCTIVE)])
    problems = _missing(wanted) if there is None else []
    if problems:
        raise Refused([f"{name} does not exist, and cannot be made: {problem}" for problem in problems])
    changes = [*_times(now, there, wanted, problems), *_others(there, wanted, problems)]
    if problems:
        raise Refused([f"{name}: {problem}" for problem in problems])
    kind = CHANGE if there else ADD
    plan = Plan([] if there else [ReservationChange(ADD, name)])
    for field, before, after, words, risk in changes:
        apart = bool(words) and words[0].startswith("Flags-=")
        plan.add(ReservationChange(kind, name, field, before, after, risk if there else SAFE, words, apart))
    return plan


_Planned = t.Iterator[tuple[str, t.Any, t.Any, tuple[str, ...], str]]


def _missing(wanted: Wanted) -> list[str]:
    found = []
    if wanted.end is None and not wanted.timed:
        found.append("give duration or end_time (duration: infinite is a year in Slurm)")
    if not wanted.users and not wanted.accounts:
        found.append("give users or accounts")
    if wanted.nodes is None and wanted.node_count is None and not wanted.tres:
        found.append("give nodes, node_count or tres")
    return found


def _times(now: int, there: Reservation | None, wanted: Wanted, problems: list[str]) -> _Planned:
    start = wanted.start or (moments.Moment(None) if there is None else None)
    again = there.period if there else period(wanted.flags or ())
    begin = _begin(now, there, start, again, problems)
    floating = start is None or start.at is None
    # Its length counts from when it was meant to begin, also where that was missed.
    base = t.cast(int, begin) if there is None or begin is not None else there.start
    if start is not None and start.at is not None and not again:
        base = start.at
    if begin is not None:
        later = start.later if start is not None and start.at is None else 0
        word = _from_now(later) if floating or begin <= now else moments.to_slurm(begin)
        after = word if floating or begin <= now else moments.shown(begin)
        yield "start_time", moments.shown(there.start) if there else None, after, (f"StartTime={word}",), DISRUPTIVE
    if wanted.timed and floating and begin is not None:
        # Slurm knows better than this reading when "now" will have been.
        word = "UNLIMITED" if wanted.length is None else str(wanted.length // 60)
        after = "infinite" if wanted.length is None else clock(wanted.length)
        yield "duration", clock(there.end - there.start) if there else None, after, (f"Duration={word}",), DISRUPTIVE
        return
    end = _end(now, there, wanted, base)
    if end is None or (there and _same(there.end, end, again)):
        return
    if end <= max(now, base):
        problems.append(f"it would end at {moments.shown(end)}, before it begins or before now; give another time")
    after, word = moments.shown(end), moments.to_slurm(end)
    if wanted.end is not None and wanted.end.at is None:
        after = word = _from_now(wanted.end.later)
    yield "end_time", moments.shown(there.end) if there else None, after, (f"EndTime={word}",), DISRUPTIVE


def _from_now(later: int) -> str:
    """For Slurm to count, and the same text in a check as in the run that follows it."""
    return f"now+{later}seconds" if later else "now"


def _begin(
    now: int, there: Reservation | None, start: moments.Moment | None, again: int, problems: list[str]
) -> int | None:
    """When it has to begin; None where it does so already, or where nothing was said."""
    if start is None or (there and start.at is None and start.later):
        # What counts from the moment of a run counts from the run that made it.
        return None
    begins = start.seen(now)
    if there and (_same(there.start, begins, again) or (not again and there.start <= now and begins <= now)):
        return None
    if begins < now and again and start.at is not None:
        begins += -(-(now - begins) // again) * again
    if there and there.start <= now:
        problems.append(
            f"it has begun at {moments.shown(there.start)} and cannot be moved to {moments.shown(begins)}; "
            "remove it and make it anew"
        )
        return None
    return max(now, begins)


def _end(now: int, there: Reservation | None, wanted: Wanted, base: int) -> int | None:
    if wanted.timed:
        # A year is what Slurm makes of no end.
        return base + (moments.YEAR if wanted.length is None else wanted.length)
    if wanted.end is None or (there and wanted.end.at is None):
        return None
    return wanted.end.seen(now)


def _same(is_now: int, meant: int, again: int) -> bool:
    """Whether the one that comes again has only moved on."""
    return is_now == meant or bool(again and is_now > meant and not (is_now - meant) % again)


def _others(there: Reservation | None, wanted: Wanted, problems: list[str]) -> _Planned:
    """Everything but the times."""
    yield from _places(there, wanted, problems)
    for field, key in (("users", "Users"), ("accounts", "Accounts")):
        will: frozenset[str] | None = getattr(wanted, field)
        was: frozenset[str] = getattr(there, field) if there else frozenset()
        if will is None or will == was:
            continue
        if was and will and any(name.startswith("-") for name in was | will):
            # -name takes a name off a list that is there.
            problems.append(
                f"Slurm cannot change {field} from {_list(was)} to {_list(will)}; remove it and make it anew"
            )
        else:
            yield field, sorted(was) if there else None, sorted(will), (f"{key}={','.join(sorted(will))}",), DISRUPTIVE
    if wanted.flags is not None:
        known = frozenset(flag for flag in (there.flags if there else ()) if flag.partition("=")[0] in FLAG_NAMES)
        # Slurm sets this one for a partition without nodes.
        known -= {"PART_NODES"} - wanted.flags
        more, less = sorted(wanted.flags - known), sorted(known - wanted.flags)
        less = [flag for flag in less if flag.partition("=")[0] not in {one.partition("=")[0] for one in more}]
        fixed = [flag for flag in less if flag in STICKY] + [flag for flag in more if there and flag == "TIME_FLOAT"]
        if fixed:
            problems.append(f"Slurm cannot change flag {', '.join(fixed)} afterwards; remove it and make it anew")
        between = sorted(wanted.flags | set(less))
        if more:
            sign = "+=" if there else "="
            yield "flags", sorted(known) if there else None, between, (f"Flags{sign}{','.join(more)}",), DISRUPTIVE
        if less:
            yield "flags", between, sorted(wanted.flags), (f"Flags-={','.join(less)}",), DISRUPTIVE


def _list(names: t.Iterable[str]) -> str:
    return ",".join(sorted(names)) or "none"


def _places(there: Reservation | None, wanted: Wanted, problems: list[str]) -> _Planned:
    if wanted.nodes is not None:
        whole = wanted.nodes == {ALL}
        same = there is not None and (
            bool(there.flags & {"ALL_NODES", "PART_NODES"}) if whole else there.nodes == wanted.nodes
        )
        if not same:
            text = ALL if whole else hostlist.fold(wanted.nodes)
            yield "nodes", hostlist.fold(there.nodes) if there else None, text, (f"Nodes={text}",), DISRUPTIVE
    if wanted.node_count is not None and (there is None or there.node_count != wanted.node_count):
        before = there.node_count if there else None
        yield "node_count", before, wanted.node_count, (f"NodeCnt={wanted.node_count}",), DISRUPTIVE
    if wanted.partition is not None and (there is None or there.partition != wanted.partition):
        before = there.partition if there else None
        yield "partition", before, wanted.partition, (f"PartitionName={wanted.partition}",), DISRUPTIVE
    if wanted.tres:
        has = dict(there.tres, node=there.node_count) if there else {}
        if there is None:
            yield "tres", None, tres.show(wanted.tres), (f"TRES={tres.show(wanted.tres)}",), SAFE
        elif any(has.get(name, 0) != count for name, count in wanted.tres.items()):
            problems.append(
                f"it has {tres.show(has)}, and Slurm cannot change it to {tres.show(wanted.tres)} afterwards; "
                "remove it and make it anew"
            )


def compile_plan(plan: Plan, wanted: Wanted) -> list[list[str]]:
    """Words after ``scontrol``."""
    name = f"ReservationName={wanted.name}"
    changes = t.cast("list[ReservationChange]", plan.changes)
    if not changes:
        return []
    if changes[0].kind == REMOVE:
        return [["delete", name]]
    verb = ["create", "reservation"] if changes[0].kind == ADD else ["update"]
    together = [word for change in changes if not change.apart for word in change.words]
    commands = [[*verb, name, *together]] if together else []
    return commands + [["update", name, *change.words] for change in changes if change.apart]
