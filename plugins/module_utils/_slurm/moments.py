# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Points in time as people and scontrol write them. Pure; private to the gpuops.tenancy collection.

Programs run in UTC, so what scontrol prints and reads is UTC; a person who names no zone means the host's own.
"""

from __future__ import annotations

import calendar
import dataclasses
import datetime
import re
import time

from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.values import ValueProblem, seconds

YEAR = 365 * 86400
_RELATIVE = re.compile(r"^now(?:\s*\+\s*([0-9]+)\s*(minute|hour|day|week)s?)?$", re.IGNORECASE)
_UNITS = {"minute": 60, "hour": 3600, "day": 86400, "week": 7 * 86400}
_ENDLESS = ("infinite", "unlimited", "forever")
_FORMAT = "%Y-%m-%dT%H:%M:%S"


@dataclasses.dataclass(frozen=True)
class Moment:
    """``at``: seconds since 1970, or None where the text counts from the moment of the run; then ``later``."""

    at: int | None
    later: int = 0

    def seen(self, now: int) -> int:
        return now + self.later if self.at is None else self.at


def moment(text: str) -> Moment:
    match = _RELATIVE.match(text.strip())
    if match:
        return Moment(None, int(match[1] or 0) * _UNITS[(match[2] or "minute").lower()])
    try:
        found = datetime.datetime.fromisoformat(re.sub(r"[Zz]$", "+00:00", text.strip()))
    except ValueError:
        raise ValueProblem(
            f"{text!r} is no point in time: write 2026-12-24T08:00:00, with Z or an offset such as +01:00 unless the "
            "host's own zone is meant; or now, or now+2hours"
        ) from None
    return Moment(int(found.timestamp()))


def length(text: str) -> int | None:
    """Seconds, whole minutes as in Slurm; None for no end."""
    if text.strip().lower() in _ENDLESS:
        return None
    found = -(-seconds(text) // 60) * 60
    if not found:
        raise ValueProblem(f"{text!r} is no length of time; write minutes, or D-HH:MM:SS, or infinite")
    return found


def from_slurm(text: str) -> int:
    return calendar.timegm(time.strptime(text, _FORMAT))


def to_slurm(at: int) -> str:
    return time.strftime(_FORMAT, time.gmtime(at))


def shown(at: int) -> str:
    """For people, without doubt about the zone."""
    return to_slurm(at) + "Z"
