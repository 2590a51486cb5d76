# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Trackable resources: text, option and set word. Private to the gpuops.tenancy collection.

Normal form: {name: count}, memory and other sizes in MB. Names carry their type (``gres/gpu``, never ``gpu``).
"""

from __future__ import annotations

import re
import typing as t

_SIZE = re.compile(r"^([0-9]+(?:\.[0-9]+)?)([KMGTP]?)B?$", re.IGNORECASE)
_FACTORS = {"K": 1 / 1024, "": 1, "M": 1, "G": 1024, "T": 1024**2, "P": 1024**3}
_NAME = re.compile(r"^[a-z][a-z0-9_]*(/[A-Za-z0-9._:-]+)?$")
# Largest count that slurmdbd keeps apart from its own marks for "unset" and "unlimited".
MAXIMUM = 2**63


class TresError(ValueError):
    pass


def parse(text: str) -> dict[str, int]:
    """What sacctmgr prints: ``cpu=8,gres/gpu:h100=2,mem=1.50G``."""
    wanted: dict[str, int] = {}
    for part in filter(None, text.split(",")):
        name, found, count = part.rpartition("=")
        if not found or not name:
            raise TresError(f"cannot read {part!r} of the TRES list {text!r}")
        wanted[name] = _size(count, part)
    return wanted


def from_option(value: t.Mapping[str, t.Any]) -> dict[str, int]:
    """What a person writes: {gres/gpu: 4, mem: 1T}."""
    wanted: dict[str, int] = {}
    for name, count in value.items():
        if not isinstance(name, str) or not _NAME.match(name):
            raise TresError(f"{name!r} is no TRES name; write for example cpu, mem or gres/gpu")
        if isinstance(count, bool) or count is None:
            raise TresError(f"{name}: {count!r} is no count; give a number, or leave the TRES out to clear its limit")
        if isinstance(count, float) and not count.is_integer():
            raise TresError(f"{name}: {count!r} is no whole number")
        text = str(int(count)) if isinstance(count, (int, float)) else str(count).strip()
        if text.startswith("-"):
            raise TresError(f"{name}: {count!r} is negative; leave the TRES out to clear its limit")
        if not text.isdigit() and name != "mem":
            raise TresError(f"{name}: {count!r} is no whole number; only mem takes a unit")
        wanted[name] = _size(text, f"{name}={count}")
    return wanted


def show(value: t.Mapping[str, int]) -> str:
    return ",".join(f"{name}={count}" for name, count in sorted(value.items()))


def set_word(before: t.Mapping[str, int], after: t.Mapping[str, int]) -> str:
    """sacctmgr merges into what is there: name what changes, and clear by -1 what has to go."""
    changed = {name: count for name, count in after.items() if before.get(name) != count}
    changed.update({name: -1 for name in before if name not in after})
    return show(changed)


def unknown(value: t.Mapping[str, int], known: t.Container[str]) -> list[str]:
    return sorted(name for name in value if name not in known)


def _size(text: str, whole: str) -> int:
    match = _SIZE.match(text)
    if not match:
        raise TresError(f"cannot read the count in {whole!r}; write a whole number, for mem also 512M, 64G or 1T")
    number = float(match[1]) * _FACTORS[match[2].upper()] if "." in match[1] or match[2] else int(match[1])
    count = round(number)
    if count >= MAXIMUM:
        raise TresError(f"the count in {whole!r} is too large")
    return count
