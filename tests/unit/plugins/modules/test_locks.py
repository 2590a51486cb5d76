# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whoever changes something on a host is alone with it."""

from __future__ import annotations

import importlib
import json
import os
import pathlib
import re

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.gpuops.tenancy.plugins.module_utils import _lock

MODULES = pathlib.Path(__file__).resolve().parents[4] / "plugins" / "modules"
# tenant_adopt makes new files only, each at once.
READERS = {
    "attest_catalogue",
    "attest_report",
    "slurm_preflight",
    "slurm_smoke_test",
    "tenant_adopt",
    "tenant_documents",
}
# Takes it where something was left, see molecule/attest.
ON_DEMAND = {"attest_clean"}
WRITERS = {
    "attest_run": ({"program": "a", "run_id": "b", "kind": "login", "runs": [], "facts": {}}, "attest"),
    "attest_victim": (
        {"program": "a", "run_id": "b", "host": "c", "address": "d", "user": "e", "account": "f"},
        "attest",
    ),
    "daemon": ({"name": "Getty@tty1.service"}, "daemon-getty-tty1.service"),
    "firewall": ({"rules": "table inet x", "search_path": ["/nonexistent"]}, "firewall"),
    "firewall_block": ({"search_path": ["/nonexistent"]}, "firewall"),
    "firewall_confirm": ({"search_path": ["/nonexistent"]}, "firewall"),
    "login_access": ({"tenant": "a", "users": [], "allow_from": []}, "sshd"),
    "gpu_device_policy": ({"services": ["cron"]}, "gpu-device-policy"),
    "kernel_settings": ({"path": "/nonexistent/X.conf", "settings": {}}, "kernel--nonexistent-x.conf"),
    "local_group": ({"name": "a", "members": ["root"]}, "local-groups"),
    "login_policy": ({"sshd_text": "UsePAM yes"}, "login-policy"),
    "mariadb_account": ({"database": "a", "user": "b", "password": "PASSWORD"}, "mariadb"),
    "mount_options": ({"path": "/proc", "options": []}, "mount--proc"),
    "munge_key_switch": ({"staged": "/etc/X.key", "path": "/etc/Y.key", "at": 1, "now": 1}, "secret--etc-x.key"),
    "pam_profile": ({"profiles": [{"name": "a", "module": "b", "enabled": True}]}, "pam-profiles"),
    "posix_groups": ({"groups": [{"name": "no-such-group"}]}, "posix-users"),
    "posix_numbers": ({"users": [{"name": "alice"}], "ledger": "/nonexistent/x"}, "posix-numbers"),
    "posix_users": ({"users": [{"name": "no-such-user", "uid": 59998}]}, "posix-users"),
    "secret_file": ({"source": "/a", "dest": "/etc/X.key", "staged": "/dev/null"}, "secret--etc-x.key"),
    "systemd_drop_in": ({"unit": "a.service", "name": "b.conf"}, "systemd-drop-ins"),
    "text_files": ({"files": [{"path": "/nonexistent/a", "content": "b"}]}, "text-files"),
    "slurm_accounting": ({"cluster": "c1", "scope": ["a"], "accounts": [{"name": "a"}]}, "slurm-accounting-c1"),
    "slurm_cluster": ({"name": "c1"}, "slurm-accounting-database"),
    "slurm_config": ({"path": "/nonexistent", "files": [{"name": "a", "content": "b"}]}, "slurm-config"),
    "slurm_job": ({"state": "held", "users": ["a"]}, "slurm-scheduler"),
    "slurm_node": ({"state": "resume", "owner": "a", "nodes": ["b"]}, "slurm-scheduler"),
    "slurm_database_backup": ({}, "slurm-database"),
    "slurm_database_restore": ({"path": "/a", "state": "loaded"}, "slurm-database"),
    "slurm_qos": ({"qos": [{"name": "a"}]}, "slurm-accounting-database"),
    "slurm_reservation": ({"name": "a", "state": "absent"}, "slurm-scheduler"),
}


@pytest.fixture(autouse=True)
def locks(tmp_path, monkeypatch):
    monkeypatch.setattr(_lock.Lock.__init__, "__defaults__", (300.0, (str(tmp_path),)))


def test_every_writer_is_here_or_has_its_lock_from_the_common_runner():
    texts = {path.stem: path.read_text() for path in MODULES.glob("*.py") if not path.stem.endswith("_info")}
    common = {name for name, text in texts.items() if "run_module(" in text}
    assert set(texts) - READERS - ON_DEMAND - {"__init__"} <= set(WRITERS) | common
    assert set(WRITERS) <= set(texts)
    for name in READERS:
        assert not re.search(r"\bLock\(", texts[name])


@pytest.mark.parametrize("name", WRITERS)
def test_it_waits_for_the_other_one_and_names_it(name, capsys):
    arguments, lock = WRITERS[name]
    module = importlib.import_module(f"ansible_collections.gpuops.tenancy.plugins.modules.{name}")
    with (
        _lock.Lock(lock, "somebody else", 0),
        patch_module_args({**arguments, "lock_timeout": 0}),
        pytest.raises(SystemExit) as ended,
    ):
        module.main()
    result = json.loads(capsys.readouterr().out)
    assert ended.value.code == 1
    assert f"held after 0 s by process {os.getpid()} (somebody else, since" in result["msg"]
    assert not result.get("changed")


@pytest.mark.parametrize(
    ("what", "name"),
    [("slurmctld", "daemon-slurmctld"), ("a@B.service", "daemon-a-b.service"), ("/etc/x", "daemon--etc-x")],
)
def test_any_object_has_a_lock(what, name, tmp_path):
    assert _lock.lock_name("daemon", what) == name
    with _lock.Lock(_lock.lock_name("daemon", what), "test", 0) as lock:
        assert lock.fds
