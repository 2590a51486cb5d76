# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests against a real slurmdbd.

TENANCY_CTL_EXEC is a JSON list: the words that run a program as root on the controller, for example
["docker", "exec", "-i", "ctl"] or ["ssh", "-F", "ssh_config", "ctl"]. TENANCY_CLUSTER names the cluster (production).
Everything these tests make is named after a random word and removed again.
"""

from __future__ import annotations

import json
import os
import pathlib
import runpy
import secrets
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
runpy.run_path(str(ROOT / "tests" / "unit" / "conftest.py"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import (  # noqa: E402
    accounting,
    qos_reconcile,
    saved,
)
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.client import Client  # noqa: E402
from controller import Ctl  # noqa: E402

CLUSTER = os.environ.get("TENANCY_CLUSTER", "production")
BLOCK = {
    "name": "blocked",
    "grp_submit_jobs": 0,
    "max_submit_jobs_per_user": 0,
    "flags": ["OverPartQOS", "DenyOnLimit"],
}


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


@pytest.fixture
def ctl(request):
    return Ctl(request.config.ctl_prefix, CLUSTER)


@pytest.fixture(scope="session", autouse=True)
def _site(request):
    """The QOS that the tests refer to."""
    ctl = Ctl(request.config.ctl_prefix, CLUSTER)
    wanted = {"qos": [{"name": name} for name in ("normal", "tst-high", "tst-low")] + [BLOCK]}
    qos_reconcile.reconcile(wanted, False, Client("", runner=ctl.run), None)
    yield
    for name in ("tst-high", "tst-low"):
        ctl.sacctmgr("delete", "qos", "where", f"name={name}")


@pytest.fixture(autouse=True)
def _saved_here(ctl, tmp_path, monkeypatch):
    """The module runs where sacctmgr is, these tests elsewhere: Slurm's dump is fetched."""

    def dump(client, path):
        done = ctl.run(
            [
                "sh",
                "-c",
                'sacctmgr -i dump "$1" file="$0" >/dev/null 2>&1; s=$?; cat "$0"; rm "$0"; exit $s',
                f"/root/{tmp_path.name}.dump",
                client.cluster,
            ]
        )
        pathlib.Path(path).write_text(done.stdout)
        return done.rc

    monkeypatch.setattr(saved, "dump", dump)
    monkeypatch.setattr(saved, "DIRECTORY", str(tmp_path / "saved"))


@pytest.fixture
def tenant(ctl):
    """A name for a tenant; everything whose name begins with it is removed afterwards."""
    name = f"t{secrets.token_hex(3)}x"
    yield name
    users = [line[0] for line in ctl.show("user", "format=user") if line[0].startswith(name)]
    if users:
        ctl.sacctmgr("delete", "user", "where", f"name={','.join(users)}")
    names = [line[0] for line in ctl.show("account", "format=account") if line[0].startswith(name)]
    if names:
        ctl.sacctmgr("delete", "account", "where", f"name={','.join(names)}")


@pytest.fixture
def reconcile(ctl, tenant):
    """Run slurm_accounting for the tenant; ``twice`` makes sure that a second run finds nothing to do."""

    def run(accounts=(), users=(), check_mode=False, twice=True, runner=None, **options):
        params = {"scope": [tenant], "accounts": list(accounts), "users": list(users), **options}
        result = accounting.reconcile(params, check_mode, Client(CLUSTER, runner=runner or ctl.run), None)
        if twice and not check_mode:
            again = accounting.reconcile(params, False, Client(CLUSTER, runner=ctl.run), None)
            assert not again["changed"], again["plan"]
            assert again["commands"] == []
        return result

    return run


@pytest.fixture
def cluster():
    return CLUSTER


@pytest.fixture
def state(ctl):
    return lambda: Client(CLUSTER, runner=ctl.run).read()


def user(name, *accounts, default=None, **given):
    return {"name": name, "default_account": default, "associations": [{"account": item, **given} for item in accounts]}


@pytest.fixture(name="user")
def _user():
    return user
