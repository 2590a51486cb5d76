# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is blocked stays so through reloads, runs of the role and reboots; tables of others stay as they are."""

from __future__ import annotations

import pathlib
import subprocess
import sys
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from ways import at, converge, module, on, over, restart, role, said, ssh, state, table, tried, wait_for

RUNTIME = "tenancy_runtime"
# As fail2ban, Docker and podman (netavark) leave them.
FOREIGN = """
table inet f2b-table {
  set addr-set-sshd { type ipv4_addr; elements = { 198.51.100.9 }; }
  chain f2b-chain {
    type filter hook input priority filter - 1; policy accept;
    tcp dport 22 ip saddr @addr-set-sshd reject;
  }
}
table ip docker-bridges {
  chain filter-FORWARD { type filter hook forward priority filter; policy accept; iifname "docker0" counter accept; }
  chain nat-POSTROUTING {
    type nat hook postrouting priority srcnat; policy accept;
    oifname != "docker0" ip saddr 172.17.0.0/16 masquerade;
  }
}
table inet netavark {
  chain INPUT {
    type filter hook input priority filter; policy accept;
    ip saddr 10.88.0.0/16 udp dport 53 accept;
  }
}
"""


def block(host: str, **arguments):
    run = module(host, "firewall_block", arguments)
    assert run.returncode == 0, run.output
    return run.changed != []


def foreign(host: str) -> str:
    """All tables but ours."""
    names = [line for line in said(host, "nft", "list", "tables").splitlines() if "inet tenancy" not in line]
    return "\n".join(said(host, "nft", "-a", "-s", "list", *line.split()) for line in sorted(names))


@pytest.fixture(autouse=True)
def free():
    yield
    for host in ("gpu1", "gpu2", "gpu3"):
        block(host, addresses=["0.0.0.0/0", "::/0"], state="absent", quarantine=False)


def test_what_is_blocked_stops_at_once_over_both_families_and_stays():
    addresses = [at("gpu2", "cluster", 4), at("gpu2", "cluster", 6)]
    ways = [f"{at('gpu1', 'cluster', version)}|6818|" for version in (4, 6)]
    assert set(tried("gpu2", *ways)) <= {"open", "ECONNREFUSED"}
    assert block("gpu1", addresses=addresses)
    assert not block("gpu1", addresses=addresses)
    assert tried("gpu2", *ways) == ["timeout"] * 2
    # Out as well: root's packets are dropped in front of everything.
    assert tried("gpu1", *[f"{one}|6818|" for one in addresses]) == ["EPERM"] * 2 or set(
        tried("gpu1", *[f"{one}|6818|" for one in addresses])
    ) <= {"timeout", "EPERM"}
    before = table("gpu1", RUNTIME)
    said("gpu1", "systemctl", "reload", "tenancy-firewall")
    assert table("gpu1", RUNTIME) == before
    run = role(hosts="gpu1").wait()
    assert (run.returncode, run.changed) == (0, []), run.output[-3000:]
    # New rules too.
    run = role(hosts="gpu1", extra={"firewall_rows_on": ["ssh_jobs"]}).wait()
    assert run.returncode == 0, run.output[-3000:]
    assert table("gpu1", RUNTIME) == before
    assert tried("gpu2", *ways) == ["timeout"] * 2
    restart("gpu1")
    assert table("gpu1", RUNTIME) == before
    assert "in_ssh_jobs" in table("gpu1")
    assert tried("gpu2", *ways) == ["timeout"] * 2
    converge("gpu1")
    assert block("gpu1", addresses=addresses, state="absent")
    wait_for(lambda: tried("gpu2", *ways) == ["open", tried("gpu2", ways[1])[0]], 30, "gpu1 to be reached again")


def test_what_was_blocked_by_hand_survives_an_orderly_reboot_and_a_flush():
    said("gpu1", "nft", "add", "element", "inet", RUNTIME, "blocked_4", "{ 198.51.100.7 }")
    restart("gpu1")
    assert "198.51.100.7" in table("gpu1", RUNTIME)
    # Saved by the role when it was put there by hand, and brought back by it after somebody's flush.
    said("gpu1", "nft", "add", "element", "inet", RUNTIME, "blocked_6", "{ 2001:db8:bad::/48 }")
    assert role(hosts="gpu1").wait().returncode == 0
    said("gpu1", "nft", "flush", "ruleset")
    assert role(hosts="gpu1").wait().returncode == 0
    assert "198.51.100.7" in table("gpu1", RUNTIME)
    assert "2001:db8:bad::/48" in table("gpu1", RUNTIME)
    assert "policy drop" in table("gpu1")


def test_a_restart_of_nftables_own_service_leaves_ours():
    block("gpu1", addresses=["198.51.100.8"])
    before = table("gpu1"), table("gpu1", RUNTIME)
    assert "policy drop" in before[0] and "198.51.100.8" in before[1]
    for verb in ("start", "restart", "reload"):
        said("gpu1", "systemctl", verb, "nftables")
        wait_for(lambda: (table("gpu1"), table("gpu1", RUNTIME)) == before, 10, f"our tables after {verb}")
    said("gpu1", "systemctl", "stop", "nftables")
    converge("gpu1")


def test_a_host_in_quarantine_talks_to_operators_only():
    base = ["ssh", "-F", str(state() / "ssh_config"), "-o", "ControlPath=none", *over("gpu3", 4), "gpu3"]
    ticks = subprocess.Popen([*base, "while sleep 0.1; do echo tick; done"], stdout=subprocess.PIPE, text=True)
    # A connection that exists does not go on.
    port = 23456
    listener = f"import socket;s=socket.create_server(('{at('gpu3', 'cluster', 4)}',{port}));c,_=s.accept();print(len(c.recv(9)),c.recv(9))"
    said("gpu3", "systemd-run", "--unit=listener", "--collect", "python3", "-c", listener)
    talker = (
        f"import socket,time;c=socket.create_connection(('{at('gpu3', 'cluster', 4)}',{port}));c.send(b'one');time.sleep(8);"
        "c.settimeout(4);c.send(b'two');time.sleep(2)"
    )
    talking = subprocess.Popen(
        ["ssh", "-F", str(state() / "ssh_config"), "-o", "ControlPath=none", "gpu2", "python3", "-c", f'"{talker}"']
    )
    time.sleep(3)
    assert block("gpu3", quarantine=True)
    assert not block("gpu3", quarantine=True)
    for version in (4, 6):
        assert ssh("gpu3", *over("gpu3", version)).returncode == 0
        assert tried("gpu2", f"{at('gpu3', 'cluster', version)}|6818|") == ["timeout"]
        assert tried("ctl", f"{at('gpu3', 'cluster', version)}|6818|") == ["timeout"]
        assert tried("gpu3", f"{at('ctl', 'cluster', version)}|6817|")[0] in ("timeout", "EPERM")
    talking.wait(60)
    assert said("gpu3", "systemctl", "show", "-p", "ActiveState", "--value", "listener") == "active"
    said("gpu3", "systemctl", "stop", "listener")
    assert ticks.poll() is None
    ticks.terminate()
    # It stays so through a run of the role and a reboot.
    assert role(hosts="gpu3").wait().changed == []
    restart("gpu3")
    assert tried("gpu2", f"{at('gpu3', 'cluster', 4)}|6818|") == ["timeout"]
    refused = role(hosts="gpu3", extra={"firewall_mode": "absent"}).wait()
    assert "not removed while" in " ".join(" ".join(refused.errors).split())
    assert block("gpu3", quarantine=False)
    wait_for(lambda: tried("gpu2", f"{at('gpu3', 'cluster', 4)}|6818|") == ["open"], 60, "slurmd of gpu3")


def test_an_operator_is_never_blocked():
    for one in (at("machine", "management", 4), at("machine", "management", 6), "0.0.0.0/0", "::/0"):
        run = module("gpu1", "firewall_block", {"addresses": [one]})
        assert run.returncode != 0
        assert "would lock you out" in " ".join(run.output.split())
    assert ssh("gpu1").returncode == 0


def test_check_mode_blocks_nobody():
    before = table("gpu1", RUNTIME)
    run = module("gpu1", "firewall_block", {"addresses": ["198.51.100.7"], "quarantine": True}, "--check")
    assert run.returncode == 0, run.output
    assert run.changed != []
    assert table("gpu1", RUNTIME) == before


def test_tables_of_others_survive_everything():
    said("gpu1", "nft", "-f", "-", stdin=FOREIGN)
    try:
        before = foreign("gpu1")
        assert "f2b-table" in before
        assert "netavark" in before
        assert "docker-bridges" in before
        said("gpu1", "systemctl", "reload", "tenancy-firewall")
        assert role(hosts="gpu1", extra={"firewall_rows_on": ["ssh_jobs"]}).wait().returncode == 0
        block("gpu1", addresses=["198.51.100.7"], quarantine=True)
        block("gpu1", addresses=["198.51.100.7"], state="absent", quarantine=False)
        assert role(hosts="gpu1", extra={"firewall_mode": "absent"}).wait().returncode == 0
        assert table("gpu1") == table("gpu1", RUNTIME) == ""
        assert on("gpu1", "systemctl", "cat", "tenancy-firewall").returncode != 0
        converge("gpu1")
        assert foreign("gpu1") == before
    finally:
        for name in ("inet f2b-table", "inet netavark", "ip docker-bridges"):
            on("gpu1", "nft", "delete", "table", *name.split())
