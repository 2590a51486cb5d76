# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import stat

import pytest
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import block_ledger
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.block_ledger import (
    Block,
    Ledger,
    LedgerError,
    Saved,
)


@pytest.fixture(autouse=True)
def _directory(tmp_path, monkeypatch):
    monkeypatch.setattr(block_ledger, "DIRECTORY", str(tmp_path / "state"))


def ledger():
    block = Block("user", "alice", "incident", "a miner", "2026-11-29T23:00:00Z")
    rows = {
        ("ml", "alice", ""): Saved(frozenset({"high", "+low"}), "high", frozenset({block.id})),
        ("ml", "alice", "gpu"): Saved(),
    }
    return Ledger({block.id: block}, rows)


def test_what_is_written_is_read():
    assert block_ledger.read("demo") == Ledger()
    block_ledger.write("demo", ledger())
    assert block_ledger.read("demo") == ledger()
    assert block_ledger.read("DEMO") == ledger()
    assert block_ledger.read("other") == Ledger()


def test_nobody_else_can_read_it_and_nothing_is_left_over():
    block_ledger.write("demo", ledger())
    block_ledger.write("demo", Ledger())
    directory = os.path.dirname(block_ledger.path("demo"))
    assert stat.S_IMODE(os.stat(directory).st_mode) == 0o700
    assert stat.S_IMODE(os.stat(block_ledger.path("demo")).st_mode) == 0o600
    assert os.listdir(directory) == ["blocks-demo.json"]


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "{}", '{"schema": 2, "blocks": [], "rows": []}', '{"schema": 1, "blocks": [{"x": 1}], "rows": []}'],
)
def test_a_file_that_cannot_be_read_is_no_empty_ledger(text):
    block_ledger.write("demo", ledger())
    with open(block_ledger.path("demo"), "w", encoding="utf-8") as handle:
        handle.write(text)
    with pytest.raises(LedgerError, match="nothing is planned without it"):
        block_ledger.read("demo")


def test_a_file_that_others_can_write_to_is_not_believed():
    block_ledger.write("demo", ledger())
    os.chmod(block_ledger.path("demo"), 0o666)
    with pytest.raises(LedgerError, match="alone can write to"):
        block_ledger.read("demo")


def test_a_link_is_not_followed(tmp_path):
    block_ledger.write("demo", ledger())
    (tmp_path / "elsewhere").write_text("{}")
    os.unlink(block_ledger.path("demo"))
    os.symlink(tmp_path / "elsewhere", block_ledger.path("demo"))
    with pytest.raises(LedgerError, match="cannot open"):
        block_ledger.read("demo")


def test_a_write_that_fails_leaves_the_old_file(monkeypatch):
    block_ledger.write("demo", ledger())

    def full(*_given):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(block_ledger.os, "fsync", full)
    with pytest.raises(LedgerError, match="No space left on device; nothing was changed"):
        block_ledger.write("demo", Ledger())
    assert block_ledger.read("demo") == ledger()
    assert os.listdir(os.path.dirname(block_ledger.path("demo"))) == ["blocks-demo.json"]
