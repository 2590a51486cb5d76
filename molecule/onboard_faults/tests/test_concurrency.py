# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two runs at once, and what they stand on going away in the middle: a clear error, and the next run ends it."""

from __future__ import annotations

import json
import pathlib
import sys
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "cluster"))
from definition import address, definition
from recorded import module, start_module
from remote import on, said, wait_for

CROWD = 150
SLOW = "/opt/slow-all"


def arguments(name: str, users: int = 3, **options) -> dict:
    return {
        "cluster": "demo",
        "scope": [name],
        "accounts": [{"name": name, "grp_jobs": 5, "accounts": [{"name": f"{name}-team"}]}],
        "users": [
            {"name": f"{name}-u{number}", "associations": [{"account": f"{name}-team"}]} for number in range(users)
        ],
        **options,
    }


def there(name: str) -> int:
    found = said(
        "ctl", "sacctmgr", "-nP", "show", "assoc", "where", "cluster=demo", f"account={name}-team", "format=user"
    )
    return len(found.split())


@pytest.fixture
def tenant(request):
    """Names of tenants of a test; they go afterwards."""
    made = []

    def name(word):
        made.append(word)
        return word

    yield name
    for word in made:
        for account in (f"{word}-team", word):
            on("ctl", "sacctmgr", "-i", "delete", "user", "where", f"account={account}", "cluster=demo", timeout=300)
            on("ctl", "sacctmgr", "-i", "delete", "account", "where", f"name={account}", "cluster=demo", timeout=300)


@pytest.fixture
def slow():
    """A folder of commands in which every write takes its time, so that two runs meet."""
    shim = '#!/bin/sh\ncase " $* " in *" add "*|*" modify "*) sleep 2;; esac\nexec /usr/bin/sacctmgr "$@"\n'
    script = f"mkdir -p {SLOW}; cp -s /usr/bin/s* {SLOW}/; rm {SLOW}/sacctmgr; cat > {SLOW}/sacctmgr; chmod 755 {SLOW}/sacctmgr"
    said("ctl", "sh", "-c", script, stdin=shim)
    yield [SLOW]
    said("ctl", "rm", "-rf", SLOW)


def unchanged(params: dict, host: str = "ctl") -> None:
    """A further run finds nothing to do."""
    again = module(host, "slurm_accounting", params)
    assert again.returncode == 0, again.output
    assert not again.of("slurm_accounting")[-1]["changed"]


def test_two_tenants_at_once(tenant, slow):
    params = [arguments(tenant(name), search_path=slow) for name in ("two-one", "two-other")]
    runs = [start_module("ctl", "slurm_accounting", given) for given in params]
    for run, given in zip([run.wait() for run in runs], params):
        assert run.returncode == 0, run.output
        assert run.of("slurm_accounting")[-1]["changed"]
        unchanged(given)


def test_the_same_tenant_twice_at_once(tenant, slow):
    """One does it, the other waits and finds it done."""
    params = arguments(tenant("twice"), search_path=slow)
    runs = [start_module("ctl", "slurm_accounting", params) for _turn in range(2)]
    done = [run.wait() for run in runs]
    assert [run.returncode for run in done] == [0, 0], done[0].output + done[1].output
    assert sorted(run.of("slurm_accounting")[-1]["changed"] for run in done) == [False, True]
    assert there("twice") == 3


def test_one_that_does_not_want_to_wait_names_the_other(tenant, slow):
    params = arguments(tenant("busy"), search_path=slow)
    first = start_module("ctl", "slurm_accounting", params)
    wait_for(lambda: on("ctl", "pgrep", "-f", f"{SLOW}/sacctmgr -i add").returncode == 0, what="the first write")
    second = module("ctl", "slurm_accounting", {**params, "lock_timeout": 0})
    assert second.returncode != 0
    assert "slurm_accounting" in second.errors[0]
    assert "still held after 0 s by process" in second.errors[0]
    assert first.wait().returncode == 0


class Service:
    """Stops on the controller while a run writes, and comes back."""

    host = "ctl"

    def __init__(self, unit):
        self.unit = unit

    def cut(self, run):
        said("ctl", "systemctl", "stop", self.unit)
        ended = run.wait()
        self.heal()
        return ended

    def heal(self):
        said("ctl", "systemctl", "start", "mariadb", "slurmdbd")


class Network:
    """The run is on another host than slurmdbd, and the network between them fails."""

    host = "login"

    def __init__(self):
        mine = address(definition(), "login", "cluster")
        links = json.loads(said("login", "ip", "-j", "addr"))
        self.link = next(
            link["ifname"] for link in links if mine in [where.get("local") for where in link["addr_info"]]
        )

    def cut(self, run):
        """What waits for an answer waits as long as TCP does; what asks anew hears that nobody is there."""
        said("login", "ip", "link", "set", self.link, "down")
        time.sleep(15)
        self.heal()
        return run.wait()

    def heal(self):
        said("login", "ip", "link", "set", self.link, "up")


@pytest.mark.parametrize("what", ["slurmdbd", "mariadb", "network"])
def test_it_goes_away_in_the_middle(tenant, what):
    name = tenant(f"gone-{what}")
    fault = Network() if what == "network" else Service(what)
    params = arguments(name, CROWD)
    # Small portions: one is written at any moment.
    run = start_module(fault.host, "slurm_accounting", {**params, "server_seconds": 0.01})
    try:
        wait_for(lambda: 0 < there(name) < CROWD, what="the first users")
        ended = fault.cut(run)
    finally:
        fault.heal()
    # A network that comes back in time may have cost nothing.
    if what != "network" or ended.returncode != 0:
        assert ended.returncode != 0, ended.output
        result = ended.of("slurm_accounting")[-1]
        assert result["applied"]
        assert result["remaining"]
        assert "slurmdbd does not answer" in ended.errors[0] or "sacctmgr" in ended.errors[0]
        wait_for(lambda: on("ctl", "sacctmgr", "-nP", "show", "cluster").returncode == 0, what="slurmdbd")
        assert there(name) < CROWD
    again = module(fault.host, "slurm_accounting", params)
    assert again.returncode == 0, again.output
    assert there(name) == CROWD
    unchanged(params, fault.host)
