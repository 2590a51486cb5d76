# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who gets in where, and that no change of that locks anybody out for good."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from access import KEYS, converge, give_key, gpus_by_ssh, job, on, said, sorted_answers, ssh, ssh_argv, state, wait_for
from recorded import module

NODES = ("gpu1", "gpu2", "gpu3")
FILES = ("/etc/pam.d/sshd", "/etc/ssh/sshd_config.d/00-tenancy.conf")
# Forks until it may not.
FORK = """
import os, time
n = 0
try:
    while n < 500:
        n += 1
        if os.fork() == 0:
            time.sleep(5)
            os._exit(0)
except OSError as error:
    print(error.errno, n)
"""
SLEEPING = ("pgrep", "-u", "alice", "-x", "-f", "sleep 300")
# sshd takes it, and nobody gets in.
LOCKED = "UsePAM yes\nAllowUsers nobody-at-all\n"


@pytest.fixture(scope="module", autouse=True)
def keys():
    give_key("alice", "login", *NODES)
    give_key("bob", "login", *NODES)


def contents(host: str) -> str:
    return said(host, "sh", "-c", "cat " + " ".join(FILES))


def pending(host: str) -> bool:
    return on(host, "test", "-e", "/var/lib/gpuops-tenancy/rollback/login/manifest.json").returncode == 0


def test_without_a_job_nobody_gets_in():
    done = ssh("gpu1", "bob", "true")
    assert done.returncode != 0
    assert "Access denied by pam_slurm_adopt: you have no active jobs on this node" in done.stderr


def test_with_a_job_the_login_is_part_of_it():
    with job("alice", "gpu2", "--gres=gpu:1") as number:
        done = ssh("gpu2", "alice", "sh", "-c", "cat /proc/self/cgroup; echo SLURM_JOB_ID=$SLURM_JOB_ID")
        assert done.returncode == 0, done.stderr
        assert f"SLURM_JOB_ID={number}" in done.stdout
        assert all(
            f"job_{number}/" in line for line in done.stdout.splitlines() if ":devices:" in line or ":memory:" in line
        )
        assert "user.slice" not in "".join(line for line in done.stdout.splitlines() if ":devices:" in line)
        # Another tenant's user has nothing there.
        assert ssh("gpu2", "bob", "true").returncode != 0


def test_the_end_of_the_job_is_the_end_of_the_login():
    with job("alice", "gpu2") as number:
        login = subprocess.Popen(
            ssh_argv("gpu2", "alice", "sleep", "300"),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        wait_for(lambda: on("gpu2", *SLEEPING).returncode == 0, 30, "the login")
        said("login", "scancel", number, user="alice")
        assert login.wait(timeout=60) != 0
    wait_for(lambda: on("gpu2", *SLEEPING).returncode != 0, 30, "the end of her process")


def test_keys_in_a_users_home_are_not_read():
    own = f"mv {KEYS}/bob {KEYS}/.bob; mkdir -p ~bob/.ssh; cp {KEYS}/.bob ~bob/.ssh/authorized_keys"
    said("login", "sh", "-c", f"{own}; chown -R bob: ~bob/.ssh; chmod -R go= ~bob/.ssh")
    try:
        assert "Permission denied" in ssh("login", "bob", "true").stderr
    finally:
        said("login", "sh", "-c", f"mv {KEYS}/.bob {KEYS}/bob; rm -r ~bob/.ssh")
    assert ssh("login", "bob", "true").returncode == 0


def test_the_administrator_gets_in_with_slurm_down():
    said("gpu3", "systemctl", "stop", "slurmd")
    said("ctl", "systemctl", "stop", "slurmctld")
    try:
        for user in ("root", "deploy"):
            done = ssh("gpu3", user, "id", "-un")
            assert (done.returncode, done.stdout.strip()) == (0, user), done.stderr
        assert ssh("gpu3", "alice", "true").returncode != 0
    finally:
        said("ctl", "systemctl", "start", "slurmctld")
        said("gpu3", "systemctl", "start", "slurmd")
    wait_for(lambda: on("login", "sinfo", "-h", "-n", "gpu3", "-o", "%t").stdout.strip() == "idle", 60, "the node")


def test_what_a_package_brings_back_does_no_harm_and_goes_again():
    said("gpu2", "pam-auth-update", "--enable", "systemd")
    assert "pam_systemd.so" in said("gpu2", "cat", "/etc/pam.d/common-session")
    with job("alice", "gpu2", "--gres=gpu:1"):
        assert sorted_answers(gpus_by_ssh("gpu2", "alice")) == ["ENXIO", "EPERM", "EPERM", "EPERM"]
    run = converge("--tags", "node_login", "--limit", "gpu2").wait()
    assert run.returncode == 0, run.output
    assert "pam_systemd.so" not in said("gpu2", "cat", "/etc/pam.d/common-session")
    # As an upgrade of the package does.
    said("gpu2", "env", "DEBIAN_FRONTEND=noninteractive", "pam-auth-update", "--package")
    assert "pam_systemd.so" not in said("gpu2", "cat", "/etc/pam.d/common-session")


def test_a_change_that_nobody_confirms_undoes_itself():
    before = contents("gpu1")
    arguments = {"sshd_text": LOCKED, "adopt": ["action_no_jobs=ignore"], "admins": ["root"], "rollback_after": 15}
    run = module("gpu1", "login_policy", arguments)
    assert run.returncode == 0, run.output
    assert "action_no_jobs=ignore" in run.results[0]["diff"]["after"]
    assert ssh("gpu1", "root", "true").returncode != 0, "nobody was locked out, so this shows nothing"
    wait_for(lambda: ssh("gpu1", "root", "true").returncode == 0, 60, "the old files")
    assert contents("gpu1") == before
    assert not pending("gpu1")


def test_the_run_itself_puts_the_old_files_back_and_says_so():
    before = contents("gpu1")
    started = time.monotonic()
    run = converge(
        "--tags",
        "node_login",
        "--limit",
        "gpu1",
        "-e",
        json.dumps({"node_login_sshd_options": {"AllowUsers": "nobody-at-all"}}),
    ).wait()
    assert run.returncode != 0
    assert "the old ones are back" in run.output
    # Long before the timer of 120 s.
    assert time.monotonic() - started < 90
    assert contents("gpu1") == before
    assert ssh("gpu1", "root", "true").returncode == 0
    assert not pending("gpu1")


def test_what_sshd_refuses_never_reaches_its_place():
    before = contents("gpu1")
    run = converge(
        "--tags", "node_login", "--limit", "gpu1", "-e", json.dumps({"node_login_sshd_options": {"NoSuchOption": "1"}})
    ).wait()
    assert run.returncode != 0
    assert "sshd refuses /etc/ssh/sshd_config.d/00-tenancy.conf" in run.output
    assert contents("gpu1") == before
    assert not pending("gpu1")


CHANGE = [
    "--tags",
    "node_login",
    "--limit",
    "gpu1",
    "-e",
    json.dumps({"node_login_sshd_options": {"UsePAM": "yes", "MaxAuthTries": "3"}}),
]
ARMED = "Change who gets in; the old files come back unless a new login proves the new ones"


def test_killed_before_the_confirmation_the_next_run_confirms():
    killed = converge(*CHANGE, kill_at=ARMED).wait()
    assert killed.killed, killed.output
    assert pending("gpu1")
    again = converge(*CHANGE).wait()
    assert again.returncode == 0, again.output
    assert not pending("gpu1")
    assert "MaxAuthTries 3" in contents("gpu1")
    third = converge(*CHANGE).wait()
    assert third.changed == [], third.changed
    back = converge("--tags", "node_login", "--limit", "gpu1").wait()
    assert back.returncode == 0, back.output


def test_killed_and_never_run_again_the_old_files_come_back():
    before = contents("gpu1")
    killed = converge(*CHANGE, "-e", "node_login_rollback_after=15", kill_at=ARMED).wait()
    assert killed.killed, killed.output
    assert contents("gpu1") != before
    wait_for(lambda: not pending("gpu1"), 60, "the rollback")
    assert contents("gpu1") == before
    clean = converge("--tags", "node_login", "--limit", "gpu1").wait()
    assert clean.changed == [], clean.changed


def test_an_account_that_only_a_directory_knows_cannot_be_an_administrator():
    run = converge("--tags", "node_login", "--limit", "gpu1", "-e", '{"node_login_admins": ["nobody-here"]}').wait()
    assert run.returncode != 0
    assert "nobody-here is not in /etc/passwd" in run.output


def test_the_proof_keeps_what_the_site_says_to_ssh(tmp_path):
    """Where only these lead to the host, over a jump host say."""
    before = contents("gpu1")
    arguments = f"-F {state() / 'ssh_config'} -o ControlMaster=auto -o ControlPersist=20s -o ControlPath=/tmp/t-%C"
    site = {"ansible_ssh_common_args": "", "ansible_ssh_args": arguments}
    (tmp_path / "site.yml").write_text(json.dumps({"all": {"hosts": {"gpu1": site}}}))
    given = json.dumps({"node_login_sshd_options": {"MaxAuthTries": "4"}})
    run = converge("--tags", "node_login", "--limit", "gpu1", "-i", str(tmp_path / "site.yml"), "-e", given).wait()
    assert run.returncode == 0, run.output
    assert "MaxAuthTries 4" in contents("gpu1")
    assert not pending("gpu1")
    assert converge("--tags", "node_login", "--limit", "gpu1").wait().returncode == 0
    assert contents("gpu1") == before


def test_without_the_module_nobody_is_locked_out():
    before = contents("gpu1")
    path = said("gpu1", "find", "/usr/lib", "/lib", "-xdev", "-name", "pam_slurm_adopt.so").splitlines()[0]
    said("gpu1", "mv", path, "/root/")
    try:
        run = converge(*CHANGE).wait()
        assert run.returncode != 0
        assert "pam_slurm_adopt.so is not where PAM of this host looks for modules" in run.output
        assert contents("gpu1") == before
    finally:
        said("gpu1", "mv", "/root/pam_slurm_adopt.so", path)


def test_whoever_is_left_over_among_the_administrators_is_named_and_goes_where_the_site_says_so():
    said("gpu1", "gpasswd", "--add", "bob", "tenancy-admins")
    told = converge("--tags", "node_login", "--limit", "gpu1").wait()
    assert told.returncode == 0, told.output
    assert "bob is in group tenancy-admins of this host although nobody named it" in told.output
    assert "bob" in said("gpu1", "id", "-Gn", "bob") and "tenancy-admins" in said("gpu1", "id", "-Gn", "bob")
    exact = converge("--tags", "node_login", "--limit", "gpu1", "-e", "node_login_admins_exact=true").wait()
    assert exact.returncode == 0, exact.output
    assert "tenancy-admins" not in said("gpu1", "id", "-Gn", "bob")
    assert "tenancy-admins" in said("gpu1", "id", "-Gn", "deploy")


def test_limits_bring_the_sessions_that_they_need():
    said("login", "env", "DEBIAN_FRONTEND=noninteractive", "pam-auth-update", "--disable", "systemd")
    assert "pam_systemd.so" not in said("login", "cat", "/etc/pam.d/common-session")
    run = converge("--tags", "node_login", "--limit", "login").wait()
    assert run.returncode == 0, run.output
    assert "pam_systemd.so" in said("login", "cat", "/etc/pam.d/common-session")


def test_a_user_of_the_login_node_has_limits():
    number = said("login", "id", "-u", "alice")
    done = ssh("login", "alice", "python3", "-c", FORK)
    error, count = done.stdout.split()
    assert error == "11", done.stdout + done.stderr
    assert int(count) < 62
    eaten = ssh("login", "alice", "python3", "-c", "x = bytearray(600 * 1024 * 1024); print(len(x))")
    assert eaten.returncode != 0
    assert "629145600" not in eaten.stdout
    assert f"user-{number}.slice" in ssh("login", "alice", "cat", "/proc/self/cgroup").stdout


def test_users_see_their_own_processes_only():
    for host in ("login", "gpu1"):
        seen = said(host, "ps", "-eo", "user", user="alice").split()[1:]
        assert set(seen) == {"alice"}, host
        assert "root" in said(host, "ps", "-eo", "user")
    # logind still makes sessions of logins.
    assert "alice" in ssh("login", "alice", "loginctl", "list-sessions").stdout
    assert said("login", "systemctl", "list-units", "--state=failed", "--no-legend", "--plain") == ""


def test_cron_and_at_are_not_for_users_of_compute_nodes():
    for argv in (["crontab", "-l"], ["at", "-l"]):
        assert on("gpu1", *argv, user="alice").returncode != 0
    assert "not allowed" in on("gpu1", "crontab", "-l", user="alice").stderr


def test_what_users_had_outside_of_jobs_before_is_told_and_left(request):
    files = "/var/spool/cron/crontabs/alice /var/lib/systemd/linger/bob"
    request.addfinalizer(lambda: said("gpu1", "sh", "-c", f"rm -f {files}"))
    # As it was before the first run.
    said("gpu1", "sh", "-c", "echo alice >> /etc/cron.allow && crontab -u alice -", stdin="0 0 1 1 * true\n")
    said("gpu1", "sh", "-c", "mkdir -p /var/lib/systemd/linger && touch /var/lib/systemd/linger/bob")
    run = converge("--tags", "node_hygiene", "--limit", "gpu1").wait()
    assert run.returncode == 0, run.output
    assert "alice has a crontab; bob has a service manager that comes back at boot (linger)." in run.output
    strict = converge("--tags", "node_hygiene", "--limit", "gpu1", "-e", "node_hygiene_outside_jobs=fail").wait()
    assert strict.returncode != 0
    assert said("gpu1", "cat", "/etc/cron.allow") == "root"
    assert "0 0 1 1 * true" in said("gpu1", "sh", "-c", f"cat {files}")
