# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import pytest
from ansible_collections.gpuops.tenancy.plugins.module_utils import _command
from ansible_collections.gpuops.tenancy.plugins.module_utils._host import rollback, sshd


@pytest.fixture
def systemd(monkeypatch):
    """What would be asked of systemd; everything else runs."""
    asked: list[list[str]] = []
    real = _command.run

    def run(argv, **options):
        if argv[0].startswith("system"):
            asked.append(list(argv))
            return _command.Completed(tuple(argv), 0, "", "")
        return real(argv, **options)

    monkeypatch.setattr(rollback._command, "run", run)
    return asked


@pytest.fixture
def guard(tmp_path, systemd):
    (tmp_path / "units").mkdir()
    return rollback.Guard("login", str(tmp_path / "state" / "rollback"), str(tmp_path / "units"))


@pytest.fixture
def files(tmp_path):
    old, new = tmp_path / "old.conf", tmp_path / "new.conf"
    old.write_text("old\n")
    old.chmod(0o640)
    return old, new


def change(guard, files, tmp_path):
    old, new = files
    guard.keep([str(old), str(new)], [["touch", str(tmp_path / "reloaded")]])
    guard.arm(30)
    old.write_text("changed\n")
    new.write_text("made\n")


def timer_ends(systemd) -> None:
    """Do what the timer would."""
    argv = next(argv for argv in systemd if argv[0] == "systemd-run")
    subprocess.run(argv[argv.index(sys.executable) :], check=True)


def test_the_old_files_come_back(guard, files, tmp_path, systemd):
    old, new = files
    change(guard, files, tmp_path)
    guard.in_place()
    timer_ends(systemd)
    assert (old.read_text(), old.stat().st_mode & 0o777) == ("old\n", 0o640)
    assert not new.exists()
    assert (tmp_path / "reloaded").exists()
    assert guard.pending() is None
    assert guard.came_back()["files"] == [str(old), str(new)]
    with pytest.raises(rollback.RollbackError, match="are back"):
        guard.confirm()


def test_the_timer_is_set_before_a_file_changes_and_a_boot_does_the_same(guard, files, tmp_path, systemd):
    change(guard, files, tmp_path)
    run = next(argv for argv in systemd if argv[0] == "systemd-run")
    assert "--on-active=30" in run
    unit = pathlib.Path(guard.boot_unit).read_text()
    assert f"ConditionPathExists={guard.manifest}" in unit
    assert os.readlink(guard.boot_link) == guard.boot_unit
    assert f"ExecStart={' '.join(guard.put_back)}" in unit


def test_a_confirmation_makes_it_final(guard, files, tmp_path, systemd):
    old, new = files
    change(guard, files, tmp_path)
    guard.in_place()
    assert guard.pending()["changed_at"] > 0
    guard.confirm()
    assert guard.pending() is None
    assert not os.path.exists(guard.boot_unit)
    assert not os.path.lexists(guard.boot_link)
    # The program may have been started already: it finds nothing to do.
    timer_ends(systemd)
    assert (old.read_text(), new.read_text()) == ("changed\n", "made\n")
    assert ["systemctl", "stop", f"{guard.unit}.timer"] in systemd


def test_killed_before_the_manifest_nothing_is_pending(guard, files):
    assert guard.pending() is None
    os.makedirs(guard.folder)
    assert guard.pending() is None


def test_restore_at_once(guard, files, tmp_path):
    old, new = files
    change(guard, files, tmp_path)
    guard.restore()
    assert old.read_text() == "old\n"
    assert not new.exists()
    assert not os.path.exists(guard.folder)


def test_what_is_kept_is_roots_alone(guard, files, tmp_path):
    change(guard, files, tmp_path)
    assert os.stat(guard.folder).st_mode & 0o077 == 0
    assert os.stat(os.path.dirname(guard.folder)).st_mode & 0o077 == 0
    kept = json.loads(pathlib.Path(guard.manifest).read_text())["files"][0]["kept"]
    assert os.stat(os.path.join(guard.folder, kept)).st_mode & 0o777 == 0o600


def test_in_place_after_its_time(guard, files, tmp_path, systemd):
    change(guard, files, tmp_path)
    timer_ends(systemd)
    with pytest.raises(rollback.RollbackError, match="came back before"):
        guard.in_place()


@pytest.mark.parametrize(
    ("processes", "login"),
    [
        # python under sh under the session of sshd under its listener
        ({9: (8, "python3"), 8: (7, "sh"), 7: (6, "sshd"), 6: (1, "sshd"), 1: (0, "systemd")}, 7),
        (
            {
                9: (8, "python3"),
                8: (7, "sudo"),
                7: (5, "sh"),
                5: (4, "sshd-session"),
                4: (3, "sshd-session"),
                3: (1, "sshd"),
            },
            5,
        ),
        ({9: (8, "python3"), 8: (1, "sh"), 1: (0, "systemd")}, None),
        ({9: (8, "python3")}, None),
    ],
)
def test_the_login_that_a_process_came_in_by(processes, login):
    assert rollback.login_of(9, processes.get) == login


def test_parents_are_read():
    above, name = rollback.parent_of(os.getpid())
    assert above == os.getppid()
    assert name
    assert rollback.parent_of(2**22 + 1) is None


MAIN = "# comment\nInclude /etc/ssh/sshd_config.d/*.conf\nPort 22\n"


def test_a_staged_main_file():
    staged = sshd.staged(MAIN, "/etc/ssh/sshd_config.d", "/tmp/stage")
    assert staged == MAIN.replace("/etc/ssh/sshd_config.d", "/tmp/stage")
    with pytest.raises(sshd.SshdError, match="put 'Include /etc/ssh/sshd_config.d/\\*.conf' at its top"):
        sshd.staged("#Include /etc/ssh/sshd_config.d/*.conf\nPort 22\n", "/etc/ssh/sshd_config.d", "/tmp/stage")


def test_what_sshd_goes_by():
    text = "# x\nAuthorizedKeysFile /etc/ssh/authorized_keys.d/%u\nX11Forwarding no # never\nMatch User root\n    X11Forwarding yes\n"
    wanted = sshd.settings(text)
    assert wanted == {"authorizedkeysfile": "/etc/ssh/authorized_keys.d/%u", "x11forwarding": "no"}
    assert sshd.outranked(wanted, "authorizedkeysfile /etc/ssh/authorized_keys.d/%u\nx11forwarding no\nport 22\n") == []
    assert sshd.outranked(wanted, "authorizedkeysfile .ssh/authorized_keys\n") == [
        "authorizedkeysfile is .ssh/authorized_keys instead of /etc/ssh/authorized_keys.d/%u",
        "x11forwarding is unknown instead of no",
    ]
