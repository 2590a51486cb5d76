# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""One database with one account on a MariaDB server. Private to the gpuops.tenancy collection.

The password never leaves the module: MariaDB keeps and accepts its hash, so neither a process list nor a query log
can show it. All SQL goes through the client's standard input.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils._plan import ADD, CHANGE, Change, Plan

_WORD = re.compile(r"^[A-Za-z0-9_]{1,64}$")
_HOST = re.compile(r"^[A-Za-z0-9.%:_-]{1,255}$")
PRIVILEGES = (
    "select", "insert", "update", "delete", "create", "drop", "references", "index", "alter", "create_tmp_table",
    "lock_tables", "create_view", "show_view", "create_routine", "alter_routine", "execute", "event", "trigger",
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Wanted:
    database: str
    user: str
    host: str
    hash: str

    @property
    def account(self) -> str:
        return f"'{self.user}'@'{self.host}'"


@dataclasses.dataclass(frozen=True)
class Current:
    database: bool = False
    user: bool = False
    hash: str = ""
    granted: bool = False


def native_hash(password: str) -> str:
    """How mysql_native_password keeps a password."""
    inner = hashlib.sha1(password.encode(), usedforsecurity=False).digest()
    return f"*{hashlib.sha1(inner, usedforsecurity=False).hexdigest().upper()}"


def wanted(database: str, user: str, host: str, password: str) -> Wanted:
    for what, text, pattern in (("database", database, _WORD), ("user", user, _WORD), ("host", host, _HOST)):
        if not pattern.match(text):
            raise ValueError(f"{what} name {text!r} must match {pattern.pattern}")
    if not password:
        raise ValueError(f"the password of {user} is empty")
    return Wanted(database, user, host, native_hash(password))


def query(want: Wanted) -> str:
    """One row each: whether the database is there, the account's hash, whether it may do everything there."""
    may = " AND ".join(f"{name}_priv = 'Y'" for name in PRIVILEGES)
    escaped = want.database.replace("_", r"\\_")
    # The names are words by the check above; nothing else reaches the text.
    return (
        f"SELECT 'database', COUNT(*) FROM information_schema.schemata WHERE schema_name = '{want.database}';\n"  # noqa: S608
        f"SELECT 'user', authentication_string FROM mysql.user WHERE user = '{want.user}' AND host = '{want.host}';\n"
        f"SELECT 'granted', COUNT(*) FROM mysql.db WHERE user = '{want.user}' AND host = '{want.host}' "
        f"AND db IN ('{want.database}', '{escaped}') AND {may};\n"
    )


def parse(text: str) -> Current:
    rows: dict[str, str] = {}
    for line in text.splitlines():
        name, _tab, value = line.partition("\t")
        rows[name] = value.strip()
    if "database" not in rows or "granted" not in rows:
        raise ValueError(f"MariaDB's answer cannot be understood: {text[:200]!r}")
    return Current(rows["database"] != "0", "user" in rows, rows.get("user", ""), rows["granted"] != "0")


def plan(want: Wanted, now: Current) -> Plan:
    result = Plan()
    if not now.database:
        result.add(Change(ADD, f"database {want.database}"))
    if not now.user:
        result.add(Change(ADD, f"user {want.account}"))
    elif now.hash != want.hash:
        result.add(Change(CHANGE, f"user {want.account}", "password", "another", "the wanted one"))
    if not now.granted:
        result.add(Change(CHANGE, f"user {want.account}", "privileges", None, f"all on {want.database}"))
    return result


def statements(want: Wanted, changes: t.Iterable[Change]) -> list[str]:
    result: list[str] = []
    for change in changes:
        if change.object.startswith("database"):
            result.append(f"CREATE DATABASE IF NOT EXISTS {want.database};")
        elif change.kind == ADD:
            result.append(f"CREATE USER IF NOT EXISTS {want.account} IDENTIFIED BY PASSWORD '{want.hash}';")
        elif change.field == "password":
            result.append(f"ALTER USER {want.account} IDENTIFIED BY PASSWORD '{want.hash}';")
        else:
            result.append(f"GRANT ALL PRIVILEGES ON {want.database}.* TO {want.account};")
    return result


def printable(statement: str) -> str:
    return re.sub(r"PASSWORD '[^']*'", "PASSWORD '********'", statement)
