# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant import accounting, users
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.errors import TenantError
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.schema import SCHEMA

CLEARED = {
    "fairshare": 1,
    "priority": -1,
    "grp_jobs": -1,
    "grp_submit_jobs": -1,
    "grp_wall": -1,
    "max_jobs": -1,
    "max_submit_jobs": -1,
    "max_wall": -1,
    "grp_tres": {},
    "grp_tres_mins": {},
    "grp_tres_run_mins": {},
    "max_tres_per_job": {},
    "max_tres_per_node": {},
    "max_tres_mins_per_job": {},
    "qos": [],
    "default_qos": "",
}


def test_a_silent_document_clears_everything(docs):
    document = docs(tenant_foo="users: [alice]").document()
    assert accounting.arguments(document) == {
        "scope": ["tenant-foo"],
        "accounts": [
            dict(CLEARED, name="tenant-foo", parent="root", description="tenant-foo", organization="tenant-foo")
        ],
        "users": [
            {
                "name": "alice",
                "default_account": "tenant-foo",
                "associations": [dict(CLEARED, account="tenant-foo")],
            }
        ],
    }


def test_every_field_that_a_document_can_name_is_emitted():
    named = set(SCHEMA["$defs"]["limits"]["properties"])
    named |= set(SCHEMA["properties"]["slurm"]["properties"]) - {"limits", "one_factor"}
    assert named == set(CLEARED)


def test_a_full_document(docs):
    document = docs(
        tenant_foo="""
        description: Tenant FOO
        organization: Foo Ltd
        slurm:
          fairshare: 300
          priority: 5
          limits: {grp_tres: {gres/gpu: 4, mem: 100GiB}, max_wall: 48:00:00, grp_jobs: 7}
          qos: [normal, High]
          default_qos: Normal
        teams:
          - name: ml
            description: Machine Learning
            fairshare: 200
            users:
              - {name: alice, fairshare: 3, limits: {grp_tres_mins: {gres/gpu: 10}}}
              - {name: bob, default_account: data}
          - name: data
            organization: Elsewhere
            limits: {max_tres_per_job: {mem: 1.5G}}
            users: [{name: bob, qos: [high], default_qos: high}]
        """
    ).document()
    wanted = accounting.arguments(document)
    tenant, ml, data = wanted["accounts"]
    assert tenant == dict(
        CLEARED,
        name="tenant-foo",
        parent="root",
        description="tenant foo",
        organization="foo ltd",
        fairshare=300,
        priority=5,
        grp_tres={"gres/gpu": 4, "mem": "102400M"},
        max_wall="2-00:00:00",
        grp_jobs=7,
        qos=["high", "normal"],
        default_qos="normal",
    )
    assert ml == dict(
        CLEARED, name="ml", parent="tenant-foo", description="machine learning", organization="foo ltd", fairshare=200
    )
    assert data == dict(
        CLEARED,
        name="data",
        parent="tenant-foo",
        description="data",
        organization="elsewhere",
        max_tres_per_job={"mem": "1536M"},
    )
    alice, bob = wanted["users"]
    assert alice["associations"] == [dict(CLEARED, account="ml", fairshare=3, grp_tres_mins={"gres/gpu": 10})]
    assert bob == {
        "name": "bob",
        "default_account": "data",
        "associations": [dict(CLEARED, account="ml"), dict(CLEARED, account="data", qos=["high"], default_qos="high")],
    }


def test_partitions_and_one_factor(docs):
    document = docs(
        tenant_foo="""
        slurm: {one_factor: true}
        users: [alice, {name: alice, partition: H100, limits: {max_jobs: 2}}]
        teams:
          - {name: ml, one_factor: true, users: [{name: bob, partition: a100}]}
          - {name: data, users: [carol]}
        """
    ).document()
    wanted = accounting.arguments(document)
    assert [one["fairshare"] for one in wanted["accounts"]] == [1, 1, 1]
    one = dict(CLEARED, fairshare="parent")
    assert wanted["users"] == [
        {
            "name": "alice",
            "default_account": "tenant-foo",
            "associations": [
                dict(one, account="tenant-foo"),
                dict(one, account="tenant-foo", partition="h100", max_jobs=2),
            ],
        },
        {"name": "bob", "default_account": "ml", "associations": [dict(one, account="ml", partition="a100")]},
        {"name": "carol", "default_account": "data", "associations": [dict(CLEARED, account="data")]},
    ]
    assert users.users(document)[0]["accounts"] == ["tenant-foo"]


def test_one_user_names_no_account(docs):
    document = docs(tenant_foo="teams: [{name: ml, users: [alice, bob]}]").document()
    wanted = accounting.arguments(document, "Alice")
    assert wanted["scope"] == ["tenant-foo"]
    assert wanted["accounts"] == []
    assert [user["name"] for user in wanted["users"]] == ["alice"]
    with pytest.raises(TenantError, match="has no user 'alise'; did you mean alice"):
        accounting.arguments(document, "alise")
    with pytest.raises(TenantError, match="has no user ''"):
        accounting.arguments(document, "")


def test_a_guests_default_account_is_left_alone(docs):
    both = docs(
        tenant_foo="users: [{name: bob, home: tenant-bar}]", tenant_bar="users: [{name: bob, member_of: [tenant-foo]}]"
    )
    assert accounting.arguments(both.document("tenant-foo"))["users"] == [
        {"name": "bob", "associations": [dict(CLEARED, account="tenant-foo")]}
    ]
    assert accounting.arguments(both.document("tenant-bar"))["users"][0]["default_account"] == "tenant-bar"


def test_the_posix_users(docs):
    both = docs(
        tenant_foo="""
        teams:
          - name: ml
            users:
              - {name: alice, full_name: Alice Example, email: a@b, default_account: data}
              - {name: guest1, home: tenant-bar}
          - {name: data, users: [alice]}
        """,
        tenant_bar="users: [{name: guest1, member_of: [tenant-foo], full_name: G. One}]",
    )
    document = both.document()
    alice = {
        "name": "alice",
        "gecos": "Alice Example",
        "email": "a@b",
        "ssh_keys": [],
        "tenant": "tenant-foo",
        "home_tenant": "tenant-foo",
        "guest": False,
        "accounts": ["ml", "data"],
        "default_account": "data",
    }
    guest = dict(alice, name="guest1", gecos="", email=None, home_tenant="tenant-bar", guest=True, accounts=["ml"])
    guest["default_account"] = None
    assert users.users(document) == [alice]
    assert users.users(document, guests=True) == [alice, guest]
    assert users.users(document, "alice") == [alice]
    assert users.users(document, "guest1") == []
    assert users.users(both.document("tenant-bar"))[0]["gecos"] == "G. One"


@pytest.mark.parametrize("thing", [None, [], "tenant-foo", {}, {"name": "tenant-foo"}])
def test_something_else_than_a_document(thing):
    with pytest.raises(TenantError, match="is not a tenant document as gpuops.tenancy.tenant_documents returns it"):
        accounting.arguments(thing)
    with pytest.raises(TenantError, match="is not a tenant document"):
        users.users(thing)
