# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node that gets another owner: nothing of the one before stays, nor comes back by itself."""

from __future__ import annotations

import os
import pwd

import clean
import pytest

# Whoever runs the tests is the only one whose files can be made here.
ME = os.getuid()
NAMES = {"alice": ME, "admin": ME + 1, "messagebus": 100}


@pytest.fixture
def node(tmp_path, monkeypatch):
    """A node without processes, and its configuration."""
    for name in ("proc", "spool", "tmp", "local", "cron", "linger", "mqueue"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.setattr(clean, "PROC", str(tmp_path / "proc"))
    monkeypatch.setattr(clean, "MQUEUE", str(tmp_path / "mqueue"))
    monkeypatch.setattr(clean, "SPOOLS", (str(tmp_path / "cron"), str(tmp_path / "no-such-spool")))
    monkeypatch.setattr(clean, "LINGER", str(tmp_path / "linger"))
    monkeypatch.setattr(clean, "everybody", lambda config: lambda uid: uid == ME)

    def getpwnam(name):
        return pwd.struct_passwd((name, "x", NAMES[name], NAMES[name], "", "/", "/bin/sh"))

    monkeypatch.setattr(clean.pwd, "getpwnam", getpwnam)
    return {
        "spool": str(tmp_path / "spool"),
        "patience": 1,
        "directories": [str(tmp_path / "tmp")],
        "devices": [],
        "exempt_users": ["operator"],
        "scrub_directories": [str(tmp_path / "local")],
        "scrub_patience": 1,
    }


PLACES = ("tmp/x", "local/alice/deep/x", "cron/alice", "cron/at/a00001", "linger/alice", "mqueue/q")


@pytest.mark.parametrize("place", PLACES)
def test_what_is_left_is_found_wherever_it_is(node, tmp_path, place):
    assert clean.left(node) == []
    (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / place).touch()
    assert len(clean.left(node)) == 1


def test_all_of_it_goes(node, tmp_path):
    for place in PLACES:
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).touch()
    assert clean.scrub(node).broken == []
    assert clean.left(node) == []
    assert [place for place in PLACES if (tmp_path / place).exists()] == []


def test_who_may_have_services_without_a_login(node, tmp_path):
    for name in ("alice", "admin", "messagebus", "operator", "gone"):
        (tmp_path / "linger" / name).touch()
    clean.scrub(node)
    assert sorted(path.name for path in (tmp_path / "linger").iterdir()) == ["admin", "messagebus", "operator"]


def test_a_disk_that_could_not_be_looked_through_is_not_clean(node, tmp_path):
    (tmp_path / "local" / "folder").mkdir()
    assert clean.left({**node, "scrub_patience": -1}) != []
