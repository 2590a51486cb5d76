# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Several documents: who may have which name, and whose fault is whose."""

from __future__ import annotations

import time

import pytest
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant import folder, ledger, load, names
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.errors import TenantError

HOME = "users: [{name: bob, member_of: [tenant-foo]}]"
GUEST = "users: [{name: bob, home: tenant-bar}]"


def test_two_tenants_with_a_team_of_the_same_name(docs):
    both = docs(tenant_foo="teams: [{name: ml}]", tenant_bar="teams:\n  - name: ml")
    assert both.problems("tenant-foo") == [
        "tenant-foo.yml:3: teams[0].name: 'ml' is already an account in tenant-bar.yml:4 (a team); account names are "
        "global in a Slurm cluster: prefix it with the tenant's name"
    ]
    assert "tenant-foo.yml:3 (a team)" in both.problems("tenant-bar")[0]


def test_a_team_with_the_name_of_another_tenant(docs):
    both = docs(tenant_foo="teams: [{name: Tenant-Bar}]", tenant_bar="")
    assert "is already an account in tenant-bar.yml:2 (the tenant itself)" in both.problems("tenant-foo")[0]
    assert "rename one of the two" in both.problems("tenant-bar")[0]


def test_one_tenant_in_two_files():
    sources = [load.parse("schema: 1\nname: a\n", name) for name in ("a.yml", "a.yaml")]
    first, second = folder.check_sources(sources, names.Policy())
    assert [str(one) for one in first.problems] == [
        "a.yml:2: name: is also the tenant of a.yaml:2; one tenant has one document"
    ]
    assert len(second.problems) == 1


def test_a_user_of_two_tenants(docs):
    both = docs(tenant_foo="users: [bob]", tenant_bar="users: [bob]")
    assert both.problems("tenant-foo") == [
        "tenant-foo.yml:3: users[0]: 'bob' is also a user of tenant-bar.yml:3; if it is one person, write "
        "'home: tenant-bar' here and 'member_of: [tenant-foo]' there, or the other way round; if not, rename one of the two"
    ]
    assert len(both.problems("tenant-bar")) == 1


def test_a_guest_with_both_documents(docs):
    both = docs(tenant_foo="users: [{name: bob, home: tenant-bar, limits: {max_jobs: 1}}]", tenant_bar=HOME)
    guest = both.document("tenant-foo")["users"][0]
    home = both.document("tenant-bar")["users"][0]
    assert (guest["guest"], guest["home"], guest["default_account"]) == (True, "tenant-bar", None)
    assert (home["guest"], home["home"], home["default_account"]) == (False, "tenant-bar", "tenant-bar")
    assert home["member_of"] == ["tenant-foo"]
    assert guest["associations"][0]["limits"] == {"max_jobs": 1} and home["associations"][0]["limits"] == {}


@pytest.mark.parametrize(
    ("guest", "home", "problem"),
    [
        (GUEST, "users: [bob]", "users[0].home: the home tenant does not agree; add 'member_of: [tenant-foo]' to the user"),
        (GUEST, "users: [eve]", "users[0].home: tenant-bar.yml does not list this user"),
        (GUEST, "users: [{name: bob, home: tenant-foo}]", "users[0].home: tenant-bar.yml says that its home is yet another"),
        ("users: [{name: bob, home: tenant-baz}]", "", "no document of tenant 'tenant-baz' was found; did you mean tenant-bar"),
        ("users: [{name: bob, member_of: [tenant-baz]}]", "", "users[0].member_of[0]: no document of tenant 'tenant-baz'"),
        ("users: [{name: bob, home: tenant-bar, email: b@c}]", HOME, "users[0].email: is set by the user's home tenant only"),
        ("users: [{name: bob, home: tenant-bar, default_account: tenant-foo}]", HOME, "users[0].default_account: is set by"),
        ("users: [{name: bob, home: tenant-bar, member_of: [tenant-bar]}]", HOME, "users[0].member_of: is set by"),
    ],
)  # fmt: skip
def test_a_guest_who_is_none(docs, guest, home, problem):
    both = docs(tenant_foo=guest, tenant_bar=home)
    assert len(both.problems("tenant-foo")) == 1
    assert problem in both.problems("tenant-foo")[0]


def test_an_invitation_alone_is_no_problem(docs):
    both = docs(tenant_foo="", tenant_bar=HOME)
    assert both.problems("tenant-foo") == both.problems("tenant-bar") == []


def test_a_guest_in_two_teams_needs_no_default(docs):
    teams = "teams:\n" + "".join(f"  - {{name: t{n}, users: [{{name: bob, home: tenant-bar}}]}}\n" for n in (1, 2))
    assert docs(tenant_foo=teams, tenant_bar=HOME).problems("tenant-foo") == []


def test_another_tenants_broken_document_is_a_warning(docs):
    both = docs(tenant_foo="users: [alice]", tenant_bar="users: [bob, root]\ntypo: 1\n")
    chosen = both.select("tenant-foo", "alice")
    assert chosen.user["name"] == "alice"
    assert [one["name"] for one in chosen.tenants] == ["tenant-foo"]
    assert chosen.warnings == [
        "tenant tenant-bar is left out, its document has 2 problem(s), the first is: tenant-bar.yml:3: users[1]: 'root' is "
        "a system account or group; choose another name"
    ]
    assert [one["tenant"] for one in chosen.broken] == ["tenant-bar"]
    assert [one["line"] for one in chosen.broken[0]["problems"]] == [4, 3]


def test_a_document_that_is_no_yaml_is_a_warning_too(docs):
    both = docs(tenant_foo="users: [alice]", tenant_bar="users: [bob\n")
    assert "tenant-bar.yml:4: is not valid YAML" in both.select("tenant-foo").warnings[0]


@pytest.mark.parametrize(
    ("guest", "home", "problem"),
    [
        ("users: [bob]", "users: [bob]\ntypo: 1\n", "'bob' is also a user of tenant-bar.yml:3"),
        ("teams: [{name: ml}]", "teams: [{name: ml, typo: 1}]", "'ml' is already an account in tenant-bar.yml:3"),
        ("teams: [{name: tenant-bar}]", "users: [\n", "'tenant-bar' is already an account in tenant-bar.yml"),
        (GUEST, "users: [\n", "the document of tenant 'tenant-bar' cannot be read, so nothing proves the membership"),
    ],
)
def test_a_broken_document_that_touches_this_tenant_stops_it(docs, guest, home, problem):
    with pytest.raises(TenantError, match="1 problem") as caught:
        docs(tenant_foo=guest, tenant_bar=home).select("tenant-foo")
    assert problem in str(caught.value)


def test_without_a_selection_every_broken_document_stops(docs):
    three = docs(tenant_foo="", tenant_bar="typo: 1", tenant_baz="typo: 1")
    with pytest.raises(TenantError) as caught:
        three.select()
    assert "of tenant-bar, tenant-baz; nothing was changed" in str(caught.value)
    assert [one.file for one in caught.value.problems] == ["tenant-bar.yml", "tenant-baz.yml"]
    assert len(docs(tenant_foo="", tenant_bar="").select().tenants) == 2


def test_selection(docs):
    both = docs(tenant_foo="users: [alice]", tenant_bar="users: [bob]")
    assert both.select("Tenant-FOO").tenant["name"] == "tenant-foo"
    with pytest.raises(TenantError, match="no document of tenant 'tenant-fo'; did you mean tenant-foo"):
        both.select("tenant-fo")
    with pytest.raises(TenantError, match="no document of tenant ''; there are: tenant-bar, tenant-foo"):
        both.select("")
    with pytest.raises(TenantError, match="tenant tenant-foo has no user 'alise'; did you mean alice"):
        both.select("tenant-foo", "alise")
    with pytest.raises(TenantError, match="tenant tenant-foo has no user ''; add the user"):
        both.select("tenant-foo", "")
    with pytest.raises(TenantError, match="without a tenant"):
        both.select(None, "alice")


def test_a_suspended_tenant_stays_suspended(docs):
    assert docs(tenant_foo="state: suspended").select("tenant-foo").tenant["state"] == "suspended"


def test_folders(tmp_path):
    with pytest.raises(TenantError, match="cannot be read: No such file or directory; set tenancy_tenants_dir"):
        folder.files(str(tmp_path / "none"))
    with pytest.raises(TenantError, match="holds no tenant document"):
        folder.files(str(tmp_path))
    for name in ("b.yml", "a.yaml", ".c.yml", "d.txt"):
        (tmp_path / name).write_text(f"schema: 1\nname: {name[0]}\n")
    paths = folder.files(str(tmp_path))
    assert [path[-6:] for path in paths] == ["a.yaml", "/b.yml"]
    (tmp_path / "b.yml").write_bytes(b"\xff")
    first, second = folder.load(paths, folder.read_plain, names.Policy())
    assert first.document["name"] == "a"
    assert "cannot be read: it is not UTF-8 text" in str(second.problems[0])


def test_the_ledger():
    text = "retired: [tenant-old, {name: Bob, since: 2026-01-01}]\nother: 1\n"
    assert ledger.retired(load.parse(text, "l.yml")) == {"tenant-old", "bob"}
    assert ledger.retired(load.parse("retired: []\n", "l.yml")) == frozenset()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "is empty"),
        ("retird: []\n", "has no list 'retired'"),
        ("retired:\n", "has no list 'retired'"),
        ("retired: [1003]\n", r"l.yml:1: retired\[0\]: is neither a name"),
        ("retired: [{nam: x}]\n", "is neither a name"),
        ("retired: [\n", "is not valid YAML"),
    ],
)
def test_a_ledger_that_is_not_understood_gives_no_name_away(text, why):
    with pytest.raises(TenantError, match=why):
        ledger.retired(load.parse(text, "l.yml"))


def test_the_work_grows_with_the_users_not_with_their_square(docs):
    """8,000 users take about a second; anything quadratic takes half a minute."""
    start = time.monotonic()
    both = docs(
        tenant_foo="users:\n" + "".join(f"- {{name: a{number}, full_name: A}}\n" for number in range(4000)),
        tenant_bar="users:\n" + "".join(f"- b{number}\n" for number in range(4000)),
    )
    assert len(both.document("tenant-foo")["users"]) == 4000
    assert time.monotonic() - start < 10
