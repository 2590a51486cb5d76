# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who was ever given which uid. Private to the gpuops.tenancy collection.

A number belongs to a name for good: whoever got a departed user's number would own what she left on any file system.
"""

from __future__ import annotations

import json
import os
import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils import _files
from ansible_collections.gpuops.tenancy.plugins.module_utils._host.posix_users import Accounts, UsersError
from ansible_collections.gpuops.tenancy.plugins.module_utils._plan import ADD, Change, Plan

# Number -> name.
Ledger = dict[int, str]


def read(path: str) -> Ledger:
    """The ledger; empty only where there is none. Whatever is not understood is an error, or numbers would be free again."""
    try:
        with open(path, encoding="utf-8") as handle:
            data = json.load(handle)
        ledger = {int(number): name for number, name in data["numbers"].items()}
        if not all(isinstance(name, str) and name for name in ledger.values()):
            raise ValueError("a number without a name")
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as exc:
        raise UsersError(
            [f"{path}, which says who was given which number, cannot be used ({exc}); restore it from a backup"]
        ) from exc
    return ledger


def reserve(
    ledger: t.Mapping[int, str], current: Accounts, names: t.Sequence[str], uid_min: int, uid_max: int
) -> tuple[Plan, Ledger, dict[str, int]]:
    """Pure: what is new in the ledger, the ledger with it, and the number of each name.

    :raises UsersError: all problems at once.
    """
    after: Ledger = dict(ledger)
    # Whoever is here now keeps the number for the time after she has left.
    for number, name in [*sorted(current.gids.items()), *sorted(current.uids.items())]:
        if uid_min <= number <= uid_max and number not in ledger:
            after[number] = name
    numbers: dict[str, int] = {}
    problems: list[str] = []
    by_name = {name: number for number, name in sorted(after.items(), reverse=True)}
    for name in names:
        there = current.users.get(name)
        if there is not None:
            numbers[name] = there.uid
            owner = after.get(there.uid, name)
            if owner != name:
                problems.append(
                    f"{name} has the number {there.uid} here, which was given to {owner}; give {name} another one"
                )
            elif uid_min <= there.uid <= uid_max and by_name.get(name, there.uid) != there.uid:
                problems.append(
                    f"{name} has the number {there.uid} here and was given {by_name[name]}; make the numbers equal first"
                )
            continue
        if name not in by_name:
            number = _next(after, uid_min, uid_max)
            if number is None:
                problems.append(f"no number between {uid_min} and {uid_max} is left for {name}; widen the range")
                continue
            after[number] = name
            by_name[name] = number
        numbers[name] = by_name[name]
    if problems:
        raise UsersError(problems)
    changes = Plan(
        Change(ADD, f"number {number}", "name", None, name)
        for number, name in sorted(after.items())
        if number not in ledger
    )
    return changes, after, numbers


def _next(taken: t.Mapping[int, str], uid_min: int, uid_max: int) -> int | None:
    """Above all that were ever seen, for a gap may be what somebody left before there was a ledger."""
    top = max((number for number in taken if uid_min <= number <= uid_max), default=uid_min - 1)
    if top < uid_max:
        return top + 1
    return next((number for number in range(uid_min, uid_max + 1) if number not in taken), None)


def write(path: str, ledger: t.Mapping[int, str]) -> None:
    """The whole ledger at once, on the disk before anybody is given a number of it."""
    os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
    numbers = {str(number): ledger[number] for number in sorted(ledger)}
    _files.write(path, json.dumps({"numbers": numbers}, indent=1) + "\n", 0o644)
