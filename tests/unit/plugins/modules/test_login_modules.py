# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import types

import pytest
from ansible_collections.gpuops.tenancy.plugins.module_utils._host import local_accounts, rollback
from ansible_collections.gpuops.tenancy.plugins.modules import local_group, login_policy, pam_profile

GROUP = local_accounts.Group("tenancy-admins", 900, ("root",))


@pytest.mark.parametrize(
    ("group", "commands"),
    [
        (None, [["groupadd", "--system", "tenancy-admins"],
                ["gpasswd", "--add", "deploy", "tenancy-admins"], ["gpasswd", "--add", "root", "tenancy-admins"]]),
        (GROUP, [["gpasswd", "--add", "deploy", "tenancy-admins"]]),
        (local_accounts.Group("tenancy-admins", 900, ("deploy", "eve", "root")), []),
    ],
)  # fmt: skip
def test_members_of_a_local_group(group, commands):
    plan = local_group.make_plan("tenancy-admins", ["root", "deploy"], group)
    assert local_group.compile_commands("tenancy-admins", plan) == commands
    assert plan.changed is bool(commands)


def test_a_group_without_members_is_made():
    plan = local_group.make_plan("a", [], None)
    assert local_group.compile_commands("a", plan) == [["groupadd", "--system", "a"]]


def test_profiles():
    there = pam_profile.modules_in(
        [
            "session optional pam_systemd.so\n# session pam_slurm_adopt.so\n",
            "-account required /lib/security/pam_x.so\n",
        ]
    )
    assert there == {"pam_systemd.so", "pam_x.so"}
    profiles = [
        {"name": "systemd", "module": "pam_systemd.so", "enabled": False},
        {"name": "slurm-adopt", "module": "pam_slurm_adopt.so", "enabled": False},
        {"name": "y", "module": "pam_y.so", "enabled": True},
    ]
    plan = pam_profile.make_plan(profiles, there)
    assert pam_profile.compile_command(plan) == ["pam-auth-update", "--disable", "systemd", "--enable", "y"]
    assert not pam_profile.make_plan(profiles[1:2], there).changed


def test_an_admin_who_is_no_member_would_be_locked_out():
    assert login_policy.members_missing(["root", "deploy"], GROUP) == ["deploy"]
    assert login_policy.members_missing(["root"], None) == ["root"]
    assert login_policy.members_missing(["root"], GROUP) == []


def test_keys_are_taken_over_once(tmp_path, monkeypatch):
    home = tmp_path / "home" / "deploy"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh" / "authorized_keys").write_text("ssh-ed25519 AAAA deploy\n")
    monkeypatch.setattr(login_policy.pwd, "getpwnam", lambda name: types.SimpleNamespace(pw_dir=str(home)))
    folder = tmp_path / "keys"
    folder.mkdir()
    assert login_policy.keys_of(["root", "deploy"], str(folder)) == {f"{folder}/deploy": "ssh-ed25519 AAAA deploy\n"}
    (folder / "deploy").write_text("")
    assert login_policy.keys_of(["root", "deploy"], str(folder)) == {}


def test_the_plan_of_files():
    plan = login_policy.make_plan({"/a": None, "/b": "x", "/c": "y"}, {"/a": "1", "/b": "x", "/c": "z"})
    assert [(change.kind, change.object, change.risk) for change in plan] == [
        ("add", "/a", "disruptive"),
        ("change", "/c", "disruptive"),
    ]
    assert login_policy.difference(plan) == {
        "before_header": "on disk", "after_header": "wanted", "before": "[/c]\ny", "after": "[/a]\n1[/c]\nz",
    }  # fmt: skip


@pytest.fixture
def policy(tmp_path, monkeypatch):
    """The module's work on files of ours; systemd and sshd only listen."""
    asked = []
    (tmp_path / "units").mkdir()
    guard = rollback.Guard("login", str(tmp_path / "state" / "rollback"), str(tmp_path / "units"))
    monkeypatch.setattr(login_policy.rollback, "Guard", lambda name: guard)
    monkeypatch.setattr(rollback._command, "run", lambda argv, **options: asked.append(argv))
    monkeypatch.setattr(login_policy.sshd, "check", lambda path, text: [["sshd", "-t"]])
    monkeypatch.setattr(login_policy.local_accounts, "groups", lambda: {"tenancy-admins": GROUP})

    def run(state="present", check_mode=False, **changes):
        result = {"changed": False, "armed": False, "commands": [], "applied": [], "remaining": []}
        params = {
            "state": state, "sshd_path": str(tmp_path / "00.conf"), "sshd_text": "UsePAM yes\n", "sshd_service": "ssh", "adopt": [],
            "admins": ["root"], "admin_group": "tenancy-admins", "keys_dir": str(tmp_path), "rollback_after": 9, **changes,
        }  # fmt: skip
        getattr(login_policy.Policy(params, result), state)(check_mode)
        return result

    run.guard, run.asked, run.path = guard, asked, tmp_path / "00.conf"
    return run


def came_in(monkeypatch, login, began=2e9):
    monkeypatch.setattr(login_policy.rollback, "login_of", lambda pid, parent: login)
    monkeypatch.setattr(login_policy._systemd, "process_start", lambda pid: began)


def test_check_mode_touches_nothing(policy):
    result = policy(check_mode=True)
    assert (result["changed"], result["armed"]) == (True, False)
    assert not policy.path.exists()
    assert policy.guard.pending() is None


def test_a_change_is_armed_until_a_new_login_confirms_it(policy, monkeypatch):
    assert policy()["armed"]
    assert policy.path.read_text() == "UsePAM yes\n"
    came_in(monkeypatch, None)
    with pytest.raises(rollback.RollbackError, match="did not come in by ssh"):
        policy("confirmed")
    came_in(monkeypatch, 7, began=1.0)
    with pytest.raises(rollback.RollbackError, match="began before the change"):
        policy("confirmed")
    came_in(monkeypatch, 7)
    assert policy("confirmed")["changed"]
    again = policy()
    assert (again["changed"], again["armed"]) == (False, False)
    with pytest.raises(rollback.RollbackError, match="no change to confirm"):
        policy("confirmed")


def test_a_run_that_was_killed_before_the_confirmation_is_taken_up(policy, monkeypatch):
    policy()
    again = policy()
    # Nothing differs any more, and yet it has to be confirmed.
    assert (again["changed"], again["armed"]) == (True, True)
    came_in(monkeypatch, 7)
    policy("confirmed")


def test_another_change_on_top_of_an_unconfirmed_one_goes_back_first(policy):
    policy.path.write_text("old\n")
    policy()
    assert [entry["path"] for entry in policy.guard.pending()["files"]] == [str(policy.path)]
    restored = []
    policy.guard.restore = lambda: restored.append(policy.path.write_text("old\n")) or ["put-back"]
    policy(sshd_text="UsePAM no\n")
    assert restored
    kept = os.path.join(policy.guard.folder, "0")
    with open(kept) as handle:
        assert handle.read() == "old\n"


def test_nobody_is_locked_out(policy):
    with pytest.raises(local_accounts.AccountError, match="daemon would be locked out"):
        policy(admins=["root", "daemon"])
    assert not policy.path.exists()
