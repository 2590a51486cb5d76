# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cleaning up behind a job: whose processes, whose files."""

from __future__ import annotations

import os
import pwd
import select
import shutil
import signal
import subprocess
import sys
import time

import clean
import jobs
import leftovers
import processes
import pytest
from ansible_collections.gpuops.tenancy.plugins.module_utils._host import cgroups
from hypothesis import given
from hypothesis import strategies as st

ALICE, BOB, JOB, OTHER = 10001, 10002, 12, 13


CGROUPS = pytest.mark.parametrize(
    ("text", "job"),
    [
        ("5:devices:/slurm_gpu1/uid_10001/job_12/step_0/task_0\n1:name=systemd:/system.slice/slurmd.service\n", 12),
        ("4:memory:/slurm/uid_10001/job_12/step_batch\n", 12),
        ("0::/system.slice/gpu1_slurmstepd.scope/job_12/step_0/user/task_0\n", 12),
        ("0::/system.slice/slurmstepd.scope/job_12/step_extern\n", 12),
        ("0::/docker/abc/system.slice/gpu1_slurmstepd.scope/job_12/step_0\n", 12),
        # What a user can make herself.
        ("0::/user.slice/user-10001.slice/user@10001.service/slurmstepd.scope/job_13/x\n", None),
        ("1:name=systemd:/user.slice/slurm/uid_10001/job_13\n", None),
        ("0::/user.slice/user-10001.slice/session-1.scope/slurm/uid_10001/job_13\n", None),
        ("0::/system.slice/slurmstepd.scope/job_x\n", None),
        ("0::/init.scope\n", None),
        ("", None),
    ],
)


@CGROUPS
def test_the_job_of_a_process(text, job):
    assert jobs.of_cgroup(text) == job


@CGROUPS
def test_the_modules_take_the_same_cgroups_for_jobs(text, job):
    groups = [line.split(":", 2)[2] for line in text.splitlines()]
    assert any(cgroups.JOB.match(group) for group in groups) is (job is not None)


def test_a_job_lives_by_roots_slurmstepd_or_its_socket(tmp_path, monkeypatch):
    proc, spool = tmp_path / "proc", tmp_path / "spool"
    spool.mkdir()
    for pid, title in (
        ("10", "slurmstepd: [12.extern]"),
        ("11", "slurmstepd: [14.batch]"),
        ("self", "slurmstepd: [15.0]"),
    ):
        (proc / pid).mkdir(parents=True)
        (proc / pid / "cmdline").write_text(title)
    (spool / "gpu_1_13.4294967292").touch()
    (spool / "cred_state").touch()
    real = os.stat

    def stat(path, *args, **kwargs):
        found = real(path, *args, **kwargs)
        # Process 11 is a user's who calls herself slurmstepd.
        uid = ALICE if str(path).endswith("/11") else 0
        return os.stat_result([*found[:4], uid, *found[5:]])

    monkeypatch.setattr(os, "stat", stat)
    assert jobs.live(str(proc), str(spool)) == {12, 13}


def entry(uid, state=jobs.BEGINS, at=1000.0):
    return {"uid": uid, "state": state, "at": at}


@pytest.mark.parametrize(
    ("registered", "alive", "members", "found"),
    [
        ({}, set(), set(), set()),
        # In its prolog: nothing of it can be seen yet.
        ({OTHER: entry(ALICE)}, set(), set(), {OTHER}),
        ({OTHER: entry(ALICE, at=0.0)}, {OTHER}, set(), {OTHER}),
        # Its epilog never ran to its end, long ago.
        ({OTHER: entry(ALICE, at=0.0)}, set(), set(), set()),
        ({OTHER: entry(BOB)}, {OTHER}, set(), set()),
        ({JOB: entry(ALICE)}, {JOB}, {JOB}, set()),
        # Two jobs that end together do not wait for each other.
        ({OTHER: entry(ALICE, jobs.ENDS)}, {OTHER}, {OTHER}, set()),
        # Nobody wrote it down (it began before our prolog was installed).
        ({}, {OTHER}, {OTHER}, {OTHER}),
        # Its cgroup is a leftover itself.
        ({}, set(), {OTHER}, set()),
    ],
)
def test_other_jobs_of_the_user(registered, alive, members, found):
    assert jobs.others(JOB, ALICE, registered, alive, members, grace=300, now=1100.0) == found


def process(pid=100, real=ALICE, effective=None, job=None, state="S"):
    return processes.Process(pid, 5, real, real if effective is None else effective, state, "x", job)


def only(uid):
    return lambda one: one == uid


def test_leftovers_are_the_users_own_and_of_no_job_that_runs():
    all_of_them = [
        process(1),
        process(100),
        process(101, job=JOB),
        process(102, job=OTHER),
        process(103, real=BOB),
        process(104, real=0, effective=ALICE),
        process(105, real=ALICE, effective=0),
        process(106, state="Z"),
        process(107, job=99),
    ]
    found = processes.targets(all_of_them, only(ALICE), JOB, {OTHER}, all_of_them=True)
    assert [one.pid for one in found] == [100, 101, 105, 107]
    found = processes.targets(all_of_them, only(ALICE), JOB, {OTHER}, all_of_them=False)
    assert [one.pid for one in found] == [101]


@given(
    st.lists(
        st.builds(
            process,
            pid=st.integers(2, 10**6),
            real=st.sampled_from([0, 33, 999, ALICE, BOB]),
            effective=st.sampled_from([0, 33, ALICE, BOB]),
            job=st.sampled_from([None, JOB, OTHER]),
        )
    ),
    st.booleans(),
)
def test_no_process_of_a_running_job_of_root_or_of_another_user_is_ever_hit(all_of_them, every):
    for one in processes.targets(all_of_them, only(ALICE), JOB, {OTHER}, every):
        assert one.job != OTHER
        assert one.real == ALICE or (one.real != 0 and one.effective == ALICE)


def test_a_reused_number_is_not_hit():
    victim = subprocess.Popen(["sleep", "60"])
    try:
        seen = processes.read_one("/proc", victim.pid)
        stale = processes.Process(seen.pid, seen.started - 1, seen.real, seen.effective, seen.state, seen.name, None)
        assert processes.send("/proc", stale, signal.SIGKILL) is False
        assert victim.poll() is None
        assert processes.send("/proc", seen, signal.SIGKILL) is True
        assert victim.wait(timeout=5) == -signal.SIGKILL
    finally:
        victim.kill()
        victim.wait()


# One that other users can run too.
PYTHON = shutil.which("python3", path="/usr/bin:/bin")
# Ends by itself, whatever becomes of the test.
LOOP = (
    "import os, time\nend = time.time() + 20\nwhile time.time() < end:\n"
    "  if os.fork(): time.sleep({pause}); os._exit(0)\n"
)


def marked(mark):
    """Finds processes with this in their arguments."""

    def find():
        found = []
        for one in processes.read("/proc"):
            try:
                with open(f"/proc/{one.pid}/cmdline", "rb") as handle:
                    if mark.encode() in handle.read() and one.state not in "ZX":
                        found.append(one)
            except OSError:
                continue
        return found

    return find


def test_what_makes_children_without_end_is_ended(tmp_path):
    subprocess.Popen([sys.executable, "-c", LOOP.format(pause=0.02), str(tmp_path)]).wait(timeout=10)
    find = marked(str(tmp_path))
    _ended, left = processes.end("/proc", find, patience=20)
    assert not left
    time.sleep(0.2)
    assert find() == []


@pytest.mark.skipif(os.geteuid() != 0 or not PYTHON, reason="only root acts for another user, who needs a Python")
def test_what_forks_faster_than_it_is_found_is_ended():
    uid = 54321
    # Open as long as one of them lives.
    reader, writer = os.pipe()
    loop = [PYTHON, "-c", LOOP.format(pause=0.001)]
    subprocess.Popen(loop, user=uid, cwd="/", pass_fds=(writer,)).wait(timeout=10)
    bystander = subprocess.Popen(["sleep", "60"], user=uid + 1, cwd="/")
    os.close(writer)
    try:
        assert select.select([reader], [], [], 0.3)[0] == []
        _ended, left = processes.end("/proc", list, 20, uid)
        assert not left
        assert select.select([reader], [], [], 3)[0] == [reader]
        assert os.read(reader, 1) == b""
        assert bystander.poll() is None
    finally:
        os.close(reader)
        processes.kill_all_of(uid)
        bystander.kill()
        bystander.wait()


@pytest.mark.parametrize("uid", [0, 33, 999])
def test_a_system_account_is_never_ended_as_a_whole(uid):
    with pytest.raises(ValueError):
        processes.kill_all_of(uid)


def test_who_has_a_device_open_or_mapped(tmp_path):
    device = str(tmp_path / "nvidia0")
    with open(device, "w") as handle:
        holder = subprocess.Popen(["sleep", "60"], pass_fds=(handle.fileno(),))
    try:
        seen = processes.read_one("/proc", holder.pid)
        assert processes.holders("/proc", [seen], {device}) == [seen]
        assert processes.holders("/proc", [seen], {"/dev/other"}) == []
    finally:
        holder.kill()
        holder.wait()


SHM = """       key      shmid perms                  size  cpid  lpid nattch   uid   gid  cuid  cgid      atime
         0          7  1600                     8     1     1      0 10001 10001 10001 10001          0
         0          8  1600                     8     1     1      0     0     0     0     0          0
         0          9  1600                     8     1     1      0     0     0 10001 10001          0
"""


def test_system_v_objects_of_the_owner_or_the_maker():
    assert leftovers.sysv(SHM, only(ALICE)) == ["7", "9"]
    assert leftovers.sysv("", only(ALICE)) == []


def test_files_go_links_are_not_followed_and_others_stay(tmp_path):
    me = os.getuid()
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "keep").touch()
    shared = tmp_path / "tmp"
    (shared / "deep" / "er").mkdir(parents=True)
    (shared / "deep" / "er" / "file").touch()
    (shared / "link").symlink_to(outside)
    (shared / "socket").touch()
    assert leftovers.remove_files(str(shared), only(me), time.monotonic() + 10, dry=True) == (5, True)
    assert leftovers.remove_files(str(shared), only(me + 1), time.monotonic() + 10) == (0, True)
    assert leftovers.remove_files(str(shared), only(me), time.monotonic() + 10) == (5, True)
    assert list(shared.iterdir()) == []
    assert (outside / "keep").exists()
    assert leftovers.remove_files(str(tmp_path / "gone"), only(me), 0.0) == (0, True)
    (shared / "late").touch()
    assert leftovers.remove_files(str(shared), only(me), time.monotonic() - 1) == (0, False)


def user(name="alice", uid=ALICE):
    return pwd.struct_passwd((name, "x", uid, uid, "", "/", "/bin/sh"))


CONFIG = {"uid_min": 1000, "exempt_users": ["anna"], "exempt_groups": ["no-such-group", "wheel"]}


@pytest.mark.parametrize(
    ("who", "touched"),
    [
        (user(), True),
        (user(uid=999), False),
        (user(uid=0), False),
        (user(uid=65534), False),
        (user(uid=61200), False),
        (user(uid=1_000_000), True),
        (user("anna"), False),
        (user("ben"), False),
    ],
)
def test_system_accounts_and_admins_are_exempt(monkeypatch, who, touched):
    monkeypatch.setattr(os, "getgrouplist", lambda name, gid: [gid, 777] if name == "ben" else [gid])

    def group(name):
        if name != "wheel":
            raise KeyError(name)
        return type("Group", (), {"gr_gid": 777})

    monkeypatch.setattr(clean.grp, "getgrnam", group)
    assert (clean.exempt(who, CONFIG) == "") is touched


def test_the_numbers_a_user_has_inside_containers():
    text = "alice:100000:65536\nbob:165536:65536\n10001:231072:10\nalice:1000:5\nbroken\n"
    assert clean.subordinate(text, user()) == [range(100000, 165536), range(231072, 231082)]


def test_an_unknown_user_ends_it_before_anything_is_touched(tmp_path):
    with pytest.raises(KeyError):
        clean.after_job({**CONFIG, "state": str(tmp_path)}, JOB, 3_999_999_999)
