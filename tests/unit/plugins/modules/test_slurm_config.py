# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import grp
import json
import os
import pwd
import stat

import pytest
from ansible.module_utils import basic
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.conf.version import ConfigError
from ansible_collections.gpuops.tenancy.plugins.modules import slurm_config, slurm_version_info

ME, MINE = pwd.getpwuid(os.getuid()).pw_name, grp.getgrgid(os.getgid()).gr_name


class Done(Exception):
    pass


@pytest.fixture
def run(tmp_path, monkeypatch):
    """The module as it runs on a host, with stand-ins for Slurm's programs."""
    programs = tmp_path / "bin"
    programs.mkdir()

    class Lock:
        def __init__(self, *_args, **_kwargs):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *_args):
            return None

    monkeypatch.setattr(slurm_config, "Lock", Lock)

    def program(name, rc=0, says=""):
        path = programs / name
        path.write_text(f"#!/bin/sh\necho '{says}'\nexit {rc}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def call(check=False, **params):
        found = {}

        def leave(failed):
            def leaves(self, **kwargs):
                found.update(kwargs, failed=failed)
                raise Done

            return leaves

        monkeypatch.setattr(basic.AnsibleModule, "exit_json", leave(False))
        monkeypatch.setattr(basic.AnsibleModule, "fail_json", leave(True))
        files = [{**item, "owner": ME, "group": MINE} for item in params.pop("files")]
        args = {
            "path": str(tmp_path / "etc"),
            "search_path": [str(programs), "/usr/bin", "/bin"],
            "files": files,
            **params,
        }
        monkeypatch.setattr(
            basic, "_ANSIBLE_ARGS", json.dumps({"ANSIBLE_MODULE_ARGS": {**args, "_ansible_check_mode": check}}).encode()
        )
        monkeypatch.setattr(basic, "_ANSIBLE_PROFILE", "legacy", raising=False)
        with pytest.raises(Done):
            slurm_config.main()
        return found

    call.program = program
    call.etc = tmp_path / "etc"
    return call


FILES = [{"name": "slurm.conf", "content": "NodeName=a\n"}, {"name": "cgroup.conf", "content": "x=1"}]


def test_check_mode_says_what_the_run_then_does(run):
    run.program("scontrol")
    planned = run(check=True, files=FILES)
    assert planned["changed"] is True
    assert not run.etc.exists()
    done = run(files=FILES)
    assert done["plan"] == planned["plan"]
    assert done["diff"] == planned["diff"]
    assert sorted(os.listdir(run.etc)) == ["cgroup.conf", "slurm.conf"]
    again = run(files=FILES)
    assert (again["changed"], again["plan"], again["commands"]) == (False, [], [])


@pytest.mark.parametrize("check", [True, False])
def test_a_file_that_is_refused_never_reaches_its_place(run, check):
    run.program("scontrol")
    run(files=FILES)
    before = {path.name: (path.read_text(), path.stat().st_ctime_ns) for path in run.etc.iterdir()}
    run.program("scontrol", rc=1, says="scontrol: fatal: Unable to process")
    found = run(check=check, files=[{"name": "slurm.conf", "content": "Bogus=1\n"}, FILES[1]])
    assert found["failed"] is True
    assert "scontrol: fatal: Unable to process" in found["msg"]
    assert (found["changed"], found["applied"], found["remaining"]) == (False, [], [str(run.etc / "slurm.conf")])
    assert {path.name: (path.read_text(), path.stat().st_ctime_ns) for path in run.etc.iterdir()} == before


def test_without_the_programs_only_check_mode_goes_on(run):
    assert run(check=True, files=FILES)["unchecked"] == ["slurm.conf", "cgroup.conf", "gres.conf"]
    found = run(files=FILES)
    assert found["failed"] is True
    assert "install Slurm" in found["msg"]
    assert not run.etc.exists()


def test_slurm_conf_comes_last(run):
    run.program("scontrol")
    assert [change["object"] for change in run(files=FILES)["plan"] if not change["field"]] == [
        str(run.etc / "cgroup.conf"), str(run.etc / "slurm.conf"),
    ]  # fmt: skip


def test_the_guard_comes_before_everything(run):
    run.program("scontrol")
    run(files=FILES)
    run.program("squeue", says="7|RUNNING|a")
    found = run(guard=True, files=[{"name": "slurm.conf", "content": "NodeName=b\n"}, FILES[1]])
    assert found["failed"] is True
    assert "a would be removed while jobs 7" in found["msg"]
    run.program("squeue", says="")
    assert run(guard=True, files=[{"name": "slurm.conf", "content": "NodeName=b\n"}, FILES[1]])["failed"] is False


def test_secrets_are_in_the_file_and_nowhere_else(run):
    run.program("slurmdbd")
    files = [{"name": "slurmdbd.conf", "content": "StoragePass=<<secret:storage_pass>>", "mode": "0600"}]
    found = run(files=files, secrets={"storage_pass": "hunter2"})
    assert "hunter2" not in str(found)
    assert (run.etc / "slurmdbd.conf").read_text() == "StoragePass=hunter2\n"
    assert (run.etc / "slurmdbd.conf").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ([{"name": "a", "content": "", "mode": "rw"}], "not octal"),
        ([{"name": "a", "content": ""}, {"name": "./a", "content": ""}], "named twice"),
    ],
)
def test_bad_arguments(run, files, words):
    assert words in run(files=files)["msg"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("slurm-wlm 22.05.8\n", "22.05"), ("slurm 24.11.5", "24.11"), ("25.05.3-1.el9", "25.05"), ("", "")],
)
def test_release(text, expected):
    assert slurm_version_info.release(text) == expected


def test_a_release_that_is_too_old_is_said_so():
    with pytest.raises(ConfigError, match="older than"):
        slurm_version_info.release("slurm 20.11.9")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("slurm-client:\n  Installed: (none)\n  Candidate: 22.05.8-4+deb12u3\n", "22.05"),
        ("slurm-client:\n  Candidate: (none)\n", ""),
        ("", ""),
    ],
)
def test_candidate(text, expected):
    assert slurm_version_info.candidate(text) == expected


def test_the_installed_release_does_not_depend_on_the_hosts_configuration(tmp_path, monkeypatch):
    monkeypatch.setenv("SLURM_CONF", "/etc/slurm/slurm.conf")
    scontrol = tmp_path / "scontrol"
    scontrol.write_text('#!/bin/sh\ngrep -q ^ClusterName=none "$SLURM_CONF" && echo slurm-wlm 24.11.5\n')
    scontrol.chmod(0o755)
    path = [str(tmp_path), "/usr/bin", "/bin"]
    assert slurm_version_info.installed(path) == "24.11"
    slurmd = tmp_path / "slurmd"
    slurmd.write_text("#!/bin/sh\necho slurm 22.05.8\n")
    slurmd.chmod(0o755)
    assert slurm_version_info.installed(path) == "22.05"
    assert slurm_version_info.installed(["/nonexistent"]) == ""
