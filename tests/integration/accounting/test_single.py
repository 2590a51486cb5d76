# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""slurm_account, slurm_user, slurm_qos one at a time, and slurm_accounting_info, on the real daemon."""

from __future__ import annotations

import pytest
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import accounting, info, qos_reconcile, single
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.client import Client
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.desired import Refused

WORK = {"account": single.reconcile_accounts, "user": single.reconcile_users, "qos": qos_reconcile.reconcile}


@pytest.fixture
def run(ctl):
    """A module; a second run has nothing to do."""

    def module(kind, check_mode=False, **params):
        params = {"state": "present", "scope": None, "max_removals": None, "block_qos": "blocked", **params}
        arguments = (params, check_mode, Client(ctl.cluster, runner=ctl.run), None)
        result = WORK[kind](*arguments)
        if not check_mode:
            again = WORK[kind](*arguments)
            assert (again["changed"], again["commands"]) == (False, []), again["plan"]
        return result

    return module


def gather(ctl, **params):
    return info.gather(params, Client(ctl.cluster, runner=ctl.run))


def test_from_nothing_to_a_team_and_back(ctl, tenant, run, state):
    team, al, bo = f"{tenant}-team", f"{tenant}-al", f"{tenant}-bo"
    run("account", name=tenant, description="Some tenant", grp_jobs=9)
    run("account", accounts=[{"name": team, "parent": tenant, "fairshare": "7"}])
    run("user", name=al, associations=[{"account": team, "max_jobs": 3}])
    run("user", users=[{"name": name, "associations": [{"account": tenant}]} for name in (al, bo)])
    assert {key for key in state().associations if key[1] == al} == {(team, al, ""), (tenant, al, "")}
    assert state().associations[(team, al, "")].values["max_jobs"] == 3
    run("user", name=al, default_account=tenant, admin_level="operator", coordinator_of=[team])
    assert (state().users[al].default_account, state().users[al].admin_level) == (tenant, "operator")
    assert state().accounts[team].coordinators == {al}
    run("user", name=al, admin_level="none", coordinator_of=[], scope=[tenant])
    assert state().accounts[team].coordinators == frozenset()

    before = state()
    with pytest.raises(
        Refused, match=f"would remove 2 objects, more than max_removals .1.: user {al} in {team}, account"
    ):
        run("account", name=team, state="absent", scope=[tenant])
    with pytest.raises(Refused, match="would remove 2 objects"):
        run("user", name=al, state="absent", scope=[tenant])
    checked = run("account", check_mode=True, name=team, state="absent", scope=[tenant], max_removals=2)
    assert state() == before
    removed = run("account", name=team, state="absent", scope=[tenant], max_removals=2)
    assert checked["plan"] == removed["plan"]
    assert team not in state().parents()
    run("user", users=[{"name": al}, {"name": bo}], state="absent", scope=[tenant])
    assert not {al, bo} & set(state().users)


def test_an_account_moves_within_its_scope(tenant, run, state):
    a, b = f"{tenant}-a", f"{tenant}-b"
    run("account", name=tenant)
    run("account", accounts=[{"name": a, "parent": tenant}, {"name": b, "parent": tenant}])
    run("account", name=b, parent=a, scope=[tenant])
    assert state().parents()[b] == a
    run("account", name=b, grp_jobs=1)
    assert state().parents()[b] == a


def test_a_qos_that_somebody_uses_does_not_go(ctl, tenant, run, reconcile):
    name, other = f"{tenant}-q1", f"{tenant}-q2"
    try:
        run("qos", qos=[{"name": name}, {"name": other}])
        run("qos", name=other, preempt=[name])
        reconcile([{"name": tenant, "qos": [name, "normal"], "default_qos": name}])
        with pytest.raises(Refused, match=f"QOS {name} is in use: default of account {tenant} on .* preempted by QOS"):
            run("qos", name=name, state="absent")
        reconcile([{"name": tenant, "qos": ["normal"], "default_qos": "normal"}])
        ctl.sacctmgr("modify", "account", "where", f"name={tenant}", f"cluster={ctl.cluster}", "set", f"QOS+={name}")
        run("qos", name=other, preempt=[])
        with pytest.raises(Refused, match=f"QOS {name} is in use: account {tenant} on"):
            run("qos", name=name, state="absent")
        reconcile([{"name": tenant, "qos": ["normal"]}])
        with pytest.raises(Refused, match="would remove 2 QOS, more than max_removals .1."):
            run("qos", qos=[{"name": name}, {"name": other}], state="absent", max_removals=1)
        assert run("qos", qos=[{"name": name}, {"name": other}], state="absent")["changed"]
        assert not {name, other} & {line[0] for line in ctl.show("qos", "format=name")}
    finally:
        ctl.sacctmgr("delete", "qos", "where", f"name={name},{other}")


def test_a_flag_that_this_version_has_not_is_refused(ctl, tenant, run):
    arguments = {"name": f"{tenant}-q1", "flags": ["relative"]}
    if Client("", runner=ctl.run).version() >= (23, 11):
        run("qos", **arguments)
        run("qos", name=f"{tenant}-q1", state="absent")
    else:
        with pytest.raises(Refused, match="flag Relative needs Slurm 23.11"):
            run("qos", **arguments)


@pytest.mark.parametrize("view", info.VIEWS)
def test_what_is_read_can_be_fed_back(ctl, tenant, reconcile, view):
    team, al = f"{tenant}-team", f"{tenant}-al"
    accounts = [
        {
            "name": tenant,
            "description": "Ten, ant",
            "grp_tres": {"mem": "1T", "gres/gpu": 3},
            "grp_wall": "2-00:00:00",
            "accounts": [{"name": team, "fairshare": "parent", "qos": ["normal", "tst-low"], "default_qos": "normal"}],
        }
    ]
    rows = [{"account": team, "max_jobs": 0}, {"account": tenant, "partition": "gpu"}, {"account": tenant}]
    users = [{"name": al, "default_account": team, "admin_level": "operator", "associations": rows}]
    reconcile(accounts, users)
    found = gather(ctl, accounts=[tenant], view=view)
    assert (found["missing"], found["registered"]) == ([], True)
    given = found["tenants"][tenant] if view == "tenants" else {**found, "scope": [tenant]}
    params = {"scope": given["scope"], "accounts": given["accounts"], "users": given["users"], "exclusive": True}
    result = accounting.reconcile(params, False, Client(ctl.cluster, runner=ctl.run), None)
    assert result["plan"] == []
    defined = qos_reconcile.reconcile({"qos": found["qos"]}, False, Client("", runner=ctl.run), None)
    assert defined["plan"] == []


def test_absence_is_an_answer(ctl, tenant):
    found = gather(ctl, accounts=[tenant], users=[f"{tenant}-al"])
    assert (found["accounts"], found["users"], found["missing"]) == ([], [], [tenant, f"{tenant}-al"])
    nowhere = info.gather({}, Client(f"{tenant}c", runner=ctl.run))
    assert (nowhere["registered"], nowhere["accounts"]) == (False, [])
    assert "normal" in [item["name"] for item in nowhere["qos"]]
