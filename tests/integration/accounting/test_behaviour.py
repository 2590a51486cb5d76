# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the versions of Slurm do differently, and what other people do to a database."""

from __future__ import annotations

import pytest
from ansible_collections.gpuops.tenancy.plugins.module_utils import _command
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import accounting, clusters
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.client import Client, SlurmError
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.converge import ApplyError


def tree(tenant, **given):
    return [{"name": tenant, **given, "accounts": [{"name": f"{tenant}-a"}, {"name": f"{tenant}-b"}]}]


def test_a_check_changes_nothing_and_the_run_does_exactly_that_plan(ctl, tenant, reconcile, state, user):
    arguments = (tree(tenant, grp_jobs=3), [user(f"{tenant}-al", f"{tenant}-a", max_jobs=1)])
    before = state()
    checked = reconcile(*arguments, check_mode=True)
    assert ctl.writes == []
    assert state() == before
    real = reconcile(*arguments)
    assert checked == real
    assert real["changed"]


def test_a_move_between_teams(ctl, tenant, reconcile, state, user):
    al = f"{tenant}-al"
    reconcile(tree(tenant), [user(al, f"{tenant}-a")])
    result = reconcile(tree(tenant), [user(al, f"{tenant}-b")])
    assert len(result["commands"]) == 2
    assert state().users[al].default_account == f"{tenant}-b"
    assert [key for key in state().associations if key[1] == al] == [(f"{tenant}-b", al, "")]


def test_a_default_among_several_accounts(ctl, tenant, reconcile, state, user):
    al = f"{tenant}-al"
    places = [f"{tenant}-a", f"{tenant}-b", tenant]
    for default in places:
        reconcile(tree(tenant), [user(al, *places, default=default)])
        assert state().users[al].default_account == default
    reconcile(tree(tenant), [user(al, f"{tenant}-a")])
    assert state().users[al].default_account == f"{tenant}-a"


def test_a_user_with_several_accounts_is_removed_altogether(tenant, reconcile, state, user):
    al = f"{tenant}-al"
    reconcile(tree(tenant), [user(al, f"{tenant}-a", f"{tenant}-b", default=f"{tenant}-b")])
    reconcile(tree(tenant), exclusive=True, max_removals=2)
    assert al not in state().users


def test_the_same_for_a_user_who_stays_on_another_cluster(ctl, tenant, reconcile, state, user):
    al, other = f"{tenant}-al", f"{tenant}other"
    ctl.sacctmgr("add", "cluster", other)
    try:
        ctl.sacctmgr("add", "account", tenant, f"cluster={other}")
        ctl.sacctmgr("add", "user", al, f"account={tenant}", f"defaultaccount={tenant}", f"cluster={other}")
        reconcile(tree(tenant), [user(al, f"{tenant}-a", f"{tenant}-b", default=f"{tenant}-b")])
        reconcile(tree(tenant), exclusive=True, max_removals=2)
        assert ctl.show("assoc", "where", f"user={al}", "format=cluster,account") == [[other, tenant]]
    finally:
        ctl.sacctmgr("delete", "cluster", f"name={other}")


def test_teams_change_places(tenant, reconcile, state):
    a, b = f"{tenant}-a", f"{tenant}-b"
    reconcile([{"name": tenant, "accounts": [{"name": a, "accounts": [{"name": b}]}]}])
    result = reconcile([{"name": tenant, "accounts": [{"name": b, "accounts": [{"name": a}]}]}])
    assert len(result["commands"]) == 2
    assert (state().parents()[a], state().parents()[b]) == (b, tenant)


def test_reparenting_is_one_line_and_one_command(ctl, tenant, reconcile, state, user):
    a, b = f"{tenant}-a", f"{tenant}-b"
    reconcile(tree(tenant), [user(f"{tenant}-al", b)])
    result = reconcile(
        [{"name": tenant, "accounts": [{"name": a, "accounts": [{"name": b}]}]}], [user(f"{tenant}-al", b)]
    )
    assert result["commands"] == [f"sacctmgr -i modify account where name={b} cluster={ctl.cluster} set parent={a}"]
    before, after = (result["diff"][side].splitlines() for side in ("before", "after"))
    assert [line.strip() for line in before if f"account {b}" in line] == [
        line.strip() for line in after if f"account {b}" in line
    ]
    assert state().parents()[b] == a


def test_qos_lists_move_below_defaults_that_no_single_pass_allows(tenant, reconcile, state, user):
    al = f"{tenant}-al"
    reconcile(
        [{"name": tenant, "qos": ["tst-high"], "default_qos": "tst-high"}], [user(al, tenant, default_qos="tst-high")]
    )
    reconcile(
        [{"name": tenant, "qos": ["tst-low"], "default_qos": "tst-low"}], [user(al, tenant, default_qos="tst-low")]
    )
    reconcile(
        [{"name": tenant, "qos": ["tst-low"], "default_qos": "tst-low"}],
        [user(al, tenant, qos=["normal"], default_qos="normal")],
    )
    reconcile([{"name": tenant, "qos": [], "default_qos": ""}], [user(al, tenant, qos=[], default_qos="")])
    assert state().associations[(tenant, al, "")].effective_qos == {"normal"}


def test_a_qos_removed_from_a_list_is_one_command(ctl, tenant, reconcile):
    reconcile([{"name": tenant, "qos": ["normal", "tst-high"]}])
    result = reconcile([{"name": tenant, "qos": ["normal"]}])
    assert result["commands"] == [
        f"sacctmgr -i modify account where name={tenant} cluster={ctl.cluster} set QOS=normal"
    ]


@pytest.mark.parametrize("stored", ["QOS+=tst-low", "QOS-=tst-high"])
def test_a_difference_that_somebody_stored_becomes_the_list_wanted(ctl, tenant, reconcile, user, stored):
    al = f"{tenant}-al"
    accounts = [{"name": tenant, "qos": ["normal", "tst-high"], "default_qos": "normal"}]
    reconcile(accounts, [user(al, tenant, qos=[])])
    assert (
        ctl.sacctmgr(
            "modify", "user", "where", f"name={al}", f"account={tenant}", f"cluster={ctl.cluster}", "set", stored
        ).rc
        == 0
    )
    assert reconcile(accounts, [user(al, tenant, qos=[])])["changed"]
    ctl.sacctmgr("modify", "user", "where", f"name={al}", f"account={tenant}", f"cluster={ctl.cluster}", "set", stored)
    result = reconcile(accounts, [user(al, tenant, qos=["normal", "tst-high"])])
    assert result["changed"]
    assert ctl.column("qos", tenant, al) == "normal,tst-high"


def test_rows_of_partitions_are_kept_apart(ctl, tenant, reconcile, state, user):
    al = f"{tenant}-al"

    def rows(plain, gpu):
        found = [{"account": tenant, "max_jobs": plain}, {"account": tenant, "partition": "gpu", "max_jobs": gpu}]
        return [{"name": al, "associations": [row for row in found if row["max_jobs"] is not None]}]

    for plain, gpu in ((1, 2), (3, 2), (3, 4), (5, 5), (5, None)):
        reconcile([{"name": tenant}], rows(plain, gpu))
        found = {key[2]: row.values["max_jobs"] for key, row in state().associations.items() if key[1] == al}
        assert found == ({"": plain} if gpu is None else {"": plain, "gpu": gpu})


def test_a_line_break_in_a_strangers_text_does_not_hide_or_forge_ours(ctl, tenant, reconcile):
    stranger = f"{tenant}-z"
    reconcile([{"name": tenant, "description": "ours"}])
    ctl.sacctmgr(
        "add", "account", stranger, f"cluster={ctl.cluster}", f"description=evil\n{tenant}|forged|x", "organization=a|b"
    )
    assert not reconcile([{"name": tenant, "description": "ours"}])["changed"]
    assert reconcile([{"name": tenant, "description": "new"}])["changed"]


def test_an_account_known_from_another_cluster_is_added_and_its_text_changed(ctl, tenant, reconcile):
    other = f"{tenant}other"
    ctl.sacctmgr("add", "cluster", other)
    try:
        ctl.sacctmgr("add", "account", tenant, f"cluster={other}", "description=theirs")
        reconcile([{"name": tenant, "description": "ours", "grp_jobs": 4}])
        assert ctl.column("grpjobs", tenant) == "4"
    finally:
        ctl.sacctmgr("delete", "cluster", f"name={other}")


def test_a_failure_half_way_says_what_is_done_and_what_is_left(ctl, tenant, reconcile, user):
    def failing(argv, timeout=60, pass_fds=()):
        if argv[2:4] == ["add", "user"]:
            return _command.Completed(tuple(argv), 1, "", " Some error\n")
        return ctl.run(argv, timeout)

    arguments = (tree(tenant), [user(f"{tenant}-al", f"{tenant}-a")])
    with pytest.raises(ApplyError, match="ended with status 1: Some error") as caught:
        reconcile(*arguments, runner=failing)
    details = caught.value.details
    assert [command.split()[2:4] for command in details["applied"]] == [["add", "account"]] * 2
    assert [command.split()[2:4] for command in details["remaining"]] == [["add", "user"]]
    # The next run does just that.
    assert [command.split()[2:4] for command in reconcile(*arguments)["commands"]] == [["add", "user"]]


def test_a_writer_who_was_faster_is_no_failure(ctl, tenant, reconcile):
    times = []

    def contended(argv, timeout=60, pass_fds=()):
        if "add" in argv and not times:
            times.append(1)
            ctl.run(argv, timeout)
            return _command.Completed(tuple(argv), 1, "", " error: Something was wrong with your query\n")
        return ctl.run(argv, timeout)

    assert reconcile(tree(tenant, grp_jobs=2), runner=contended)["changed"]
    assert times


def test_a_cluster_that_does_not_exist_is_named(ctl):
    params = {"scope": ["x"], "accounts": [{"name": "x"}]}
    with pytest.raises(SlurmError, match="cluster nowhere is not registered in slurmdbd, which knows .*"):
        accounting.reconcile(params, False, Client("nowhere", runner=ctl.run), None)


def test_a_cluster_is_registered_once(ctl, tenant):
    arguments = {"name": f"{tenant}c"}
    try:
        assert clusters.reconcile(arguments, True, Client("", runner=ctl.run), None)["changed"]
        assert clusters.reconcile(arguments, False, Client("", runner=ctl.run), None)["changed"]
        again = clusters.reconcile(arguments, False, Client("", runner=ctl.run), None)
        assert (again["changed"], again["commands"]) == (False, [])
    finally:
        ctl.sacctmgr("delete", "cluster", f"name={tenant}c")
