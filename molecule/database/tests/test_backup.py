# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The accounting database: backed up while it works, broken, brought back; killed in between."""

from __future__ import annotations

import json
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tests" / "cluster"))
from recorded import playbook
from remote import on, said, wait_for

ASSOC = ["show", "assoc", "-nP", "format=cluster,account,user,qos,fairshare,grptres,maxjobs,maxsubmit,id"]
JOBS = ["-aXnP", "-S", "2020-01-01", "-E", "now", "-o", "jobid,user,account,state,associd,elapsed", "-s", "CD,TO,F,CA"]


@pytest.fixture(scope="module", autouse=True)
def _clean_up():
    yield
    for name in sql("SHOW DATABASES").split():
        if name.startswith("slurm_acct_db_"):
            sql(f"DROP DATABASE {name}")
    said("ctl", "rm", "-r", "/var/backups/slurm")


def sql(text: str) -> str:
    return said("ctl", "mariadb", "-NB", "-e", text)


def history() -> tuple[str, str]:
    return said("ctl", "sacctmgr", *ASSOC), said("ctl", "sacct", *JOBS)


def differing(before: tuple[str, str]) -> set[str]:
    """Lines that are not as they were."""
    return set("\n".join(before).splitlines()) ^ set("\n".join(history()).splitlines())


def backup(*args: str) -> dict[str, list[str]]:
    """Files that came and went."""
    run = playbook("backup.yml", *args).wait()
    assert run.returncode == 0, run.output[-3000:]
    changes = run.of("slurm_database_backup")[-1]["plan"]
    return {kind: [change["object"] for change in changes if change["kind"] == kind] for kind in ("add", "remove")}


def restore(path: str, *args: str, kill_after: int = 0):
    extra = {"slurm_database_restore_path": path, "slurm_database_restore_confirm": "slurm_acct_db"}
    return playbook("restore_database.yml", "-e", json.dumps(extra), *args, kill_after=kill_after).wait()


def answers(timeout: float = 60) -> None:
    for asked in (("sacctmgr", "-nP", "show", "cluster"), ("scontrol", "ping")):
        wait_for(lambda asked=asked: on("ctl", *asked).returncode == 0, timeout, f"an answer to {asked}")


@pytest.fixture(scope="module")
def saved() -> tuple[str, tuple[str, str]]:
    """A backup, and what Slurm said when it was taken."""
    for code in ("0", "1"):
        on("login", "sbatch", "-Q", "--wait", "-t", "1", "-o", "/dev/null", "--wrap", f"exit {code}", user="alice")
    # What slurmctld has still to tell.
    wait_for(
        # Not by -s: with a time it finds jobs that were in that state then.
        lambda: not {"RUNNING", "PENDING"}
        & set(said("ctl", "sacct", "-aXnP", "-S", "2020-01-01", "-o", "state").split()),
        what="a quiet database",
    )
    before = history()
    assert "tenant-foo" in before[0]
    assert "COMPLETED" in before[1]
    assert "FAILED" in before[1]
    [checked] = backup("--check")["add"]
    assert on("ctl", "test", "-e", checked).returncode != 0
    [made] = backup()["add"]
    return made, before


def test_a_backup_is_roots_alone_and_counted(saved):
    path, _before = saved
    assert said("ctl", "stat", "-c", "%U %a", "/var/backups/slurm", path, f"{path}.json").split() == [
        "root", "700", "root", "600", "root", "600",
    ]  # fmt: skip
    manifest = json.loads(said("ctl", "cat", f"{path}.json"))
    assert manifest["sha256"] == said("ctl", "sha256sum", path).split()[0]
    assert manifest["rows"]["demo_assoc_table"] == int(sql("SELECT COUNT(*) FROM slurm_acct_db.demo_assoc_table"))
    assert manifest["rows"]["demo_job_table"] >= 3
    # Real words of a real dump, and no password.
    text = said("ctl", "sh", "-c", f"zcat {path} | grep -c tenant-foo")
    assert int(text) >= 1


def test_only_so_many_stay(saved):
    path, _before = saved
    [second] = backup()["add"]
    last = backup("-e", "slurm_database_backup_keep=2")
    [third] = last["add"]
    assert last["remove"] == [path]
    assert said("ctl", "sh", "-c", "ls /var/backups/slurm/*.gz").split() == [second, third]


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        ({}, "Say which backup"),
        ({"slurm_database_restore_path": "/var/backups/slurm/x.sql.gz"}, "Say which backup"),
        (
            {
                "slurm_database_restore_path": "/var/backups/slurm/x.sql.gz",
                "slurm_database_restore_confirm": "slurm_acct_db",
            },
            "cannot read /var/backups/slurm/x.sql.gz.json",
        ),
    ],
)
def test_what_is_refused_stops_nobody(extra, words):
    run = playbook("restore_database.yml", "-e", json.dumps(extra)).wait()
    assert run.returncode != 0
    assert words in " ".join(run.errors)
    assert run.changed == []
    answers(5)


def newest() -> str:
    return said("ctl", "sh", "-c", "ls /var/backups/slurm/*.gz | tail -1")


def test_a_damaged_backup_is_refused_before_anything_stops(saved):
    path = newest()
    damaged = "/var/backups/slurm/slurm_acct_db-20200101T000000Z.sql.gz"
    said("ctl", "sh", "-c", f"head -c -20 {path} >{damaged}; cp {path}.json {damaged}.json")
    run = restore(damaged)
    assert run.returncode != 0
    assert "checksum" in " ".join(run.errors)
    assert run.changed == []
    said("ctl", "rm", damaged, f"{damaged}.json")


def ruin() -> None:
    """What a wrong statement does: users and history gone."""
    sql("USE slurm_acct_db; DELETE FROM demo_job_table; DROP TABLE user_table; UPDATE demo_assoc_table SET deleted=1")


def lose() -> None:
    """The whole database. A connection of slurmdbd that is idle within a transaction would keep it for as long."""

    def gone() -> bool:
        ids = sql("SELECT id FROM information_schema.processlist WHERE user = 'slurm'").split()
        on("ctl", "mariadb", "-f", "-e", "; ".join(f"KILL {number}" for number in ids))
        on("ctl", "mariadb", "-e", "SET lock_wait_timeout = 3; DROP DATABASE slurm_acct_db")
        return "slurm_acct_db" not in sql("SHOW DATABASES").split()

    wait_for(gone, what="the database to be lost")


@pytest.fixture
def survivor():
    job = ["-J", "survivor", "-t", "5", "-o", "/tmp/survivor", "--wrap", "sleep 100"]
    said("login", "sbatch", "-Q", *job, user="alice")
    yield
    said("ctl", "scancel", "-n", "survivor")


def test_broken_and_brought_back_under_a_running_job(saved, survivor):
    _path, before = saved
    path = newest()
    ruin()
    assert history()[1] != before[1]
    checked = restore(path, "--check")
    assert checked.returncode == 0, checked.output[-3000:]
    assert on("ctl", "scontrol", "ping").returncode == 0
    run = restore(path)
    assert run.returncode == 0, run.output[-3000:]
    assert differing(before) == set()
    assert said("login", "squeue", "-h", "-n", "survivor", "-o", "%T") == "RUNNING"
    # What was in force is kept, what the steps needed is gone.
    databases = sql("SHOW DATABASES").split()
    kept = [name for name in databases if name.startswith("slurm_acct_db_until_")]
    assert len(kept) == 1
    assert "slurm_acct_db_restore" not in databases
    assert "user_table" not in sql(f"SHOW TABLES FROM {kept[0]}").split()
    # And it is a database that works: new records go in.
    said("login", "sbatch", "-Q", "--wait", "-t", "1", "-o", "/dev/null", "--wrap", "true", user="alice")


def test_killed_wherever_the_state_changes(saved):
    _path, before = saved
    path = newest()
    lose()
    # Loaded; slurmctld and slurmdbd stopped; swapped; slurmdbd started.
    for tasks, last in ((1, "Take the step"), (2, "Stop slurmdbd"), (1, "Take the step"), (1, "Start slurmdbd")):
        run = restore(path, kill_after=tasks)
        assert run.killed, run.output[-3000:]
        assert run.changed[-1]["task"].endswith(last)
    run = restore(path)
    assert run.returncode == 0, run.output[-3000:]
    answers()
    assert differing(before) == set()
    assert [name for name in sql("SHOW DATABASES").split() if name.endswith("_restore")] == []
