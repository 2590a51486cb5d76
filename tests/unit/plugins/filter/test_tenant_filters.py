# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
import yaml
from ansible.errors import AnsibleFilterError
from ansible_collections.gpuops.tenancy.plugins.filter import tenant_accounting, tenant_users
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant import folder, names
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.load import parse


@pytest.fixture
def document():
    text = "schema: 1\nname: foo\nusers: [alice, {name: bob, full_name: Bob B}]\n"
    return folder.check_sources([parse(text, "foo.yml")], names.Policy())[0].document


def test_accounting(document):
    run = tenant_accounting.FilterModule().filters()["tenant_accounting"]
    assert [user["name"] for user in run(document)["users"]] == ["alice", "bob"]
    assert [user["name"] for user in run(document, user="bob")["users"]] == ["bob"]


def test_users(document):
    run = tenant_users.FilterModule().filters()["tenant_users"]
    assert [user["gecos"] for user in run(document)] == ["", "Bob B"]
    assert [user["name"] for user in run(document, user="alice", guests=True)] == ["alice"]


@pytest.mark.parametrize("module", [tenant_accounting, tenant_users])
def test_errors_are_ansibles(module, document):
    (name, run), *others = module.FilterModule().filters().items()
    assert others == []
    with pytest.raises(AnsibleFilterError, match=f"{name}: this is not a tenant document"):
        run("foo")
    with pytest.raises(AnsibleFilterError, match=f"{name}: tenant foo has no user 'bop'; did you mean bob"):
        run(document, user="bop")


@pytest.mark.parametrize("module", [tenant_accounting, tenant_users])
def test_the_documentation_names_the_options(module):
    documentation = yaml.safe_load(module.DOCUMENTATION)
    (name, run), *_others = module.FilterModule().filters().items()
    code = run.__code__
    assert documentation["name"] == name
    assert ["_input", *code.co_varnames[1 : code.co_argcount]] == list(documentation["options"])
