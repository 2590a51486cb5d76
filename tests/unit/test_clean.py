# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""`make clean` removes what it can, also when something resists, and says what is left."""

from __future__ import annotations

import importlib
import pathlib
import sys

import pytest

CLUSTER = pathlib.Path(__file__).resolve().parents[2] / "tests" / "cluster"
BUSY = "gpuops-tenancy/host:busy"


class Engine:
    """An engine with two images, one of them in use, and a container that a killed build has left."""

    def __init__(self, made=None):
        self.calls, self.made = [], made

    def lines(self, *args):
        if args[0] == "images":
            return [BUSY, "gpuops-tenancy/snapshot:free"]
        if "label=gpuops.tenancy.builder" in args:
            return ["left-by-a-build"]
        if "-a" in args and self.made:
            return [self.made]
        return []

    def ok(self, *args):
        self.calls.append(args)
        return args != ("rmi", BUSY)

    def __call__(self, *args, **_kwargs):
        self.calls.append(args)
        return ""

    def stop(self):
        self.calls.append(("stop",))


@pytest.fixture
def cluster(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(CLUSTER))
    before = set(sys.modules)
    module = importlib.import_module("cluster")
    monkeypatch.setattr(module, "state", lambda name: tmp_path / name)
    monkeypatch.setattr(module.inventory, "path", lambda name: tmp_path / f"{name}.yml")
    yield module
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_an_image_in_use_stops_nothing_else(cluster, capsys):
    engine = Engine()
    assert cluster.clean(engine) == 1
    assert {("rm", "-f", "left-by-a-build"), ("rmi", "gpuops-tenancy/snapshot:free"), ("stop",)} <= set(engine.calls)
    assert f"not removed: image {BUSY}" in capsys.readouterr().err


def test_a_cluster_of_another_clone_is_left_and_named(cluster, capsys, tmp_path):
    engine = Engine('{"release": "12", "clone": "' + str(tmp_path) + '"}')
    assert cluster.clean(engine) == 1
    assert f"cluster is from {tmp_path}" in capsys.readouterr().err
    assert ("rmi", "gpuops-tenancy/snapshot:free") in engine.calls


def test_the_target_removes_the_secrets_whatever_the_engine_says():
    text = (CLUSTER.parents[1] / "Makefile").read_text()
    recipe = text.partition("\nclean:")[2].partition("\n\n")[0]
    assert "inventories/demo/secrets" in recipe
    assert "exit $$code" in recipe
