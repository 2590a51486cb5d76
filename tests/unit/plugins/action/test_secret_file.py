# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import hashlib
import os
import stat
import threading

import pytest
from ansible.errors import AnsibleActionFail
from ansible.parsing.dataloader import DataLoader
from ansible_collections.gpuops.tenancy.plugins.action import secret_file


def test_a_secret_is_made_once_by_whoever_comes_first(tmp_path):
    path = str(tmp_path / "secrets" / "munge.key")
    made = []
    threads = [threading.Thread(target=lambda: made.append(secret_file.generate(path, 128))) for _number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(made) == [False] * 7 + [True]
    assert os.path.getsize(path) == 128
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(tmp_path / "secrets").st_mode) == 0o700
    assert os.listdir(tmp_path / "secrets") == ["munge.key"]


def test_an_existing_secret_is_left_alone(tmp_path):
    path = tmp_path / "munge.key"
    path.write_bytes(b"mine")
    assert secret_file.generate(str(path), 128) is False
    assert path.read_bytes() == b"mine"


class Task:
    check_mode = False


@pytest.fixture
def action(tmp_path, monkeypatch):
    """The action with a host that has certain files, and a copy that reports a change."""
    found = object.__new__(secret_file.ActionModule)
    found._task = Task()
    found.there, found.copied, found.replace, found.secret = set(), [], False, b"theirs"
    found._loader = DataLoader()
    monkeypatch.setattr(secret_file.ActionBase, "run", lambda self, tmp=None, task_vars=None: {})
    found.validate_argument_spec = lambda argument_spec: (None, {
        "source": str(tmp_path / "key"), "dest": "/etc/munge/munge.key", "owner": "munge", "group": "munge", "mode": "0400",
        "length": 64, "in_use": ["/etc/slurm/slurm.conf", "/run/slurm/conf/slurm.conf"], "replace": found.replace,
    })  # fmt: skip
    found._execute_module = lambda module_name, module_args, task_vars: {
        "stat": {"exists": module_args["path"] in found.there, "checksum": hashlib.sha1(found.secret).hexdigest()}
    }

    def copy(source, args, task_vars):
        found.copied.append(source)
        return {"changed": True, "checksum": "c0ffee", "md5sum": "c0ffee", "size": 64}

    found._copy = copy
    found.source = tmp_path / "key"
    return found


def test_made_and_copied_without_a_word_about_its_bytes(action):
    result = action.run(task_vars={})
    assert (result["changed"], result["generated"], action.copied) == (True, True, [str(action.source)])
    assert "c0ffee" not in str(result)
    assert action.source.read_bytes().hex() not in str(result)


def test_check_mode_makes_nothing(action):
    action._task.check_mode = True
    result = action.run(task_vars={})
    assert (result["changed"], result["generated"], action.copied) == (True, False, [])
    assert not action.source.exists()


def test_check_mode_on_a_host_without_the_directory(action):
    action._task.check_mode = True
    action.source.write_bytes(b"x" * 64)
    assert action.run(task_vars={})["changed"] is True
    assert action.copied == []
    action.there.add("/etc/munge")
    action.run(task_vars={})
    assert action.copied == [str(action.source)]


def test_no_new_key_over_the_head_of_a_running_cluster(action):
    action.there |= {"/etc/munge/munge.key", "/etc/slurm/slurm.conf"}
    with pytest.raises(AnsibleActionFail, match="Copy the one in use"):
        action.run(task_vars={})
    assert not action.source.exists()
    # munge was installed, Slurm never configured: the package's own key may go.
    action.there = {"/etc/munge/munge.key"}
    assert action.run(task_vars={})["generated"] is True


def test_a_key_that_a_new_host_made_does_not_replace_the_one_in_use(action):
    action.source.write_bytes(b"made by a new host")
    action.there |= {"/etc/munge/munge.key", "/run/slurm/conf/slurm.conf"}
    with pytest.raises(AnsibleActionFail, match="another secret"):
        action.run(task_vars={})
    assert action.copied == []
    action.replace = True
    assert action.run(task_vars={})["changed"] is True


def test_the_key_in_use_is_no_reason_to_stop(action):
    action.source.write_bytes(action.secret)
    action.there |= {"/etc/munge/munge.key", "/etc/slurm/slurm.conf"}
    action.run(task_vars={})
    assert action.copied == [str(action.source)]
