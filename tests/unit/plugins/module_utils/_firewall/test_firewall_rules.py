# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who reaches whom by the rules that are made, and what is refused before any is made."""

from __future__ import annotations

import dataclasses
import importlib.util
import pathlib
import sys

import pytest
import yaml
from ansible_collections.gpuops.tenancy.plugins.module_utils._firewall import matrix, rules, spec
from ansible_collections.gpuops.tenancy.plugins.module_utils._firewall.values import FirewallError

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from packets import Packet, Rules

ROOT = pathlib.Path(__file__).resolve().parents[5]
NUMBERS = {"ctl": 10, "login": 11, "gpu1": 21, "gpu2": 22, "gpu3": 23}
ALICE, SUBUID, ROOT_USER = 10000, 165536, 0


def made(site, host):
    return Rules(rules.render(spec.parse(site), host))


def address(host, version=4):
    return f"10.1.0.{NUMBERS[host]}" if version == 4 else f"fd29:1::{NUMBERS[host]}"


def reaches(site, source, host, port, protocol="tcp"):
    """Over both families, which must agree."""
    said = set()
    for version in (4, 6):
        one = source[version] if isinstance(source, dict) else address(source, version)
        packet = Packet(source=one, port=port, protocol=protocol, version=version)
        said.add(made(site, host).verdict("input", packet))
    assert len(said) == 1, said
    return said == {"accept"}


OPERATOR = {4: "10.0.0.1", 6: "fd29::1"}
MONITORING = {4: "10.5.0.9", 6: "fd29:5::9"}
STRANGER = {4: "203.0.113.7", 6: "2001:db8::7"}


@pytest.mark.parametrize(
    ("source", "host", "port", "expected"),
    [
        (OPERATOR, "gpu1", 22, True),
        (OPERATOR, "ctl", 22, True),
        (OPERATOR, "gpu1", 6818, False),
        (STRANGER, "login", 22, True),
        (STRANGER, "gpu1", 22, False),
        (STRANGER, "ctl", 22, False),
        (STRANGER, "login", 60500, False),
        (STRANGER, "gpu1", 6818, False),
        ("login", "gpu1", 22, False),
        ("login", "gpu1", 6818, True),
        ("login", "gpu1", 60500, False),
        ("login", "gpu1", 29500, False),
        ("ctl", "gpu1", 6818, True),
        ("ctl", "gpu1", 22, False),
        ("gpu1", "gpu2", 6818, True),
        ("gpu1", "gpu2", 60500, True),
        ("gpu1", "gpu2", 29500, True),
        ("gpu1", "gpu2", 22, False),
        ("gpu1", "gpu2", 9100, False),
        ("gpu1", "login", 60500, True),
        ("gpu1", "login", 22, False),
        ("gpu1", "ctl", 6817, True),
        ("gpu1", "ctl", 6819, True),
        ("gpu1", "ctl", 3306, False),
        ("gpu1", "ctl", 22, False),
        ("login", "ctl", 3306, False),
        (MONITORING, "gpu1", 9400, True),
        (MONITORING, "ctl", 9100, True),
        (MONITORING, "ctl", 9400, False),
        (STRANGER, "gpu1", 9400, False),
    ],
)
def test_who_reaches_whom(site, source, host, port, expected):
    assert reaches(site, source, host, port) is expected


def test_a_node_is_no_operator_though_its_address_lies_in_their_network(site):
    packet = Packet(source="10.0.0.21", port=22)
    assert made(site, "ctl").verdict("input", packet) == "drop"
    site["management_hosts"] = ["gpu1"]
    assert made(site, "ctl").verdict("input", packet) == "accept"


@pytest.mark.parametrize(
    "change",
    [
        {"node_groups": [{"name": "tenant-foo", "hosts": ["gpu3"]}]},
        {"owners": {"gpu3": "tenant-foo"}},
        {"owners": {"gpu3": "tenant-foo"}, "node_groups": [{"name": "tenant-foo", "hosts": ["gpu3"]}]},
        {"owners": {"gpu3": "tenant-foo"}, "node_groups": [{"name": "tenant-foo", "egress": "allow"}]},
    ],
)
def test_jobs_of_one_group_do_not_reach_the_nodes_of_another(site, change):
    site.update(change)
    for port in (29500, 40000, 60500):
        assert reaches(site, "gpu1", "gpu2", port)
        assert not reaches(site, "gpu1", "gpu3", port)
        assert not reaches(site, "gpu3", "gpu1", port)
        assert made(site, "gpu1").verdict("output", Packet(target=address("gpu3"), port=port, uid=ALICE)) == "reject"
    # Messages of Slurm still go from node to node.
    assert reaches(site, "gpu1", "gpu3", 6818)


def test_a_node_that_changes_hands_changes_its_group(site):
    site["owners"] = {"gpu2": "tenant-own", "gpu3": "tenant-own"}
    assert reaches(site, "gpu2", "gpu3", 29500)
    assert not reaches(site, "gpu1", "gpu2", 29500)
    site["owners"] = {"gpu3": "tenant-own"}
    assert not reaches(site, "gpu2", "gpu3", 29500)
    assert not reaches(site, "gpu3", "gpu2", 29500)
    assert reaches(site, "gpu1", "gpu2", 29500)


def test_what_holds_for_a_group_follows_its_owner(site):
    site["owners"] = {"gpu3": "tenant-own"}
    site["node_groups"] = [{"name": "tenant-own", "egress": "allow"}, {"name": "tenant-foo", "whole_node": True}]
    outside = Packet(target="203.0.113.7", port=443, uid=ALICE)
    assert made(site, "gpu3").verdict("output", outside) == "accept"
    assert made(site, "gpu1").verdict("output", outside) == "reject"
    # Nodes without an owner may be a group, too, beside those of an owner.
    site["node_groups"][0]["hosts"] = ["gpu1"]
    assert made(site, "gpu1").verdict("output", outside) == "accept"
    assert reaches(site, "gpu1", "gpu3", 29500)


# A node may be plugged into a bridge itself.
@pytest.mark.parametrize("comes", ["", "bridge"])
@pytest.mark.parametrize("policy", ["deny", "log", "allow"])
def test_what_a_container_publishes_is_open_to_those_whom_the_matrix_lets_in(site, policy, comes):
    site["egress"] = policy
    site["rows_extra"] = [{"name": "web", "to": ["compute"], "from": ["10.7.0.0/24", "login"], "ports": ["8080-8090"]}]
    node = made(site, "gpu1")

    def sent(source, published, **more):
        packet = Packet(source=source, target="172.17.0.2", port=80, published=published, leaves="bridge", comes=comes)
        return node.verdict("forward", dataclasses.replace(packet, **more))

    assert sent("203.0.113.7", 8080) == "drop"
    assert sent("10.7.0.9", 8080) == "accept"
    assert sent(address("login"), 8085) == "accept"
    assert sent("10.7.0.9", 8091) == "drop"
    assert sent("10.7.0.9", 8080, protocol="udp") == "drop"
    # To the container's own address, by somebody who knows the way.
    assert sent(address("gpu2"), None, port=8080) == "drop"
    if not comes:
        assert sent("10.7.0.9", None, port=8080) == "drop"
    assert sent("10.5.0.9", 9400) == "accept"
    assert sent("fd29:5::9", 9400, target="fd00:17::2", version=6) == "accept"
    assert sent("2001:db8::7", 9400, target="fd00:17::2", version=6) == "drop"
    assert sent(address("gpu2"), 29500) == "accept"


@pytest.mark.parametrize(("policy", "expected"), [("deny", "reject"), ("log", "accept"), ("allow", "accept")])
def test_a_container_opens_what_a_user_may(site, policy, expected):
    site["egress"] = policy
    node = made(site, "gpu1")
    leaves = Packet(source="172.17.0.2", target="203.0.113.7", port=443, comes="bridge")
    assert node.verdict("forward", leaves) == expected
    assert node.verdict("forward", dataclasses.replace(leaves, leaves="bridge")) == expected
    assert node.verdict("forward", dataclasses.replace(leaves, target="10.0.0.99")) == "reject"
    assert node.verdict("forward", dataclasses.replace(leaves, target=address("ctl"), port=6817)) == "accept"


def test_the_ports_of_file_servers(site):
    site["storage_ports"] = ["2049"]
    node = made(site, "gpu1")
    for protocol in ("tcp", "udp"):
        packet = Packet(target="10.8.0.1", port=2049, uid=ALICE, protocol=protocol)
        assert node.verdict("output", packet) == "accept"
        assert node.verdict("output", dataclasses.replace(packet, port=443)) == "reject"


@pytest.mark.parametrize(
    ("uid", "expected"),
    [(999, "accept"), (1000, "reject"), (60999, "reject"), (61184, "accept"), (65534, "accept"), (65536, "reject")],
)
def test_users_of_an_old_cluster_are_bound_and_services_are_not(site, uid, expected):
    site["user_uids"] = yaml.safe_load((ROOT / "roles/firewall/defaults/main.yml").read_text())["firewall_user_uids"]
    packet = Packet(target="203.0.113.7", port=443, uid=uid)
    assert made(site, "gpu1").verdict("output", packet) == expected


def test_users_whom_no_rule_binds_are_named():
    users = [{"name": name, "uid": uid} for name, uid in (("a", 999), ("b", 1000), ("c", 65534), ("d", 65536))]
    assert spec.unbound(users, ["1000-61183", "65536-4294967294"]) == ["a (999)", "c (65534)"]


def test_report_counts_and_denies_nothing(site):
    site["mode"] = "report"
    for host in NUMBERS:
        text = rules.render(spec.parse(site), host)
        assert " drop" not in text
        assert "reject" not in text
        assert "counter name denied_in" in text
        assert "would deny" in text


@pytest.mark.parametrize(
    ("uid", "target", "port", "expected"),
    [
        (ALICE, "203.0.113.7", 443, "reject"),
        (SUBUID, "203.0.113.7", 443, "reject"),
        (ROOT_USER, "203.0.113.7", 443, "accept"),
        (ALICE, "10.0.0.99", 22, "reject"),
        (ALICE, "10.1.0.10", 6817, "accept"),
        (ALICE, "10.1.0.10", 22, "reject"),
        (ALICE, "10.1.0.10", 3306, "reject"),
        (ALICE, "10.1.0.11", 60500, "accept"),
        (ALICE, "10.1.0.22", 29500, "accept"),
        (ALICE, "10.8.0.1", 2049, "accept"),
        (ALICE, "10.0.0.53", 53, "accept"),
    ],
)
def test_what_users_open_from_a_compute_node(site, uid, target, port, expected):
    site["egress_exceptions"] = [{"name": "dns", "to": ["10.0.0.53"], "ports": [53], "protocols": ["tcp", "udp"]}]
    assert made(site, "gpu1").verdict("output", Packet(target=target, port=port, uid=uid)) == expected


@pytest.mark.parametrize(("policy", "expected"), [("deny", "reject"), ("log", "accept"), ("allow", "accept")])
def test_a_policy_for_the_outside_opens_nothing_inside(site, policy, expected):
    site["egress_login"] = policy
    login = made(site, "login")
    assert login.verdict("output", Packet(target="203.0.113.7", port=443, uid=ALICE)) == expected
    assert login.verdict("output", Packet(target="10.0.0.99", port=22, uid=ALICE)) == "reject"
    assert login.verdict("output", Packet(target="10.1.0.21", port=22, uid=ALICE)) == "reject"
    assert login.verdict("output", Packet(target="10.1.0.21", port=6818, uid=ALICE)) == "accept"


def test_a_whole_node_is_bound_with_its_system_but_reaches_the_operators(site):
    site["node_groups"] = [{"name": "tenant-foo", "hosts": ["gpu3"], "egress": "deny", "whole_node": True}]
    node = made(site, "gpu3")
    assert node.verdict("output", Packet(target="203.0.113.7", port=443, uid=ROOT_USER)) == "reject"
    assert node.verdict("output", Packet(target="10.0.0.99", port=514, uid=ROOT_USER)) == "accept"
    assert node.verdict("output", Packet(target="10.0.0.99", port=514, uid=ALICE)) == "reject"
    # What a container sends has no owner.
    assert node.verdict("forward", Packet("172.17.0.2", "10.0.0.99", 514, comes="bridge")) == "reject"
    assert node.verdict("forward", Packet("172.17.0.2", "203.0.113.7", 443, comes="bridge")) == "reject"


def test_servers_have_no_users_to_bind(site):
    assert "output" not in made(site, "ctl").chains


@pytest.mark.parametrize("row", [row.name for row in matrix.ROWS if row.usual and row.ports != ("storage",)])
def test_every_row_opens_something_that_is_closed_without_it(site, row):
    if row == "ssh_admin":
        site["rows_off"] = [row]
        with pytest.raises(FirewallError, match="nobody could log in"):
            spec.parse(site)
        return
    before = {host: rules.render(spec.parse(site), host) for host in NUMBERS}
    site["rows_off"] = [row]
    after = {host: rules.render(spec.parse(site), host) for host in NUMBERS}
    assert any(f"in_{row} " in before[host] for host in NUMBERS)
    assert not any(f"in_{row} " in after[host] for host in NUMBERS)


def test_a_row_that_is_off_and_a_row_of_the_site(site):
    assert not reaches(site, "login", "gpu1", 22)
    site["rows_on"] = ["ssh_jobs"]
    site["rows_extra"] = [
        {"name": "grafana", "to": ["controller"], "from": ["10.7.0.0/24", "login"], "ports": ["3000"]}
    ]
    assert reaches(site, "login", "gpu1", 22)
    assert reaches(site, "login", "ctl", 3000)
    assert made(site, "ctl").verdict("input", Packet(source="10.7.0.9", port=3000)) == "accept"
    assert made(site, "gpu1").verdict("input", Packet(source="10.7.0.9", port=3000)) == "drop"


def test_ports_of_the_site(site):
    site["ports"] = {"slurmd": [7000], "storage": ["988"]}
    assert reaches(site, "ctl", "gpu1", 7000)
    assert not reaches(site, "ctl", "gpu1", 6818)
    assert made(site, "gpu1").verdict("input", Packet(source="10.8.0.1", port=988)) == "accept"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"management": []}, "nobody could log in"),
        ({"management": ["10.0.0.1/24"]}, r"bits set behind its prefix; write 10\.0\.0\.0/24"),
        ({"management": ["everywhere"]}, "no address or network"),
        ({"management": "10.0.0.0/24"}, "must be a list"),
        ({"mode": "on"}, "write enforce or report"),
        ({"compute": ["gpu1", "gpu9"]}, "gpu9 has no address"),
        ({"node_groups": [{"name": "a", "hosts": ["login"]}]}, "login is no compute node"),
        ({"node_groups": [{"name": "a", "hosts": ["gpu1"]}, {"name": "b", "hosts": ["gpu1"]}]}, "in a already"),
        ({"node_groups": [{"name": "A; flush ruleset", "hosts": ["gpu1"]}]}, "must be a-z"),
        ({"node_groups": [{"name": "shared", "hosts": ["gpu1"]}]}, "is taken"),
        ({"ports": {"slurm": [1]}}, "there is no slurm"),
        ({"ports": {"slurmd": ["0"]}}, "no port"),
        ({"ports": {"slurmd": ["22 accept"]}}, "no port"),
        ({"ports": {"slurmd": ["70-60"]}}, "no port"),
        ({"rows_off": ["slurm"]}, "there is no row slurm"),
        ({"rows_on": ["slurm"]}, "there is no row slurm"),
        ({"rows_extra": [{"name": "a", "from": [], "ports": [1]}]}, "say from where"),
        ({"rows_extra": [{"name": "slurmd", "from": ["login"], "ports": [1]}]}, "is taken"),
        ({"rows_extra": [{"name": "a", "to": ["gpu"], "from": ["login"], "ports": [1]}]}, "no role gpu"),
        ({"egress": "none"}, "write one of deny, log, allow"),
        ({"egress_exceptions": [{"name": "a", "to": []}]}, "say to which networks"),
        ({"egress_exceptions": [{"name": "a", "to": ["::/0"], "protocols": ["icmp"]}]}, "write tcp or udp"),
        ({"user_uids": []}, "is empty"),
        ({"user_uids": ["0-4294967294"]}, "write FIRST-LAST"),
        ({"log_group": "five"}, "write a number"),
        ({"management_hosts": ["bastion"]}, "bastion is no host of the cluster"),
        ({"owners": {"gpu1": "b"}, "node_groups": [{"name": "a", "hosts": ["gpu1"]}]}, "gpu1 is b's"),
        ({"storage_ports": ["nfs"]}, "firewall_storage_ports: 'nfs' is no port"),
    ],
)
def test_what_is_wrong_is_said_before_any_rule_is_made(site, change, words):
    site.update(change)
    with pytest.raises(FirewallError, match=words):
        spec.parse(site)


def test_two_hosts_with_one_address_are_refused(site):
    site["addresses"]["gpu2"].append("10.1.0.21")
    with pytest.raises(FirewallError, match=r"gpu1 and gpu2 have the same address 10\.1\.0\.21"):
        spec.parse(site)


def test_a_host_that_is_none_of_the_cluster_gets_no_rules(site):
    with pytest.raises(FirewallError, match="outside is in none of the groups"):
        rules.render(spec.parse(site), "outside")


def test_addresses_are_all_variables_of_that_name():
    variables = {
        "a": {"tenancy_address_cluster": "10.1.0.1", "tenancy_address_ib": ["10.2.0.1", "fd::1"], "x": "10.9.9.9"}
    }
    assert spec.addresses(["a"], variables) == {"a": ["10.1.0.1", "10.2.0.1", "fd::1"]}


def test_operators_are_the_networks_and_hosts_without_overlaps(site):
    site["management"] = ["10.0.0.0/24", "10.0.0.5", "fd29::/64"]
    site["management_hosts"] = ["ctl"]
    assert spec.admins(spec.parse(site)) == ["10.0.0.0/24", "10.1.0.10", "fd29::/64", "fd29:1::10"]


def test_the_documentation_has_the_matrix():
    path = ROOT / "tests" / "tools" / "gen_firewall_docs.py"
    loaded = importlib.util.spec_from_file_location("gen_firewall_docs", path)
    module = importlib.util.module_from_spec(loaded)
    loaded.loader.exec_module(module)
    for page, text in module.outputs().items():
        assert page.read_text(encoding="utf-8") == text, "run tests/tools/gen_firewall_docs.py"
        assert "`slurmd_fanout`" in text
