# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import gzip
import os

import pytest
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.database import dump, server
from hypothesis import given
from hypothesis import strategies as st


def rows(text: bytes) -> dump.Rows:
    found = dump.Rows()
    for line in text.splitlines(keepends=True):
        found.feed(line)
    return found


DUMP = b"""/*M!999999\\- enable the sandbox mode */
DROP TABLE IF EXISTS `a`;
CREATE TABLE `a` (
  `id` int(11) NOT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB;
LOCK TABLES `a` WRITE;
%s
UNLOCK TABLES;
CREATE TABLE `empty` (
) ENGINE=InnoDB;
-- Dump completed on 2026-11-30  0:22:00
"""


@pytest.mark.parametrize(
    ("insert", "expected"),
    [
        (b"", 0),
        (b"INSERT INTO `a` VALUES (1,'x');", 1),
        (b"INSERT INTO `a` VALUES (1,'x'),(2,'y');\nINSERT INTO `a` VALUES (3,NULL);", 3),
        (b"INSERT INTO `a` VALUES\n(1,'x'),\n(2,'y');", 2),
        (b"INSERT INTO `a` VALUES\n(1,'(a),(b);'),\n(2,'it''s (c)'),\n(3,'\\'(d),');", 3),
        (b"INSERT INTO `a` VALUES\n(1,'a\\\\'),\n(2,0x28282828);", 2),
        (b"INSERT INTO `a` VALUES\n(1,'INSERT INTO `a` VALUES (2)');", 1),
        (b"INSERT INTO `a` VALUES\n(1,'x;'),\n(2,'-- Dump completed');", 2),
    ],
)
def test_rows_are_counted_as_the_server_would(insert, expected):
    found = rows(DUMP % insert)
    assert found.tables == {"a": expected, "empty": 0}
    assert found.complete


def test_a_dump_without_its_end_is_none():
    assert not rows(DUMP.rpartition(b"-- Dump")[0] % b"").complete
    # Nor does a row that says so make one.
    assert not rows(b"INSERT INTO `a` VALUES\n-- Dump completed").complete


def escaped(text: str) -> bytes:
    for char, code in (("\\", "\\\\"), ("'", "\\'"), ("\n", "\\n"), ("\r", "\\r"), ("\0", "\\0"), ("\x1a", "\\Z")):
        text = text.replace(char, code)
    return f"'{text}'".encode()


@given(st.lists(st.lists(st.text(max_size=8), min_size=1, max_size=3), min_size=1, max_size=5), st.booleans())
def test_whatever_users_write_rows_are_counted_right(values, together):
    tuples = [b"(" + b",".join(map(escaped, row)) + b")" for row in values]
    insert = b"INSERT INTO `a` VALUES" + (b" " + b",".join(tuples) if together else b"\n" + b",\n".join(tuples)) + b";"
    found = dump.Rows()
    # As a file is read: a newline, and nothing else, ends a line.
    for line in (DUMP.replace(b"%s", insert)).split(b"\n"):
        found.feed(line + b"\n")
    assert found.tables == {"a": len(values), "empty": 0}
    assert found.complete


@pytest.mark.parametrize(
    ("dumped", "before", "after", "wrong"),
    [
        ({"a": 3}, {"a": 3}, {"a": 3}, []),
        ({"a": 4}, {"a": 3}, {"a": 5}, []),
        ({"a": 2}, {"a": 3}, {"a": 1}, []),
        ({"a": 2}, {"a": 3}, {"a": 3}, ["a has 2 rows, the server 3"]),
        ({"a": 9}, {"a": 3}, {"a": 5}, ["a has 9 rows, the server 3 to 5"]),
        ({}, {"a": 0}, {"a": 0}, ["a is missing"]),
        ({}, {}, {"a": 7}, []),
        ({"a": 1}, {}, {}, ["a has 1 rows, the server 0"]),
    ],
)
def test_a_dump_is_held_against_the_server(dumped, before, after, wrong):
    assert dump.differences(dumped, before, after) == wrong


def test_the_newest_stay_and_strangers_are_left_alone():
    mine = [dump.file_name("acct", f"2026110{day}T000000Z") for day in (3, 1, 2)]
    others = ["acct-20261101T000000Z.sql.gz.json", "acct_old-20200101T000000Z.sql.gz", "acct-mine.sql.gz", "notes"]
    assert dump.outdated([*mine, *others], "acct", 2) == [mine[1]]
    assert dump.outdated(mine, "acct", 3) == []
    assert dump.outdated(mine, "acct", 0) == []


@pytest.mark.parametrize("name", ["", "a b", "a;b", "a`b", "a/b", "x" * 49])
def test_names_that_are_no_word_are_refused(name):
    with pytest.raises(dump.BackupError, match="must match"):
        dump.database(name)


@pytest.fixture
def backup(tmp_path):
    path = tmp_path / "acct-20261101T000000Z.sql.gz"
    path.write_bytes(gzip.compress(DUMP % b"INSERT INTO `a` VALUES (1,'x');"))
    made = dump.Manifest("acct", "20261101T000000Z", server.checksum(str(path)), 1, {"a": 1, "empty": 0})
    (tmp_path / f"{path.name}.json").write_text(made.text())
    return path, made


def test_a_backup_is_read_as_it_was_written(backup):
    path, made = backup
    assert server.verified(str(path)) == made


def test_every_kind_of_damage_is_named(backup):
    path, made = backup
    beside = path.with_name(f"{path.name}.json")

    def says(words):
        with pytest.raises(dump.BackupError, match=words):
            server.verified(str(path))

    whole = path.read_bytes()
    path.write_bytes(whole[:-9])
    says("checksum")
    with pytest.raises(dump.BackupError, match="damaged"):
        server.rows_of(str(path))
    path.write_bytes(gzip.compress(b"CREATE TABLE `a` (\n"))
    with pytest.raises(dump.BackupError, match="ends before"):
        server.rows_of(str(path))
    path.write_bytes(whole)
    beside.write_text(dump.Manifest("acct", "", made.sha256, 1, {"a": 2}).text())
    says("other rows")
    beside.write_text('{"database": "acct"}')
    says("no manifest")
    os.unlink(beside)
    says("a backup is a dump and its .json")
