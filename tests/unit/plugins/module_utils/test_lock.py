# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest
from ansible_collections.gpuops.tenancy.plugins.module_utils._command import run
from ansible_collections.gpuops.tenancy.plugins.module_utils._lock import Lock, LockBusy, LockError


@pytest.fixture
def make(tmp_path):
    def factory(timeout=0.0, purpose="test", name="slurm-c1"):
        return Lock(name, purpose, timeout, directories=(str(tmp_path),))

    return factory


def test_it_can_be_taken_again_after_release_and_the_file_stays(make):
    lock = make()
    with lock:
        assert lock.fds
    assert lock.fds == ()
    assert os.path.exists(lock.path)
    with make():
        pass


def test_the_second_writer_is_told_who_holds_it(make):
    with make(purpose="slurm_accounting"):
        with pytest.raises(LockBusy, match=rf"process {os.getpid()} \(slurm_accounting, since 20") as caught:
            make().acquire()
    assert caught.value.holder["pid"] == os.getpid()


def test_two_names_do_not_keep_each_other_waiting(make):
    with make(), make(name="slurm-c2"):
        pass


def test_the_wait_ends_as_soon_as_the_holder_ends(make):
    first = make()
    first.acquire()
    child = os.fork()
    if child == 0:
        time.sleep(0.5)
        os._exit(0)
    first.release()
    started = time.monotonic()
    with make(timeout=10):
        assert 0.2 < time.monotonic() - started < 5
    os.waitpid(child, 0)


def test_a_command_still_running_keeps_the_lock_of_its_killed_parent(make, tmp_path):
    code = """
import sys
sys.path.insert(0, sys.argv[2])
import conftest
from ansible_collections.gpuops.tenancy.plugins.module_utils._command import run
from ansible_collections.gpuops.tenancy.plugins.module_utils._lock import Lock
with Lock("slurm-c1", "slurm_accounting", 0, directories=(sys.argv[1],)) as lock:
    print("held", flush=True)
    run(["sleep", "3"], pass_fds=lock.fds)
"""
    unit = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    parent = subprocess.Popen([sys.executable, "-c", code, str(tmp_path), unit], stdout=subprocess.PIPE)
    assert parent.stdout.readline() == b"held\n"
    time.sleep(0.3)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    with pytest.raises(LockBusy, match=rf"a command left by process {parent.pid}, which has ended"):
        make().acquire()
    with make(timeout=10):
        pass


def test_a_child_that_does_not_inherit_it_does_not_keep_it(make):
    with make():
        child = subprocess.Popen(["sleep", "5"])
    try:
        with make():
            pass
    finally:
        child.kill()
        child.wait()


def test_release_leaves_it_to_a_child_that_inherited_it(make):
    with make() as lock:
        child = subprocess.Popen(["sleep", "5"], pass_fds=lock.fds)
    try:
        with pytest.raises(LockBusy):
            make().acquire()
    finally:
        child.kill()
        child.wait()
    with make():
        pass


def test_run_hands_the_lock_on(make):
    with make() as lock:
        code = "import os, sys; os.fstat(int(sys.argv[1]))"
        assert run([sys.executable, "-c", code, str(lock.fds[0])], pass_fds=lock.fds).rc == 0


def test_a_symbolic_link_in_its_place_is_refused(make, tmp_path):
    lock = make()
    os.symlink(tmp_path / "elsewhere", lock.path)
    with pytest.raises(LockError, match="symbolic link; remove it"):
        lock.acquire()
    assert not (tmp_path / "elsewhere").exists()


def test_a_directory_in_its_place_is_refused(make):
    lock = make()
    os.mkdir(lock.path)
    with pytest.raises(LockError, match="cannot open the lock"):
        lock.acquire()


def test_a_holder_file_that_says_nonsense_does_not_hide_the_holder(make):
    with make() as lock:
        os.ftruncate(lock.fds[0], 0)
        os.pwrite(lock.fds[0], b"[1]", 0)
        with pytest.raises(LockBusy, match="an unknown process"):
            make().acquire()


def test_it_is_not_taken_twice_by_one_object(make):
    with make() as lock, pytest.raises(LockError, match="already held by this process"):
        lock.acquire()


@pytest.mark.parametrize("name", ["", "../x", "A", "a b"])
def test_a_name_that_could_leave_the_directory_is_refused(make, name):
    with pytest.raises(ValueError, match="lock name"):
        make(name=name)


def test_without_a_lock_directory_the_message_says_what_to_do(tmp_path):
    with pytest.raises(LockError, match="no directory for the lock"):
        Lock("x", "y", 0, directories=(str(tmp_path / "not" / "there"),))


def test_the_directory_is_made_for_us_alone(tmp_path):
    folder = tmp_path / "locks"
    with Lock("x", "y", 0, directories=(str(folder),)):
        assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    "spoil", [lambda folder: folder.chmod(0o777), lambda folder: (folder.rmdir(), folder.symlink_to("/"))]
)
def test_a_directory_that_others_may_write_to_is_refused(tmp_path, spoil):
    folder = tmp_path / "locks"
    folder.mkdir()
    spoil(folder)
    with pytest.raises(LockError, match="alone may write to"):
        Lock("x", "y", 0, directories=(str(folder),))
