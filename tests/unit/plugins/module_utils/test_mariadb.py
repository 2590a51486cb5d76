# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.gpuops.tenancy.plugins.module_utils import _mariadb

WANT = _mariadb.wanted("slurm_acct_db", "slurm", "localhost", "secret")
GOOD = f"database\t1\nuser\t{WANT.hash}\ngranted\t1\n"


def test_hash_is_the_servers():
    # SELECT PASSWORD('secret') on MariaDB 10.11.
    assert _mariadb.native_hash("secret") == "*14E65567ABDB5135D0CFD9A70B3032C179A49EE7"


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (GOOD, []),
        ("database\t0\ngranted\t0\n", ["CREATE DATABASE", "CREATE USER", "GRANT ALL"]),
        (f"database\t1\nuser\t{WANT.hash}\ngranted\t0\n", ["GRANT ALL"]),
        ("database\t1\nuser\t*OTHER\ngranted\t1\n", ["ALTER USER"]),
        ("database\t1\nuser\t\ngranted\t1\n", ["ALTER USER"]),
    ],
)
def test_plan_and_statements(said, expected):
    plan = _mariadb.plan(WANT, _mariadb.parse(said))
    statements = _mariadb.statements(WANT, plan)
    assert len(statements) == len(expected)
    for statement, beginning in zip(statements, expected):
        assert statement.startswith(beginning)
        assert "secret" not in statement
        assert WANT.hash not in _mariadb.printable(statement)


@pytest.mark.parametrize("said", ["", "ERROR 1045", "user\tx\n"])
def test_an_answer_that_is_none_changes_nothing(said):
    with pytest.raises(ValueError, match="cannot be understood"):
        _mariadb.parse(said)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("a;b", "u", "h", "p"), "database name"),
        (("a", "u'--", "h", "p"), "user name"),
        (("a", "u", "h'", "p"), "host name"),
        (("a", "u", "h", ""), "is empty"),
    ],
)
def test_names_that_could_be_sql(args, words):
    with pytest.raises(ValueError, match=words):
        _mariadb.wanted(*args)
