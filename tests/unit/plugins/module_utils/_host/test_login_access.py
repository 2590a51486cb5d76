# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""sshd's file for a tenant binds the tenant's users and nobody else."""

from __future__ import annotations

import pytest
from ansible_collections.gpuops.tenancy.plugins.module_utils._host import login_access

FOO = ["203.0.113.0/24", "2001:db8:f00::/48"]


def test_it_denies_the_users_from_elsewhere():
    text = login_access.text("tenant-foo", ["carol", "alice"], FOO)
    assert text.splitlines()[2:] == [
        "Match User alice,carol Address *,!203.0.113.0/24,!2001:db8:f00::/48",
        "    DenyUsers *",
    ]
    # A list of who is admitted would lock out whoever is missing from it.
    assert "Allow" not in text


@pytest.mark.parametrize(("users", "networks"), [([], FOO), (["alice"], [])])
def test_nothing_to_restrict_is_no_file(users, networks):
    assert login_access.text("tenant-foo", users, networks) == ""


@pytest.mark.parametrize("user", ["*", "a?", "a,b", "!a", "a b", "a\nAllowUsers a", "", "alice@host", "UPPER"])
def test_a_name_that_is_a_pattern_is_refused(user):
    with pytest.raises(login_access.AccessError, match="pattern"):
        login_access.text("tenant-foo", [user], FOO)


def test_an_operator_is_not_bound():
    with pytest.raises(login_access.AccessError, match="is an operator here"):
        login_access.text("tenant-foo", ["alice", "root"], FOO, ["root"])


@pytest.mark.parametrize("tenant", ["../x", "A", "", "a/b"])
def test_a_name_that_is_a_path_is_refused(tenant):
    with pytest.raises(login_access.AccessError, match="no name of a tenant"):
        login_access.text(tenant, ["alice"], FOO)


def test_a_network_is_not_part_of_the_message():
    with pytest.raises(login_access.AccessError) as error:
        login_access.text("tenant-foo", ["alice"], ["10.0.0.1/8"])
    assert "10.0.0.1" not in str(error.value)


def test_an_address_outside_is_outside():
    assert login_access.outside(FOO) == ["192.0.2.1", "2001:db8::1"]
    assert login_access.outside(["192.0.2.0/24", "2001:db8::/32"]) == ["198.51.100.1", "fd00::1"]
    assert login_access.outside(["0.0.0.0/0", "::/0"]) == []


def test_what_sshd_says_is_understood():
    assert login_access.denied("port 22\ndenyusers *\n", "alice")
    assert login_access.denied("denyusers mallory alice\n", "alice")
    assert not login_access.denied("port 22\ndenyusers mallory\n", "alice")
