# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The port matrix, tried from all sides over both families."""

from __future__ import annotations

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from ways import DENIED, REACHED, at, converge, counter, on, role, said, table, tried

HOSTS = ["ctl", "login", "gpu1", "gpu2", "gpu3"]
# From, to, network, port, whether it gets there.
PATHS = [
    # Operators, and somebody who has got into the cluster's network without being of it.
    ("machine", "gpu1", "management", 22, True),
    ("machine", "ctl", "management", 22, True),
    ("machine", "login", "management", 22, True),
    ("machine", "gpu1", "management", 6818, False),
    ("machine", "gpu1", "management", 29500, False),
    ("machine", "gpu1", "cluster", 22, False),
    ("machine", "gpu1", "cluster", 6818, False),
    ("machine", "ctl", "cluster", 6817, False),
    ("machine", "ctl", "cluster", 3306, False),
    # The outside world.
    ("outside", "login", "outside", 22, True),
    ("outside", "login", "outside", 60500, False),
    ("outside", "login", "outside", 9100, False),
    # Servers.
    ("ctl", "gpu1", "cluster", 6818, True),
    ("ctl", "login", "cluster", 60500, True),
    ("ctl", "gpu1", "cluster", 9400, True),
    ("ctl", "gpu1", "management", 22, False),
    # A login node, and a user on it.
    ("login", "gpu1", "cluster", 6818, True),
    ("login", "ctl", "cluster", 6817, True),
    ("login", "ctl", "cluster", 6819, True),
    ("login", "ctl", "cluster", 3306, False),
    ("login", "gpu1", "cluster", 22, False),
    ("login", "gpu1", "management", 22, False),
    ("login", "gpu1", "cluster", 29500, False),
    ("login:alice", "gpu1", "cluster", 6818, True),
    ("login:alice", "ctl", "cluster", 22, False),
    ("login:alice", "ctl", "management", 22, False),
    # A compute node.
    ("gpu1", "gpu2", "cluster", 6818, True),
    ("gpu1", "gpu2", "cluster", 60500, True),
    ("gpu1", "gpu2", "cluster", 40000, True),
    ("gpu1", "ctl", "cluster", 6817, True),
    ("gpu1", "login", "cluster", 60500, True),
    ("gpu1", "gpu2", "cluster", 22, False),
    ("gpu1", "gpu2", "management", 22, False),
    ("gpu1", "gpu2", "cluster", 9400, False),
    ("gpu1", "login", "cluster", 22, False),
    ("gpu1", "ctl", "cluster", 3306, False),
    # A job.
    ("job:gpu1", "gpu2", "cluster", 29500, True),
    ("job:gpu1", "ctl", "cluster", 6817, True),
    ("job:gpu1", "login", "cluster", 60500, True),
    ("job:gpu1", "machine", "management", 8443, True),
    ("job:gpu1", "machine", "management", 443, False),
    ("job:gpu1", "ctl", "management", 22, False),
    ("job:gpu1", "ctl", "cluster", 22, False),
    ("job:gpu1", "gpu2", "management", 22, False),
    ("job:gpu1", "ctl", "cluster", 3306, False),
    ("job:gpu1", "login", "cluster", 22, False),
]


def way(source: str, host: str, network: str, port: int, version: int) -> str:
    # This machine has an address in every network: the one it is tried from stands in the table.
    bind = at("machine", network, version) if source == "machine" else ""
    return f"{at(host, network, version)}|{port}|{bind}"


@pytest.fixture(scope="module")
def answers() -> dict:
    """All ways of one source at once: a job each would take its time."""
    found = {}
    for source in dict.fromkeys(path[0] for path in PATHS):
        asked = [(path, version) for path in PATHS if path[0] == source for version in (4, 6)]
        said_ = tried(source, *[way(*path[:4], version) for path, version in asked])
        assert len(said_) == len(asked)
        found.update(zip(asked, said_, strict=True))
    return found


@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize("path", PATHS, ids=lambda path: f"{path[0]}-{path[1]}.{path[2]}-{path[3]}")
def test_path(answers, path, version):
    assert answers[path, version] in (REACHED if path[4] else DENIED)


def test_every_path_is_open_without_the_firewall():
    """What is denied above is denied by it, and by nothing else."""
    for host in HOSTS:
        said(host, "nft", "delete", "table", "inet", "tenancy")
    try:
        # srun of a user needs none of it.
        for source in ("machine", "outside", "login", "ctl", "gpu1", "job:gpu1"):
            denied = [path for path in PATHS if path[0] == source and not path[4]]
            ways = [way(*path[:4], version) for path in denied for version in (4, 6)]
            assert set(tried(source, *ways)) <= REACHED, source
    finally:
        converge()


@pytest.mark.parametrize("host", HOSTS)
def test_the_rules_are_loaded_and_come_back_at_boot(host):
    assert "policy drop" in table(host)
    assert said(host, "systemctl", "is-enabled", "tenancy-firewall") == "enabled"
    assert said(host, "systemctl", "is-active", "tenancy-firewall") == "active"
    assert said(host, "sh", "-c", "systemctl list-units --all --no-legend 'tenancy-firewall-rollback*'") == ""


def test_users_are_told_at_once_and_counted_and_the_system_is_not_bound():
    before = counter("gpu1", "denied_out")
    for version in (4, 6):
        target = f"{at('machine', 'management', version)}|443|"
        assert tried("gpu1:alice", target) in (["EHOSTUNREACH"], ["EACCES"])
        assert tried("gpu1", target) == ["ECONNREFUSED"]
    assert tried("gpu1:alice", f"{at('world', '', 4)}|443|") == ["EHOSTUNREACH"]
    assert counter("gpu1", "denied_out") >= before + 3


def test_what_is_denied_is_counted():
    before = counter("gpu1", "denied_in")
    assert tried("ctl", f"{at('gpu1', 'cluster', 4)}|22|") == ["timeout"]
    assert counter("gpu1", "denied_in") > before
    before = counter("gpu1", "in_slurmd")
    tried("ctl", f"{at('gpu1', 'cluster', 4)}|6818|")
    assert counter("gpu1", "in_slurmd") > before


def test_a_second_run_changes_nothing():
    # A table that was replaced has other handles.
    before = {host: said(host, "nft", "-a", "-s", "list", "table", "inet", "tenancy") for host in HOSTS}
    for options in ((), ("--check",)):
        run = role(*options).wait()
        assert run.returncode == 0, run.output[-3000:]
        assert run.changed == []
    assert {host: said(host, "nft", "-a", "-s", "list", "table", "inet", "tenancy") for host in HOSTS} == before


def test_a_rule_added_by_hand_is_a_difference_and_goes():
    said("gpu1", "nft", "insert", "rule", "inet", "tenancy", "input", "tcp", "dport", "4444", "accept")
    run = role("--check", "--diff", hosts="gpu1").wait()
    assert run.returncode == 0, run.output[-3000:]
    assert [it["host"] for it in run.changed] == ["gpu1"]
    assert "tcp dport 4444 accept" in run.output
    assert "4444" in table("gpu1")
    converge("gpu1")
    assert "4444" not in table("gpu1")


def test_report_mode_denies_nothing_and_counts():
    run = role(hosts="gpu1", extra={"firewall_mode": "report"}).wait()
    try:
        assert run.returncode == 0, run.output[-3000:]
        before = counter("gpu1", "denied_in")
        assert set(tried("ctl", *[f"{at('gpu1', 'cluster', version)}|22|" for version in (4, 6)])) == {"open"}
        assert counter("gpu1", "denied_in") >= before + 2
        assert set(tried("gpu1:alice", f"{at('machine', 'management', 4)}|443|")) == {"ECONNREFUSED"}
    finally:
        converge("gpu1")
    assert on("gpu1", "nft", "list", "counter", "inet", "tenancy", "denied_in").returncode == 0
