# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Saving before a removal: nothing goes unless both files are whole. The real dump is tested elsewhere."""

from __future__ import annotations

import json
import os
import stat

import pytest
from accounting_world import EMPTY, account
from ansible_collections.gpuops.tenancy.plugins.module_utils._command import Completed
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import accounting, qos_reconcile, saved
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.client import Client, SlurmError

DUMP = "Cluster - 'c1':Fairshare=1\nParent - 'root'\nAccount - 'foo'\nAccount - 'ml'\nParent - 'ml'\nUser - 'al'\n"


class Server:
    """foo with ml below it, al in ml; ``dump``: what Slurm's dump writes."""

    def __init__(self, dump=DUMP, rc=0, child=""):
        self.dump = dump
        self.rc = rc
        self.child = child
        self.seen = []
        self.gone = set()

    def __call__(self, argv, timeout=60, pass_fds=()):
        text = " ".join(argv)
        self.seen.append(text)
        return Completed(tuple(argv), self.rc if " dump " in text else 0, self.answer(argv, text), "")

    def answer(self, argv, text):
        if " dump " in text:
            with open(argv[-1].partition("=")[2], "w", encoding="utf-8") as handle:
                handle.write(self.dump)
            return ""
        if " delete " in text:
            self.gone.add("al" if "delete user" in text else "ml")
            return ""
        rows = [row for row in (("foo", ""), ("ml", ""), ("ml", "al")) if not set(row) & self.gone]
        parents = {"foo": "root", "ml": "foo"}
        names = [name for name, who in rows if not who]
        if "-V" in text:
            return "slurm 24.11.5\n"
        if "format=account,parentname" in text:
            return "root|\n" + "".join(f"{name}|{parents[name]}\n" for name in names) + self.child
        if "account,id,parentid" in text:
            return "root|1|0\nfoo|2|1\nml|3|2\n"
        if "assoc" in text and "wopi" in text and "comment" in text.rpartition("=")[2]:
            return "root|||\n" + "".join(f"{name}|{who}||\n" for name, who in rows)
        if "assoc" in text and "wopi" in text:
            return f"root||{EMPTY}\n" + "".join(f"{name}|{who}|{EMPTY}\n" for name, who in rows)
        if "assoc" in text:
            return "root||||n\n" + "".join(f"{name}|{who}||{'' if who else parents[name]}|n\n" for name, who in rows)
        if "account,coordinators" in text:
            return "".join(f"{name}||None\n" for name in ["root", *names])
        if "account,description" in text or "account,organization" in text:
            return "".join(f"{name}|{name}\n" for name in ["root", *names])
        if "show user" in text:
            return "root|root|Administrator|\n" + ("" if "al" in self.gone else "al|ml|None|\n")
        if "show cluster" in text:
            return "c1\n"
        if "show tres" in text:
            return "cpu|\n"
        if "name,description" in text:
            return "n|n\n"
        if "show qos" in text and "," in text.rpartition("format=")[2]:
            return "n" + "|" * text.rpartition("format=")[2].count(",") + "\n"
        if "show qos" in text:
            return "n\n"
        if text.startswith("squeue"):
            return ""
        raise AssertionError(text)


def remove(server, folder, **params):
    params = {
        "scope": ["foo"],
        "accounts": [account("foo")],
        "users": [],
        "exclusive": True,
        "max_removals": 9,
        "save_dir": str(folder),
        **params,
    }
    return accounting.reconcile(params, False, Client("c1", runner=server), None)


def deleted(server):
    return [text for text in server.seen if " delete " in text]


def test_what_goes_is_saved_first_for_its_owner_alone(tmp_path):
    server, folder = Server(), tmp_path / "saved"
    result = remove(server, folder)
    assert len(deleted(server)) == 2
    position = [" dump " in text for text in server.seen].index(True)
    assert not any(" delete " in text for text in server.seen[:position])
    assert sorted(result["saved"]) == sorted(str(path) for path in folder.iterdir())
    assert {path.suffix for path in folder.iterdir()} == {".json", ".dump"}
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    content = json.loads(next(folder.glob("*.json")).read_text())
    assert [item["name"] for item in content["tenants"]["foo"]["accounts"]] == ["foo", "ml"]
    assert content["tenants"]["foo"]["users"][0]["associations"][0]["account"] == "ml"
    assert (content["cluster"], [item["name"] for item in content["qos"]]) == ("c1", ["n"])


@pytest.mark.parametrize(
    "server",
    [Server(dump=""), Server(dump=DUMP.replace("User - 'al'\n", "")), Server(rc=1)],
    ids=["empty", "cut off", "failed"],
)
def test_without_a_whole_dump_nothing_goes(tmp_path, server):
    with pytest.raises(SlurmError, match="of 3 rows .*so nothing is removed"):
        remove(server, tmp_path)
    assert deleted(server) == []
    assert not list(tmp_path.glob(".dump*"))


def test_without_a_place_nothing_goes(tmp_path):
    place = tmp_path / "file"
    place.write_text("")
    server = Server()
    with pytest.raises(SlurmError, match="cannot be saved in .*so nothing is removed"):
        remove(server, place)
    assert deleted(server) == []


def test_a_run_that_removes_nothing_saves_nothing(tmp_path):
    server = Server()
    assert remove(server, tmp_path / "saved", exclusive=False)["saved"] == []
    assert not (tmp_path / "saved").exists()


def test_a_child_that_appeared_meanwhile_stops_the_removal_of_its_account(tmp_path):
    server = Server(child="new|ml\n")
    with pytest.raises(SlurmError, match="account new appeared below what was to be removed"):
        remove(server, tmp_path)
    assert all("delete user" in text for text in deleted(server))


def test_the_oldest_go(tmp_path, monkeypatch):
    monkeypatch.setattr(saved, "KEPT", 2)
    names = [f"c1-2020010{day}T000000.000Z.{kind}" for day in (1, 2, 3) for kind in ("json", "dump")]
    others = ["c1-notes.json", "c10-20200101T000000.000Z.json", "blocks-c1.json"]
    for name in names + others:
        (tmp_path / name).write_text("")
    new = saved.keep(Client("c1", runner=Server()), str(tmp_path))
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {*others, *names[-2:], *(os.path.basename(path) for path in new)}


def test_a_qos_that_goes_is_saved(tmp_path, monkeypatch):
    server = Server()
    monkeypatch.setattr("ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.qos_use.read", lambda *_: {})

    def run(argv, timeout=60, pass_fds=()):
        if "delete" in argv:
            server.gone.add("n")
        done = server(argv, timeout, pass_fds)
        if "n" in server.gone and "show" in argv and "qos" in argv:
            return Completed(done.argv, 0, "", "")
        return done

    params = {"qos": [{"name": "n"}], "state": "absent", "save_dir": str(tmp_path)}
    result = qos_reconcile.reconcile(params, False, Client("", runner=run), None)
    content = json.loads(next(tmp_path.glob("qos-*.json")).read_text())
    assert [item["name"] for item in content["qos"]] == ["n"]
    assert len(result["saved"]) == 1
