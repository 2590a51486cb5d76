# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Neither the munge key nor the database password is ever seen by who looks on: in processes, output, or diff."""

from __future__ import annotations

import base64
import json
import pathlib
import shlex
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tests" / "cluster"))
import watch
from recorded import playbook
from remote import said


@pytest.fixture(scope="module")
def secrets() -> dict[str, bytes]:
    conf = said("ctl", "cat", "/etc/slurm/slurmdbd.conf").splitlines()
    return {
        "database password": next(line.partition("=")[2] for line in conf if line.startswith("StoragePass=")).encode(),
        "munge key": base64.b64decode(said("ctl", "base64", "/etc/munge/munge.key")),
    }


@pytest.fixture(scope="module")
def rewritten(secrets):
    """A run that has to write both secrets again, and tells all that it can."""
    said("ctl", "sed", "-i", "s/^StoragePass=.*/StoragePass=another/", "/etc/slurm/slurmdbd.conf")
    said("ctl", "mariadb", "-e", "ALTER USER slurm@localhost IDENTIFIED BY 'another'")
    said("ctl", "dd", "if=/dev/urandom", "of=/etc/munge/munge.key", "bs=128", "count=1")
    run = playbook(
        "site.yml", "-vvv", "--diff", "--limit", "ctl", "--tags", "munge,slurm_database", "-e", "munge_replace_key=true"
    ).wait()
    assert run.returncode == 0, run.output[-4000:]
    assert {"secret_file", "slurm_config", "mariadb_account"} <= {
        result["action"].rsplit(".", 1)[-1] for result in run.changed
    }
    return run


def test_a_run_that_writes_them_shows_neither(secrets, rewritten):
    text = rewritten.output.encode() + json.dumps(rewritten.results).encode()
    assert watch.found(text, secrets) == []
    # They were written, and the output is that of a run which tells everything.
    assert base64.b64decode(said("ctl", "base64", "/etc/munge/munge.key")) == secrets["munge key"]
    assert "StoragePass=********" in rewritten.output
    assert '"module_args"' in rewritten.output or "module_args:" in rewritten.output


def test_the_search_finds_them_in_any_form(secrets):
    for name, secret in secrets.items():
        for form in watch.forms(secret):
            assert watch.found(b"x" + form + b"y", secrets) == [name]
    assert watch.found(b"nothing", secrets) == []


def test_no_process_ever_showed_one(rewritten):
    """From bare hosts on: prepare.yml started the watch."""
    result = json.loads(said("ctl", *shlex.split("python3 /root/watch.py search")))
    assert sorted(result["markers"]) == sorted(watch.MARKERS)
    assert result["bytes"] > 100_000
    assert result["found"] == []
