# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant import load, names


def read(text, **options):
    return load.parse(text, "a.yml", **options)


def told(text, **options):
    return [str(one) for one in read(text, **options).problems]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("48:00:00", "48:00:00"),  # YAML 1.1 makes 172800 of it
        ("1-00:00:00", "1-00:00:00"),
        ("2026-11-29", "2026-11-29"),
        ("12", 12),
        ("1_000", 1000),
        ("-1", -1),
        ("1.5", 1.5),
        ("yes", True),
        ("Off", False),
        ("~", None),
        ("'12'", "12"),
        ("!!str 12", "12"),
        ("=", "="),
    ],
)
def test_scalars(text, value):
    source = read(f"key: {text}\n")
    assert source.problems == []
    assert source.data == {"key": value}
    assert type(source.data["key"]) is type(value)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "a.yml:1: is empty; a tenant document starts with 'schema: 1' and 'name:'"),
        ("- a\n", "a.yml:1: is not a mapping of keys to values; it starts with 'schema: 1' and 'name:'"),
        ("a: 1\n---\nb: 2\n", "a.yml:2: holds a second document; write one tenant per file"),
        ("a: [1\nb: 2\n", "a.yml:2: is not valid YAML: did not find expected ',' or ']'"),
        ("a:\n\t- b\n", "a.yml:2: is not valid YAML: found character that cannot start any token"),
        ("a: *b\n", "a.yml:1: is not valid YAML: found undefined alias"),
        ("a: 1\nb: \x07\n", "a.yml:2: is not valid YAML: it holds a character that YAML does not allow"),
        ("a: \udcff\n", "a.yml:1: is not valid YAML: it holds a character that YAML does not allow"),
        ("a: 1\nb: 2\na: 3\n", "a.yml:3: a: is given twice (first on line 1); keep one of them"),
        ("a: {b: 1, b: 2}\n", "a.yml:1: a.b: is given twice (first on line 1); keep one of them"),
        ("1003: x\n", "a.yml:1: 1003: is a key that YAML reads as a number; quote it"),
        ("a:\n  on: x\n", "a.yml:2: a.on: is a key that YAML reads as a boolean; quote it"),
        ("? [a]\n: b\n", "a.yml:1: has a key that is itself a list or a mapping"),
        ("a: {{ x }}\n", "a.yml:1: a: has a key that is itself a list or a mapping; if '{{ ... }}' was meant"),
        ("a: '{{ x }}'\n", "a.yml:1: a: contains a template expression; documents are data and are never templated"),
        ("a: 'x{% if y %}'\n", "a.yml:1: a: contains a template expression"),
        ("a: 010\n", "a.yml:1: a: is written as 010; write a plain decimal number"),
        ("a: 0x1f\n", "a.yml:1: a: is written as 0x1f; write a plain decimal number"),
        ("a: " + "9" * 5000 + "\n", "a.yml:1: a: is written as 9999"),
        ("a: .inf\n", "a.yml:1: a: is .inf, which is no number to count with"),
        ("a: !foo x\n", "a.yml:1: a: has the tag !foo, which has no meaning here; remove it"),
        ("a: !!python/object:os.system x\n", "a.yml:1: a: has the YAML type python/object:os.system"),
        ("a: !!set {x: null}\n", "a.yml:1: a: has the tag tag:yaml.org,2002:set"),
        ("a: &x [*x]\n", "a.yml:1: a[0]: contains itself through an alias"),
        ("a: &x\n  <<: *x\n", "a.yml:2: a.<<: contains itself through an alias"),
        ("a:\n  <<: [x]\n", "a.yml:2: a.<<: merges something that is not a mapping"),
        ("a: " + "[" * 40 + "]" * 40 + "\n", "a.yml:1: is nested too deeply"),
    ],
)
def test_what_is_refused(text, problem):
    found = told(text)
    assert len(found) == 1
    assert found[0].startswith(problem)


@pytest.mark.parametrize("fast", [True, False])
def test_a_bottomless_document(fast, monkeypatch):
    if not fast:
        monkeypatch.delattr(load.yaml, "CSafeLoader", raising=False)
    for text in ("a: " + "[" * 100000, "- " * 100000, "{a: " * 100000):
        (found,) = told(text)
        assert "nested too deeply" in found or "nesting depth" in found


def test_aliases_cannot_blow_up_the_memory():
    tower = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
    tower += "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12))
    assert ["is too large" in one for one in told(tower)] == [True]
    chain = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 3000))
    assert all("is nested too deeply" in one for one in told(chain))
    merges = "m0: &m0 {a: 1}\n" + "".join(f"m{n}: &m{n} {{<<: [*m{n - 1}, *m{n - 1}]}}\n" for n in range(1, 40))
    assert any("is too large" in one for one in told(merges))


def test_every_problem_is_reported_and_the_rest_is_read():
    source = read("a: 1\na: 2\nb: {{ x }}\nc: !foo y\nd: 4\n")
    assert [one.line for one in source.problems] == [2, 3, 4]
    assert source.data["a"] == 1 and source.data["d"] == 4


def test_merge_keys():
    source = read(
        "one: &one {a: 1, b: 1}\ntwo: &two {b: 2, c: 2}\nall:\n  <<: [*one, *two]\n  a: 3\nquoted: {'<<': 1}\n"
    )
    assert source.problems == []
    assert source.data["all"] == {"a": 3, "b": 1, "c": 2}
    assert source.data["quoted"] == {"<<": 1}
    assert source.line(("all", "a")) == 5
    assert source.line(("all", "b")) == 1


def test_lines():
    source = read("a: 1\nb:\n  - x\n  - c: 2\n    d:\n      e: 1\n")
    assert source.line(("b", 0)) == 3
    assert source.line(("b", 1, "d")) == 5
    assert source.line(("b", 1, "d", "e")) == 6
    assert source.line(("b", 1, "missing")) == 4
    assert source.line(("missing",)) == 1


def test_a_single_vaulted_value():
    source = read("a: !vault |\n  olleh\nb: clear\n", decrypt=lambda text: text.strip()[::-1])
    assert source.data == {"a": "hello", "b": "clear"}
    assert source.show(("a",), "hello") == "the vaulted value"
    assert source.show(("b",), "clear") == "'clear'"


def test_a_vaulted_value_that_cannot_be_read():
    def decrypt(text):
        raise ValueError("no vault secret opens it")

    assert told("a: !vault |\n  x\n", decrypt=decrypt) == [
        "a.yml:1: a: is vaulted and cannot be read: no vault secret opens it"
    ]
    assert "give --vault-id" in told("a: !vault |\n  x\n")[0]


def test_a_template_in_a_vaulted_value_is_refused_without_showing_it():
    (found,) = told("a: !vault |\n  x\n", decrypt=lambda text: "{{ lookup('secret') }}")
    assert "template expression" in found and "lookup" not in found


def test_nothing_of_a_vaulted_file_is_shown():
    source = read("a: 010\nb: 5\n", vaulted=True)
    assert source.show(("b",), 5) == "the vaulted value"
    assert "010" not in str(source.problems[0])


def test_the_slower_parser_reads_the_same(monkeypatch):
    text = "a: &x {b: [1, 48:00:00]}\nc: {<<: *x, d: 'e'}\n"
    fast = read(text)
    monkeypatch.delattr(load.yaml, "CSafeLoader", raising=False)
    slow = read(text)
    assert (slow.data, slow.lines) == (fast.data, fast.lines)


@pytest.mark.parametrize("name", ["alice", "a", "0x", "a.b-c_d", "1a", "x" * 32])
def test_names(name):
    assert names.shape(name, names.USER_LENGTH) is None


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "is empty"),
        ("1003", "has no letter"),
        ("1.0", "has no letter"),
        ("a b", "a blank"),
        ("o'neil", "a quote"),
        ('a"b', "a quote"),
        ("a\nb", "a line break"),
        ("alice\n", "a line break"),
        ("a;b", "contains ';'"),
        ("$(id)", "'$', '(', ')'"),
        ("a|b", "contains '|'"),
        ("Alice", "contains 'A'"),
        ("älice", "contains 'ä'"),
        ("-a", "starts with '-'"),
        (".a", "starts with '.'"),
        ("x" * 33, "has 33 characters"),
        ("\u212a", "contains"),  # KELVIN SIGN, whose lower case is k
    ],
)
def test_malformed_names(name, why):
    assert why in names.shape(name, names.USER_LENGTH)


def test_only_ascii_is_folded():
    assert names.fold("Alice") == "alice"
    assert names.fold("\u212ai") == "\u212ai"
    assert names.fold(3) == 3
    assert names.fold_text("Équipe ML") == "Équipe ml"


@pytest.mark.parametrize(
    ("name", "account", "why"),
    [
        ("root", True, "operators' own account"),
        ("platform", True, "operators' own account"),
        ("platform", False, "reserved"),
        ("root", False, "system account"),
        ("slurm", False, "system account"),
        ("nobody", False, "system account"),
        ("docker", True, "system account or group"),
        ("systemd-network", False, "system account"),
        ("anna", False, "an operator's name"),
        ("house", True, "reserved"),
        ("gone", True, "is retired"),
        ("tenant-foo", True, None),
    ],
)
def test_refused_names(name, account, why):
    policy = names.Policy(operators=frozenset({"anna"}), reserved=frozenset({"house"}), retired=frozenset({"gone"}))
    found = names.refused(name, policy, account)
    assert found is None if why is None else why in found
