# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""One document: what the schema and the rules refuse, with the whole message where its words matter."""

from __future__ import annotations

import sys

import pytest
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant import check
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.errors import TenantError

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        # unknown keys
        ("slurm: {fairshar: 3}", "3: slurm.fairshar: is not a known key; did you mean fairshare?"),
        ("fairshar: 3", "3: fairshar: is not a known key; did you mean fairshare, below slurm?"),
        ("limits: {}", "3: limits: is not a known key; write limits below slurm"),
        ("slurm: {MaxJobs: 3}", "3: slurm.MaxJobs: is not a known key; write max_jobs below limits"),
        ("slurm: {limits: {GrpTRES: {cpu: 3}}}", "3: slurm.limits.GrpTRES: is not a known key; write grp_tres"),
        ("teams: [{name: t, coordinators: [x]}]", "3: teams[0].coordinators: is not a known key; a coordinator could"),
        ("storage: {hmoe: {hard: 1GB}}", "3: storage.hmoe: is not a known key; did you mean home?"),
        # types
        ("teams:", "3: teams: is empty; remove the line, or give it a value (a list)"),
        ("users: bob", "3: users: is 'bob', but must be a list; write [bob]"),
        ("users: [no]", '3: users[0]: YAML reads no as a boolean; quote it if it is a name: "no"'),
        ("users: [1003]", '3: users[0]: YAML reads 1003 as a number; quote it if it is a name: "1003"'),
        ("users: [1.5]", '3: users[0]: YAML reads 1.5 as a number; quote it if it is a name: "1.5"'),
        ("users: [2026-11-29]", "3: users[0]: '2026-11-29' has no letter"),
        ("users: [[bob]]", "3: users[0]: is a list, but must be text"),
        ("users: [{name: bob, limits: 3}]", "3: users[0].limits: is 3, but must be a mapping of keys to values"),
        ("teams: [{users: [bob]}]", "3: teams[0]: the key 'name' is missing; add it"),
        ("retention_days: 3.0", "3: retention_days: is 3.0, but must be a whole number"),
        ("retention_days: '3'", "3: retention_days: is text, but must be a whole number; remove the quotes"),
        ("retention_days: true", "3: retention_days: is true, but must be a whole number"),
        ("retention_days: 99999", "3: retention_days: is 99999; the largest value is 36500"),
        ("state: absent", "3: state: 'absent' is not one of present, suspended"),
        ("isolation: privat_nodes", "3: isolation: 'privat_nodes' is not one of shared"),
        ("description: ''", "3: description: is empty; remove the line, or write something"),
        ("description: a|b", "3: description: 'a|b' contains a quote, a line break or a separator"),
        ('description: "a\\n"', "3: description: 'a\\n' contains a quote, a line break or a separator"),
        ("contacts: [nobody]", "3: contacts[0]: 'nobody' is not a mail address; write name@domain"),
        # fair share and limits
        ("slurm: {fairshare: parent}", "3: slurm.fairshare: may not be 'parent': everybody below would have the same"),
        ("slurm: {fairshare: -1}", "3: slurm.fairshare: is -1; to clear a limit, remove the line"),
        ("slurm: {limits: {max_jobs: -2}}", "3: slurm.limits.max_jobs: is -2; it cannot be negative"),
        ("slurm: {limits: {max_jobs: unlimited}}", "3: slurm.limits.max_jobs: is 'unlimited'; remove the line"),
        ("slurm: {limits: {max_wall: 90}}", "3: slurm.limits.max_wall: 90 is a bare number; Slurm reads it as minutes"),
        ("slurm: {limits: {max_wall: 1:30}}", "3: slurm.limits.max_wall: '1:30' is not a time; write HH:MM:SS"),
        ("slurm: {limits: {max_wall: 1-30:00:00}}", "3: slurm.limits.max_wall: '1-30:00:00' is not a time"),
        ("slurm: {limits: {max_wall: 00:00:30}}", "3: slurm.limits.max_wall: '00:00:30' has seconds, but Slurm counts"),
        ("slurm: {limits: {grp_tres: {gpu: 4}}}", "3: slurm.limits.grp_tres.gpu: is not a resource that can be limited; write gres/gpu"),
        (
            "slurm: {limits: {grp_tres: {'gpu:a100': 4}}}",
            "3: slurm.limits.grp_tres.gpu:a100: is not a resource that can be limited; write gres/gpu:a100",
        ),
        ("slurm: {limits: {grp_tres: {cpus: 4}}}", "3: slurm.limits.grp_tres.cpus: is not a resource that can be limited; write cpu"),
        ("slurm: {limits: {grp_tres: {gres/: 4}}}", "3: slurm.limits.grp_tres.gres/: is not a resource that can be limited; write cpu, mem"),
        ("slurm: {limits: {grp_tres: {}}}", "3: slurm.limits.grp_tres: is empty; remove the line, which clears the limit"),
        ("slurm: {limits: {grp_tres: {cpu: '4'}}}", "3: slurm.limits.grp_tres.cpu: is text, but must be a whole number"),
        ("slurm: {limits: {grp_tres: {mem: 100}}}", "3: slurm.limits.grp_tres.mem: 100 is a bare number; write a number and a unit"),
        ("slurm: {limits: {grp_tres: {mem: 1kB}}}", "3: slurm.limits.grp_tres.mem: '1kB' is not a size"),
        ("slurm: {limits: {grp_tres: {mem: 0.1M}}}", "3: slurm.limits.grp_tres.mem: '0.1M' is not a whole number of bytes"),
        # QOS
        ("slurm: {qos: [hihg]}", "3: slurm.qos[0]: 'hihg' is not a QOS of this site; did you mean high?"),
        ("slurm: {qos: [xyz]}", "3: slurm.qos[0]: 'xyz' is not a QOS of this site; there are: high, low, normal"),
        ("slurm: {qos: [blocked]}", "3: slurm.qos[0]: is the QOS that blocks; a document cannot name it"),
        ("slurm: {qos: [low, low]}", "3: slurm.qos[1]: 'low' is listed twice; keep one"),
        ("slurm: {qos: [normal], default_qos: low}", "3: slurm.default_qos: 'low' is not in the list that holds here"),
        ("slurm: {qos: [normal]}\nteams: [{name: t1, qos: [low]}]", "4: teams[0].qos[0]: 'low' is not in the list of the level above"),
        ("slurm: {qos: [normal]}\nusers: [{name: bob, qos: [low], qos_exception: false}]", "4: users[0].qos[0]: 'low' is not in the list of the"),
        ("slurm: {one_factor: true}\nusers: [{name: bob, fairshare: 2}]", "4: users[0].fairshare: has no place where 'one_factor' gives all"),
        ("slurm: {one_factor: 1}", "3: slurm.one_factor: is 1, but must be true or false"),
        (
            "slurm: {qos: [normal, low], default_qos: low}\nusers: [{name: bob, qos: [normal]}]",
            "4: users[0].qos: leaves out 'low', the default that is inherited",
        ),
        ("slurm: {qos: [normal]}\nusers: [{name: bob, default_qos: low}]", "4: users[0].default_qos: 'low' is not in the list that holds here"),
        # names
        ("users: [root]", "3: users[0]: 'root' is a system account or group"),
        ("users: [slurm]", "3: users[0]: 'slurm' is a system account or group"),
        ("users: ['1003']", "3: users[0]: '1003' has no letter"),
        ("users: [o'neil]", '3: users[0]: "o\'neil" contains a quote'),
        ("users: ['a;b']", "3: users[0]: 'a;b' contains ';'"),
        ('users: ["a\\nb"]', "3: users[0]: 'a\\nb' contains a line break"),
        ('users: ["bob\\n"]', "3: users[0]: 'bob\\n' contains a line break"),
        ("users: ['']", "3: users[0]: '' is empty; Slurm takes an empty name for every object of the cluster"),
        ("users: [{name: ''}]", "3: users[0].name: '' is empty"),
        ("users: [anna]", "3: users[0]: 'anna' is an operator's name"),
        ("users: [gone]", "3: users[0]: 'gone' is retired"),
        (f"users: [{'x' * 33}]", f"3: users[0]: '{'x' * 33}' has 33 characters; at most 32"),
        ("teams: [{name: platform}]", "3: teams[0].name: 'platform' is the operators' own account"),
        ("teams: [{name: root}]", "3: teams[0].name: 'root' is the operators' own account"),
        ("teams: [{name: tenant-foo}]", "3: teams[0].name: 'tenant-foo' is the tenant's own account"),
        ("teams:\n  - name: t1\n  - name: T1", "5: teams[1].name: 't1' is a team already (line 4); join the two"),
        # members
        ("users: [bob, bob]", "3: users[1]: 'bob' is a member already (line 3); keep one"),
        ("users: [{name: bob, partition: p}, {name: bob, partition: p}]", "3: users[1]: 'bob' is a member already (line 3); keep one"),
        ("users: [{name: bob, partition: a b}]", "3: users[0].partition: 'a b' contains a blank"),
        ("users: [bob, Bob]", "3: users[1]: 'bob' is a member already (line 3); keep one"),
        (
            "teams:\n  - {name: t1, users: [bob]}\n  - {name: t2, users: [bob]}",
            "4: teams[0].users[0]: 'bob' is in several accounts (t1, t2) without a default",
        ),
        ("teams:\n  - {name: t1, users: [bob]}\nusers: [bob]", "5: users[0]: 'bob' is in several accounts (tenant-foo, t1)"),
        ("users: [{name: bob, default_account: t1}]", "3: users[0].default_account: 't1' is not an account of this user; write tenant-foo"),
        (
            "teams:\n  - {name: t1, users: [{name: bob, default_account: t1}]}\n  - {name: t2, users: [{name: bob, default_account: t2}]}",
            "5: teams[1].users[0].default_account: contradicts line 4",
        ),
        ("users: [{name: bob, member_of: [tenant-foo]}]", "3: users[0].member_of: names this tenant itself"),
        ("users: [{name: bob, ssh_keys: [ssh-dss AAAA]}]", "3: users[0].ssh_keys[0]: is a DSA key"),
        ("users: [{name: bob, full_name: 'a:b'}]", "3: users[0].full_name: 'a:b' contains a quote, a line break or a separator"),
        # the rest
        ("storage: {home: {hard: 100G}}", "3: storage.home.hard: '100G' leaves open whether it counts by 1000 or by 1024; write 100GB or 100GiB"),
        ("storage: {home: {hard: 100}}", "3: storage.home.hard: 100 is a bare number"),
        ("storage: {home: {hard: 0GB}}", "3: storage.home.hard: is 0, which back ends take for no limit"),
        ("storage: {home: {hard: 1GB, soft: 1GiB}}", "3: storage.home.soft: is above the hard quota"),
        ("storage: {home: {soft: 1GB}}", "3: storage.home: the key 'hard' is missing"),
        ("network: {allow_from: [10.0.0.1/8]}", "3: network.allow_from[0]: has bits set behind its prefix; write 10.0.0.0/8"),
        ("network: {allow_from: [everywhere]}", "3: network.allow_from[0]: 'everywhere' is not a network"),
        ("gpu: {sharing: mps}", "3: gpu.sharing: mps on nodes shared with other tenants"),
        ("isolation: shared\ngpu: {sharing: shard}", "4: gpu.sharing: shard on nodes shared with other tenants"),
    ],
)  # fmt: skip
def test_one_clear_error(docs, text, problem):
    one = docs(tenant_foo=text)
    assert len(one.problems()) == 1
    assert one.problems()[0].startswith("tenant-foo.yml:" + problem)
    with pytest.raises(TenantError, match="nothing was changed"):
        one.select("tenant-foo")


def test_a_key_of_two_people(docs):
    one = docs(
        tenant_foo=f"users: [{{name: bob, ssh_keys: [{KEY} work]}}]",
        tenant_bar=f"users: [{{name: eve, ssh_keys: [{KEY}]}}]",
    )
    assert one.problems() == [
        "tenant-foo.yml:3: users[0].ssh_keys[0]: is also the key of another user (tenant-bar.yml:3); every user needs a "
        "key pair"
    ]
    assert len(one.problems("tenant-bar")) == 1
    again = f"teams: [{{name: t1, users: [{{name: bob, ssh_keys: [{KEY}], default_account: t1}}]}}]\nusers: [{{name: bob, ssh_keys: [{KEY}]}}]"
    assert docs(tenant_foo=again).problems() == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("name: x\n", "the key 'schema' is missing; add it ('schema: 1')"),
        ("schema: 2\nname: x\n", "schema: is 2; this release reads documents of 'schema: 1'"),
        ("schema: '1'\nname: x\n", "schema: is text, but must be a whole number; remove the quotes"),
        ("schema: 1\n", "the key 'name' is missing; add it"),
        ("schema: 1\nname: y\n", "name: 'y' is not the name of the file; rename the file to y.yml"),
        ("schema: 1\nname: ''\n", "name: '' is empty"),
    ],
)
def test_the_two_keys_every_document_has(text, problem, docs):
    from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant import folder, load, names

    (checked,) = folder.check_sources([load.parse(text, "x.yml")], names.Policy())
    assert any(problem in str(one) for one in checked.problems)
    assert checked.document is None


def test_all_problems_of_a_document_come_at_once(docs):
    one = docs(tenant_foo="fairshar: 1\nusers: [root, bob, bob]\nslurm: {limits: {max_wall: 3}}\ngpu: {sharing: mps}\n")
    lines = [one.split(":")[1] for one in one.problems()]
    assert sorted(lines) == ["3", "4", "4", "5", "6"]
    with pytest.raises(TenantError) as caught:
        one.select("tenant-foo")
    assert str(caught.value).count("tenant-foo.yml:") == 5


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        ("users: [Bob]", "users[0]: 'Bob' is folded to lower case"),
        ("slurm: {limits: {max_jobs: 0}}", "slurm.limits.max_jobs: is 0, which refuses no submission"),
        ("slurm: {limits: {grp_jobs: 0}}", "slurm.limits.grp_jobs: is 0, which refuses no submission"),
        ("slurm: {limits: {grp_wall: 00:00:00}}", "slurm.limits.grp_wall: is 0, which refuses no submission"),
        ("slurm: {limits: {grp_submit_jobs: 0}}", "slurm.limits.grp_submit_jobs: is 0, which is void wherever a QOS"),
        ("slurm: {limits: {max_jobs: 3, max_submit_jobs: 2}}", "slurm.limits.max_jobs: is above max_submit_jobs"),
        ("users: [{name: bob, limits: {grp_tres: {gres/gpu:h100: 0}}}]", "is evaded by --gres=gpu:1"),
        ("slurm: {qos: [high, low]}", "slurm.qos: has neither a default nor normal"),
        ("network: {allow_from: ['::/0']}", "network.allow_from[0]: is every address"),
    ],
)
def test_warnings(docs, text, warning):
    one = docs(tenant_foo=text)
    assert one.problems() == []
    assert len(one.warnings()) == 1
    assert warning in one.warnings()[0]
    assert one.select("tenant-foo").warnings == one.warnings()


@pytest.mark.parametrize(
    "text",
    [
        "slurm: {limits: {grp_tres: {gres/gpu: 8, 'gres/gpu:h100': 0, license/matlab: 3, mem: 1T, node: 1, billing: 1}}}",
        "slurm: {qos: [normal, high]}",
        "slurm: {qos: [high, low], default_qos: low}\nteams: [{name: t1, qos: [high], default_qos: high}]",
        "slurm: {qos: []}",
        "slurm: {default_qos: low}",
        "slurm: {qos: [normal]}\nteams: [{name: t1, qos: [low], default_qos: low, qos_exception: true}]",
        "slurm: {qos: [normal]}\nusers: [{name: bob, qos: [normal, low], qos_exception: true}]",
        "users: [bob, {name: bob, partition: h100, limits: {max_jobs: 1}}]",
        "slurm: {one_factor: true}\nusers: [bob]\nteams: [{name: t1, users: [{name: eve, fairshare: 3}]}]",
        "slurm: {limits: {grp_tres: {bb/cray: 8, fs/disk: 1, energy: 5}}}",
        "users: [{name: bob, home: tenant-foo}]",
        "isolation: exclusive\ngpu: {sharing: mps}",
    ],
)
def test_no_complaint(docs, text):
    one = docs(tenant_foo=text)
    assert one.problems() == [] and one.warnings() == []


def test_without_the_list_of_the_site_qos_names_are_not_checked(docs):
    from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant import names

    assert docs(policy=names.Policy(), tenant_foo="slurm: {qos: [anything]}").problems() == []


def test_vault_is_for_what_no_plan_shows(docs):
    one = docs(tenant_foo="contacts:\n  - !vault |\n    oof@spo\nusers: [{name: bob, email: !vault 'oof@bob'}]\n")
    assert one.document()["contacts"] == ["ops@foo"]
    assert one.document()["users"][0]["email"] == "bob@foo"
    assert one.select("tenant-foo").secret
    assert not docs(tenant_foo="").select("tenant-foo").secret
    other = docs(tenant_bar="users:\n  - !vault |\n    bob\n")
    assert other.problems("tenant-bar") == [
        "tenant-bar.yml:4: users[0]: may not be a vaulted value, because plans and reports show it; write it in clear"
    ]


def test_messages_never_show_a_vaulted_value(docs):
    text = "contacts:\n  - !vault terces\nnetwork:\n  allow_from:\n    - !vault terces\nretention_days: !vault terces\n"
    found = "\n".join(docs(tenant_foo=text).problems())
    assert found.count("\n") == 3
    assert "secret" not in found
    assert "the vaulted value is not a mail address" in found
    text = (
        "users: [secret-1, secret-1, Secret;2, root]\nslurm: {qos: [secret-3], default_qos: secret-4}\nstate: secret\n"
    )
    text += "teams: [{name: team, users: [{name: secret-1, default_account: secret-5}]}]\nretention_days: secret\n"
    one = docs(vaulted=True, tenant_foo=text)
    found = "\n".join(one.problems() + one.warnings())
    assert len(one.problems()) >= 8
    assert "secret" not in found and "Secret" not in found


def test_a_missing_library_is_named(docs, monkeypatch):
    monkeypatch.setattr(check, "jsonschema", None)
    with pytest.raises(TenantError, match="library jsonschema, version 4 or later.*pip install jsonschema"):
        docs(tenant_foo="")
    monkeypatch.setattr(check, "jsonschema", sys)
    with pytest.raises(TenantError, match="version 4"):
        check.require_library()
