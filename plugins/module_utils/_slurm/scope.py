# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run may touch: the subtrees below the accounts of ``scope``. Pure; private to the gpuops.tenancy collection."""

from __future__ import annotations

from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.desired import Desired, WantedAccount
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.model import ROOT, State, chain, children, subtree


class Scope:
    """``now``: existing accounts in scope. ``parents``: account -> parent as it will be. ``problems``: why not."""

    def __init__(self, state: State, desired: Desired) -> None:
        self.before = state.parents()
        self.desired = desired
        below = children(self.before)
        self.now: set[str] = set()
        for root in desired.scope:
            if root in self.before:
                self.now.update(subtree(root, below))
        self.now.discard(ROOT)
        self.inside = self.now | set(desired.accounts)
        self.parents = dict(self.before)
        self.parents.update({name: wanted.parent for name, wanted in desired.accounts.items()})
        self.problems: list[str] = []
        self._check()

    @property
    def text(self) -> str:
        return f"the scope ({', '.join(self.desired.scope)})"

    def _check(self) -> None:
        for root in self.desired.scope:
            if root not in self.before and root not in self.desired.accounts:
                self.problems.append(
                    f"scope names account {root}, which neither exists nor is among the accounts; correct the name"
                )
        for wanted in self.desired.accounts.values():
            problem = self._place(wanted) or self._parent(wanted)
            if problem:
                self.problems.append(problem)
        self._cycles()

    def _place(self, wanted: WantedAccount) -> str:
        """An account of that name may exist only where this run may touch it."""
        name = wanted.name
        if name not in self.before:
            return ""
        parent = self.before[name]
        if name not in self.now:
            return (
                f"account {name} exists already below {parent}, outside {self.text}; account names are unique in a "
                f"cluster: choose another, for example {self.desired.scope[0]}-{name}"
            )
        if parent not in self.now and parent != wanted.parent and ROOT not in self.desired.scope:
            return (
                f"account {name} is below {parent}, not {wanted.parent}, and {parent} is outside {self.text}; "
                f"give parent: {parent}, or move the account by hand first"
            )
        return ""

    def _parent(self, wanted: WantedAccount) -> str:
        name, parent = wanted.name, wanted.parent
        if parent in self.inside or (parent == ROOT and ROOT in self.desired.scope):
            return ""
        if parent not in self.before and parent != ROOT:
            return f"account {name}: its parent {parent} does not exist and is not among the accounts; correct the name"
        if name not in self.desired.scope:
            return (
                f"account {name}: its parent {parent} is outside {self.text}; put it below one of these, "
                f"or add {name} to scope"
            )
        return ""

    def _cycles(self) -> None:
        reported: set[str] = set()
        for name in self.desired.accounts:
            path = chain(name, self.parents)
            end = self.parents.get(path[-1], "") if path else ""
            if end and end in path:
                loop = path[path.index(end) :]
                if not reported.intersection(loop):
                    self.problems.append(
                        f"accounts {' -> '.join([*loop, loop[0]])} would be each other's parents; correct one parent"
                    )
                reported.update(loop)
