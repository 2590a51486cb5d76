# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Slurm's Fair Tree, written anew from its description, to check what slurmctld makes of shares and usage.

Among siblings the level's fair share is (own shares / shares of all siblings) / (own usage / usage of the parent). The
tree is walked depth first, the larger level fair share first, so that all users of a better account come before all users
of a worse one. Who is met gets the rank that is left, divided by the number of users; siblings that tie share one.
"""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction

# (account, user, partition); user empty for the account itself
Key = tuple[str, str, str]


@dataclasses.dataclass(frozen=True)
class Row:
    key: Key
    parent: str
    shares: int
    usage: int

    @property
    def is_user(self) -> bool:
        return bool(self.key[1])


def level_fair_share(row: Row, siblings: list[Row], usage_above: int) -> Fraction | float:
    """Infinite for who has used nothing, 0 for who has no shares."""
    if not row.shares:
        return Fraction(0)
    if not row.usage or not usage_above:
        return math.inf
    return Fraction(row.shares, sum(one.shares for one in siblings)) / Fraction(row.usage, usage_above)


def levels(rows: list[Row]) -> dict[Key, Fraction | float]:
    usage = {row.key[0]: row.usage for row in rows if not row.is_user}
    children: dict[str, list[Row]] = {}
    for row in rows:
        if row.parent:
            children.setdefault(row.parent, []).append(row)
    return {
        row.key: level_fair_share(row, siblings, usage[parent])
        for parent, siblings in children.items()
        for row in siblings
    }


def factors(rows: list[Row]) -> dict[Key, float]:
    """What each user's jobs get, between 0 and 1."""
    found = levels(rows)
    children: dict[str, list[Row]] = {}
    for row in rows:
        children.setdefault(row.parent, []).append(row)
    count = sum(row.is_user for row in rows)
    ranks: dict[Key, int] = {}

    def walk(siblings: list[Row], tied_above: bool) -> None:
        by_level: dict[Fraction | float, list[Row]] = {}
        for row in siblings:
            by_level.setdefault(found[row.key], []).append(row)
        for number, level in enumerate(sorted(by_level, reverse=True)):
            users = [row for row in by_level[level] if row.is_user]
            accounts = [row for row in by_level[level] if not row.is_user]
            # Whoever ties with the one before has the same rank.
            tied = tied_above and number == 0
            for row in users:
                ranks[row.key] = min(ranks.values()) if tied else count - len(ranks)
                tied = True
            # Accounts that tie are one family.
            if accounts:
                walk([child for row in accounts for child in children.get(row.key[0], [])], tied)

    walk(children["root"], False)
    return {key: rank / count for key, rank in ranks.items()}
