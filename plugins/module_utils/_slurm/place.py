# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The order in which accounts are added and moved. Pure; private to the gpuops.tenancy collection.

From above in the final tree: what is added or moved finds its parent in its final place, and a new parent has left the
subtree of the account that moves below it.
"""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.model import children, depths, subtree

Pair = tuple[str, str]


@dataclasses.dataclass(frozen=True)
class Step:
    """Names to add, or (name, new parent) of accounts that move; either in any order within the step."""

    add: tuple[str, ...] = ()
    move: tuple[Pair, ...] = ()


def steps(now: t.Mapping[str, str], will: t.Mapping[str, str], apart: bool) -> list[Step]:
    """From the tree ``now`` to ``will``, both account -> parent. Who is in both and not in the same place moves.

    :param apart: whether an account with accounts below it has to be moved without them, see ``_take_apart``.
    """
    now = dict(now)
    new = [name for name in will if name not in now]
    moved = any(now.get(name, parent) != parent for name, parent in will.items())
    depth = depths(will)
    levels: dict[int, list[str]] = {}
    for name in sorted(will if moved else new):
        levels.setdefault(depth[name], []).append(name)
    found = []
    for _depth, names in sorted(levels.items()):
        found.append(Step(add=tuple(name for name in names if name not in now)))
        moving = [name for name in names if now.get(name, will[name]) != will[name]]
        if moving and apart:
            found += _take_apart([(name, will[name]) for name in moving], now)
        found.append(Step(move=tuple((name, will[name]) for name in moving if now[name] != will[name])))
        now.update({name: will[name] for name in names})
    return [step for step in found if step.add or step.move]


def _take_apart(moving: t.Iterable[Pair], now: dict[str, str]) -> list[Step]:
    """What is below an account that moves goes aside, to the new parent, and follows at its own level.

    Since 23.11 slurmdbd writes the new path (lineage) of a moved account only into the rows right below it. What is
    deeper keeps the old one for ever, is missing from dumps, and goes when somebody deletes an account of the old path
    (seen on 24.11). From below, so that each account has none below it when it moves.
    """
    below, depth = children(now), depths(now)
    aside: dict[str, str] = {}
    for name, parent in moving:
        for under in subtree(name, below)[1:]:
            aside.setdefault(under, parent)
    found: dict[int, list[Pair]] = {}
    for pair in aside.items():
        found.setdefault(-depth[pair[0]], []).append(pair)
    now.update(aside)
    return [Step(move=tuple(pairs)) for _depth, pairs in sorted(found.items())]
