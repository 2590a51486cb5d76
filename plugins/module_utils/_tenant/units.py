# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sizes and times as people write them, and as back ends want them. Private to the collection gpuops.tenancy."""

from __future__ import annotations

import re
from decimal import Decimal

# Patterns are part of the published schema: no Python-only syntax.
SIZE = r"^[0-9]{1,12}(\.[0-9]{1,6})?(B|[kKMGTPE]B|[KMGTPE]iB)$"
MEMORY = r"^[0-9]{1,12}(\.[0-9]{1,6})?(MB|GB|TB|PB|MiB|GiB|TiB|PiB|M|G|T|P)$"
DURATION = r"^(([0-9]{1,4}-([01]?[0-9]|2[0-3]))|[0-9]{1,4}):[0-5][0-9]:[0-5][0-9]$"

_POWER = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}


def size_bytes(text: str) -> int:
    """100GB -> 100000000000, 1.5GiB -> 1610612736; ValueError says what is wrong."""
    return _whole_bytes(text, SIZE)


def _whole_bytes(text: str, pattern: str) -> int:
    match = re.fullmatch(r"([0-9.]+)([kKMGTPE]?)(i?)(B?)", text)
    if not match or not matches(pattern, text):
        raise ValueError("is not a size")
    number, power, binary, byte = match.groups()
    # Slurm's own M, G, T count by 1024, as the ones with an i do.
    base = 1000 if byte and not binary else 1024
    value = Decimal(number) * base ** _POWER[power.upper()]
    if value != int(value):
        raise ValueError("is not a whole number of bytes")
    return int(value)


def memory_mib(text: str) -> int:
    """A limit on memory in Slurm's unit (it says MB and means MiB), rounded down: a cap never grows by rounding."""
    mib = _whole_bytes(text, MEMORY) // 1024**2
    if mib == 0 and not re.match(r"0+(\.0+)?[A-Z]", text):
        raise ValueError("is less than 1MiB, Slurm's smallest amount of memory")
    return mib


def duration_minutes(text: str) -> int:
    """48:00:00 -> 2880, 1-12:00:00 -> 2160; ValueError says what is wrong."""
    if not matches(DURATION, text):
        raise ValueError("is not a time")
    days, dash, clock = text.rpartition("-")
    hours, minutes, seconds = (int(part) for part in clock.split(":"))
    if seconds:
        raise ValueError("has seconds, but Slurm counts whole minutes")
    return (int(days) if dash else 0) * 1440 + hours * 60 + minutes


def duration_text(minutes: int) -> str:
    """2880 -> 2-00:00:00, the way Slurm prints it."""
    days, rest = divmod(minutes, 1440)
    clock = f"{rest // 60:02d}:{rest % 60:02d}:00"
    return f"{days}-{clock}" if days else clock


def matches(pattern: str, text: str) -> bool:
    # Not search: Python's $ would let a line break pass at the end.
    return re.fullmatch(pattern, text) is not None
