# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""site.yml on a cluster that is at work: what is bad never arrives, who is absent changes nothing."""

from __future__ import annotations

import json
import os
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "cluster"))
from recorded import playbook
from remote import on, said, wait_for

HOSTS = ("ctl", "login", "gpu1", "gpu2", "gpu3")
CONFIG = ["sh", "-c", "cd /etc/slurm && sha256sum slurm.conf cgroup.conf gres.conf topology.conf 2>/dev/null"]


def configuration() -> dict[str, str]:
    return {host: on(host, *CONFIG).stdout for host in HOSTS}


# Our own code's part is the same on both releases.
once = pytest.mark.skipif(
    os.environ.get("TENANCY_ONCE") == "1" and os.environ.get("TENANCY_DEBIAN") != "12",
    reason="make test has it on Debian 12, make test ALL=1 on both",
)
# Logins, devices and firewall have nothing to change in most of this, and would take as long as all else.
SLURM = ("--skip-tags", "node_login,node_hygiene,gpu_access,firewall")


def site(*args, **variables):
    return playbook("site.yml", "-e", json.dumps(variables), *args).wait()


def slurm(*args, **variables):
    return site(*SLURM, *args, **variables)


@pytest.fixture(scope="module")
def job():
    """A job at work on gpu1, and a way to run a step inside it."""
    for host in HOSTS:
        said(host, "useradd", "--uid", "60002", "--no-create-home", "worker")
    said("ctl", "sacctmgr", "-i", "add", "account", "worker")
    said("ctl", "sacctmgr", "-i", "add", "user", "worker", "account=worker", "defaultaccount=worker")
    script = (
        "#!/bin/sh\nwhile :; do srun -n1 --overlap date +%s > /var/tmp/step.$$ 2>/dev/null"
        " && mv /var/tmp/step.$$ /var/tmp/last-step; sleep 1; done\n"
    )
    number = said("login", "sbatch", "--parsable", "-n1", "-wgpu1", "--gres=gpu:1", "--chdir=/tmp", "--output=/dev/null", "--time=180",
                  stdin=script, user="worker")  # fmt: skip
    wait_for(lambda: state(number) == "RUNNING")
    yield number
    said("ctl", "scancel", number)
    wait_for(lambda: state(number) == "")
    said("ctl", "sh", "-c", "sacctmgr -i delete user worker; sacctmgr -i delete account worker")
    for host in HOSTS:
        on(host, "userdel", "worker")


def state(number: str) -> str:
    return on("ctl", "squeue", "-h", "-j", number, "-o", "%T").stdout.strip()


def still_works(number: str) -> None:
    """The job runs, and its own srun works.

    Releases before 23.11 have to be restarted: an srun that asks at that very moment waits SlurmctldTimeout (120 s).
    """
    assert state(number) == "RUNNING"
    now = int(said("gpu1", "date", "+%s"))
    wait_for(lambda: int(on("gpu1", "cat", "/var/tmp/last-step").stdout.strip() or 0) > now, 150)


@pytest.mark.parametrize(
    ("variables", "says"),
    [
        ({"slurm_config_options_extra": {"NoSuchKey": "1"}}, "NoSuchKey"),
        ({"slurm_config_cgroup_options_extra": {"NoSuchKey": "yes"}}, "NoSuchKey"),
        ({"slurm_config_partitions": [{"name": "h100", "nodes": ["gpu[1-"], "default": True}]}, "gpu[1-"),
        ({"slurm_config_options": {"TaskPluginParam": "Cores,Sockets,RAM"}}, "TaskPluginParam"),
    ],
)
def test_a_bad_configuration_never_arrives(job, variables, says):
    before = configuration()
    run = slurm("--limit", "ctl", **variables)
    assert run.returncode != 0
    assert says in "".join(run.errors)
    assert configuration() == before
    still_works(job)


@once
def test_a_host_that_is_left_out_changes_nothing():
    before = configuration()
    run = site("--limit", "gpu1")
    assert run.returncode == 0, run.output
    assert run.changed == []
    assert configuration() == before


@once
def test_a_host_that_is_unreachable_keeps_its_definition(tmp_path):
    before = configuration()
    (tmp_path / "lost.yml").write_text(json.dumps({"all": {"hosts": {"gpu3": {"ansible_port": 9}}}}))
    run = site("-i", str(tmp_path / "lost.yml"))
    assert {result["host"] for result in run.results if result["status"] == "unreachable"} == {"gpu3"}
    assert run.returncode == 4
    assert run.changed == []
    assert configuration() == before


@once
def test_a_node_with_jobs_is_not_removed(job):
    before = configuration()
    run = slurm("--limit", "ctl", slurm_config_compute_hosts=["gpu2", "gpu3"])
    assert run.returncode != 0
    assert "gpu1" in "".join(run.errors)
    assert job in "".join(run.errors)
    assert configuration() == before
    still_works(job)


@pytest.fixture
def included():
    """The node definitions in a file of their own, as many a site has it."""
    said("ctl", "sh", "-c", "cd /etc/slurm && cp -p slurm.conf slurm.conf.kept && grep ^NodeName slurm.conf > nodes.demo && "
         "sed -i -e /^NodeName/d -e '0,/^PartitionName/s//Include nodes.%c\\nPartitionName/' slurm.conf")  # fmt: skip
    yield
    said("ctl", "sh", "-c", "cd /etc/slurm && mv slurm.conf.kept slurm.conf && rm -f nodes.demo")


@once
def test_a_node_with_jobs_in_an_included_file_is_not_removed(job, included):
    before = configuration()
    said("ctl", "scontrol", "reconfigure")
    for compute_hosts in (["gpu2", "gpu3"], ["gpu1", "gpu2", "gpu3"]):
        run = slurm("--limit", "ctl", "--check", slurm_config_compute_hosts=compute_hosts)
        assert ("gpu1 would be removed while jobs" in "".join(run.errors)) == ("gpu1" not in compute_hosts), run.output
    run = slurm("--limit", "ctl", slurm_config_compute_hosts=["gpu2", "gpu3"])
    assert job in "".join(run.errors)
    assert configuration() == before
    still_works(job)


@once
def test_an_included_file_that_is_missing_is_not_taken_for_an_empty_one(included):
    said("ctl", "rm", "/etc/slurm/nodes.demo")
    run = slurm("--limit", "ctl", slurm_config_compute_hosts=["gpu2", "gpu3"])
    assert "includes nodes.demo, which cannot be read" in "".join(run.errors)


@once
def test_gres_of_a_node_with_jobs_are_not_changed(job, tmp_path):
    before = configuration()
    node = {
        "cpus": 2,
        "real_memory": 2000,
        "gres": [{"name": "gpu", "type": "h100", "count": 3, "file": "/dev/nvidia[0-2]"}],
        "switch": "leaf1",
    }
    (tmp_path / "changed.yml").write_text(json.dumps({"all": {"hosts": {"gpu1": {"slurm_compute_node": node}}}}))
    run = slurm("--limit", "ctl", "-i", str(tmp_path / "changed.yml"))
    assert run.returncode != 0
    assert job in "".join(run.errors)
    assert configuration() == before
    still_works(job)


def test_a_real_change_disturbs_no_job(job):
    changed = slurm(slurm_config_partition_defaults={"max_time": "1-00:00:00", "default_time": "00:25:00"})
    assert changed.returncode == 0, changed.output
    still_works(job)
    back = slurm()
    assert back.returncode == 0, back.output
    still_works(job)
    assert slurm().changed == []


@once
def test_another_database_than_the_one_in_use_is_refused():
    before = said("ctl", "sha256sum", "/etc/slurm/slurmdbd.conf")
    run = slurm("--limit", "ctl", "--tags", "slurm_database", slurm_database_name="another")
    (error,) = run.errors
    assert "localhost:3306/slurm_acct_db" in error
    assert "slurm_database_confirm=localhost:3306/another" in error
    assert run.changed == []
    assert said("ctl", "sha256sum", "/etc/slurm/slurmdbd.conf") == before
    sure = {"slurm_database_name": "another", "slurm_database_confirm": "localhost:3306/another"}
    run = slurm("--limit", "ctl", "--tags", "slurm_database", "--check", **sure)
    assert run.returncode == 0, run.output
    assert run.changed != []
