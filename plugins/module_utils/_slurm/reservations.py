# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reservations: arguments and reading. Pure; private to the gpuops.tenancy collection.

An option that is not given is not compared. Times are seconds since 1970.
"""

from __future__ import annotations

import dataclasses
import re
import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import hostlist, moments, tres
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.desired import Refused
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.jobs import Job
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.values import ValueProblem, clock

ALL = "ALL"
# Those that can be taken off again, those that cannot, and the one that has to be there from the beginning.
_FLAGS = ("DAILY", "FLEX", "HOURLY", "IGNORE_JOBS", "MAGNETIC", "MAINT", "PART_NODES", "PURGE_COMP", "STATIC")
_FLAGS += ("USER_DELETE", "WEEKDAY", "WEEKEND", "WEEKLY")
STICKY = ("NO_HOLD_JOBS_AFTER_END", "OVERLAP", "REPLACE", "REPLACE_DOWN", "TIME_FLOAT")
FLAG_NAMES = tuple(sorted(_FLAGS + STICKY))
_ALSO = {"STATIC_ALLOC": "STATIC", "NO_HOLD_JOBS_AFTER": "NO_HOLD_JOBS_AFTER_END", "PURGE_COMP": "PURGE_COMP=00:05:00"}
_PERIODS = {"HOURLY": 3600, "DAILY": 86400, "WEEKDAY": 86400, "WEEKEND": 86400, "WEEKLY": 7 * 86400}
_NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
_KEYS = (
    *("ReservationName", "StartTime", "EndTime", "Duration", "Nodes", "NodeCnt", "CoreCnt", "Features"),
    *("PartitionName", "Flags", "NodeName", "CoreIDs", "TRES", "Users", "Groups", "Accounts", "Licenses", "State"),
    *("BurstBuffer", "Watts", "MaxStartDelay", "Comment"),
)
_KEY = re.compile(rf"(?:^| +)({'|'.join(_KEYS)})=")


def period(flags: t.Iterable[str]) -> int:
    """Seconds after which it comes again; 0 for one that does not."""
    return min((_PERIODS[flag] for flag in flags if flag in _PERIODS), default=0)


@dataclasses.dataclass(frozen=True)
class Reservation:
    name: str
    start: int
    end: int
    nodes: frozenset[str] = frozenset()
    node_count: int = 0
    tres: t.Mapping[str, int] = dataclasses.field(default_factory=dict)
    partition: str = ""
    users: frozenset[str] = frozenset()
    accounts: frozenset[str] = frozenset()
    flags: frozenset[str] = frozenset()
    active: bool = False

    @property
    def period(self) -> int:
        return period(self.flags)

    def as_dict(self) -> dict[str, t.Any]:
        return {
            "name": self.name,
            "start_time": moments.shown(self.start),
            "end_time": moments.shown(self.end),
            "nodes": sorted(self.nodes, key=hostlist.natural),
            "node_count": self.node_count,
            "tres": dict(self.tres),
            "partition": self.partition,
            "users": sorted(self.users),
            "accounts": sorted(self.accounts),
            "flags": sorted(self.flags),
            "active": self.active,
        }


@dataclasses.dataclass(frozen=True)
class Wanted:
    """None: not given. ``nodes`` may be {ALL}; ``length`` counts only where ``timed`` is set, and is None for no end."""

    name: str
    present: bool = True
    start: moments.Moment | None = None
    end: moments.Moment | None = None
    timed: bool = False
    length: int | None = None
    nodes: frozenset[str] | None = None
    node_count: int | None = None
    tres: t.Mapping[str, int] | None = None
    partition: str | None = None
    users: frozenset[str] | None = None
    accounts: frozenset[str] | None = None
    flags: frozenset[str] | None = None


def build(params: t.Mapping[str, t.Any]) -> Wanted:
    problems: list[str] = []
    given: dict[str, t.Any] = {"name": params["name"], "present": params["state"] == "present"}
    if not _NAME.match(params["name"]):
        problems.append(f"name {params['name']!r} is refused: use letters, digits, '.', '_' and '-'")
    readers: dict[str, tuple[str, t.Callable[[t.Any], t.Any]]] = {
        "start_time": ("start", moments.moment),
        "end_time": ("end", moments.moment),
        "duration": ("length", moments.length),
        "nodes": ("nodes", _nodes),
        "node_count": ("node_count", _count),
        "tres": ("tres", tres.from_option),
        "partition": ("partition", _word),
        "users": ("users", lambda names: frozenset(_word(name) for name in names)),
        "accounts": ("accounts", lambda names: frozenset(_word(name).lower() for name in names)),
        "flags": ("flags", _flags),
    }
    for option, (field, reader) in readers.items():
        if params.get(option) is None:
            continue
        try:
            given[field] = reader(params[option])
        except (ValueProblem, tres.TresError, hostlist.HostlistError) as exc:
            problems.append(f"{option}: {exc}")
    given["timed"] = params.get("duration") is not None
    for one, other in (("end_time", "duration"), ("nodes", "node_count"), ("nodes", "tres")):
        if params.get(one) is not None and params.get(other) is not None:
            problems.append(f"{one} and {other} exclude each other; leave one of them out")
    if given.get("users") == frozenset() and given.get("accounts") == frozenset():
        problems.append("users and accounts are both empty: nobody could use it; name somebody, or set state absent")
    signs = {name[0] == "-" for name in given.get("users", ())}
    if len(signs) > 1:
        problems.append("users: either all begin with '-' (everybody else may use it) or none")
    if problems:
        raise Refused(problems)
    return Wanted(**given)


def _nodes(value: t.Sequence[t.Any]) -> frozenset[str]:
    if [str(item).strip().upper() for item in value] == [ALL]:
        return frozenset((ALL,))
    found = frozenset(name for item in value for name in hostlist.expand(str(item)))
    if not found:
        raise ValueProblem("is empty; name the nodes, or leave it out")
    return found


def _count(value: int) -> int:
    if value < 1:
        raise ValueProblem(f"{value} is no number of nodes")
    return value


def _word(value: t.Any) -> str:
    text = str(value).strip()
    if not re.match(r"^-?[A-Za-z0-9_][A-Za-z0-9._@-]*$", text):
        raise ValueProblem(f"{text!r} is no name")
    return text


def _flags(value: t.Sequence[str]) -> frozenset[str]:
    found = set()
    for flag in value:
        upper = str(flag).strip().upper()
        upper = _ALSO.get(upper, upper)
        name, _equals, argument = upper.partition("=")
        if name not in FLAG_NAMES or (argument and name != "PURGE_COMP"):
            raise ValueProblem(f"{flag!r} is no flag that can be set; known are {', '.join(FLAG_NAMES)}")
        if argument:
            length = moments.length(argument)
            upper = f"{name}={clock(length or 0)}"
        found.add(upper)
    return frozenset(found)


def in_it(jobs: t.Iterable[Job], name: str) -> list[Job]:
    """Jobs that keep Slurm from deleting it; those that wait do so as well."""
    return [job for job in jobs if not job.over and job.reservation == name]


def parse(text: str) -> dict[str, Reservation]:
    """``scontrol -o show reservation``; a name may hold blanks, so a value ends where the next known key begins."""
    found: dict[str, Reservation] = {}
    for line in text.splitlines():
        if not line.startswith("ReservationName="):
            if line.strip() and "No reservations in the system" not in line:
                raise ValueError(f"scontrol printed {line!r} among the reservations")
            continue
        pieces = _KEY.split(line)[1:]
        row: dict[str, str] = {}
        for key, value in zip(pieces[::2], pieces[1::2]):
            row.setdefault(key, "" if value.strip() in ("(null)", "N/A") else value.strip())
        found[row["ReservationName"]] = Reservation(
            row["ReservationName"],
            moments.from_slurm(row["StartTime"]),
            moments.from_slurm(row["EndTime"]),
            frozenset(hostlist.expand(row.get("Nodes", ""))),
            int(row.get("NodeCnt") or 0),
            tres.parse(row.get("TRES", "")),
            row.get("PartitionName", ""),
            _set(row.get("Users", "")),
            _set(row.get("Accounts", "")),
            _set(row.get("Flags", "")),
            row.get("State", "") == "ACTIVE",
        )
    return found


def _set(text: str) -> frozenset[str]:
    return frozenset(filter(None, text.split(",")))
