# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Labels of mcs/group."""

from __future__ import annotations

import os
import pwd

import pytest
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import labels

USERS = {
    "alice": pwd.struct_passwd(("alice", "x", 10001, 10001, "Alice,,,", "/home/alice", "/bin/bash")),
    "attest-a1": pwd.struct_passwd(("attest-a1", "x", 10002, 10002, "canary", "/home/attest-a1", "/bin/bash")),
}


@pytest.mark.parametrize(("comment", "found"), [("", {"alice", "attest-a1"}), ("canary", {"alice"})])
def test_who_is_nobodys_needs_no_label(monkeypatch, comment, found):
    monkeypatch.setattr(pwd, "getpwnam", lambda name: USERS[name])
    monkeypatch.setattr(os, "getgrouplist", lambda name, gid: [gid])
    assert set(labels.members_of([*USERS, "nobody-here"], comment)) == found


def test_the_first_group_of_the_list_counts():
    gids = {"mcs-tenant-foo": 1, "mcs-shared": 2}
    users = {"alice": frozenset({2, 1}), "bob": frozenset({2, 9}), "byhand": frozenset({9})}
    assert labels.labels(list(gids), gids, users) == {"alice": "mcs-tenant-foo", "bob": "mcs-shared", "byhand": ""}
