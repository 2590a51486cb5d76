# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rules that anything has to follow that manages Slurm's accounting, each on the real daemon."""

from __future__ import annotations

import time

import pytest
from ansible_collections.gpuops.tenancy.plugins.module_utils import _command
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.client import SlurmError
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.converge import ApplyError
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.desired import Refused

# A user that every system has, whom root can submit as.
SUBMITTER = "nobody"


def cluster(state):
    return f"cluster={state().cluster}"


def submit(ctl, account):
    """A held job; the user has to be known to slurmctld, which takes a moment."""
    for _attempt in range(20):
        done = ctl.execute(
            ["sbatch", "--parsable", "--hold", f"--uid={SUBMITTER}", "-D", "/tmp", "-A", account, "--wrap", "true"]
        )
        if done.rc == 0:
            return done.stdout.strip().split(";")[0]
        time.sleep(0.5)
    raise AssertionError(done.stderr)


def cancel(ctl, job):
    ctl.execute(["scancel", job])
    for _attempt in range(40):
        if not ctl.execute(["squeue", "-h", "-j", job, "-t", "all", "-o", "%T"]).stdout.strip().startswith("PEND"):
            return
        time.sleep(0.25)


def test_rule_01_change_is_decided_by_reading(ctl, tenant, reconcile, state):
    accounts = [{"name": tenant, "grp_jobs": 5}]
    reconcile(accounts)
    unchanged = ctl.sacctmgr("modify", "account", "where", f"name={tenant}", cluster(state), "set", "GrpJobs=5")
    assert (unchanged.rc, "Modified" in unchanged.stdout) == (0, True)
    other_option = ctl.sacctmgr("add", "account", tenant, cluster(state), "GrpJobs=9")
    assert other_option.rc == 1
    assert ctl.column("grpjobs", tenant) == "5"
    ctl.seen.clear()
    assert not reconcile(accounts, twice=False)["changed"]
    assert ctl.writes == []
    assert reconcile([{"name": tenant, "grp_jobs": 9}])["changed"]
    assert ctl.column("grpjobs", tenant) == "9"


def test_rule_02_a_status_of_0_is_not_believed(ctl, tenant, reconcile):
    def lying(argv, timeout=60, pass_fds=()):
        if "modify" in argv:
            return _command.Completed(tuple(argv), 0, " Modified account associations...\n", "")
        return ctl.run(argv, timeout)

    reconcile([{"name": tenant}])
    with pytest.raises(ApplyError, match=f"differ from the plan: account {tenant} grp_jobs") as caught:
        reconcile([{"name": tenant, "grp_jobs": 5}], runner=lying, twice=False)
    assert [" ".join(words) for words in (caught.value.details["applied"], caught.value.details["remaining"])] == [
        f"sacctmgr -i modify account where name={tenant} cluster={ctl.cluster} set GrpJobs=5"
    ] * 2
    assert ctl.column("grpjobs", tenant) == ""


def test_rule_03_no_command_can_ask_and_all_have_a_deadline(ctl, tenant, reconcile, state, user):
    reconcile([{"name": tenant}], [user(f"{tenant}-al", tenant)])
    for words, timeout in zip(ctl.seen, ctl.timeouts):
        if words[0] == "sacctmgr" and words[1] != "-V":
            assert words[1] == "-i", words
        assert timeout and timeout > 0
    # This question is asked for ever when standard input is at its end and -i is missing.
    started = time.monotonic()
    assert ctl.sacctmgr("show", "account", cluster(state)).rc == 0
    assert time.monotonic() - started < 20


@pytest.mark.parametrize("name", ["", " ", "'", "a,b", "n[1-3]", "a\nb", "a;b", "1003", "root"])
def test_rule_04_a_name_that_could_mean_everything_is_refused(ctl, reconcile, state, tenant, user, name):
    reconcile([{"name": tenant}])
    before = state().associations
    ctl.seen.clear()
    for arguments in ({"accounts": [{"name": name, "grp_jobs": 5}]}, {"users": [user(name, tenant, max_jobs=5)]}):
        with pytest.raises(Refused):
            reconcile(**arguments)
    assert ctl.seen == []
    assert state().associations == before


def test_rule_05_a_number_is_cleared_and_not_set_to_zero(ctl, tenant, reconcile, state):
    reconcile([{"name": tenant, "grp_jobs": 5}])
    ctl.sacctmgr("modify", "account", "where", f"name={tenant}", cluster(state), "set", "GrpJobs=")
    assert ctl.column("grpjobs", tenant) == "0", "what the rule is about"
    result = reconcile([{"name": tenant, "grp_jobs": -1}])
    assert [(change["field"], change["before"], change["after"]) for change in result["plan"]] == [
        ("grp_jobs", 0, None)
    ]
    assert ctl.column("grpjobs", tenant) == ""


def test_rule_06_tres_are_exactly_the_wanted_ones(ctl, tenant, reconcile):
    reconcile([{"name": tenant, "grp_tres": {"cpu": 4, "gres/gpu": 2, "mem": "1G"}}])
    assert ctl.column("grptres", tenant) == "cpu=4,gres/gpu=2,mem=1G"
    result = reconcile([{"name": tenant, "grp_tres": {"gres/gpu": 3}}])
    assert result["commands"] == [
        f"sacctmgr -i modify account where name={tenant} cluster={ctl.cluster} set GrpTRES=cpu=-1,gres/gpu=3,mem=-1"
    ]
    assert ctl.column("grptres", tenant) == "gres/gpu=3"
    reconcile([{"name": tenant, "grp_tres": {}}])
    assert ctl.column("grptres", tenant) == ""


def test_rule_07_inherited_values_are_no_drift(ctl, tenant, reconcile, state, user):
    inherited = {"max_jobs": 5, "max_wall": "02:00:00", "qos": ["normal", "tst-high"], "default_qos": "tst-high"}
    cleared = {"max_jobs": -1, "max_wall": "-1", "qos": [], "default_qos": ""}
    reconcile([{"name": tenant, **inherited}], [user(f"{tenant}-al", tenant, **cleared)])
    row = state().associations[(tenant, f"{tenant}-al", "")]
    assert (row.values["max_jobs"], row.values["qos"], row.values["default_qos"]) == (None, frozenset(), None)
    assert row.effective_qos == {"normal", "tst-high"}


def test_rule_08_other_clusters_are_neither_read_nor_written(ctl, tenant, reconcile, state, user):
    other = f"{tenant}other"
    ctl.sacctmgr("add", "cluster", other)
    try:
        ctl.sacctmgr("add", "account", tenant, f"cluster={other}", "GrpJobs=77")
        ctl.sacctmgr(
            "add",
            "user",
            f"{tenant}-al",
            f"account={tenant}",
            f"defaultaccount={tenant}",
            f"cluster={other}",
            "MaxJobs=66",
        )
        before = ctl.show("assoc", "where", f"cluster={other}", "wopi", "format=account,user,grpjobs,maxjobs")
        result = reconcile([{"name": tenant, "grp_jobs": 5}], [user(f"{tenant}-al", tenant, max_jobs=1)])
        assert all(change["kind"] == "add" for change in result["plan"] if not change["field"])
        assert state().associations[(tenant, "", "")].values["grp_jobs"] == 5
        reconcile([{"name": tenant, "grp_jobs": 6}], exclusive=True, max_removals=1)
        assert ctl.show("assoc", "where", f"cluster={other}", "wopi", "format=account,user,grpjobs,maxjobs") == before
        assert (tenant, f"{tenant}-al", "") not in state().associations
    finally:
        ctl.sacctmgr("delete", "cluster", f"name={other}")


def test_rule_09_case_is_no_drift(ctl, tenant, reconcile, user):
    accounts = [{"name": tenant.upper(), "description": "Tenant FOO, Inc", "organization": "ORG"}]
    result = reconcile(accounts, [user(f"{tenant}-AL", tenant.title())], scope=[tenant.upper()])
    assert any(f"{tenant.upper()} is written {tenant}" in warning for warning in result["warnings"])
    assert ctl.show("account", "where", f"name={tenant}", "format=description,organization") == [
        ["tenant foo, inc", "org"]
    ]


@pytest.mark.parametrize(
    "given",
    [
        {"grp_tres": {"mem": 1024, "gres/gpu": 2, "cpu": 8}},
        {"grp_tres": {"mem": "1T", "cpu": 2048, "node": 1024}},
        {"grp_tres": {"mem": "1536M"}, "grp_tres_mins": {"mem": 1048576, "cpu": 1000000}},
        {"max_wall": 90, "grp_wall": "10000"},
        {"max_wall": "00:00:30", "grp_wall": "7-00:00:00"},
        {"qos": ["tst-low", "normal", "tst-high"], "fairshare": "parent"},
        {"fairshare": "-1", "priority": 0},
    ],
)
def test_rule_10_spelling_units_and_order_are_no_drift(tenant, reconcile, given):
    reconcile([{"name": tenant, **given}])


def test_rule_11_a_block_by_qos_stays_in_force(ctl, tenant, reconcile, state, user):
    accounts = [{"name": tenant, "qos": ["normal"], "default_qos": "normal", "grp_submit_jobs": 100}]
    reconcile(accounts, [user(SUBMITTER, tenant)])
    ctl.sacctmgr(
        "modify", "account", "where", f"name={tenant}", cluster(state), "set", "QOS=blocked", "DefaultQOS=blocked"
    )
    try:
        result = reconcile(
            accounts, [user(SUBMITTER, tenant, qos=["normal"], default_qos="normal"), user(f"{tenant}-new", tenant)]
        )
        assert result["blocked"] == [
            f"account {tenant}",
            f"user {SUBMITTER} in {tenant}",
            f"user {tenant}-new in {tenant}",
        ]
        assert ctl.column("qos", tenant, f"{tenant}-new") == "blocked"
        time.sleep(2)
        for qos in ([], ["--qos=normal"]):
            done = ctl.execute(["sbatch", f"--uid={SUBMITTER}", "-D", "/tmp", "-A", tenant, *qos, "--wrap", "true"])
            assert done.rc != 0, done
    finally:
        ctl.sacctmgr("delete", "user", "where", f"name={SUBMITTER}", f"account={tenant}", cluster(state))


def test_rule_12_nothing_is_removed_that_has_jobs(ctl, tenant, reconcile, state, user):
    team = f"{tenant}-team"
    accounts = [{"name": tenant, "accounts": [{"name": team}]}]
    reconcile(accounts, [user(SUBMITTER, team), user(f"{tenant}-al", team, tenant, default=team)])
    job = submit(ctl, team)
    try:
        with pytest.raises(
            SlurmError, match=rf"still have jobs: {job} \({SUBMITTER} in {team}, PENDING\); cancel them"
        ):
            reconcile([{"name": tenant}], exclusive=True, max_removals=9)
        assert (team, SUBMITTER, "") in state().associations
    finally:
        cancel(ctl, job)
    # Defaults first, then users, then accounts from below: all in one run.
    result = reconcile([{"name": tenant}], [user(f"{tenant}-al", tenant)], exclusive=True, max_removals=9)
    verbs = [" ".join(command.split()[2:4]) for command in result["commands"]]
    assert verbs.index("delete account") == len(verbs) - 1
    assert team not in {key[0] for key in state().associations}
    assert state().users[f"{tenant}-al"].default_account == tenant


def test_rule_13_what_comes_back_does_not_bring_its_old_limits(ctl, tenant, reconcile, state, user):
    keep = [{"name": tenant}]
    reconcile(keep, [user(SUBMITTER, tenant, max_jobs=7, grp_tres={"gres/gpu": 1})])
    before = ctl.show("assoc", "where", f"account={tenant}", f"user={SUBMITTER}", "format=id")
    cancel(ctl, submit(ctl, tenant))
    time.sleep(2)
    reconcile(keep, exclusive=True, max_removals=1)
    # Revived with the same id where jobs are remembered: nobody else may get that name.
    reconcile(keep, [user(SUBMITTER, tenant, max_jobs=-1, grp_tres={})])
    assert ctl.show("assoc", "where", f"account={tenant}", f"user={SUBMITTER}", "format=id") == before
    assert ctl.column("maxjobs", tenant, SUBMITTER) == ctl.column("grptres", tenant, SUBMITTER) == ""
    reconcile(keep, exclusive=True, max_removals=1)


def test_rule_14_many_users_are_few_commands(ctl, tenant, reconcile, user):
    users = [f"{tenant}-u{number}" for number in range(60)]
    result = reconcile([{"name": tenant}], [user(name, tenant, max_jobs=3) for name in users])
    assert len(result["commands"]) <= 1 + 3
    ctl.seen.clear()
    result = reconcile([{"name": tenant}], [user(name, tenant, max_jobs=4) for name in users], twice=False)
    assert len(result["commands"]) == len(ctl.writes) <= 3


def test_rule_15_records_are_never_purged(ctl, tenant, reconcile, user):
    reconcile([{"name": tenant}], [user(f"{tenant}-al", tenant)])
    reconcile([{"name": tenant}], exclusive=True, max_removals=1)
    assert {words[2] for words in ctl.writes} <= {"add", "modify", "delete"}
    assert not any("archive" in words or any("Purge" in word for word in words) for words in ctl.seen)
