# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What MariaDB and slurmdbd run with is what is asked for."""

from __future__ import annotations

import json
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tests" / "cluster"))
from recorded import playbook
from remote import said


def site(**variables):
    return playbook("site.yml", "--limit", "ctl", "--tags", "slurm_database", "-e", json.dumps(variables)).wait()


def slurmdbd() -> dict[str, str]:
    lines = said("ctl", "sacctmgr", "show", "configuration").splitlines()
    return {key.strip(): value.strip() for key, mark, value in (line.partition("=") for line in lines) if mark}


def pid(unit: str) -> str:
    return said("ctl", "systemctl", "show", "-p", "MainPID", "--value", unit)


def test_nothing_is_purged_unless_asked():
    assert {value for key, value in slurmdbd().items() if key.startswith("Purge")} == {"NONE"}


def test_a_purge_without_an_archive_is_refused_before_a_file_is_written():
    before = said("ctl", "sha256sum", "/etc/slurm/slurmdbd.conf")
    run = site(slurm_database_retention={"jobs": "24months"})
    assert run.returncode != 0
    assert "destroy jobs without a copy" in run.output
    assert said("ctl", "sha256sum", "/etc/slurm/slurmdbd.conf") == before


@pytest.fixture
def as_it_was():
    yield
    run = site()
    assert run.returncode == 0, run.output[-3000:]
    said("ctl", "rm", "-rf", "/var/spool/slurm-archive")


def test_settings_reach_the_daemons_and_only_those_that_have_them(as_it_was):
    database, daemon = pid("mariadb"), pid("slurmdbd")
    said("ctl", "mariadb", "-e", "SET GLOBAL innodb_lock_wait_timeout=7")
    run = site(slurm_database_retention={"jobs": "24months"}, slurm_database_archive_dir="/var/spool/slurm-archive")
    assert run.returncode == 0, run.output[-3000:]
    # Somebody's hand on the server was found, though no file had changed.
    assert said("ctl", "mariadb", "-NBe", "SELECT @@global.innodb_lock_wait_timeout") == "900"
    assert pid("mariadb") != database
    assert pid("slurmdbd") != daemon
    conf = slurmdbd()
    assert conf["PurgeJobAfter"].rstrip("*") == "24 months"
    # 22.05 says Yes.
    assert (conf["ArchiveJobs"].lower(), conf["ArchiveDir"], conf["PurgeStepAfter"]) == (
        "yes",
        "/var/spool/slurm-archive",
        "NONE",
    )
    assert said("ctl", "stat", "-c", "%U %a", "/var/spool/slurm-archive") == "slurm 700"
    database = pid("mariadb")
    assert site().returncode == 0
    # slurmdbd's file alone changed.
    assert pid("mariadb") == database
