# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""One call of sacctmgr that does the same to many objects. Pure; private to the gpuops.tenancy collection."""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.model import Key

# On a large 24.11 database one statement that deletes a hundred accounts runs for minutes.
_MOST = {"delete account": 20}
_MOST_OTHERWISE = 1000


@dataclasses.dataclass(frozen=True)
class Command:
    """``items`` are rows for entity user, (account, "", "") for account, ("", user, "") for default (what a user has
    once), (key, user, "") for wckey, (account, user, "") for coordinator, (name, "", "") for qos and cluster.
    ``partition``: None puts no condition, "" means the plain row exactly. ``parents``: a further condition on accounts.
    """

    action: str
    entity: str
    cluster: str
    items: tuple[Key, ...]
    set_words: tuple[str, ...] = ()
    partition: str | None = None
    parents: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        return f"{self.action} {self.entity}"

    @property
    def most(self) -> int:
        return _MOST.get(self.kind, _MOST_OTHERWISE)

    def part(self, first: int, count: int) -> Command:
        return dataclasses.replace(self, items=self.items[first : first + count])

    def words(self) -> list[str]:
        """The arguments after ``sacctmgr -i``."""
        if self.entity == "coordinator":
            return self._coordinator()
        where = [] if self.action == "add" else ["where"]
        if self.entity in ("qos", "cluster"):
            # These belong to the whole database.
            change = ["set"] if self.action == "modify" else []
            return [self.action, self.entity, *where, f"name={_names(self.items, 0)}", *change, *self.set_words]
        target = "account" if self.entity == "account" else "user"
        words = [self.action, target, *where, f"name={_names(self.items, 0 if target == 'account' else 1)}"]
        if self.entity in ("user", "wckey"):
            words.append(f"{'account' if self.entity == 'user' else 'wckey'}={_names(self.items, 0)}")
        words.append(f"cluster={_checked(self.cluster)}")
        if self.partition is not None:
            # An empty condition here selects the rows without a partition; an empty *name* would select everything.
            words.append(f"partition={self.partition}")
        if self.parents:
            words.append(f"parent={','.join(_checked(name) for name in self.parents)}")
        if self.action == "modify":
            words.append("set")
        return words + list(self.set_words)

    def _coordinator(self) -> list[str]:
        where = [] if self.action == "add" else ["where"]
        return [
            self.action,
            "coordinator",
            *where,
            f"account={_names(self.items, 0)}",
            f"names={_names(self.items, 1)}",
        ]


def _names(items: t.Iterable[Key], index: int) -> str:
    names = list(dict.fromkeys(item[index] for item in items))
    if not names:
        raise ValueError("a command of sacctmgr without a name would touch every object of the cluster")
    return ",".join(_checked(name) for name in names)


def addressable(name: str) -> bool:
    """An empty name selects every row of the cluster, a comma or bracket more than one, a quote something else."""
    return bool(name) and not any(letter in name for letter in ",[]='\"\\|\n ")


def _checked(name: str) -> str:
    """The last barrier."""
    if not addressable(name):
        raise ValueError(f"{name!r} cannot be put on a command line of sacctmgr")
    return name
