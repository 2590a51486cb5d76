# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What has to be done on a host, and whether a connection proves anything."""

from __future__ import annotations

import dataclasses
import os

import pytest
from ansible_collections.gpuops.tenancy.plugins.module_utils._firewall import connection, host, plan
from ansible_collections.gpuops.tenancy.plugins.module_utils._firewall.values import FirewallError
from ansible_collections.gpuops.tenancy.plugins.modules.firewall_confirm import check_new

RUNTIME = "table inet tenancy_runtime {\n\tset %s {\n\t\ttype x\n%s\t}\n}\n"
EMPTY = "".join(
    f"\tset {name} {{\n\t\ttype x\n\t}}\n" for name in ("quarantined", "blocked_4", "blocked_6", "admins_4", "admins_6")
)
UNITS = {host.UNIT_FILE: "unit", host.DROP_IN: "drop-in"}
WANTED = plan.Wanted("rules", "main", "structure", EMPTY, UNITS)
DONE = plan.Seen("main", EMPTY, EMPTY, "rules", "structure", UNITS, True, True, False)
NOTHING = plan.Seen(None, None, None, None, None, {}, False, False, False)


def objects(seen, wanted=WANTED):
    return [change.object for change in plan.make(seen, wanted)]


def test_a_host_that_has_all_of_it_is_left_alone():
    assert objects(DONE) == []
    assert not plan.unconfirmed(DONE, WANTED)


def test_a_bare_host_gets_all_of_it():
    assert objects(NOTHING) == [
        "table inet tenancy_runtime", host.RUNTIME, "table inet tenancy", host.UNIT_FILE, host.DROP_IN, host.UNIT, host.MAIN,
    ]  # fmt: skip
    assert plan.unconfirmed(NOTHING, WANTED)


@pytest.mark.parametrize(
    ("change", "expected", "confirm"),
    [
        ({"main": "main and a rule by hand"}, ["table inet tenancy", host.MAIN], True),
        ({"main": None}, ["table inet tenancy", host.MAIN], True),
        ({"boot": "older"}, [host.MAIN], True),
        ({"waiting": True}, [host.MAIN], True),
        ({"started": False}, [host.MAIN], True),
        ({"enabled": False}, [host.UNIT], False),
        ({"units": {**UNITS, host.UNIT_FILE: "older"}}, [host.UNIT_FILE], False),
        ({"units": {**UNITS, host.DROP_IN: None}}, [host.DROP_IN], False),
        ({"saved": None}, [host.SAVED], False),
        ({"runtime": None}, ["table inet tenancy_runtime"], False),
        ({"runtime_file": "older"}, [host.RUNTIME], False),
    ],
)
def test_each_difference_is_a_change_of_its_own(change, expected, confirm):
    seen = dataclasses.replace(DONE, **change)
    assert objects(seen) == expected
    assert plan.unconfirmed(seen, WANTED) is confirm


def test_what_was_blocked_by_hand_is_saved_and_nothing_else():
    filled = EMPTY.replace("blocked_4 {\n\t\ttype x\n", "blocked_4 {\n\t\ttype x\n\t\telements = { 1.2.3.4 }\n")
    assert objects(dataclasses.replace(DONE, runtime=filled)) == [host.SAVED]


def test_a_firewall_that_blocks_something_is_not_removed():
    filled = EMPTY.replace("blocked_4 {\n\t\ttype x\n", "blocked_4 {\n\t\ttype x\n\t\telements = { 1.2.3.4 }\n")
    with pytest.raises(FirewallError, match="not removed while"):
        plan.removal(dataclasses.replace(DONE, runtime=filled))
    assert len(plan.removal(DONE)) == 5
    assert not plan.removal(NOTHING).changed


@pytest.mark.parametrize("address", ["10.0.0.1", "fd29::1", "::ffff:10.0.0.1", "fe80::1%eth0"])
def test_whoever_loads_the_rules_is_admitted_by_them(address):
    admins = ["10.0.0.0/24", "fd29::/64", "fe80::/64"]
    plan.check_connection(connection.Connection(address, 1.0), admins)
    plan.check_connection(None, admins)
    with pytest.raises(FirewallError, match="add the controller's address to firewall_management"):
        plan.check_connection(connection.Connection(address, 1.0), ["192.0.2.0/24"])


def test_only_a_connection_that_is_newer_than_the_rules_confirms_them():
    check_new(connection.Connection("10.0.0.1", 100.0), 99.9, False)
    for found in (connection.Connection("10.0.0.1", 99.0), connection.Connection("10.0.0.1", 99.9)):
        with pytest.raises(FirewallError, match="before the rules were loaded"):
            check_new(found, 99.9, False)
        with pytest.raises(FirewallError, match="before the rules were loaded"):
            check_new(found, 99.9, True)
    with pytest.raises(FirewallError, match="not reached by ssh"):
        check_new(None, 99.9, False)
    check_new(None, 99.9, True)


def process(proc, pid, name, parent, environment=b""):
    (proc / str(pid)).mkdir()
    (proc / str(pid) / "stat").write_text(f"{pid} ({name}) S {parent} 0 0")
    (proc / str(pid) / "environ").write_bytes(environment)


@pytest.mark.parametrize("sshd", ["sshd", "sshd-session"])
def test_the_connection_is_found_behind_sudo(tmp_path, monkeypatch, sshd):
    session = os.getpid()
    monkeypatch.setattr(connection._systemd, "process_start", lambda pid: 42.0 if pid == session else None)
    process(tmp_path, 1, "systemd", 0)
    process(tmp_path, 2, "sshd", 1)
    process(tmp_path, session, sshd, 2, b"PATH=/bin\0")
    process(tmp_path, 900001, "sh", session, b"SSH_CONNECTION=10.0.0.1 5 10.1.0.1 22\0HOME=/\0")
    process(tmp_path, 900002, "sudo (x) y", 900001)
    process(tmp_path, 900003, "python3", 900002, b"PATH=/bin\0")
    assert connection.current(900003, str(tmp_path)) == connection.Connection("10.0.0.1", 42.0)
    assert connection.current(2, str(tmp_path)) is None


def test_the_unit_names_no_program_without_its_path():
    machine = object.__new__(host.Host)
    machine.nft = "/usr/sbin/nft"
    text = "".join(machine.units().values())
    for line in text.splitlines():
        if line.startswith("Exec"):
            assert line.partition("=")[2].lstrip("-").startswith("/")
    assert "flush" not in text.replace("flush all tables", "")
