# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The first slurmdbd goes, the first slurmctld, the host of both: the backups take over, no job is lost, and back."""

from __future__ import annotations

import json
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tests" / "cluster"))
from definition import address, definition
from engine import Engine
from recorded import playbook
from remote import on, said, wait_for

# SlurmctldTimeout of the test cluster is 12 s; the backup looks every third of it.
TAKEOVER = 60
CTL = f"{definition()['name']}-ctl"


@pytest.fixture(scope="module", autouse=True)
def long() -> str:
    """A job that has to run through all of this."""
    words = said("login", "sbatch", "--parsable", "-t", "60", "-o", "/dev/null", "--wrap", "sleep 3000", user="alice")
    wait_for(lambda: state(words) == "RUNNING", what="the job")
    began = said("login", "squeue", "-h", "-j", words, "-o", "%S")
    yield words
    assert (state(words), said("login", "squeue", "-h", "-j", words, "-o", "%S")) == ("RUNNING", began)
    said("ctl", "scancel", words)


def state(job: str) -> str:
    return on("login", "squeue", "-h", "-j", job, "-o", "%T").stdout.strip()


def site(*args: str):
    return playbook("site.yml", *args).wait()


def changes_nothing(*args: str) -> None:
    before = pids("ctl2")
    run = site(*args)
    assert run.returncode == 0, run.output[-3000:]
    assert run.changed == []
    assert pids("ctl2") == before


def starts_again(task: str) -> None:
    """site.yml starts what was stopped on ctl, and nothing else."""
    before = pids("ctl2")
    run = site()
    assert run.returncode == 0, run.output[-3000:]
    assert [(it["host"], it["task"].rsplit(" : ", 1)[-1]) for it in run.changed] == [("ctl", task)]
    assert pids("ctl2") == before


def pids(host: str) -> list[str]:
    found = said(host, "systemctl", "show", "-p", "MainPID", "--value", "slurmdbd", "slurmctld").split()
    assert "0" not in found
    return found


def a_job_runs(name: str) -> None:
    said("login", "sbatch", "-Q", "--wait", "-J", name, "-t", "1", "-o", "/dev/null", "--wrap", "true", user="alice")


def record(name: str) -> str:
    return on("login", "sacct", "-XnP", "--name", name, "-o", "state", user="alice").stdout.strip()


def listens(host: str, port: int) -> bool:
    return f":{port} " in said(host, "ss", "-ltn")


def in_charge(host: str) -> bool:
    """Whether this slurmctld answers, and answers with jobs: one that stands by does not."""
    ping = on("login", "scontrol", "ping", timeout=60).stdout
    return f"at {host} is UP" in ping and on("login", "squeue", "-h", timeout=60).returncode == 0


def both_up() -> bool:
    said_up = on("login", "scontrol", "ping", timeout=60).stdout
    return "at ctl is UP" in said_up and "at ctl2 is UP" in said_up


def test_a_second_run_changes_nothing():
    changes_nothing()
    assert both_up()
    assert listens("ctl", 6819)
    assert not listens("ctl2", 6819)


def test_the_database_lets_only_the_backups_host_in():
    hosts = said("ctl", "mariadb", "-NB", "-e", "SELECT host FROM mysql.user WHERE user = 'slurm'").split()
    assert sorted(hosts) == sorted(["localhost", address(definition(), "ctl2", "cluster")])
    grants = said("ctl", "mariadb", "-NB", "-e", "SELECT DISTINCT db FROM mysql.db WHERE user = 'slurm'")
    assert grants.replace("\\", "") == "slurm_acct_db"
    listening = [line.split()[3] for line in said("ctl", "ss", "-ltnH").splitlines() if ":3306 " in line]
    assert listening == [f"{address(definition(), 'ctl', 'cluster')}:3306"]
    # One MariaDB, not two.
    assert on("ctl2", "sh", "-c", "command -v mariadbd").returncode != 0


def test_accounting_is_written_from_the_first_controller_alone():
    run = site("--check", "--tags", "slurm_controller")
    assert {it["host"] for it in run.of("slurm_qos") if it["status"] == "ok"} == {"ctl"}
    assert {it["host"] for it in run.of("slurm_cluster") if it["status"] == "ok"} == {"ctl"}


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        ({"slurm_config_state_shared": False}, "several controllers"),
        ({"slurm_config_state_dir": "/var/spool/slurmctld"}, "does not see in /var/spool/slurmctld what"),
    ],
)
def test_state_that_is_not_shared_is_refused(extra, words):
    before = said("ctl", "sha256sum", "/etc/slurm/slurm.conf"), pids("ctl"), pids("ctl2")
    run = site("-e", json.dumps(extra))
    assert run.returncode != 0
    assert words in " ".join(" ".join(run.errors).split())
    assert (said("ctl", "sha256sum", "/etc/slurm/slurm.conf"), pids("ctl"), pids("ctl2")) == before
    for host in ("ctl", "ctl2"):
        assert on(host, "sh", "-c", "ls /var/spool/slurmctld/.tenancy-* /srv/shared/slurmctld/.tenancy-*").stdout == ""


def test_slurmdbd_killed_and_back():
    said("ctl", "systemctl", "kill", "-s", "KILL", "slurmdbd")
    said("ctl", "systemctl", "stop", "slurmdbd")
    wait_for(lambda: on("login", "sacctmgr", "-nP", "show", "cluster").returncode == 0, 20, "an answer of the backup")
    assert listens("ctl2", 6819)
    a_job_runs("through-ctl2")
    wait_for(lambda: record("through-ctl2") == "COMPLETED", 90, "the job's record")
    # What is changed there is changed for all.
    said("login", "sacctmgr", "-i", "modify", "account", "tenant-foo", "set", "MaxJobs=77")
    wait_for(
        lambda: "MaxJobs=77(" in said("ctl", "scontrol", "show", "assoc_mgr", "accounts=tenant-foo", "flags=assoc"),
        what="slurmctld to hear of a limit",
    )
    said("login", "sacctmgr", "-i", "modify", "account", "tenant-foo", "set", "MaxJobs=-1")
    changes_nothing("--limit", "!ctl")
    starts_again("Keep slurmdbd running with its configuration")
    wait_for(lambda: not listens("ctl2", 6819), 20, "the backup to stand by")
    a_job_runs("through-ctl")
    wait_for(lambda: record("through-ctl") == "COMPLETED", 90, "the job's record")


def test_slurmctld_stopped_and_back(long):
    said("ctl", "systemctl", "stop", "slurmctld")
    wait_for(lambda: in_charge("ctl2"), TAKEOVER, "ctl2 to take over")
    assert state(long) == "RUNNING"
    a_job_runs("on-ctl2")
    changes_nothing("--limit", "!ctl")
    starts_again("Keep slurmctld running with its configuration")
    wait_for(both_up, what="both")
    assert state(long) == "RUNNING"
    a_job_runs("on-ctl")


def test_takeover_by_hand_and_back(long):
    said("ctl2", "scontrol", "takeover")
    wait_for(lambda: in_charge("ctl2"), TAKEOVER, "ctl2 to take over")
    assert said("ctl", "systemctl", "show", "-p", "ActiveState", "--value", "slurmctld") == "inactive"
    assert state(long) == "RUNNING"
    a_job_runs("taken-over")
    said("ctl", "systemctl", "start", "slurmctld")
    wait_for(both_up, what="both")
    a_job_runs("given-back")


def test_a_restore_stops_the_backups_first(long):
    made = playbook("backup.yml").wait().of("slurm_database_backup")[-1]["plan"]
    path = next(change["object"] for change in made if change["kind"] == "add")
    taken = said("ctl2", "grep", "-c", "Taking Control", "/var/log/slurm/slurmdbd.log")
    extra = {"slurm_database_restore_path": path, "slurm_database_restore_confirm": "slurm_acct_db"}
    run = playbook("restore_database.yml", "-e", json.dumps(extra)).wait()
    assert run.returncode == 0, run.output[-3000:]
    stops = [(it["task"].rsplit(" : ", 1)[-1], it["host"]) for it in run.changed if " : Stop " in it["task"]]
    assert stops == [(f"Stop {name}", host) for name in ("slurmctld", "slurmdbd") for host in ("ctl2", "ctl")]
    assert said("ctl2", "grep", "-c", "Taking Control", "/var/log/slurm/slurmdbd.log") == taken
    wait_for(both_up, what="both")
    assert state(long) == "RUNNING"
    a_job_runs("restored")


def test_the_host_lost_with_the_database_on_it(long):
    """What docs/failover.md says: a backup that has once been in charge is restarted, else it waits for the database."""
    said("ctl2", "systemctl", "restart", "slurmctld")
    wait_for(both_up, what="both")
    engine = Engine()
    engine.start()
    engine("kill", CTL)
    try:
        wait_for(lambda: in_charge("ctl2"), TAKEOVER, "ctl2 to take over")
        assert state(long) == "RUNNING"
        a_job_runs("without-database")
        before = pids("ctl2")
        run = site()
        assert run.returncode != 0
        assert run.changed == []
        assert pids("ctl2") == before
    finally:
        engine("start", CTL)
    wait_for(lambda: on("ctl", "true").returncode == 0, what="ctl")
    wait_for(both_up, 120, "both")
    wait_for(lambda: record("without-database") == "COMPLETED", 120, "the record that waited")
    assert state(long) == "RUNNING"
    # The next one must find a backup that may take over again.
    said("ctl2", "systemctl", "restart", "slurmctld")
    wait_for(both_up, what="both")
    changes_nothing()
