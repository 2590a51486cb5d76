# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A tenant's users log in from the tenant's networks only, and operators from wherever they could."""

from __future__ import annotations

import pathlib
import shutil
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from ways import at, inventory_folder, module, on, playbook, said, ssh, state

FILE = "/etc/ssh/sshd_config.d/60-tenancy-tenant-foo.conf"
KEY = "/root/.ssh/as-alice"


@pytest.fixture(scope="module", autouse=True)
def keys():
    """alice may log in with the key of this machine, and with one of the host outside."""
    said("outside", "sh", "-c", f"rm -f {KEY}; ssh-keygen -q -t ed25519 -N '' -f {KEY}")
    known = (state() / "id.pub").read_text() + said("outside", "cat", f"{KEY}.pub") + "\n"
    home = said("login", "getent", "passwd", "alice").split(":")[5]
    script = f"install -d -m 700 -o alice {home}/.ssh && cat >{home}/.ssh/authorized_keys && chown alice {home}/.ssh/authorized_keys"
    said("login", "sh", "-c", script, stdin=known)
    yield
    said("login", "rm", "-rf", f"{home}/.ssh")


def from_outside(version: int, user: str = "alice") -> bool:
    """Whether the user gets in from the host outside."""
    argv = [
        "ssh",
        "-i",
        KEY,
        "-o",
        "BatchMode=yes",
        "-o",
        "StrictHostKeyChecking=no",
        "-o",
        "UserKnownHostsFile=/dev/null",
    ]
    done = on("outside", *argv, "-o", "ConnectTimeout=5", f"{user}@{at('login', 'outside', version)}", "id", "-un")
    assert done.returncode == 0 or "Permission denied" in done.stderr, done.stderr
    return done.stdout.strip() == user


def from_here(version: int, user: str) -> bool:
    options = [
        "-o",
        f"User={user}",
        "-o",
        f"HostName={at('login', 'outside', version)}",
        "-o",
        "Port=22",
        "-o",
        "HostKeyAlias=login",
    ]
    done = ssh("login", *options)
    assert done.returncode == 0 or "Permission denied" in done.stderr, done.stderr
    return done.returncode == 0


@pytest.fixture
def onboard(tmp_path):
    """Run onboard.yml with other networks in the tenant's document."""
    shutil.copytree(inventory_folder().parent / "tenants", tmp_path / "tenants")
    document = tmp_path / "tenants" / "tenant-foo.yml"
    text = document.read_text()

    def run(networks: list[str] | None, *args: str):
        document.write_text(text + (f"network:\n  allow_from: {networks!r}\n" if networks else ""))
        return playbook(
            "onboard.yml", "-e", "tenant=tenant-foo", "-e", f"tenancy_tenants_dir={tmp_path / 'tenants'}", *args
        ).wait()

    yield run
    assert run(None).returncode == 0
    assert on("login", "test", "-e", FILE).returncode == 1


def test_without_networks_users_come_from_anywhere():
    assert on("login", "test", "-e", FILE).returncode == 1
    for version in (4, 6):
        assert from_outside(version)
        assert from_here(version, "alice")


def test_only_from_the_tenants_networks(onboard):
    here = subprocess.Popen(
        ["ssh", "-F", str(state() / "ssh_config"), "-o", "ControlPath=none", "login", "while sleep 0.2; do echo; done"],
        stdout=subprocess.PIPE,
    )
    check = onboard([f"{at('outside', 'outside', 4)}/32"], "--check")
    assert check.returncode == 0, check.output[-3000:]
    assert on("login", "test", "-e", FILE).returncode == 1
    run = onboard([f"{at('outside', 'outside', version)}/{32 if version == 4 else 128}" for version in (4, 6)])
    assert run.returncode == 0, run.output[-3000:]
    assert at("outside", "outside", 4) not in run.output
    for version in (4, 6):
        assert from_outside(version)
        assert not from_here(version, "alice")
        # An operator is nobody's tenant.
        assert from_here(version, "root")
    # Who was logged in when sshd was restarted still is.
    assert here.poll() is None
    here.terminate()
    second = onboard([f"{at('outside', 'outside', version)}/{32 if version == 4 else 128}" for version in (4, 6)])
    assert second.changed == []
    # One family named: the other one is elsewhere.
    assert onboard([f"{at('outside', 'outside', 4)}/32"]).returncode == 0
    assert (from_outside(4), from_outside(6)) == (True, False)
    assert onboard(["203.0.113.0/24"]).returncode == 0
    assert (from_outside(4), from_outside(6), from_here(4, "root")) == (False, False, True)


def test_an_operator_named_as_a_user_is_refused():
    run = module(
        "login",
        "login_access",
        {"tenant": "tenant-foo", "users": ["alice", "root"], "allow_from": ["203.0.113.0/24"], "protected": ["root"]},
    )
    assert run.returncode != 0
    assert "is an operator here" in run.output
    assert on("login", "test", "-e", FILE).returncode == 1


def test_an_sshd_that_does_not_read_the_file_is_found_out():
    said("login", "cp", "-p", "/etc/ssh/sshd_config", "/etc/ssh/sshd_config.kept")
    said("login", "sed", "-i", "s/^Include/#Include/", "/etc/ssh/sshd_config")
    try:
        run = module(
            "login", "login_access", {"tenant": "tenant-foo", "users": ["alice"], "allow_from": ["203.0.113.0/24"]}
        )
        assert run.returncode != 0
        assert "does not include" in " ".join(run.output.split())
        assert on("login", "test", "-e", FILE).returncode == 1
    finally:
        said("login", "mv", "/etc/ssh/sshd_config.kept", "/etc/ssh/sshd_config")
