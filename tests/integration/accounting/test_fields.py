# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each field that can be set: set, changed, cleared, unchanged; ``make show T=accounting_fields`` prints the same."""

from __future__ import annotations

import proof
import pytest
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import fields


def test_the_tables_know_every_field():
    tables = ((proof.ROW, fields.ASSOCIATION), (proof.RECORD, fields.RECORD), (proof.USER, fields.USER))
    for values, table in (*tables, (proof.QOS, fields.QOS_FIELDS)):
        assert set(values) == {field.option for field in table}


def check(proofs):
    assert [(item.field.option, item.wrong, item.again) for item in proofs if not item.good] == []
    assert any(not item.missing for item in proofs)


@pytest.mark.parametrize("on", ["account", "user"])
def test_each_field_of_a_row(ctl, tenant, on):
    check(proof.association(ctl, tenant, on))


def test_each_field_of_an_account(ctl, tenant):
    check(proof.account(ctl, tenant))


def test_each_field_of_a_user(ctl, tenant):
    check(proof.user(ctl, tenant))


def test_each_field_of_a_qos(ctl, tenant):
    check(proof.qos(ctl, tenant))


def test_a_new_account_without_texts(ctl, tenant, reconcile):
    reconcile([{"name": tenant, "description": "", "organization": ""}])
    assert ctl.show("account", "where", f"name={tenant}", "format=description,organization") == [["", ""]]


def test_coordinators(ctl, tenant, reconcile, user):
    team = f"{tenant}-team"
    al, bo = f"{tenant}-al", f"{tenant}-bo"
    users = [user(al, tenant), user(bo, tenant)]

    def tree(above, below):
        return [{"name": tenant, "coordinators": above, "accounts": [{"name": team, "coordinators": below}]}]

    # The one who coordinates both cannot be seen on the child until she leaves the parent: two passes, one run.
    for above, below in (([al], [bo]), ([al, bo], [bo]), ([], [bo]), ([al], []), ([], [])):
        reconcile(tree(above, below), users)
        listed = dict(ctl.show("account", "where", f"name={tenant},{team}", "withcoord", "format=account,coordinators"))
        assert listed[tenant] == ",".join(above)
        assert listed[team] == ",".join(sorted({*above, *below}))
