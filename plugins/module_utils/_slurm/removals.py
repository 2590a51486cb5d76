# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run of the accounting modules removes, and what forbids it. Pure; private to the gpuops.tenancy collection."""

from __future__ import annotations

import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import lineage
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.command import addressable
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.desired import Desired
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.model import (
    Key,
    State,
    children,
    depths,
    label,
    subtree,
)
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.scope import Scope

_SHOWN = 10


class Removals:
    """``unmanaged``: what is in scope, not among the arguments, and stays. ``problems``: what forbids the removals.
    ``too_many``: all that was to go, where that is more than allowed.

    :param in_scope: the rows of users and accounts that the run may touch, sorted.
    """

    def __init__(self, state: State, desired: Desired, scope: Scope, in_scope: t.Sequence[Key]) -> None:
        self.state = state
        self.desired = desired
        self.scope = scope
        self.in_scope = in_scope
        self.wanted = desired.rows()
        self.unmanaged: list[str] = []
        self.problems: list[str] = []
        self.too_many: list[str] = []

    def going(self) -> list[Key]:
        """Rows to remove, in an order that leaves no child behind: users first, then accounts from below."""
        moves = [key for key in self.in_scope if key[1] in self.desired.users and key not in self.wanted]
        unnamed_users = [key for key in self.in_scope if key[1] and key[1] not in self.desired.users]
        # The topmost account of a scope stays: taking a tenant away is another run with another confirmation.
        unnamed_accounts = sorted(self.scope.now - set(self.desired.accounts) - set(self.desired.scope))
        self.unmanaged = [label(key) for key in unnamed_users]
        self.unmanaged += [label((name, "", "")) for name in unnamed_accounts]
        if self.desired.absent:
            return self.absent()
        if not self.desired.exclusive:
            return moves
        self.cap(self.unmanaged)
        self.cap_share(self.unmanaged)
        self.still_needed(set(unnamed_accounts))
        going = [*unnamed_users, *((name, "", "") for name in unnamed_accounts)]
        self.can_be_named(going)
        self.takes_nobody_along(unnamed_accounts, going + moves)
        depth = depths(self.scope.before)
        from_below = sorted(unnamed_accounts, key=lambda name: (-depth[name], name))
        self.unmanaged = []
        return moves + unnamed_users + [(name, "", "") for name in from_below]

    def absent(self) -> list[Key]:
        """What the arguments want gone, with all that is below it."""
        doomed: set[str] = set()
        below = children(self.scope.before)
        for name in sorted(key[0] for key in self.desired.absent if key[0] in self.scope.before):
            if name not in self.scope.now or name in self.desired.scope:
                self.problems.append(
                    f"account {name} is not below {self.scope.text}, and only what is below may go; "
                    f"give scope: [{self.scope.before[name]}] if it is meant"
                )
            doomed.update(subtree(name, below))
        users = {key[1] for key in self.desired.absent if key[1]}
        depth = depths(self.scope.before)
        going = [key for key in self.in_scope if key[0] in doomed or key[1] in users]
        going += [(name, "", "") for name in sorted(doomed, key=lambda name: (-depth[name], name))]
        self.unmanaged = [label(key) for key in going]
        self.cap(self.unmanaged, "state absent", "remove what is below first")
        self.can_be_named(going)
        self.takes_nobody_along(doomed, going)
        self.unmanaged = []
        return going

    def cap(self, going: t.Sequence[str], what: str = "exclusive", instead: str = "name them") -> None:
        if len(going) > self.desired.max_removals:
            self.too_many = list(going)
            self.problems.append(
                f"{what} would remove {len(going)} objects, more than max_removals ({self.desired.max_removals}): "
                f"{some(going)}; {instead}, or raise max_removals"
            )

    def cap_share(self, going: t.Sequence[str]) -> None:
        """A number that suits a large tenant may be all of a small one."""
        there = len(self.in_scope) + len(self.scope.now)
        if len(going) > there * self.desired.max_removal_share:
            self.too_many = list(going)
            self.problems.append(
                f"exclusive would remove {len(going)} of the {there} objects in {self.scope.text}, more than "
                f"max_removal_share ({self.desired.max_removal_share:g}): {some(going)}; name them, or raise the share"
            )

    def takes_nobody_along(self, accounts: t.Iterable[str], going: t.Iterable[Key]) -> None:
        """Slurm deletes by a path that it does not keep up to date."""
        there = frozenset(going)
        for name in accounts:
            for key in lineage.goes_along(self.state, name, there)[:_SHOWN]:
                self.problems.append(
                    f"account {name}: Slurm would remove {label(key)} along with it, whose path in the database still is "
                    f"{self.state.associations[key].lineage}; see 'Paths that are out of date' in docs/accounting.md"
                )

    def can_be_named(self, going: t.Iterable[Key]) -> None:
        for key in going:
            if not all(addressable(name) for name in key if name):
                self.problems.append(f"{label(key)}: no command can name it safely; remove it by hand")

    def still_needed(self, going: set[str]) -> None:
        for name, account in self.desired.accounts.items():
            if account.parent in going:
                self.problems.append(
                    f"account {name}: exclusive would remove its parent {account.parent}; add {account.parent} to accounts"
                )
        for key in self.wanted:
            if key[1] and key[0] in going:
                self.problems.append(f"{label(key)}: exclusive would remove account {key[0]}; add it to accounts")


def some(names: t.Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{', '.join(names[:_SHOWN])}{more}"
