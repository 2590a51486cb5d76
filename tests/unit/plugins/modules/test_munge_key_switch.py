# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.gpuops.tenancy.plugins.module_utils import _command, _lock
from ansible_collections.gpuops.tenancy.plugins.modules import munge_key_switch

OLD, NEW = b"O" * 128, b"N" * 128


@pytest.mark.parametrize(
    ("clock", "expected"),
    [
        (1000.0, 10.0),  # as long as the task took
        (1003.5, 6.5),
        (1012.0, -2.0),  # too late: at once
        (999.0, 11.0),  # a clock that is a little slow
        (1300.0, 10.0),  # clocks that do not agree: Ansible's
        (700.0, 10.0),
    ],
)
def test_the_moment(clock, expected):
    assert munge_key_switch.delay(1010.0, 1000.0, clock) == expected


PARAMS = {"path": "/etc/munge/munge.key", "staged": "/etc/munge/munge.key.next", "service": "munge"}


def test_the_command_renames_before_it_restarts():
    command = munge_key_switch.compile_command(PARAMS, 7.25, lambda name: f"/bin/{name}")
    assert command[:2] == ["/bin/systemd-run", "--unit=tenancy-munge-key"]
    assert "--on-active=7.2s" in command
    steps = [word.partition("=")[2].partition("=")[2] for word in command if "ExecStartPre" in word]
    assert steps == ["/bin/mv -fT /etc/munge/munge.key.next /etc/munge/munge.key", "/bin/sleep 0.3"]
    assert command[-3:] == ["/bin/systemctl", "restart", "munge"]


def test_slurmctld_is_away_while_hosts_have_two_keys_and_comes_back_whatever_happens():
    command = munge_key_switch.compile_command(PARAMS, 7.25, lambda name: f"/bin/{name}", ["slurmctld"])
    assert "--on-active=4.2s" in command
    before = [word.partition("ExecStartPre=")[2] for word in command if "ExecStartPre" in word]
    assert before[:3] == [
        "/bin/systemctl stop slurmctld",
        "/bin/sleep 3",
        "/bin/mv -fT /etc/munge/munge.key.next /etc/munge/munge.key",
    ]
    # systemd runs these where a step before has failed as well.
    after = [word.partition("ExecStopPost=")[2] for word in command if "ExecStopPost" in word]
    assert after == ["/bin/sleep 3", "/bin/systemctl start slurmctld"]


def test_what_does_not_run_is_not_started(host, monkeypatch):
    host.staged.write_bytes(NEW)
    ran = munge_key_switch._command.run
    stopped = ["systemctl", "is-active", "-q", "slurmctld"]
    monkeypatch.setattr(
        munge_key_switch._command,
        "run",
        lambda argv, **rest: _command.Completed(tuple(argv), 3, "", "") if argv == stopped else ran(argv, **rest),
    )
    assert "slurmctld" not in host(paused=["slurmctld"])["commands"][0]
    monkeypatch.setattr(munge_key_switch._command, "run", ran)
    assert "slurmctld" in host(paused=["slurmctld"])["commands"][0]


def test_a_switch_that_is_under_way_is_waited_for(host, monkeypatch):
    host.staged.write_bytes(NEW)
    states = iter(["activating\n", "deactivating\n", "inactive\n"])
    ran = munge_key_switch._command.run

    def asked(argv, **rest):
        if argv[1] != "show":
            return ran(argv, **rest)
        state = next(states)
        if state == "deactivating\n":
            host.staged.rename(host.key)
        return _command.Completed(tuple(argv), 0, state, "")

    monkeypatch.setattr(munge_key_switch._command, "run", asked)
    assert not host()["changed"]
    assert next(states, None) is None


def test_a_moment_that_is_past_needs_no_timer():
    assert not [word for word in munge_key_switch.compile_command(PARAMS, -1, str) if "on-active" in word]


@pytest.mark.parametrize("char", ["%", "$", " ", '"', "\\", ";"])
def test_a_name_that_systemd_would_change_is_refused(char):
    with pytest.raises(ValueError, match="rename it"):
        munge_key_switch.compile_command({**PARAMS, "path": f"/etc/a{char}b"}, 1, str)


@pytest.fixture
def host(tmp_path, monkeypatch, capsys):
    commands: list[list[str]] = []
    (tmp_path / "locks").mkdir()
    monkeypatch.setattr(_lock.Lock.__init__, "__defaults__", (300.0, (str(tmp_path / "locks"),)))

    def ran(argv, **_rest):
        commands.append(list(argv))
        return _command.Completed(tuple(argv), 0, "", "")

    monkeypatch.setattr(munge_key_switch._command, "run", ran)
    monkeypatch.setattr(munge_key_switch._command, "located", lambda name, path: name)
    (tmp_path / "key").write_bytes(OLD)

    def call(check=False, **params):
        arguments = {
            "path": str(tmp_path / "key"), "staged": str(tmp_path / "key.next"), "at": 2, "now": 1, "lock_timeout": 0,
            "_ansible_check_mode": check, **params,
        }  # fmt: skip
        with patch_module_args(arguments), pytest.raises(SystemExit):
            munge_key_switch.main()
        said = capsys.readouterr().out
        assert OLD.decode() not in said
        assert NEW.decode() not in said
        return json.loads(said)

    call.staged, call.key, call.commands = tmp_path / "key.next", tmp_path / "key", commands
    return call


def test_without_a_staged_key_there_is_nothing_to_do(host):
    assert not host()["changed"]
    assert [argv[1] for argv in host.commands] == ["stop", "show"]
    assert host(check=True, pending=True)["changed"]


def test_another_key_is_left_to_systemd(host):
    host.staged.write_bytes(NEW)
    checked = host(check=True)
    assert checked["changed"]
    assert host.commands == []
    result = host()
    assert (result["changed"], result["plan"], result["diff"]) == (True, checked["plan"], checked["diff"])
    assert [argv[0] for argv in host.commands][-1] == "systemd-run"
    # What an earlier run arranged is given up first.
    assert host.commands[0][1:] == ["stop", "tenancy-munge-key.timer"]
    assert (host.key.read_bytes(), host.staged.read_bytes()) == (OLD, NEW)


def test_the_same_key_is_taken_away_and_munged_is_left_alone(host):
    host.staged.write_bytes(OLD)
    assert not host(check=True)["changed"]
    assert host.staged.exists()
    assert not host()["changed"]
    assert not host.staged.exists()
    assert "systemd-run" not in [argv[0] for argv in host.commands]


def test_a_staged_key_elsewhere_is_refused(host):
    assert "one step" in host(staged="/elsewhere/key")["msg"]
    assert host.commands == []
