# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""No way to a GPU but the scheduler's, tried by opening the devices."""

from __future__ import annotations

import contextlib
import pathlib
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from access import DENIED, converge, give_key, gpus, gpus_by_ssh, job, on, said, sorted_answers, ssh, wait_for
from definition import inventory_folder
from remote import OPEN_GPUS, gpus_seen

NODES = ("gpu1", "gpu2", "gpu3")
SLEEP = ("sh", "-c", "sleep 600 >/dev/null 2>&1 &")
WATCHED = "/opt/jobs/watched"
ONE = ["ENXIO", "EPERM", "EPERM", "EPERM"]


@pytest.fixture(scope="module", autouse=True)
def probe():
    """A program that the users can name, and their keys."""
    give_key("alice", "login", *NODES)
    give_key("bob", "login", *NODES)
    for node in NODES:
        said(
            node,
            "sh",
            "-c",
            "cat > /usr/local/bin/open-gpus && chmod 0755 /usr/local/bin/open-gpus",
            stdin=f"#!/usr/bin/python3\n{OPEN_GPUS}",
        )


def uid(user: str) -> str:
    return said("gpu1", "id", "-u", user)


def test_a_job_has_what_slurm_gave_it():
    assert sorted_answers(gpus_seen("login", "srun", "-n1", "--gres=gpu:1", user="alice")) == ONE
    assert sorted_answers(gpus_seen("login", "srun", "-n1", user="alice")) == ["EPERM"] * 4


def in_slice(user: str, *argv: str) -> list[str]:
    """What pam_systemd makes of a login: a scope in the user's slice."""
    number = uid(user)
    return ["systemd-run", "--quiet", "--scope", f"--slice=user-{number}.slice", f"--uid={number}", *argv]


def test_at(request):
    said("gpu1", "sh", "-c", "echo alice >> /etc/at.allow")
    request.addfinalizer(lambda: said("gpu1", "sh", "-c", "sed -i /alice/d /etc/at.allow"))
    # at goes back to where it was called, which must not be root's home.
    said("gpu1", "sh", "-c", "cd /tmp && at now", user="alice", stdin="open-gpus > /tmp/by-at 2>&1\n")
    wait_for(lambda: len(gpus(on("gpu1", "cat", "/tmp/by-at").stdout)) == 4, 30, "the job of at")
    assert gpus(said("gpu1", "cat", "/tmp/by-at")) == DENIED


def test_cron(request):
    said("gpu1", "sh", "-c", "echo alice >> /etc/cron.allow")
    request.addfinalizer(lambda: said("gpu1", "sh", "-c", "crontab -u alice -r; sed -i /alice/d /etc/cron.allow"))
    said(
        "gpu1",
        "crontab",
        "-u",
        "alice",
        "-",
        stdin="HOME=/tmp\n* * * * * /usr/local/bin/open-gpus > /tmp/by-cron 2>&1\n",
    )
    wait_for(lambda: len(gpus(on("gpu1", "cat", "/tmp/by-cron").stdout)) == 4, 90, "the job of cron")
    assert gpus(said("gpu1", "cat", "/tmp/by-cron")) == DENIED


def test_a_users_own_service():
    number = uid("alice")
    said("gpu3", "systemctl", "start", f"user@{number}.service")
    environment = [f"XDG_RUNTIME_DIR=/run/user/{number}", f"DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/{number}/bus"]
    seen = said(
        "gpu3", "env", *environment, "systemd-run", "--user", "--quiet", "--pipe", "--wait", "open-gpus", user="alice"
    )
    assert gpus(seen) == DENIED
    said("gpu3", "systemctl", "stop", f"user@{number}.service")


def test_where_users_have_no_manager_there_is_none():
    done = on("gpu1", "systemctl", "start", f"user@{uid('alice')}.service")
    assert done.returncode != 0
    assert "masked" in done.stderr


def test_a_session_of_systemds():
    assert gpus(said("gpu1", *in_slice("alice", "open-gpus"))) == DENIED


def test_a_service_that_the_site_has_named():
    pid = wait_for(
        lambda: said("gpu1", "systemctl", "show", "-p", "MainPID", "--value", "site-app.service").lstrip("0"), 20
    )
    group = said("gpu1", "sh", "-c", f"grep devices /proc/{pid}/cgroup | cut -d: -f3")
    assert group.endswith("/site-app.service")
    script = f"echo $$ > /sys/fs/cgroup/devices{group}/cgroup.procs; exec runuser -u alice -- open-gpus"
    assert gpus(said("gpu1", "sh", "-c", script)) == DENIED


def test_root_can_look_at_the_gpus_and_so_can_slurmd():
    done = ssh("gpu1", "root", "sh", "-c", "open-gpus; cat /proc/self/cgroup")
    assert sorted_answers(gpus(done.stdout)) == ["ENXIO"] * 4, done.stdout + done.stderr
    assert "/user-0.slice/" in done.stdout


def test_other_devices_are_left_alone():
    code = "import os; [os.close(os.open(p, os.O_RDWR)) for p in ('/dev/null', '/dev/zero', '/dev/full', '/dev/ptmx')]"
    said("gpu1", *in_slice("alice", "python3", "-c", code))


def test_a_device_that_gres_conf_does_not_list_is_an_error():
    said("gpu2", "mknod", "-m", "666", "/dev/nvidia9", "c", "195", "9")
    try:
        run = converge("--tags", "gpu_access", "--limit", "gpu2").wait()
        assert run.returncode != 0
        assert "/dev/nvidia9 is not in gres.conf: it opens in every job" in run.output
        assert "gpu2 is not isolated" in run.output and "If it was at work, it still is" in run.output
        assert said("ctl", "sinfo", "-h", "-n", "gpu2", "-o", "%T") == "idle"
    finally:
        said("gpu2", "rm", "/dev/nvidia9")


def test_a_node_that_fails_is_closed_where_the_site_says_so_and_opened_by_the_next_whole_run():
    drain = ("--limit", "gpu2", "-e", "slurm_compute_drain_unisolated=true")
    said("gpu2", "mknod", "-m", "666", "/dev/nvidia9", "c", "195", "9")
    try:
        run = converge(*drain).wait()
        assert run.returncode != 0
        assert "It is closed to new jobs until" in run.output
        assert said("ctl", "sinfo", "-h", "-n", "gpu2", "-o", "%T %E").startswith("drained [isolation]")
    finally:
        said("gpu2", "rm", "/dev/nvidia9")
    part = converge("--tags", "gpu_access", *drain).wait()
    assert part.returncode == 0, part.output
    assert said("ctl", "sinfo", "-h", "-n", "gpu2", "-o", "%T") == "drained"
    whole = converge(*drain).wait()
    assert whole.returncode == 0, whole.output
    # With a star as long as it has not answered again.
    assert said("ctl", "sinfo", "-h", "-n", "gpu2", "-o", "%T").rstrip("*") == "idle"


def test_a_session_that_still_reaches_gpus_is_reported(request):
    folder = f"/sys/fs/cgroup/devices/user.slice/user-{uid('alice')}.slice"
    said("gpu2", *in_slice("alice", *SLEEP))
    request.addfinalizer(lambda: on("gpu2", "pkill", "-u", "alice", "-x", "sleep"))
    # What a session from before the policy has, where systemd leaves the rules of a slice as they were made.
    said("gpu2", "sh", "-c", f"echo 'c 195:0 rwm' > {folder}/devices.allow")
    run = converge("--tags", "gpu_access", "--limit", "gpu2").wait()
    assert run.returncode == 0, run.output
    assert "live session of alice opens /dev/nvidia0." in run.output
    strict = converge("--tags", "gpu_access_verify", "--limit", "gpu2", "-e", "gpu_access_live_sessions=fail").wait()
    assert strict.returncode != 0
    said("gpu2", "pkill", "-u", "alice", "-x", "sleep")
    again = converge("--tags", "gpu_access_verify", "--limit", "gpu2", "-e", "gpu_access_live_sessions=fail").wait()
    assert again.returncode == 0, again.output


def test_the_policy_reaches_who_is_logged_in(request):
    said("gpu2", "sh", "-c", "rm /etc/systemd/system/user-.slice.d/50-tenancy-gpu.conf; systemctl daemon-reload")
    said("gpu2", *in_slice("alice", *SLEEP))
    request.addfinalizer(lambda: on("gpu2", "pkill", "-u", "alice", "-x", "sleep"))
    run = converge("--tags", "gpu_access", "--limit", "gpu2").wait()
    assert run.returncode == 0, run.output
    # Closed, or told: never open and silent.
    pid = said("gpu2", "pgrep", "-u", "alice", "-x", "-n", "sleep")
    group = said("gpu2", "sh", "-c", f"grep :devices: /proc/{pid}/cgroup | cut -d: -f3")
    script = f"echo $$ > /sys/fs/cgroup/devices{group}/cgroup.procs; exec runuser -u alice -- open-gpus"
    closed = gpus(said("gpu2", "sh", "-c", script)) == DENIED
    assert closed is not ("live session of alice opens" in run.output)


def test_an_overruled_policy_is_an_error():
    folder = "/etc/systemd/system/cron.service.d"
    said(
        "gpu2",
        "sh",
        "-c",
        f"printf '[Service]\\nDevicePolicy=auto\\nDeviceAllow=\\n' > {folder}/90-local.conf; systemctl daemon-reload",
    )
    try:
        run = converge("--tags", "gpu_access", "--limit", "gpu2").wait()
        assert run.returncode != 0
        assert "90-local.conf" in run.output
    finally:
        said("gpu2", "sh", "-c", f"rm {folder}/90-local.conf; systemctl daemon-reload")


# What runc tells systemd of a container without devices of its own.
RUNC = (
    "/dev/char/1:3 rwm",
    "/dev/char/1:5 rwm",
    "/dev/char/1:9 rwm",
    "/dev/char/5:0 rwm",
    "/dev/char/5:2 rwm",
    "char-136 rwm",
)


@contextlib.contextmanager
def container(name: str, *devices: str):
    """A scope as runc makes it, and its device cgroup."""
    allow = [f"--property=DeviceAllow={item}" for item in ("block-* m", "char-* m", *RUNC, *devices)]
    said("gpu2", "systemd-run", "--scope", f"--unit={name}", "--property=DevicePolicy=strict", *allow, *SLEEP)
    try:
        yield said("gpu2", "sh", "-c", f"echo /sys/fs/cgroup/devices$(systemctl show {name}.scope -P ControlGroup)")
    finally:
        said("gpu2", "systemctl", "stop", f"{name}.scope")


def opens_in(group: str) -> list[str]:
    return sorted_answers(gpus(said("gpu2", "sh", "-c", f"echo $$ > {group}/cgroup.procs; exec open-gpus")))


def test_containers_that_would_lose_their_gpus_make_it_wait():
    change = ["--tags", "gpu_access", "--limit", "gpu2", "-e", '{"gpu_access_services_extra": ["site-app", "another"]}']
    another = ("gpu2", "test", "-e", "/etc/systemd/system/another.service.d")
    with container("docker-cafe", "/dev/char/195:0 rwm") as given:
        assert opens_in(given) == ONE
        with container("docker-0123456789ab") as hooked:
            # As NVIDIA's hook does it.
            said(
                "gpu2", "sh", "-c", f'for n in 0 1 2 3; do echo "c 195:$n rwm" > {hooked}/devices.allow || exit 1; done'
            )
            assert opens_in(hooked) == ["ENXIO"] * 4
            run = converge(*change).wait()
            assert run.returncode != 0
            assert "docker-0123456789ab.scope. It was not told to" in run.output
            assert on(*another).returncode != 0
            left = converge(*change, "-e", "gpu_access_busy=skip").wait()
            assert left.returncode == 0, left.output
            assert left.changed == []
            assert on(*another).returncode != 0
            # A service that another drop-in waits for: the same.
            said("gpu2", "sh", "-c", "touch /etc/systemd/system/slurmd.service.d/50-tenancy-gpu.conf")
            done = on_daemon("slurmd")
            assert done.returncode != 0
            assert "docker-0123456789ab.scope" in done.stdout
            assert opens_in(hooked) == ["ENXIO"] * 4
        # The one that systemd knows of is in nobody's way, and loses nothing.
        run = converge(*change).wait()
        assert run.returncode == 0, run.output
        assert on(*another).returncode == 0
        assert opens_in(given) == ONE


def on_daemon(name: str) -> subprocess.CompletedProcess[str]:
    argv = ["ansible", "-i", str(inventory_folder()), "gpu2", "-b", "-m", "gpuops.tenancy.daemon", "-a", f"name={name}"]
    return subprocess.run(argv, capture_output=True, text=True, check=False)


def test_gpus_of_which_slurm_knows_nothing_are_an_error():
    said("gpu2", "mv", "/etc/slurm/gres.conf", "/etc/slurm/gres.conf.away")
    try:
        run = converge("--tags", "gpu_access", "--limit", "gpu2").wait()
        assert run.returncode != 0
        assert "There is no /etc/slurm/gres.conf, and there is /dev/nvidia0, /dev/nvidia1" in run.output
    finally:
        said("gpu2", "mv", "/etc/slurm/gres.conf.away", "/etc/slurm/gres.conf")


def test_who_has_had_a_gpu_open_since_before_is_reported(request):
    # Without a driver behind it a device opens by its path alone.
    hold = "import os, time; os.open('/dev/nvidia0', os.O_PATH); time.sleep(600)"
    said("gpu2", *in_slice("alice", "sh", "-c", f'python3 -c "{hold}" >/dev/null 2>&1 &'))
    request.addfinalizer(lambda: on("gpu2", "pkill", "-u", "alice", "-x", "python3"))
    pid = said("gpu2", "pgrep", "-u", "alice", "-x", "python3")
    verify = ["--tags", "gpu_access_verify", "--limit", "gpu2"]
    run = converge(*verify).wait()
    assert run.returncode == 0, run.output
    assert f"process {pid} (python3) of alice, in no job, has /dev/nvidia0 open" in run.output
    assert converge(*verify, "-e", "gpu_access_live_sessions=fail").wait().returncode != 0
    # What has it from a job is nobody's business.
    with job("alice", "gpu2", "--gres=gpu:1", script=f'python3 -c "{hold}"'):
        run = converge(*verify).wait()
    assert run.output.count("has /dev/nvidia0 open") == 1, run.output


def test_a_job_goes_on_and_never_sees_a_foreign_device():
    said("gpu1", "install", "-d", "-m", "1777", WATCHED.rpartition("/")[0])
    watch = f"while :; do open-gpus | sort | tr '\\n' ' '; echo; sleep 0.1; done > {WATCHED} 2>&1"
    with job("alice", "gpu1", "--gres=gpu:1", script=f"export PATH=$PATH:/usr/local/bin; {watch}") as number:
        wait_for(lambda: on("gpu1", "test", "-s", WATCHED).returncode == 0, 20, "the probe in the job")
        # With something to change, back, and nothing to change.
        for extra in ('{"gpu_access_services_extra": ["site-app", "another"]}', "{}"):
            run = converge("--limit", "gpu1", "-e", extra).wait()
            assert run.returncode == 0, run.output
        assert said("login", "squeue", "-h", "-j", number, "-o", "%T", user="alice") == "RUNNING"
        lines = said("gpu1", "cat", WATCHED).splitlines()
    assert len(lines) > 50
    whole = {line.strip() for line in lines if line.count("nvidia") == 4}
    assert len(whole) == 1, whole
    assert sorted(whole.pop().split()[1::2]) == ONE


def test_by_ssh_only_the_gpus_of_the_job():
    with job("alice", "gpu1", "--gres=gpu:2"):
        assert sorted_answers(gpus_by_ssh("gpu1", "alice")) == ["ENXIO", "ENXIO", "EPERM", "EPERM"]
