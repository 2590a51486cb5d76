# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests against a real slurmctld with real jobs on real nodes.

TENANCY_CTL_EXEC is a JSON list: the words that run a program as root on the controller, for example
["docker", "exec", "-i", "ctl"] or ["ssh", "-F", "ssh_config", "ctl"]. TENANCY_CLUSTER names the cluster (demo). The
cluster has nodes gpu1 to gpu3 and nobody else's jobs. Jobs run as two users that every Debian has. What these tests
make is removed again.
"""

from __future__ import annotations

import json
import os
import pathlib
import runpy
import secrets
import shlex
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
runpy.run_path(str(ROOT / "tests" / "unit" / "conftest.py"))
sys.path.insert(0, str(ROOT / "tests" / "cluster"))

from ansible_collections.gpuops.tenancy.plugins.module_utils import _command  # noqa: E402
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import (  # noqa: E402
    jobs_apply,
    nodes_apply,
    reservations_apply,
)
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.client import Client  # noqa: E402
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.scheduler import Scheduler  # noqa: E402
from remote import wait_for  # noqa: E402

CLUSTER = os.environ.get("TENANCY_CLUSTER", "demo")
ONE, OTHER = "games", "daemon"
READS = (["squeue"], ["scontrol", "show"], ["scontrol", "-o"], ["sacctmgr"], ["getent"])


def pytest_configure(config):
    try:
        words = json.loads(os.environ.get("TENANCY_CTL_EXEC", ""))
        assert isinstance(words, list) and words and all(isinstance(word, str) for word in words)
    except (ValueError, AssertionError):
        raise pytest.UsageError(
            "set TENANCY_CTL_EXEC to the JSON list of words that run a program on the controller, "
            'for example ["docker", "exec", "-i", "ctl"]'
        ) from None
    config.ctl_prefix = words


class Ctl:
    """Runs programs on the controller and remembers those that write."""

    def __init__(self, prefix):
        self.prefix = prefix
        self.writes = []
        # Called before a program that writes; for what other people do at that moment.
        self.meanwhile = None

    def run(self, argv, timeout=120, pass_fds=()):
        if not any(list(argv)[: len(words)] == words for words in READS):
            if self.meanwhile:
                self.meanwhile()
            self.writes.append(list(argv))
        return self.execute(argv, timeout)

    def execute(self, argv, timeout=120):
        over_ssh = os.path.basename(self.prefix[0]) == "ssh"
        return _command.run([*self.prefix, *([shlex.join(argv)] if over_ssh else argv)], timeout=timeout)

    def said(self, *argv):
        done = self.execute(list(argv))
        assert done.rc == 0, done
        return done.stdout

    def scheduler(self):
        return Scheduler(Client("", runner=self.run))

    def node(self, name):
        return self.scheduler().nodes()[name]

    def opens(self, *names):
        """They take jobs. Since 23.11 a node that is resumed counts as not responding until it is asked, about a second later."""
        self.wait_for(lambda: {node.shown for node in map(self.scheduler().nodes().get, names)} == {"IDLE"}, 30)

    def queue(self):
        """Id -> job, of the jobs that have not ended."""
        return {job.id: job for job in self.scheduler().jobs() if not job.over}

    def wait_for(self, condition, seconds=40):
        wait_for(condition, seconds, lambda: self.said("squeue", "-a"))


@pytest.fixture
def ctl(request):
    return Ctl(request.config.ctl_prefix)


@pytest.fixture(scope="session")
def accounts(request):
    """User -> an account of his own."""
    ctl = Ctl(request.config.ctl_prefix)
    names = {user: f"tst{secrets.token_hex(3)}{user}" for user in (ONE, OTHER)}
    for user, account in names.items():
        ctl.said("sacctmgr", "-iQ", "add", "account", account, f"cluster={CLUSTER}")
        ctl.said("sacctmgr", "-iQ", "add", "user", user, f"account={account}", f"cluster={CLUSTER}")
    yield names
    ctl.said("scancel", "--user", ONE)
    ctl.said("scancel", "--user", OTHER)
    ctl.wait_for(lambda: not ctl.queue(), 60)
    for user, account in names.items():
        ctl.execute(["sacctmgr", "-iQ", "delete", "user", "where", f"name={user}", f"cluster={CLUSTER}"])
        ctl.execute(["sacctmgr", "-iQ", "delete", "account", "where", f"name={account}", f"cluster={CLUSTER}"])


@pytest.fixture
def submit(ctl, accounts):
    """Submit a job as one of the users; ``on`` names the node and waits until it runs there."""

    def run(*words, user=ONE, on=None, script="sleep 600"):
        options = ["--parsable", f"--account={accounts[user]}", "--chdir=/", "--output=/dev/null", "--mem=50", "-n1"]
        if on:
            options += [f"--nodelist={on}", f"--partition={'a100' if on == 'gpu3' else 'h100'}"]
        said = ctl.said("runuser", "-u", user, "--", "sbatch", *options, *words, f"--wrap={script}")
        job = said.strip().split(";")[0]
        if on:
            ctl.wait_for(lambda: ctl.queue()[job].state == "RUNNING")
        return job

    yield run
    ctl.said("scancel", "--user", ONE)
    ctl.said("scancel", "--user", OTHER)
    ctl.wait_for(lambda: not ctl.queue(), 60)


@pytest.fixture(autouse=True)
def _open_nodes(ctl):
    """Every test begins and ends with nodes that take jobs."""
    yield
    closed = [name for name, node in ctl.scheduler().nodes().items() if node.closed]
    if closed:
        ctl.said("scontrol", "update", f"NodeName={','.join(closed)}", "State=RESUME")
    ctl.wait_for(lambda: {node.shown for node in ctl.scheduler().nodes().values()} == {"IDLE"}, 120)


def _reconciler(ctl, reconcile, defaults):
    """A module's run; the check before it must promise the same, and a second run find nothing to do."""

    def run(check=True, twice=True, **params):
        params = {**defaults, **params}
        promised = reconcile(params, True, ctl.scheduler()) if check else None
        writes = len(ctl.writes)
        result = reconcile(params, False, ctl.scheduler())
        if promised:
            for key in ("changed", "plan", "diff", "commands"):
                assert promised[key] == result[key], key
        assert [" ".join(words) for words in ctl.writes[writes:]] == [
            " ".join(shlex.split(command)) for command in result["commands"]
        ]
        if twice:
            again = reconcile(params, False, ctl.scheduler())
            assert (again["changed"], again["commands"]) == (False, []), again["plan"]
        return result

    return run


@pytest.fixture
def node(ctl):
    return _reconciler(ctl, nodes_apply.reconcile, {"owner": "tst"})


@pytest.fixture
def job(ctl):
    return _reconciler(ctl, jobs_apply.reconcile, {"max_jobs": 100, "wait": 60})


@pytest.fixture
def reservation(ctl):
    name = f"tst{secrets.token_hex(3)}"
    yield _reconciler(ctl, reservations_apply.reconcile, {"name": name, "state": "present"})
    for other in ctl.scheduler().reservations():
        if other.startswith("tst"):
            ctl.said("scontrol", "delete", f"ReservationName={other}")
