# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""tenant-foo is exclusive: its teams share nodes with each other and with nobody else."""

from __future__ import annotations

import time

from apart import TENANTS, on, run, said, state, submit, try_submit, wait_for, wait_state


def stays_pending(job: str, seconds: float = 5) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        assert state(job) == "PENDING"
        time.sleep(0.5)


def test_another_tenant_waits_and_another_team_does_not():
    alice = submit("alice", "-w", "gpu1")
    wait_state(alice, "RUNNING")
    carol = submit("carol", "-w", "gpu1")
    wait_state(carol, "RUNNING")
    said("ctl", "scancel", carol)
    wait_state(carol, "CANCELLED")
    # A CPU is free again, beside alice.
    bob = submit("bob", "-w", "gpu1")
    stays_pending(bob)
    assert state(alice) == "RUNNING"
    said("ctl", "scancel", alice)
    wait_state(bob, "RUNNING")


def test_it_does_not_land_beside_others_either():
    bob = submit("bob", "-w", "gpu1")
    wait_state(bob, "RUNNING")
    alice = submit("alice", "-w", "gpu1")
    # Those who share go on sharing.
    eve = submit("eve", "-w", "gpu1")
    wait_state(eve, "RUNNING")
    said("ctl", "scancel", eve)
    wait_state(eve, "CANCELLED")
    stays_pending(alice)
    assert state(bob) == "RUNNING"
    said("ctl", "scancel", bob)
    wait_state(alice, "RUNNING")


def test_nobody_lands_beside_it_after_a_restart_of_slurmctld():
    alice = submit("alice", "-w", "gpu1")
    wait_state(alice, "RUNNING")
    said("ctl", "systemctl", "restart", "slurmctld")
    wait_for(lambda: "is UP" in on("ctl", "scontrol", "ping").stdout, 60)
    wait_for(lambda: "*" not in said("ctl", "sinfo", "-h", "-n", "gpu1", "-o", "%T"), 60)
    bob = submit("bob", "-w", "gpu1")
    stays_pending(bob, 10)
    assert state(alice) == "RUNNING"
    said("ctl", "scancel", alice)
    wait_state(bob, "RUNNING")


def test_every_job_is_labelled_without_being_asked():
    labels = {user: submit(user, "--hold") for user in ("alice", "carol", "bob", "eve")}
    shown = {
        user: said("ctl", "scontrol", "-o", "show", "job", job).partition("MCS_label=")[2].split()[0]
        for user, job in labels.items()
    }
    assert shown == {"alice": "mcs-tenant-foo", "carol": "mcs-tenant-foo", "bob": "mcs-shared", "eve": "mcs-shared"}


def test_nobody_chooses_the_label_of_another():
    for user, label in (("alice", "mcs-shared"), ("bob", "mcs-tenant-foo"), ("bob", "root")):
        done = try_submit(user, f"--mcs-label={label}")
        assert done.returncode != 0 and "mcs_label" in done.stderr.lower(), (user, label, done.stdout, done.stderr)


def test_srun_is_kept_apart_like_sbatch():
    alice = submit("alice", "-w", "gpu1")
    wait_state(alice, "RUNNING")
    done = on("login", "srun", "-n1", "--immediate=3", "-w", "gpu1", "true", user="bob")
    assert done.returncode != 0
    done = on("login", "srun", "-n1", "--immediate=15", "-w", "gpu1", "--chdir=/", "true", user="carol")
    assert done.returncode == 0, done.stderr


def test_a_cluster_that_does_not_uphold_it_refuses_the_tenant(tmp_path):
    for document in TENANTS.glob("*.yml"):
        text = document.read_text()
        if document.stem == "tenant-bar":
            text = text.replace("contacts:", "isolation: exclusive\ncontacts:")
        (tmp_path / document.name).write_text(text)
    done = run("onboard.yml", "-e", "tenant=tenant-bar", settings={"tenancy_tenants_dir": str(tmp_path)})
    assert done.returncode != 0
    assert "tenant-bar is exclusive, and slurmctld does not keep its jobs apart" in done.output
    assert not done.changed


def test_a_user_without_any_group_is_found_before_slurmctld_refuses_her():
    """Somebody whom no document names, as on a cluster that was run by hand."""
    said("ctl", "useradd", "-M", "-u", "9500", "byhand")
    said("ctl", "sacctmgr", "-i", "add", "user", "byhand", "account=tenant-baz")
    try:
        done = run("site.yml", "--limit", "ctl", "--tags", "slurm_controller")
        assert done.returncode != 0
        assert "byhand" in done.output and "could not submit any more" in done.output
        said("ctl", "gpasswd", "-a", "byhand", "mcs-shared")
        done = run("site.yml", "--limit", "ctl", "--tags", "slurm_controller")
        assert done.returncode == 0, done.output[-3000:]
    finally:
        said("ctl", "sacctmgr", "-i", "delete", "user", "byhand")
        said("ctl", "userdel", "byhand")


def test_a_second_run_of_the_site_changes_nothing():
    done = run("site.yml")
    assert done.returncode == 0, done.output[-3000:]
    assert done.changed == [], done.changed
