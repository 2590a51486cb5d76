# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What people report of automation for Slurm's accounting, each on the real daemons.

Elsewhere: a QOS removed while in use (test_single), teams that change places and an account that only another cluster
has (test_behaviour).
"""

from __future__ import annotations

import time

import pytest
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import accounting
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.client import Client
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.desired import Refused

# A user that every system has.
SUBMITTER = "nobody"


def until(condition, seconds=30):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, condition
        time.sleep(0.3)


def test_the_default_account_of_a_user_is_removed(tenant, reconcile, state, user):
    """Slurm refuses to part with it while the user has others; the default moves first."""
    a, b, al = f"{tenant}-a", f"{tenant}-b", f"{tenant}-al"
    tree = [{"name": tenant, "accounts": [{"name": a}, {"name": b}]}]
    reconcile(tree, [user(al, a, b, default=a)])
    # Nobody says what the new default is.
    reconcile(tree, [user(al, b)])
    assert state().users[al].default_account == b
    # Nor here, where the account itself goes.
    reconcile(tree, [user(al, a, b, default=a)])
    reconcile([{"name": tenant, "accounts": [{"name": b}]}], [user(al, b)], exclusive=True, max_removals=3)
    assert state().users[al].default_account == b
    assert a not in state().parents()


def test_names_in_upper_case_are_the_same_names(ctl, tenant, reconcile, state, user):
    al = f"{tenant}-al"
    reconcile([{"name": tenant}], [user(al, tenant, max_jobs=3)])
    found = reconcile([{"name": tenant.upper()}], [user(al.upper(), tenant.upper(), max_jobs=3)])
    assert not found["changed"]
    assert [key for key in state().associations if key[0] == tenant and key[1]] == [(tenant, al, "")]


@pytest.mark.parametrize("given", ["64G", "65536M", 65536, "65536"])
def test_memory_in_any_unit_is_the_same_memory(ctl, tenant, reconcile, given):
    reconcile([{"name": tenant, "grp_tres": {"mem": "64G"}, "max_tres_per_job": {"mem": 1536}}])
    assert ctl.column("grptres", tenant) == "mem=64G"
    found = reconcile([{"name": tenant, "grp_tres": {"mem": given}, "max_tres_per_job": {"mem": "1.5G"}}])
    assert not found["changed"]


def test_a_tres_that_is_left_out_is_cleared_and_the_others_stay(ctl, tenant, reconcile):
    reconcile([{"name": tenant, "grp_tres": {"cpu": 8, "gres/gpu": 4, "gres/gpu:h100": 2}}])
    reconcile([{"name": tenant, "grp_tres": {"gres/gpu": 4}}])
    assert ctl.column("grptres", tenant) == "gres/gpu=4"


def test_an_account_below_its_own_child_is_refused(tenant, reconcile, state):
    a, b = f"{tenant}-a", f"{tenant}-b"
    tree = [{"name": tenant, "accounts": [{"name": a, "accounts": [{"name": b}]}]}]
    reconcile(tree)
    with pytest.raises(Refused, match="would be each other's parents; correct one parent"):
        reconcile([{"name": tenant}, {"name": a, "parent": b}, {"name": b, "parent": a}])
    assert (state().parents()[a], state().parents()[b]) == (tenant, a)


def test_the_row_of_an_account_and_the_row_of_a_user_are_told_apart(ctl, tenant, reconcile, user):
    """Both have no partition, and Slurm's conditions for one match the other."""
    al = f"{tenant}-al"
    reconcile([{"name": tenant, "max_jobs": 9, "grp_jobs": 9}], [user(al, tenant, max_jobs=2, grp_jobs=2)])
    reconcile([{"name": tenant, "max_jobs": 8, "grp_jobs": 8}], [user(al, tenant)])
    assert ctl.columns(["maxjobs", "grpjobs"], tenant) == {"maxjobs": "8", "grpjobs": "8"}
    assert ctl.columns(["maxjobs", "grpjobs"], tenant, al) == {"maxjobs": "2", "grpjobs": "2"}
    reconcile([{"name": tenant}], [user(al, tenant, max_jobs=1, grp_jobs=-1)])
    assert ctl.columns(["maxjobs", "grpjobs"], tenant) == {"maxjobs": "8", "grpjobs": "8"}
    assert ctl.columns(["maxjobs", "grpjobs"], tenant, al) == {"maxjobs": "1", "grpjobs": ""}


@pytest.mark.parametrize("text", ["a=b", "grpjobs=5", "x = y, z", "set maxjobs=1"])
def test_a_description_with_an_equals_sign_is_a_description(ctl, tenant, reconcile, text):
    reconcile([{"name": tenant, "description": text}])
    assert ctl.show("account", "where", f"name={tenant}", "format=description") == [[text]]
    reconcile([{"name": tenant, "description": f"{text} again"}])
    assert ctl.columns(["grpjobs", "maxjobs"], tenant) == {"grpjobs": "", "maxjobs": ""}


def test_proj1_is_not_proj10(tenant, reconcile, state, user):
    one, ten = f"{tenant}1", f"{tenant}10"
    tree = [{"name": tenant, "accounts": [{"name": one}, {"name": ten}]}]
    reconcile(tree, [user(f"{one}-al", one, max_jobs=1), user(f"{ten}-al", ten, max_jobs=10)])
    reconcile(
        [{"name": tenant, "accounts": [{"name": ten, "grp_jobs": 10}]}],
        [user(f"{ten}-al", ten)],
        exclusive=True,
        max_removals=2,
    )
    found = state()
    assert one not in found.parents()
    assert found.associations[(ten, "", "")].values["grp_jobs"] == 10
    assert found.associations[(ten, f"{ten}-al", "")].values["max_jobs"] == 10


def test_a_limit_below_current_use_holds_for_what_comes_and_ends_nothing(ctl, tenant, reconcile, user):
    tree = [{"name": tenant, "grp_jobs": 2}]
    reconcile(tree, [user(SUBMITTER, tenant)])
    jobs = []

    def submit():
        words = ["--parsable", "-n1", "--mem=50", f"--uid={SUBMITTER}", "-D", "/tmp", "-o", "/dev/null", "-A", tenant]
        done = ctl.execute(["sbatch", *words, "--wrap", "sleep 300"])
        if done.rc == 0:
            jobs.append(done.stdout.strip().split(";")[0])
        return done.rc == 0

    def states():
        found = ctl.execute(["squeue", "-h", "-A", tenant, "-o", "%i|%T|%r"]).stdout.split()
        return {line.split("|")[0]: tuple(line.split("|")[1:]) for line in found}

    try:
        until(submit)
        assert submit()
        until(lambda: [states()[job][0] for job in jobs] == ["RUNNING"] * 2)
        reconcile([{"name": tenant, "grp_jobs": 1}])
        assert submit()
        until(lambda: states()[jobs[2]] == ("PENDING", "AssocGrpJobsLimit"))
        assert [states()[job][0] for job in jobs[:2]] == ["RUNNING"] * 2
    finally:
        ctl.execute(["scancel", "-A", tenant])
        until(lambda: not states())
        ctl.sacctmgr("delete", "user", "where", f"name={SUBMITTER}", f"account={tenant}", f"cluster={ctl.cluster}")


def test_a_coordinator_of_the_parent_is_not_one_of_each_child(ctl, tenant, reconcile, state, user):
    """Slurm lists the coordinators of all accounts above as the account's own."""
    team, al, bo = f"{tenant}-team", f"{tenant}-al", f"{tenant}-bo"
    people = [user(al, tenant), user(bo, team)]
    reconcile([{"name": tenant, "coordinators": [al], "accounts": [{"name": team, "coordinators": [bo]}]}], people)
    assert state().accounts[team].coordinators >= {al, bo}
    # No run sees what is inherited as drift, or adds it to the child.
    found = reconcile(
        [{"name": tenant, "coordinators": [al], "accounts": [{"name": team, "coordinators": []}]}], people
    )
    assert [(change["object"], change["before"], change["after"]) for change in found["plan"]] == [
        (f"account {team}", [bo], [])
    ]
    reconcile([{"name": tenant, "coordinators": [], "accounts": [{"name": team}]}], people)
    assert state().accounts[team].coordinators == frozenset()


def test_nothing_is_planned_from_an_empty_answer(ctl, tenant, reconcile, user):
    reconcile([{"name": tenant}], [user(f"{tenant}-al", tenant)])

    def empty(argv, timeout=60, pass_fds=()):
        done = ctl.run(argv, timeout)
        # As from a database that lost its rows, or one that is still filling its cache.
        return done if "assoc" not in argv else type(done)(done.argv, 0, "", "")

    params = {"scope": [tenant], "accounts": [{"name": tenant}], "exclusive": True, "max_removals": 99}
    writes = len(ctl.writes)
    with pytest.raises(Exception, match="no state to plan from"):
        accounting.reconcile(params, False, Client(ctl.cluster, runner=empty), None)
    assert len(ctl.writes) == writes
