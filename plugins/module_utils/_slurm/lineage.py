# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rows whose path in the database is not where they are, or leads nowhere. Pure; private to the gpuops.tenancy collection.

Since 23.11 each row carries its path, ``/tenant/team/0-user/partition/``. Moving an account by hand leaves the old one
in what is two levels below it (seen on 24.11), and Slurm goes by the path when an account is deleted: the row goes with
accounts that it is no longer below.
"""

from __future__ import annotations

import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.model import ROOT, Key, State, chain

SINCE = (23, 11)


def path(key: Key, parents: t.Mapping[str, str]) -> str:
    account, user, partition = key
    above = [name for name in reversed(chain(account, parents)) if name != ROOT]
    words = [*above, *([f"0-{user}"] if user else []), *([partition] if partition else [])]
    return "/".join(["", *words, ""]) if words else "/"


def outdated(state: State) -> list[Key]:
    """Nothing where this version has no paths, or none was read."""
    parents = state.parents()
    return sorted(key for key, row in state.associations.items() if row.lineage and row.lineage != path(key, parents))


def goes_along(state: State, account: str, going: t.Container[Key]) -> list[Key]:
    """Rows that Slurm would take along with an account although they are elsewhere."""
    return [key for key in outdated(state) if key not in going and f"/{account}/" in state.associations[key].lineage]


def without_root(rows: t.Sequence[t.Mapping[str, str]]) -> list[str]:
    """Accounts that root is not above, by the numbers of their rows. Pure."""
    parents = {row["id"]: row["parentid"] for row in rows}
    lost = []
    for row in rows:
        above, seen = row["parentid"], set()
        while above in parents and above not in seen:
            seen.add(above)
            above = parents[above]
        if above not in ("", "0"):
            lost.append(row["account"])
    return lost
