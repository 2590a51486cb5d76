# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import grp
import os
import pwd

import pytest
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import deploy

ME, MINE = pwd.getpwuid(os.getuid()).pw_name, grp.getgrgid(os.getgid()).gr_name
SECRET = {"storage_pass": "hunter2"}


def item(path, content="a\n", mode=0o644):
    return deploy.Item(str(path), ME, MINE, mode, content)


def states(*items):
    return {entry.path: deploy.read(entry.path, entry.content is None) for entry in items}


def install(base, *items, secrets=()):
    changes = deploy.plan(items, states(*items), dict(secrets))
    with deploy.Stage(str(base)) as stage:
        stage.write(items, dict(secrets))
        return stage.install(items, [change.object for change in changes], dict(secrets))


def test_install_then_nothing_is_left_to_do(tmp_path):
    base = tmp_path / "etc"
    items = [deploy.Item(str(base), ME, MINE, 0o750), item(base / "a.conf"), item(base / "b.conf", mode=0o600)]
    assert install(base, *items) == [entry.path for entry in items]
    assert (base / "b.conf").stat().st_mode & 0o777 == 0o600
    assert base.stat().st_mode & 0o777 == 0o750
    assert deploy.plan(items, states(*items), {}) == []
    assert sorted(os.listdir(base)) == ["a.conf", "b.conf"]
    assert os.listdir(tmp_path) == ["etc"]


def test_only_what_differs_is_touched(tmp_path):
    items = [item(tmp_path / "a.conf"), item(tmp_path / "b.conf")]
    install(tmp_path, *items)
    before = (tmp_path / "a.conf").stat()
    again = [items[0], item(tmp_path / "b.conf", "new\n")]
    assert install(tmp_path, *again) == [items[1].path]
    after = (tmp_path / "a.conf").stat()
    # A changed ctime would make the daemon look older than its file.
    assert (after.st_ino, after.st_ctime_ns) == (before.st_ino, before.st_ctime_ns)


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_a_failed_rename_brings_all_old_files_back(tmp_path, monkeypatch, failing):
    old = [item(tmp_path / "a.conf", "old a\n"), item(tmp_path / "b.conf", "old b\n")]
    install(tmp_path, *old)
    new = [item(tmp_path / "a.conf", "new a\n"), item(tmp_path / "b.conf", "new b\n"), item(tmp_path / "c.conf")]
    real, calls = os.rename, []

    def rename(source, target):
        if source.endswith(deploy.NEW):
            calls.append(target)
            if len(calls) == failing + 1:
                raise OSError(28, "No space left on device", target)
        real(source, target)

    monkeypatch.setattr(os, "rename", rename)
    with pytest.raises(deploy.DeployError, match="the old files are back"):
        install(tmp_path, *new)
    assert {name: (tmp_path / name).read_text() for name in os.listdir(tmp_path)} == {
        "a.conf": "old a\n",
        "b.conf": "old b\n",
    }


def test_what_a_killed_run_left_is_swept(tmp_path):
    (tmp_path / ".tenancy-abc").mkdir()
    (tmp_path / ".tenancy-abc" / "slurm.conf").write_text("x")
    (tmp_path / "a.conf.tenancy-new").write_text("x")
    (tmp_path / "other").write_text("x")
    deploy.sweep(str(tmp_path), [item(tmp_path / "a.conf")])
    assert os.listdir(tmp_path) == ["other"]


def test_the_stage_shows_other_files_for_includes_and_vanishes(tmp_path):
    (tmp_path / "extra.conf").write_text("x")
    with deploy.Stage(str(tmp_path)) as stage:
        stage.write([item(tmp_path / "a.conf")], {})
        assert sorted(os.listdir(stage.directory)) == ["a.conf", "extra.conf"]
        assert os.stat(stage.directory).st_mode & 0o777 == 0o700
        assert os.stat(stage.directory).st_dev == os.stat(tmp_path).st_dev
    assert os.listdir(tmp_path) == ["extra.conf"]


def test_a_link_is_not_replaced_behind_somebodys_back(tmp_path):
    (tmp_path / "a.conf").symlink_to("/nowhere")
    with pytest.raises(deploy.DeployError, match="symbolic link"):
        states(item(tmp_path / "a.conf"))


def test_a_directory_in_the_place_of_a_file(tmp_path):
    (tmp_path / "a.conf").mkdir()
    with pytest.raises(deploy.DeployError, match="is no file"):
        states(item(tmp_path / "a.conf"))


def test_owner_and_mode_are_changes_of_their_own(tmp_path):
    wanted = item(tmp_path / "a.conf", mode=0o600)
    install(tmp_path, wanted)
    (tmp_path / "a.conf").chmod(0o666)
    [change] = deploy.plan([wanted], states(wanted), {})
    assert (change.field, change.before, change.after) == ("mode", "0666", "0600")


def test_unknown_names_are_told():
    entry = deploy.Item("/x", "nosuchuser", "nosuchgroup", 0o644, "")
    assert deploy.missing_names([entry, entry]) == ["user nosuchuser", "group nosuchgroup"]


@pytest.mark.parametrize("key", ["StoragePass", "storagepass", "  JobCompPass ", "AccountingStoragePass"])
def test_no_password_reaches_a_diff(tmp_path, key):
    (tmp_path / "slurmdbd.conf").write_text(f"A=1\n{key}=oldsecret\n")
    wanted = item(tmp_path / "slurmdbd.conf", f"A=2\n{key}=<<secret:storage_pass>>\n")
    now = states(wanted)
    changes = deploy.plan([wanted], now, SECRET)
    shown = str(deploy.difference([wanted], now, changes, SECRET)) + str([change.as_dict() for change in changes])
    assert "oldsecret" not in shown
    assert "hunter2" not in shown
    assert "(changed)" in shown


def test_an_unchanged_password_is_not_shown_as_changed(tmp_path):
    wanted = item(tmp_path / "slurmdbd.conf", "A=1\nStoragePass=<<secret:storage_pass>>\n")
    install(tmp_path, wanted, secrets=SECRET.items())
    assert "hunter2" in (tmp_path / "slurmdbd.conf").read_text()
    assert deploy.plan([wanted], states(wanted), SECRET) == []
    more = item(tmp_path / "slurmdbd.conf", "A=2\nStoragePass=<<secret:storage_pass>>\n")
    now = states(more)
    assert "(changed)" not in str(deploy.difference([more], now, deploy.plan([more], now, SECRET), SECRET))


@pytest.mark.parametrize(
    ("secrets", "words"), [({}, "not given"), ({"storage_pass": "a b"}, "blank"), ({"storage_pass": "a#b"}, "misread")]
)
def test_secrets_that_cannot_be_written(secrets, words):
    with pytest.raises(deploy.DeployError, match=words) as caught:
        deploy.fill("<<secret:storage_pass>>", secrets)
    assert "a#b" not in str(caught.value)
