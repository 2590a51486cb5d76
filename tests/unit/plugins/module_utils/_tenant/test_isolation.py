# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.errors import TenantError
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.isolation import isolation


def document(name, level, users=(), teams=()):
    return {
        "name": name,
        "isolation": level,
        "description": name,
        "organization": name,
        "slurm": {},
        "teams": [{"name": team} for team in teams],
        "users": [{"name": user} for user in users],
    }


def test_every_tenant_with_all_its_accounts():
    found = isolation([document("foo", "exclusive", ["b", "a"], ["ml", "data"]), document("bar", "shared")])
    assert found == [
        {"tenant": "bar", "level": "shared", "accounts": ["bar"], "group": "mcs-bar", "users": []},
        {
            "tenant": "foo",
            "level": "exclusive",
            "accounts": ["foo", "ml", "data"],
            "group": "mcs-foo",
            "users": ["a", "b"],
        },
    ]


@pytest.mark.parametrize(
    ("documents", "says"),
    [
        ([document("foo", "private_cluster")], "choose private_nodes"),
        ([document("foo", "exclusive", ["a"]), document("bar", "exclusive", ["a"])], "second login"),
        ([document("f" * 29, "exclusive")], "at most 28"),
    ],
)
def test_what_slurm_cannot_keep_apart_is_refused(documents, says):
    with pytest.raises(TenantError, match=says):
        isolation(documents)


def test_a_guest_in_a_tenant_that_shares_is_no_obstacle():
    assert len(isolation([document("foo", "exclusive", ["a"]), document("bar", "shared", ["a"])])) == 2
