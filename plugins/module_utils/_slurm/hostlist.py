# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Slurm's host lists ("gpu[1-3,7],login"), both ways. Private to the gpuops.tenancy collection."""

from __future__ import annotations

import itertools
import re
import typing as t

# A list that names more hosts than this is a typing error, not a cluster.
MAX_HOSTS = 100_000
_RANGE = re.compile(r"^(\d+)(?:-(\d+))?$")
_NUMBERED = re.compile(r"^(.*?)(\d+)$")


class HostlistError(ValueError):
    """Text that is no host list."""


def expand(text: str) -> list[str]:
    """Every name of a host list, in the order written, each once."""
    names: list[str] = []
    for part in _split(text):
        names.extend(_expand_part(part))
        if len(names) > MAX_HOSTS:
            raise HostlistError(f"host list {text[:60]!r} names more than {MAX_HOSTS} hosts")
    return list(dict.fromkeys(names))


def fold(names: t.Iterable[str]) -> str:
    """The shortest list that names exactly these hosts, in natural order: gpu1,gpu2,gpu3 -> gpu[1-3]."""
    groups: dict[tuple[str, int], list[int]] = {}
    plain: list[str] = []
    for name in dict.fromkeys(names):
        match = _NUMBERED.match(name)
        if match is None:
            plain.append(name)
            continue
        prefix, digits = match.groups()
        # gpu01 and gpu1 are different hosts: only numbers written alike share a bracket.
        width = len(digits) if digits.startswith("0") and len(digits) > 1 else 0
        groups.setdefault((prefix, width), []).append(int(digits))
    folded = [_fold_group(prefix, width, sorted(numbers)) for (prefix, width), numbers in groups.items()]
    return ",".join(sorted(plain + folded, key=natural))


def natural(text: str) -> tuple[tuple[int, int, str], ...]:
    """A sort key that puts gpu2 before gpu10."""
    return tuple((1, int(part), "") if part.isdigit() else (0, 0, part) for part in re.split(r"(\d+)", text) if part)


def _fold_group(prefix: str, width: int, numbers: list[int]) -> str:
    spans: list[str] = []
    for _key, run in itertools.groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0]):
        members = [number for _index, number in run]
        first, last = f"{members[0]:0{width}d}", f"{members[-1]:0{width}d}"
        spans.append(first if first == last else f"{first}-{last}")
    if len(numbers) == 1:
        return prefix + spans[0]
    return f"{prefix}[{','.join(spans)}]"


def _split(text: str) -> list[str]:
    """At the commas outside brackets."""
    parts: list[str] = []
    depth = 0
    current = ""
    for char in text.strip():
        if char == "[":
            depth += 1
        elif char == "]":
            depth -= 1
        if depth not in (0, 1):
            raise HostlistError(f"brackets of host list {text!r} do not match")
        if char == "," and depth == 0:
            parts.append(current)
            current = ""
        else:
            current += char
    if depth:
        raise HostlistError(f"brackets of host list {text!r} do not match")
    parts.append(current)
    if any(not part.strip() for part in parts) and text.strip():
        raise HostlistError(f"host list {text!r} has an empty member")
    return [part.strip() for part in parts if part.strip()]


def _expand_part(part: str) -> list[str]:
    pieces = re.split(r"\[([^\]]*)\]", part)
    # Odd positions are what stood in brackets.
    choices = [_numbers(piece, part) if index % 2 else [piece] for index, piece in enumerate(pieces)]
    total = 1
    for choice in choices:
        total *= len(choice)
    if total > MAX_HOSTS:
        raise HostlistError(f"host list {part!r} names more than {MAX_HOSTS} hosts")
    return ["".join(words) for words in itertools.product(*choices)]


def _numbers(inside: str, part: str) -> list[str]:
    values: list[str] = []
    for item in inside.split(","):
        match = _RANGE.match(item.strip())
        if match is None:
            raise HostlistError(f"{item!r} in host list {part!r} is no number or range")
        first, last = match.group(1), match.group(2) or match.group(1)
        if int(last) < int(first) or int(last) - int(first) >= MAX_HOSTS:
            raise HostlistError(f"range {item!r} in host list {part!r} runs backwards or is too long")
        values.extend(f"{number:0{len(first)}d}" for number in range(int(first), int(last) + 1))
    return values
