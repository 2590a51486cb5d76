# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import base64
import os
import pathlib
import stat
import threading

import pytest
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


class Shell:
    tmpdir = None
    join_path = staticmethod(os.path.join)


class Connection:
    _shell = Shell


class Task:
    check_mode = False


@pytest.fixture
def action(tmp_path, monkeypatch):
    """The action with a host that answers as told and notes what it is asked."""
    found = object.__new__(secret_file.ActionModule)
    found._task, found._connection, found._loader = Task(), Connection(), DataLoader()
    found.source, found.asked, found.staged, found.removed = tmp_path / "key", [], [], []
    found.answer = {"changed": True}
    monkeypatch.setattr(Shell, "tmpdir", None)
    monkeypatch.setattr(secret_file.ActionBase, "run", lambda self, tmp=None, task_vars=None: {})
    found.validate_argument_spec = lambda argument_spec: (
        None,
        {"source": str(found.source), "dest": "/etc/munge/munge.key", "length": 64, "staged": "/etc/shadow"},
    )
    found._make_tmp_path = lambda: monkeypatch.setattr(Shell, "tmpdir", "/root/tmp")
    found._transfer_file = lambda path, staged: found.staged.append((pathlib.Path(path).read_bytes(), staged))
    found._fixup_perms2 = lambda paths: None
    found._remove_tmp_path = found.removed.append

    def execute(module_name, module_args, task_vars):
        found.asked.append(module_args)
        return dict(found.answer)

    found._execute_module = execute
    return found


def test_made_and_copied_without_a_word_about_its_bytes(action):
    result = action.run(task_vars={})
    secret = action.source.read_bytes()
    assert (result["changed"], result["generated"]) == (True, True)
    assert action.staged == [(secret, "/root/tmp/.secret")]
    assert [asked["staged"] for asked in action.asked] == [None, "/root/tmp/.secret"]
    assert action.removed == ["/root/tmp"]
    for form in (secret.hex(), base64.b64encode(secret).decode(), repr(secret)):
        assert form not in str(action.asked) + str(result)


def test_check_mode_makes_nothing(action):
    action._task.check_mode = True
    result = action.run(task_vars={})
    assert (result["changed"], action.staged) == (True, [])
    assert not action.source.exists()


def test_nothing_is_made_for_a_host_that_refuses(action):
    action.answer = {"failed": True, "msg": "this host already works with a secret of its own"}
    assert action.run(task_vars={})["failed"]
    assert not action.source.exists()
    assert action.staged == []


def test_what_the_host_says_of_an_existing_secret_is_passed_on(action):
    action.source.write_bytes(b"mine")
    action.answer = {"failed": True, "changed": False, "msg": "another secret"}
    result = action.run(task_vars={})
    assert (result["failed"], result["msg"], result["generated"]) == (True, "another secret", False)
    assert [asked["staged"] for asked in action.asked] == ["/root/tmp/.secret"]
    assert action.removed == ["/root/tmp"]
