# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import os
import types

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.gpuops.tenancy.plugins.module_utils._host import local_accounts, pam, rollback
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


def test_who_is_not_named_stays_unless_the_group_is_exact():
    group = local_accounts.Group("a", 900, ("eve", "root"))
    assert not local_group.make_plan("a", ["root"], group).changed
    plan = local_group.make_plan("a", ["root", "deploy"], group, exact=True)
    assert local_group.compile_commands("a", plan) == [
        ["gpasswd", "--add", "deploy", "a"],
        ["gpasswd", "--delete", "eve", "a"],
    ]
    assert [(change.before, change.after) for change in plan] == [(["eve", "root"], ["deploy", "root"])]
    assert not local_group.make_plan("a", ["root"], local_accounts.Group("a", 900, ("root",)), exact=True).changed


@pytest.mark.parametrize("exact", [False, True])
def test_who_is_left_over_is_told_by_name(monkeypatch, capsys, exact):
    group = local_accounts.Group("a", 900, ("eve", "root"))
    monkeypatch.setattr(local_group.local_accounts, "groups", lambda: {"a": group})
    told = []
    monkeypatch.setattr(local_group.AnsibleModule, "warn", lambda module, text: told.append(text))
    arguments = {"name": "a", "members": ["root"], "exact": exact, "_ansible_check_mode": True}
    with patch_module_args(arguments), pytest.raises(SystemExit):
        local_group.main()
    result = json.loads(capsys.readouterr().out)
    assert result["others"] == ["eve"]
    assert result["changed"] is exact
    assert [text.startswith("eve is in group a") for text in told] == ([] if exact else [True])


def test_a_profile_that_no_package_brought_cannot_be_turned_on(tmp_path):
    (tmp_path / "y").write_text("")
    plan = pam_profile.make_plan([{"name": name, "module": f"pam_{name}.so", "enabled": True} for name in "xy"], set())
    assert pam_profile.unknown(plan, str(tmp_path)) == ["x"]
    off = pam_profile.make_plan([{"name": "x", "module": "pam_x.so", "enabled": False}], {"pam_x.so"})
    assert pam_profile.unknown(off, str(tmp_path)) == []


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
            "admins": ["root"], "admin_group": "tenancy-admins", "keys_dir": str(tmp_path), "rollback_after": 9,
            "mkhomedir": False, "pam_path": str(tmp_path / "sshd"), **changes,
        }  # fmt: skip
        getattr(login_policy.Policy(params, result, run.warned.append), state)(check_mode)
        return result

    run.warned, run.pam = [], tmp_path / "sshd"

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


STACK = "auth required pam_unix.so\n@include common-account\n@include common-session\n"
ADOPT = {"adopt": ["action_no_jobs=deny"]}


@pytest.fixture
def modules(tmp_path, monkeypatch):
    """Where PAM of this host has its modules."""
    folder = tmp_path / "security"
    folder.mkdir()
    for name in ("pam_unix.so", "pam_succeed_if.so", "pam_slurm_adopt.so"):
        (folder / name).write_text("")
    monkeypatch.setattr(pam.lacking, "__defaults__", ((str(folder),),))
    return folder


def test_a_stack_whose_module_is_not_there_is_refused_before_anything_is_touched(policy, modules):
    policy.pam.write_text(STACK)
    (modules / "pam_slurm_adopt.so").unlink()
    policy(check_mode=True, **ADOPT)
    assert "pam_slurm_adopt.so is not where PAM of this host looks" in policy.warned[0]
    with pytest.raises(pam.PamError, match=r"pam_slurm_adopt\.so is not where PAM .* libpam-slurm-adopt"):
        policy(**ADOPT)
    assert policy.pam.read_text() == STACK
    assert not policy.path.exists()
    assert policy.guard.pending() is None


def test_a_module_that_went_later_is_told_although_no_file_differs(policy, modules, monkeypatch):
    policy.pam.write_text(STACK)
    policy(**ADOPT)
    came_in(monkeypatch, 7)
    policy("confirmed")
    assert not policy(**ADOPT)["changed"]
    (modules / "pam_slurm_adopt.so").unlink()
    with pytest.raises(pam.PamError, match="nobody with a job would get in"):
        policy(**ADOPT)


def test_a_module_beside_pams_own_is_not_found(modules, tmp_path):
    elsewhere = tmp_path / "opt"
    elsewhere.mkdir()
    (modules / "pam_slurm_adopt.so").rename(elsewhere / "pam_slurm_adopt.so")
    want = pam.Wanted("admins", [], mkhomedir=True)
    assert pam.lacking(want, [str(modules), str(elsewhere)]) == ["pam_mkhomedir.so", "pam_slurm_adopt.so"]


def test_a_stack_that_reads_back_wrong_is_undone_at_once(policy, modules, monkeypatch):
    policy.pam.write_text(STACK)
    monkeypatch.setattr(pam, "problems", lambda text: ["pam_slurm_adopt comes after common-account"])
    restored = []
    policy.guard.restore = lambda: restored.append(1) or ["put-back"]
    with pytest.raises(pam.PamError, match="sshd: pam_slurm_adopt comes after common-account"):
        policy(**ADOPT)
    assert restored
