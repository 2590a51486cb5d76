# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import grp
import json
import os
import pwd

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.gpuops.tenancy.plugins.module_utils import _lock, _secret
from ansible_collections.gpuops.tenancy.plugins.modules import secret_file

ME, MINE = pwd.getpwuid(os.getuid()).pw_name, grp.getgrgid(os.getgid()).gr_name


@pytest.fixture
def host(tmp_path, monkeypatch, capsys):
    """The module on a host with a directory for the secret."""
    (tmp_path / "locks").mkdir()
    (tmp_path / "etc").mkdir()
    monkeypatch.setattr(_lock.Lock.__init__, "__defaults__", (300.0, (str(tmp_path / "locks"),)))

    def call(secret=b"S3CR3T", check=False, **params):
        staged = None
        if secret is not None:
            staged = str(tmp_path / "staged")
            (tmp_path / "staged").write_bytes(secret)
        arguments = {
            "source": "/here/key", "dest": str(tmp_path / "etc" / "key"), "owner": ME, "group": MINE, "staged": staged,
            "in_use": [str(tmp_path / "slurm.conf"), str(tmp_path / "other.conf")], "lock_timeout": 0,
            "_ansible_check_mode": check, **params,
        }  # fmt: skip
        with patch_module_args(arguments), pytest.raises(SystemExit):
            secret_file.main()
        said = capsys.readouterr().out
        assert not secret or secret.decode() not in said
        return json.loads(said)

    call.dest, call.at_work = tmp_path / "etc" / "key", (tmp_path / "other.conf").touch
    return call


def test_a_new_secret_has_its_mode_and_the_second_run_has_nothing_to_do(host):
    assert host(check=True)["changed"]
    assert not host.dest.exists()
    assert host()["changed"]
    assert host.dest.read_bytes() == b"S3CR3T"
    assert host.dest.stat().st_mode & 0o7777 == 0o400
    again = host()
    assert (again["changed"], again["plan"]) == (False, [])
    assert os.listdir(host.dest.parent) == ["key"]


def test_mode_alone_is_corrected(host):
    host()
    host.dest.chmod(0o644)
    result = host()
    assert [(change["field"], change["before"], change["after"]) for change in result["plan"]] == [
        ("mode", "0644", "0400")
    ]
    assert host.dest.stat().st_mode & 0o7777 == 0o400


def test_no_new_secret_over_the_head_of_a_running_cluster(host):
    host.dest.write_bytes(b"own")
    host.at_work()
    for check in (True, False):
        assert "Copy the one in use to /here/key" in host(None, check)["msg"]
    assert host.dest.read_bytes() == b"own"


def test_a_package_may_have_left_one_that_nobody_works_with(host):
    host.dest.write_bytes(b"own")
    assert host(None)["changed"]
    assert host.dest.read_bytes() == b"own"
    assert host()["changed"]
    assert host.dest.read_bytes() == b"S3CR3T"


def test_one_that_a_new_host_made_does_not_replace_the_one_in_use(host):
    host.dest.write_bytes(b"own")
    host.at_work()
    assert "works with another secret" in host()["msg"]
    assert host.dest.read_bytes() == b"own"
    assert host(replace=True)["changed"]
    assert host.dest.read_bytes() == b"S3CR3T"


def test_the_one_in_use_is_no_reason_to_stop(host):
    host()
    host.at_work()
    assert host() == {**host(), "changed": False, "plan": []}


@pytest.mark.parametrize(
    ("params", "says"),
    [
        ({"secret": b""}, "/here/key is empty"),
        ({"dest": "/nonexistent/key"}, "there is no directory /nonexistent"),
        ({"owner": "no-such-user"}, "no-such-user"),
        ({"mode": "9"}, "invalid literal"),
    ],
)
def test_refusals_leave_everything_as_it_is(host, params, says):
    result = host(**params)
    assert says in result["msg"]
    assert result["changed"] is False
    assert not host.dest.exists()


def test_two_runs_are_not_at_it_at_once(host):
    with _lock.Lock(_lock.lock_name("secret", str(host.dest)), "somebody else", 0):
        assert "somebody else" in host()["msg"]
        assert not host.dest.exists()
        assert host(check=True)["changed"]


def test_what_a_killed_run_left_goes(host):
    (host.dest.parent / f"{_secret._STAGE}x").write_bytes(b"S3CR3T")
    host()
    assert os.listdir(host.dest.parent) == ["key"]
