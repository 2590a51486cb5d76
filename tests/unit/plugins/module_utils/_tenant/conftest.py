# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documents as text, checked together as the action plugin does it."""

from __future__ import annotations

import textwrap

import pytest
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant import folder, names
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.load import parse

POLICY = names.Policy(
    operators=frozenset({"anna"}),
    reserved=frozenset({"house"}),
    retired=frozenset({"gone"}),
    site_qos=frozenset({"normal", "high", "low", "blocked"}),
)


class Documents:
    """Given `tenant_foo="text"`, the document tenant-foo.yml; two usual lines are put in front of the text."""

    def __init__(self, policy, vaulted, texts):
        sources = []
        for key, text in texts.items():
            name = key.replace("_", "-")
            body = f"schema: 1\nname: {name}\n" + textwrap.dedent(text)
            sources.append(parse(body, name + ".yml", vaulted, decrypt))
        self.checked = {one.outline.tenant: one for one in folder.check_sources(sources, policy)}

    def select(self, *args):
        return folder.select(list(self.checked.values()), *args)

    def problems(self, tenant="tenant-foo"):
        return [str(one) for one in self.checked[tenant].problems]

    def warnings(self, tenant="tenant-foo"):
        return [str(one) for one in self.checked[tenant].warnings]

    def document(self, tenant="tenant-foo"):
        assert self.problems(tenant) == []
        return self.checked[tenant].document


def decrypt(ciphertext):
    if ciphertext.strip() == "unreadable":
        raise ValueError("no secret opens it")
    return ciphertext.strip()[::-1]


@pytest.fixture
def docs():
    def make(policy=POLICY, vaulted=False, **texts):
        return Documents(policy, vaulted, texts)

    return make
