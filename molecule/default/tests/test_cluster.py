# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What site.yml made of bare hosts."""

from __future__ import annotations

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tests" / "cluster"))
from definition import address, definition
from remote import gpus_seen, on, said

NODES = ["gpu1", "gpu2", "gpu3"]
SERVICES = {
    "ctl": ["munge", "mariadb", "slurmdbd", "slurmctld"],
    "login": ["munge"],
    "gpu1": ["munge", "slurmd"],
    "gpu2": ["munge", "slurmd"],
    "gpu3": ["munge", "slurmd"],
}


def config(host: str = "ctl") -> dict[str, str]:
    """What slurmctld runs with, as scontrol on a host reads it back."""
    pairs = (line.partition("=") for line in said(host, "scontrol", "show", "config").splitlines() if "=" in line)
    return {key.strip(): value.strip() for key, _equals, value in pairs}


@pytest.mark.parametrize(
    ("host", "service"), [(host, service) for host, names in SERVICES.items() for service in names]
)
def test_service_is_running_and_comes_back_at_boot(host, service):
    assert said(host, "systemctl", "is-active", service) == "active"
    assert said(host, "systemctl", "is-enabled", service) == "enabled"


@pytest.mark.parametrize("host", SERVICES)
def test_no_unit_failed(host):
    assert said(host, "systemctl", "list-units", "--state=failed", "--no-legend", "--plain") == ""


@pytest.mark.parametrize("host", SERVICES)
def test_slurmctld_runs_with_the_file_that_lies_on_every_host(host):
    assert config(host)["HASH_VAL"] == "Match"


def test_limits_are_enforced_and_gpus_counted_by_type():
    running = config()
    assert set(running["AccountingStorageEnforce"].split(",")) >= {"associations", "limits", "qos", "safe"}
    assert {"gres/gpu", "gres/gpu:a100", "gres/gpu:h100"} <= set(running["AccountingStorageTRES"].split(","))
    # Newer releases print what differs from FAIR_TREE only.
    assert "NO_FAIR_TREE" not in running["PriorityFlags"]
    assert running["PriorityType"] == "priority/multifactor"
    assert running["SelectType"] == "select/cons_tres"
    assert running["ProctrackType"] == "proctrack/cgroup"
    assert "contain" in running["PrologFlags"].lower()
    assert set(running["PrivateData"].split(",")) >= {"accounts", "events", "jobs", "reservations", "usage", "users"}
    assert "nodes" not in running["PrivateData"].split(",")


def test_every_partition_has_time_limits_and_makes_gpus_count():
    lines = said("ctl", "scontrol", "-o", "show", "partition").splitlines()
    assert lines
    for line in lines:
        partition = dict(word.split("=", 1) for word in line.split() if "=" in word)
        assert partition["MaxTime"] not in ("UNLIMITED", "NONE"), line
        assert partition["DefaultTime"] not in ("UNLIMITED", "NONE"), line
        assert "gres/gpu" in partition["TRESBillingWeights"].lower(), line


@pytest.mark.parametrize("node", NODES)
def test_node_is_idle_with_its_gpus(node):
    shown = said("ctl", "scontrol", "-o", "show", "node", node)
    assert "State=IDLE " in shown
    assert "Gres=gpu:" in shown
    assert f"NodeAddr={address(definition(), node, 'cluster')} " in shown


def test_the_cluster_is_registered_and_the_sites_qos_exist():
    assert said("ctl", "sacctmgr", "-nP", "show", "cluster", "format=cluster") == config()["ClusterName"]
    qos = said("ctl", "sacctmgr", "-nP", "show", "qos", "format=name,flags,grpsubmit,maxsubmitpu").splitlines()
    rows = {line.split("|")[0]: line.split("|")[1:] for line in qos}
    assert {"normal", "high", "low", "blocked"} <= set(rows)
    assert set(rows["blocked"][0].split(",")) == {"DenyOnLimit", "OverPartQOS"}
    assert rows["blocked"][1:] == ["0", "0"]


@pytest.fixture(scope="module")
def probe():
    """A user who may run jobs; root may not (DisableRootJobs)."""
    for host in SERVICES:
        said(host, "useradd", "--uid", "60001", "--no-create-home", "probe")
    said("ctl", "sacctmgr", "-i", "add", "account", "probe")
    said("ctl", "sacctmgr", "-i", "add", "user", "probe", "account=probe", "defaultaccount=probe")
    yield "probe"
    said("ctl", "sh", "-c", "sacctmgr -i delete user probe; sacctmgr -i delete account probe")
    for host in SERVICES:
        on(host, "userdel", "probe")


@pytest.mark.parametrize(("gpus", "allowed"), [(0, 0), (1, 1), (2, 2), (4, 4)])
@pytest.mark.parametrize("partition", ["h100", "a100"])
def test_a_job_opens_what_it_was_given_and_nothing_else(probe, partition, gpus, allowed):
    options = ["-n1", f"-p{partition}"] + ([f"--gres=gpu:{gpus}"] if gpus else [])
    seen = list(gpus_seen("login", "srun", *options, user=probe).values())
    assert sorted(seen) == ["ENXIO"] * allowed + ["EPERM"] * (4 - allowed)


@pytest.mark.parametrize(
    ("path", "owner", "mode"),
    [
        ("/etc/munge/munge.key", "munge", "400"),
        ("/etc/slurm/slurmdbd.conf", "slurm", "600"),
    ],
)
def test_secrets_are_readable_by_their_daemon_alone(path, owner, mode):
    assert said("ctl", "stat", "-c", "%U %a", path) == f"{owner} {mode}"


def test_the_munge_key_is_the_same_on_all_hosts():
    assert len({said(host, "sha256sum", "/etc/munge/munge.key") for host in SERVICES}) == 1


def test_the_database_password_is_in_no_log():
    lines = said("ctl", "cat", "/etc/slurm/slurmdbd.conf").splitlines()
    password = next(line.split("=", 1)[1] for line in lines if line.startswith("StoragePass="))
    assert len(password) >= 16
    # By standard input: the watch over the processes would find it on a command line.
    search = ["grep", "-rlF", "-f", "-"]
    said("ctl", "mkdir", "-p", "/run/log")
    # 1: looked everywhere and found nothing (2 would be a search that failed).
    assert on("ctl", *search, "/var/log", "/run/log", "/root", stdin=password).returncode == 1
    assert said("ctl", *search, "/etc/slurm", stdin=password) == "/etc/slurm/slurmdbd.conf"


def test_the_database_has_the_settings_that_slurmdbd_asks_for():
    assert said("ctl", "mariadb", "-NBe", "select @@innodb_lock_wait_timeout").split() == ["900"]
    assert "lower than recommended" not in said("ctl", "journalctl", "-u", "slurmdbd", "-b", "--no-pager")


def test_a_stranger_has_no_way_into_management_or_the_cluster():
    # The way that is open shows that the probe works.
    spec = definition()
    assert on("outside", "nc", "-z", "-w", "2", address(spec, "login", "outside"), "22").returncode == 0
    for host, network in (("ctl", "management"), ("ctl", "cluster"), ("login", "management")):
        assert on("outside", "nc", "-z", "-w", "2", address(spec, host, network), "22").returncode != 0
