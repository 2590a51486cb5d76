# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""tenant-own has gpu2 and gpu3 for itself; then it gives gpu2 back."""

from __future__ import annotations

import json

import pytest
from apart import (
    OWN,
    OWNERS,
    QUICK,
    cancel,
    field,
    good,
    idle,
    neighbours,
    node,
    on,
    run,
    said,
    state,
    submit,
    try_submit,
    wait_for,
    wait_state,
)

AFTER = {"gpu3": OWN}
ARGS = ("-e", json.dumps({"nodes": ["gpu2"]}), "-e", "confirm=gpu2")


@pytest.mark.parametrize("user", ["frank", "grace"])
def test_every_team_of_the_owner_gets_in(user):
    job = submit(user, "-p", OWN, script="exit 0")
    wait_state(job, "COMPLETED")
    assert field(job, "%N") in ("gpu2", "gpu3")


def test_nobody_else_gets_in_and_the_owner_gets_nowhere_else():
    for user, options in (("bob", ["-p", OWN]), ("alice", ["-p", OWN]), ("frank", []), ("grace", ["-p", "main"])):
        done = try_submit(user, *options)
        assert done.returncode != 0, (user, options)
        assert "account" in done.stderr.lower(), done.stderr
    assert try_submit("bob", "-w", "gpu2").returncode != 0


def test_strangers_do_not_see_the_partition_in_sinfo():
    assert OWN not in said("login", "sinfo", "-h", "-o", "%P", user="bob")


def test_the_owner_is_in_slurm():
    assert node("gpu2")["AvailableFeatures"] == f"owner-{OWN}"
    assert node("gpu1")["AvailableFeatures"] == "(null)"


def test_the_owner_is_in_the_firewall():
    assert neighbours("gpu2", "gpu3") and neighbours("gpu3", "gpu2")
    assert not neighbours("gpu1", "gpu2") and not neighbours("gpu2", "gpu1")


def test_the_firewall_alone_does_not_change_a_nodes_neighbours():
    done = run("site.yml", "--tags", "firewall", owners=AFTER)
    assert done.returncode != 0 and "gpu2: of another owner in Slurm" in " ".join(done.output.split())
    assert not neighbours("gpu1", "gpu2")


def test_site_does_not_hand_a_node_over(tmp_path):
    before = said("ctl", "cat", "/etc/slurm/slurm.conf")
    done = run("site.yml", owners=AFTER)
    assert done.returncode != 0
    assert f"gpu2 would go from {OWN} to everybody" in done.output and "reassign_nodes" in done.output
    assert said("ctl", "cat", "/etc/slurm/slurm.conf") == before


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("-e", "confirm=gpu2"), "Say which nodes"),
        (("-e", '{"nodes": "gpu2"}', "-e", "confirm=gpu2"), "Say which nodes"),
        (("-e", '{"nodes": ["gpu9"]}', "-e", "confirm=gpu9"), "Say which nodes"),
        (("-e", '{"nodes": ["gpu2"]}'), f"gpu2 goes from {OWN} to everybody"),
        (("-e", '{"nodes": ["gpu2"]}', "-e", "confirm=gpu3"), "confirm=gpu2"),
        ((*ARGS, "-e", "tenancy_reassign_limit=0"), "tenancy_reassign_limit"),
    ],
)
def test_what_is_not_clear_is_refused_before_anything_is_touched(args, says):
    done = run("reassign_nodes.yml", *args, owners=AFTER)
    assert done.returncode != 0 and says in " ".join(done.output.split()), done.output[-2000:]
    assert done.changed == []
    assert node("gpu2")["State"] == "IDLE"


def test_the_last_node_of_a_tenant_is_not_taken():
    done = run("reassign_nodes.yml", "-e", '{"nodes": ["gpu2", "gpu3"]}', "-e", "confirm=gpu2,gpu3", owners={})
    assert done.returncode != 0 and "the inventory gives them none" in done.output
    assert node("gpu2")["State"] == node("gpu3")["State"] == "IDLE"


TRACES = {
    "/var/spool/cron/crontabs/frank": "frank",
    "/var/spool/cron/atjobs/a00001019": "frank",
    "/local/frank/deep/of-frank": "frank",
    # Root's, with the user's name.
    "/var/lib/systemd/linger/frank": "root",
}


def leave_traces() -> int:
    for path, owner in TRACES.items():
        said("gpu2", "sh", "-c", f"mkdir -p $(dirname {path}) && touch {path} && chown {owner} {path}")
    said("gpu2", "chown", "-R", "frank", "/local/frank")
    said("gpu2", "runuser", "-u", "frank", "--", "touch", "/var/tmp/of-frank", "/dev/shm/of-frank")
    said("gpu2", "systemd-run", "--quiet", "--unit=of-frank", "--uid=frank", "--", "sleep", "9999")
    return int(said("gpu2", "systemctl", "show", "-P", "MainPID", "of-frank"))


def test_a_node_changes_hands_when_it_is_empty_and_scrubbed_and_not_before():
    job = submit("frank", "-p", OWN, "-w", "gpu2")
    wait_state(job, "RUNNING")
    done = run("reassign_nodes.yml", *ARGS, "-e", "reassign_wait=2", owners=AFTER)
    assert done.returncode != 0 and job in done.output
    assert state(job) == "RUNNING" and "DRAIN" in node("gpu2")["State"]
    assert node("gpu2")["AvailableFeatures"] == f"owner-{OWN}"
    cancel(job)
    pid = leave_traces()
    # A check of the site's own has the last word before the node is handed over.
    done = run("reassign_nodes.yml", *ARGS, owners=AFTER, settings={"slurm_compute_scrub_checks": [["false"]]})
    assert done.returncode != 0
    assert on("gpu2", "test", "-d", f"/proc/{pid}").returncode != 0
    assert "DRAIN" in node("gpu2")["State"] and node("gpu2")["AvailableFeatures"] == f"owner-{OWN}"
    # Killed between the steps, wherever: it stays closed until a run has been through.
    for point in ("Deploy Slurm's configuration", "Keep slurmctld running with its configuration"):
        done = run("reassign_nodes.yml", *ARGS, owners=AFTER, kill_at=point)
        assert done.killed, done.output[-2000:]
        wait_for(lambda: on("ctl", "scontrol", "ping").returncode == 0, 60)
        assert "DRAIN" in node("gpu2")["State"]
    assert not neighbours("gpu1", "gpu2")
    # What attest finds open keeps it closed, too.
    said("gpu2", "cp", "-p", "/etc/pam.d/sshd", "/root/pam.kept")
    said("gpu2", "sed", "-i", "s/^account.*pam_slurm_adopt.so.*/account required pam_permit.so/", "/etc/pam.d/sshd")
    done = run("reassign_nodes.yml", *ARGS, owners=AFTER, settings=QUICK)
    said("gpu2", "mv", "/root/pam.kept", "/etc/pam.d/sshd")
    assert done.returncode != 0 and "FAIL node-login" in done.output, done.output[-3000:]
    assert "DRAIN" in node("gpu2")["State"] and node("gpu2")["AvailableFeatures"] == "(null)"
    good(run("reassign_nodes.yml", *ARGS, owners=AFTER, settings=QUICK))
    idle("gpu2")
    assert neighbours("gpu1", "gpu2") and neighbours("gpu2", "gpu1")
    assert not neighbours("gpu3", "gpu2") and not neighbours("gpu2", "gpu3")
    assert said("gpu2", "find", "/var/tmp", "/tmp", "/dev/shm", "/local", "-user", "frank") == ""
    assert [path for path in TRACES if on("gpu2", "test", "-e", path).returncode == 0] == []
    bob = submit("bob", "-w", "gpu2", script="exit 0")
    wait_state(bob, "COMPLETED")
    assert try_submit("frank", "-p", OWN, "-w", "gpu2").returncode != 0
    again = good(run("reassign_nodes.yml", *ARGS, owners=AFTER))
    assert again.changed == [], again.changed


def test_and_back():
    good(run("reassign_nodes.yml", *ARGS, owners=OWNERS, settings=QUICK))
    idle("gpu2")
    assert node("gpu2")["AvailableFeatures"] == f"owner-{OWN}"
    assert try_submit("bob", "-w", "gpu2").returncode != 0
