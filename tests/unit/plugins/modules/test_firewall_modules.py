# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""At whatever step a run dies, rules that nobody confirmed are on their way out."""

from __future__ import annotations

import types

import pytest
from ansible_collections.gpuops.tenancy.plugins.module_utils import _command, _files
from ansible_collections.gpuops.tenancy.plugins.module_utils._firewall import connection, host, rules, runtime
from ansible_collections.gpuops.tenancy.plugins.module_utils._firewall.values import FirewallError
from ansible_collections.gpuops.tenancy.plugins.modules import firewall, firewall_confirm

ADMINS = ["10.0.0.0/24"]


class Died(Exception):
    """The run was killed."""


class World:
    """Kernel, disk and systemd of a host that dies after so many steps. Tables are their own texts."""

    nft = "nft"

    def __init__(self, main=None, boot=None):
        self.tables = {rules.TABLE: main}
        self.files = {} if boot is None else {host.MAIN: boot}
        self.timer = None
        self.unit = {"enabled": False, "started": False}
        self.left = -1
        self.clock = 100.0

    def step(self):
        if self.left == 0:
            raise Died
        self.left -= 1
        self.clock += 1

    # Files.
    def read(self, path):
        return self.files.get(path)

    def write(self, path, text, mode=0o600):
        self.step()
        self.files[path] = text

    def remove(self, *paths):
        for path in paths:
            self.step()
            self.files.pop(path, None)

    def unlink(self, path):
        del self.files[path]

    # Host.
    def listing(self, table):
        return self.tables.get(table)

    def shown(self, text, table):
        return text

    def check(self, path):
        assert "nonsense" not in self.files[path]

    def load(self, path):
        self.step()
        text = self.files[path]
        self.tables[runtime.TABLE if path in (host.RUNTIME, host.SAVED) else rules.TABLE] = text

    def save_runtime(self):
        self.write(host.SAVED, self.tables[runtime.TABLE])

    def armed(self):
        return self.timer is not None

    def arm(self, running, seconds, kept=None):
        self.write(host.WAY_BACK, kept or running or "")
        self.step()
        self.timer = seconds

    def disarm(self):
        self.step()
        self.timer = None

    def await_confirmation(self, seconds, timer):
        self.step()
        self.files[host.WAITING] = ""
        self.wait = {"loaded": self.clock, "seconds": seconds, "timer": timer}

    def waiting(self):
        return self.wait if host.WAITING in self.files else None

    def units(self):
        return {host.UNIT_FILE: "unit", host.DROP_IN: "drop-in"}

    def enabled(self):
        return self.unit["enabled"]

    def started(self):
        return self.unit["started"]

    def run(self, *argv, **_options):
        self.step()
        if "enable" in argv:
            self.unit["enabled"] = True
        if "start" in argv:
            self.unit["started"] = True
            self.tables[rules.TABLE] = self.files[host.MAIN]

    def time_is_up(self):
        if self.timer is not None:
            self.tables[rules.TABLE] = self.files[host.WAY_BACK] or None
            self.timer = None


@pytest.fixture
def world(monkeypatch):
    made = World()
    monkeypatch.setattr(_command, "find", lambda program, search_path: program)
    monkeypatch.setattr(host, "read", made.read)
    monkeypatch.setattr(host, "remove", made.remove)
    monkeypatch.setattr(host, "make_directories", lambda: None)
    monkeypatch.setattr(_files, "write", made.write)
    monkeypatch.setattr(firewall.os, "unlink", made.unlink)
    monkeypatch.setattr(firewall.time, "sleep", lambda seconds: made.step())
    monkeypatch.setattr(runtime, "structure", lambda admins: "structure")
    monkeypatch.setattr(runtime, "without_kept", lambda text: text)
    made.connected = 0.0
    monkeypatch.setattr(connection, "current", lambda: connection.Connection("10.0.0.1", made.connected))
    return made


def load(world, text, check=False):
    params = {"rules": text, "introduction": f"introduction of {text}", "settle": 5, "admins": ADMINS, "timeout": 60}
    result = {"commands": [], "confirm": False}
    module = types.SimpleNamespace(params={**params, "search_path": ["/bin"]}, check_mode=check, warn=lambda text: None)
    firewall.present(module, world, result)
    return result


def confirm(world):
    world.connected = world.clock + 1
    done = []
    firewall_confirm.confirm({"local": False}, world, done)
    return done


def converge(world, text):
    if load(world, text)["confirm"]:
        confirm(world)


def in_force(world):
    return world.tables[rules.TABLE]


def test_a_run_that_lives_converges_and_the_next_one_changes_nothing(world):
    converge(world, "old")
    assert (in_force(world), world.files[host.MAIN], world.timer) == ("old", "old", None)
    assert host.WAITING not in world.files
    result = load(world, "old")
    assert (result["changed"], result["confirm"]) == (False, False)
    converge(world, "new")
    assert (in_force(world), world.files[host.MAIN], world.timer) == ("new", "new", None)


@pytest.mark.parametrize("first", [None, "old"])
def test_wherever_a_run_dies_the_old_rules_come_back_or_the_next_run_ends_it(world, first):
    if first:
        converge(world, first)
    kept = (dict(world.tables), dict(world.files), dict(world.unit))
    deaths = 0
    for steps in range(100):
        for again in (False, True):
            world.tables, world.files, world.unit = (dict(part) for part in kept)
            world.timer, world.left = None, steps
            try:
                converge(world, "new")
                dead = False
            except Died:
                dead = True
            world.left = -1
            confirmed = world.files.get(host.MAIN) == "new"
            if in_force(world) != first and not confirmed:
                assert world.timer is not None, f"after {steps} steps nothing brings the old rules back"
            if not again:
                # Left alone.
                world.time_is_up()
                if not confirmed:
                    assert in_force(world) == first
            converge(world, "new")
            assert (in_force(world), world.files[host.MAIN], world.timer) == ("new", "new", None)
            assert not load(world, "new")["changed"]
        if not dead:
            break
        deaths += 1
    assert 5 < deaths < 100


def test_rules_that_were_not_confirmed_are_no_way_back(world):
    converge(world, "old")
    load(world, "locks out")
    load(world, "locks out too")
    world.time_is_up()
    assert in_force(world) == "old"


def test_a_run_behind_one_that_was_killed_has_its_own_time(world):
    converge(world, "old")
    load(world, "new")
    world.timer = 1
    assert load(world, "new")["confirm"]
    assert world.timer == 60
    world.time_is_up()
    assert in_force(world) == "old"


def test_the_first_rules_deny_nothing_for_a_moment(world):
    seen = []
    original = world.load
    world.load = lambda path: (original(path), seen.append(in_force(world)))
    load(world, "new")
    assert [one for one in seen if one] == ["introduction of new", "new"]


def test_an_old_connection_and_a_late_one_confirm_nothing(world):
    converge(world, "old")
    load(world, "new")
    world.connected = world.wait["loaded"] - 1
    with pytest.raises(FirewallError, match="before the rules were loaded"):
        firewall_confirm.confirm({"local": False}, world, [])
    assert world.timer is not None
    world.time_is_up()
    with pytest.raises(FirewallError, match="too late"):
        confirm(world)
    assert (in_force(world), world.files[host.MAIN]) == ("old", "old")
    converge(world, "new")
    assert in_force(world) == "new"


def test_check_mode_writes_nothing(world):
    converge(world, "old")
    world.left = 0
    result = load(world, "new", check=True)
    assert (result["changed"], result["confirm"]) == (True, False)
    assert result["diff"][-1]["before"] == "old"
    assert result["diff"][-1]["after"] == "new"
