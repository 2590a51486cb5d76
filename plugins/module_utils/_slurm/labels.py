# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which MCS label the jobs of a user get. Private to the gpuops.tenancy collection.

slurmctld takes the first group of its list that the user is in, and refuses the jobs of a user who is in none. A group
that this host does not know when slurmctld starts is passed over in silence: those who rely on it would not be apart.
"""

from __future__ import annotations

import grp
import os
import pwd
import typing as t


def members_of(users: t.Iterable[str], comment: str = "") -> dict[str, frozenset[int]]:
    """User -> numbers of all groups; users that this host does not know are left out, they cannot run jobs anyway.

    So are those whose entry has the comment, if one is given.
    """
    found = {}
    for name in users:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        if not comment or entry.pw_gecos.split(",")[0] != comment:
            found[name] = frozenset(os.getgrouplist(name, entry.pw_gid))
    return found


def numbers(groups: t.Iterable[str]) -> dict[str, int]:
    found = {}
    for name in groups:
        try:
            found[name] = grp.getgrnam(name).gr_gid
        except KeyError:
            continue
    return found


def labels(groups: t.Sequence[str], gids: t.Mapping[str, int], users: t.Mapping[str, frozenset[int]]) -> dict[str, str]:
    """User -> label, empty where there is none. Pure."""
    return {user: next((name for name in groups if gids.get(name, -1) in member), "") for user, member in users.items()}
