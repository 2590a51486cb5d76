# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""QOS lists: inheritance, blocks, and an order of changes that Slurm accepts. Pure; private to the collection.

A row without a list of its own has its parent's. A default must be in the effective list of every row that has it at
every moment, else Slurm refuses the change (on 22.05 with exit status 0).
"""

from __future__ import annotations

import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.model import Key, children, depths, subtree

Values = dict[str, t.Any]
Step = list[tuple[Key, Values]]


class Tree:
    """QOS values of the rows of some accounts. ``fixed``: effective list and default from above the topmost ones."""

    def __init__(
        self,
        parents: t.Mapping[str, str],
        rows: t.Mapping[Key, tuple[frozenset[str], str | None]],
        fixed: t.Mapping[Key, frozenset[str]] | None = None,
    ) -> None:
        self.parents = parents
        self.rows = dict(rows)
        # Rows with a difference to the parent's list instead of a list: what Slurm says is effective there.
        self.fixed = dict(fixed or {})
        self.below = children(parents)
        self.members: dict[str, list[Key]] = {}
        for key in self.rows:
            self.members.setdefault(key[0], []).append(key)

    def above(self, key: Key) -> Key | None:
        if key[1]:
            return (key[0], "", "")
        parent = self.parents.get(key[0], "")
        return (parent, "", "") if parent else None

    def path(self, key: Key | None) -> t.Iterator[Key]:
        seen: set[Key] = set()
        while key is not None and key not in seen:
            seen.add(key)
            yield key
            key = self.above(key)

    def listed(self, key: Key) -> frozenset[str]:
        """The effective list."""
        for step in self.path(key):
            if step in self.fixed:
                return self.fixed[step]
            own = self.rows.get(step, (frozenset(), None))[0]
            if own:
                return own
        return frozenset()

    def default(self, key: Key) -> str | None:
        for step in self.path(key):
            own = self.rows.get(step, (frozenset(), None))[1]
            if own:
                return own
        return None

    def fits(self, key: Key) -> bool:
        default = self.default(key)
        return default is None or default in self.listed(key)

    def affected(self, key: Key) -> t.Iterator[Key]:
        if key[1]:
            yield key
            return
        for account in subtree(key[0], self.below):
            yield from self.members.get(account, ())

    def set(self, key: Key, change: Values) -> None:
        own, default = self.rows[key]
        if "qos" in change:
            own = change["qos"]
            self.fixed.pop(key, None)
        if "default_qos" in change:
            default = change["default_qos"]
        self.rows[key] = (own, default)

    def copy(self) -> Tree:
        return Tree(self.parents, self.rows, self.fixed)


def order(tree: Tree, changes: t.Mapping[Key, Values]) -> list[Step]:
    """The changes as steps that leave no row with a default outside its list at any moment."""
    depth = depths(tree.parents)
    for users_first in (False, True):
        steps = _by_depth(changes, depth, users_first)
        if _holds(tree, steps):
            return steps
    return _widen_then_narrow(tree, changes, depth)


def _by_depth(changes: t.Mapping[Key, Values], depth: t.Mapping[str, int], users_first: bool) -> list[Step]:
    levels: dict[int, Step] = {}
    for key, change in changes.items():
        level = 10**6 if key[1] else depth.get(key[0], 0)
        levels.setdefault(level, []).append((key, change))
    return [levels[level] for level in sorted(levels, reverse=users_first)]


def _holds(tree: Tree, steps: t.Sequence[Step]) -> bool:
    trial = tree.copy()
    for step in steps:
        for key, change in step:
            trial.set(key, change)
        if not all(trial.fits(row) for key, _change in step for row in trial.affected(key)):
            return False
    return True


def _widen_then_narrow(tree: Tree, changes: t.Mapping[Key, Values], depth: t.Mapping[str, int]) -> list[Step]:
    """Lists to the union of before and after, then the defaults, then the final lists."""
    final = tree.copy()
    for key, change in changes.items():
        final.set(key, change)
    lists = {key: {"qos": change["qos"]} for key, change in changes.items() if "qos" in change}
    defaults = {
        key: {"default_qos": change["default_qos"]} for key, change in changes.items() if "default_qos" in change
    }
    wide: dict[Key, Values] = {key: {"qos": tree.listed(key) | final.listed(key)} for key in lists}
    given = {key: change for key, change in defaults.items() if change["default_qos"]}
    cleared = {key: change for key, change in defaults.items() if not change["default_qos"]}
    steps = _by_depth(wide, depth, users_first=False)
    # Own defaults from below, so that no row takes over one it cannot have; cleared ones from above.
    steps += _by_depth(given, depth, users_first=True)
    steps += _by_depth(cleared, depth, users_first=False)
    narrow = {key: change for key, change in lists.items() if change != wide[key]}
    return steps + _by_depth(narrow, depth, users_first=False)
