# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A container behind a bridge on a compute node: who reaches what it publishes, and what it reaches itself."""

from __future__ import annotations

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from ways import DENIED, PROBE, REACHED, at, converge, on, role, said, tried, wait_for

UNIT = "a-container"
CONTAINER = {4: "172.30.0.2", 6: "fd30::2"}
# As a container engine does it.
NETWORK = """
set -e
set_() { unshare -m sh -c 'mount -o remount,rw /proc/sys; for one; do echo "${one#*=}" >"/proc/sys/net/${one%=*}"; done' set "$@"; }
ip link add docker9 type bridge
# The engine of the test cluster switches it off for what is added later.
set_ ipv6/conf/docker9/disable_ipv6=0 ipv4/ip_forward=1 ipv6/conf/all/forwarding=1
ip addr add 172.30.0.1/24 dev docker9
ip -6 addr add fd30::1/64 dev docker9 nodad
ip link set docker9 up
ip link add inside9 type veth peer name eth0 netns "$1"
ip link set inside9 master docker9 up
nsenter -t "$1" -n sh -c '
  ip link set lo up; ip link set eth0 up
  unshare -m sh -c "mount -o remount,rw /proc/sys; echo 0 >/proc/sys/net/ipv6/conf/eth0/disable_ipv6"
  ip addr add 172.30.0.2/24 dev eth0; ip -6 addr add fd30::2/64 dev eth0 nodad
  ip route add default via 172.30.0.1; ip -6 route add default via fd30::1'
nft -f - <<TABLE
table inet of-an-engine {
  chain prerouting {
    type nat hook prerouting priority dstnat; policy accept;
    fib daddr type local meta nfproto ipv4 tcp dport { 8080, 9400, 29500 } dnat ip to 172.30.0.2:80
    fib daddr type local meta nfproto ipv6 tcp dport { 8080, 9400, 29500 } dnat ip6 to [fd30::2]:80
  }
  chain postrouting {
    type nat hook postrouting priority srcnat; policy accept;
    ip saddr 172.30.0.0/24 oifname != "docker9" masquerade
    ip6 saddr fd30::/64 oifname != "docker9" masquerade
  }
}
TABLE
"""
# From, the port that is published, whether the matrix opens it: dcgm_exporter to monitoring, jobs to peers.
PUBLISHED = [
    ("ctl", 9400, True),
    ("ctl", 8080, False),
    ("gpu2", 29500, True),
    ("gpu2", 8080, False),
    ("gpu2", 9400, False),
    ("login", 8080, False),
    ("login", 29500, False),
    ("machine", 8080, False),
]


@pytest.fixture(scope="module")
def container():
    """A web server in a network of its own; the number of its process."""
    said(
        "gpu1",
        "systemd-run",
        "--quiet",
        f"--unit={UNIT}",
        "unshare",
        "--net",
        "python3",
        "-m",
        "http.server",
        "80",
        "--bind",
        "::",
    )
    pid = said("gpu1", "systemctl", "show", "-P", "MainPID", UNIT)
    try:
        wait_for(
            lambda: said("gpu1", "readlink", f"/proc/{pid}/ns/net") != said("gpu1", "readlink", "/proc/1/ns/net"), 10
        )
        said("gpu1", "sh", "-s", pid, stdin=NETWORK)
        for version, prefix in ((4, "172.30.0.0/24"), (6, "fd30::/64")):
            # A neighbour that knows the way to the container's own address.
            said("gpu2", "ip", f"-{version}", "route", "add", prefix, "via", at("gpu1", "cluster", version))
        wait_for(lambda: set(reached("gpu1", [f"{one}|80|" for one in CONTAINER.values()])) == {"open"}, 20)
        yield pid
    finally:
        on("gpu1", "nft", "delete", "table", "inet", "of-an-engine")
        on("gpu1", "ip", "link", "delete", "docker9")
        on("gpu1", "ip", "link", "delete", "inside9")
        on("gpu1", "systemctl", "stop", UNIT)
        for version, prefix in ((4, "172.30.0.0/24"), (6, "fd30::/64")):
            on("gpu2", "ip", f"-{version}", "route", "delete", prefix)
        converge("gpu1")


def reached(source: str, ways: list[str]) -> list[str]:
    if source == "machine":
        ways = [f"{way}{at('machine', 'cluster', 6 if ':' in way.split('|')[0] else 4)}" for way in ways]
    return tried(source, *ways)


def of_the_node(port: int) -> list[str]:
    return [f"{at('gpu1', 'cluster', version)}|{port}|" for version in (4, 6)]


def from_it(pid: str, *ways: str) -> list[str]:
    return said("gpu1", "nsenter", "-t", pid, "-n", "python3", "-c", PROBE, *ways).split()


def test_without_the_firewall_everybody_reaches_it(container):
    said("gpu1", "nft", "delete", "table", "inet", "tenancy")
    try:
        for source, port, _open in PUBLISHED:
            assert reached(source, of_the_node(port)) == ["open"] * 2, (source, port)
        # What lies below the test cluster does not carry foreign IPv4 addresses.
        assert reached("gpu2", [f"{CONTAINER[6]}|80|"]) == ["open"]
    finally:
        converge("gpu1")


@pytest.mark.parametrize("policy", ["deny", "log", "allow"])
def test_the_matrix_says_who_reaches_what_it_publishes(container, policy):
    run = role(hosts="gpu1", extra={"firewall_egress": policy}).wait()
    assert run.returncode == 0, run.output[-3000:]
    for source, port, open_ in PUBLISHED:
        said_ = reached(source, of_the_node(port))
        assert said_ == ["open"] * 2 if open_ else set(said_) <= DENIED, (source, port, said_)
    assert set(reached("gpu2", [f"{one}|80|" for one in CONTAINER.values()])) <= DENIED
    # What it opens itself is what a user may open.
    inside = from_it(container, *[f"{at('ctl', 'cluster', version)}|6817|" for version in (4, 6)])
    assert set(inside) <= REACHED, inside
    for network in ("cluster", "management"):
        closed = from_it(container, *[f"{at('ctl', network, version)}|22|" for version in (4, 6)])
        assert set(closed) <= DENIED, (network, closed)


def test_the_site_opens_a_port_on_purpose(container):
    row = {"name": "web", "to": ["compute"], "from": ["login"], "ports": [8080]}
    run = role(hosts="gpu1", extra={"firewall_egress": "log", "firewall_rows_extra": [row]}).wait()
    assert run.returncode == 0, run.output[-3000:]
    assert reached("login", of_the_node(8080)) == ["open"] * 2
    assert set(reached("gpu2", of_the_node(8080))) <= DENIED


def test_only_the_policy_for_the_outside_can_be_taken_away(container):
    """As whoever wants to see what depends on it does."""
    converge("gpu1")
    target = f"{at('machine', 'management', 4)}|443|"
    assert set(tried("gpu1:alice", target)) <= DENIED
    said("gpu1", "nft", "flush", "chain", "inet", "tenancy", "egress")
    assert tried("gpu1:alice", target) == ["ECONNREFUSED"]
    assert set(reached("gpu2", of_the_node(8080))) <= DENIED
    said("gpu1", "systemctl", "reload", "tenancy-firewall")
    assert set(tried("gpu1:alice", target)) <= DENIED
