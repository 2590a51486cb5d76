# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each field that can be set: set, changed, cleared, and unchanged when run again, on the real slurmdbd."""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import accounting, fields, qos_reconcile
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.client import Client
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.desired import Refused
from controller import Ctl

STEPS = ("set", "change", "clear")
# option: (set, printed, changed, printed, cleared, printed)
ROW = {
    "fairshare": ("5", "5", "parent", "parent", "-1", "1"),
    "priority": (3, "3", 0, "0", -1, ""),
    "grp_tres": ({"cpu": 4, "gres/gpu": 2}, "cpu=4,gres/gpu=2", {"gres/gpu:h100": 1}, "gres/gpu:h100=1", {}, ""),
    "grp_tres_mins": ({"gres/gpu": 100}, "gres/gpu=100", {"cpu": 5}, "cpu=5", {}, ""),
    "grp_tres_run_mins": ({"gres/gpu": 100}, "gres/gpu=100", {"gres/gpu": 0}, "gres/gpu=0", {}, ""),
    "grp_jobs": (5, "5", 0, "0", -1, ""),
    "grp_jobs_accrue": (5, "5", 0, "0", -1, ""),
    "grp_submit_jobs": (5, "5", 6, "6", -1, ""),
    "grp_wall": ("1-00:00:00", "1-00:00:00", 90, "01:30:00", "-1", ""),
    "max_jobs": (5, "5", 4, "4", -1, ""),
    "max_jobs_accrue": (5, "5", 4, "4", -1, ""),
    "max_submit_jobs": (50, "50", 40, "40", -1, ""),
    "max_tres_per_job": ({"mem": "64G"}, "mem=64G", {"node": 2}, "node=2", {}, ""),
    "max_tres_per_node": ({"gres/gpu": 4}, "gres/gpu=4", {"gres/gpu": 3}, "gres/gpu=3", {}, ""),
    "max_tres_mins_per_job": ({"cpu": 10}, "cpu=10", {"mem": 1024}, "mem=1G", {}, ""),
    "max_tres_run_mins": ({"cpu": 10, "gres/gpu": 4}, "cpu=10,gres/gpu=4", {"mem": 1024}, "mem=1G", {}, ""),
    "min_prio_threshold": (5, "5", 0, "0", -1, ""),
    "comment": ("One = Two, three", "one = two, three", "other", "other", "", ""),
    "max_wall": ("12:00:00", "12:00:00", "00:30:00", "00:30:00", "-1", ""),
    "qos": (["normal", "tst-high"], "normal,tst-high", ["tst-low"], "tst-low", [], ""),
    "default_qos": ("tst-high", "tst-high", "tst-low", "tst-low", "", ""),
}
RECORD = {
    "description": ("One, two = three; $HOME `x` \\ é", "one, two = three; $home `x` \\ é", "two", "two", "", ""),
    "organization": ("One, two = three", "one, two = three", "two", "two", "", ""),
    "users_are_coordinators": (True, "UsersAreCoords", True, "UsersAreCoords", False, "None"),
}
USER = {
    "admin_level": ("operator", "Operator", "administrator", "Administrator", "none", "None"),
    "default_wckey": ("tst-one", "tst-one", "tst-two", "tst-two", None, "tst-two"),
}
QOS = {
    "description": ("One", "one", "two", "two", "", ""),
    "priority": (3, "3", 4, "4", -1, "0"),
    "flags": (["denyonlimit", "NoDecay"], "DenyOnLimit,NoDecay", ["OverPartQOS"], "OverPartQOS", [], ""),
    "preempt": (["tst-low"], "tst-low", ["normal", "tst-low"], "normal,tst-low", [], ""),
    "preempt_mode": ("requeue", "requeue", "cancel", "cancel", "", "cluster"),
    "preempt_exempt_time": ("00:05:00", "00:05:00", "00:10:00", "00:10:00", "-1", ""),
    "grace_time": (300, "00:05:00", 60, "00:01:00", -1, "00:00:00"),
    "usage_factor": (0.5, "0.500000", 2, "2.000000", -1, "1.000000"),
    "usage_threshold": (0.5, "0.500000", 0.25, "0.250000", -1, ""),
    "limit_factor": (2, "2.000000", 3, "3.000000", -1, ""),
    "grp_tres": ({"cpu": 4}, "cpu=4", {"gres/gpu": 1}, "gres/gpu=1", {}, ""),
    "grp_tres_mins": ({"cpu": 4}, "cpu=4", {"cpu": 5}, "cpu=5", {}, ""),
    "grp_tres_run_mins": ({"cpu": 4}, "cpu=4", {"cpu": 5}, "cpu=5", {}, ""),
    "grp_jobs": (5, "5", 0, "0", -1, ""),
    "grp_jobs_accrue": (5, "5", 0, "0", -1, ""),
    "grp_submit_jobs": (5, "5", 0, "0", -1, ""),
    "grp_wall": (90, "01:30:00", "1-00:00:00", "1-00:00:00", "-1", ""),
    "max_tres_per_job": ({"cpu": 4}, "cpu=4", {"cpu": 5}, "cpu=5", {}, ""),
    "max_tres_per_node": ({"cpu": 4}, "cpu=4", {"cpu": 5}, "cpu=5", {}, ""),
    "max_tres_mins_per_job": ({"cpu": 4}, "cpu=4", {"cpu": 5}, "cpu=5", {}, ""),
    "max_wall": (90, "01:30:00", 60, "01:00:00", -1, ""),
    "max_tres_per_user": ({"gres/gpu": 4}, "gres/gpu=4", {"cpu": 5}, "cpu=5", {}, ""),
    "max_tres_run_mins_per_user": ({"cpu": 4}, "cpu=4", {"cpu": 5, "mem": 1024}, "cpu=5,mem=1G", {}, ""),
    "max_jobs_accrue_per_user": (5, "5", 4, "4", -1, ""),
    "max_jobs_per_user": (5, "5", 4, "4", -1, ""),
    "max_submit_jobs_per_user": (5, "5", 0, "0", -1, ""),
    "max_tres_per_account": ({"gres/gpu": 4}, "gres/gpu=4", {"cpu": 5}, "cpu=5", {}, ""),
    "max_tres_run_mins_per_account": ({"cpu": 4}, "cpu=4", {"cpu": 5, "mem": 1024}, "cpu=5,mem=1G", {}, ""),
    "max_jobs_accrue_per_account": (5, "5", 4, "4", -1, ""),
    "max_jobs_per_account": (5, "5", 4, "4", -1, ""),
    "max_submit_jobs_per_account": (5, "5", 4, "4", -1, ""),
    "min_prio_threshold": (5, "5", 7, "7", -1, ""),
    "min_tres_per_job": ({"cpu": 1}, "cpu=1", {"mem": 1024}, "mem=1G", {}, ""),
}


@dataclasses.dataclass
class Proof:
    """What became of one field. ``wrong``: step -> what sacctmgr printed instead of what it should."""

    field: fields.Field
    wrong: dict[str, str] = dataclasses.field(default_factory=dict)
    # Why it cannot be had, or cannot be cleared; such a wish was refused.
    missing: str = ""
    permanent: str = ""
    again: str = ""

    @property
    def good(self) -> bool:
        return not self.wrong and not self.again


Run = t.Callable[[dict], dict]


def association(ctl: Ctl, tenant: str, on: str) -> list[Proof]:
    """The row of an account, or of a user in it."""
    name = f"{tenant}-al" if on == "user" else ""

    def run(given: dict) -> dict:
        # A user's own default needs the list of the account only where the user has none.
        above = {"qos": ["normal", "tst-high", "tst-low"]}
        accounts = [{"name": tenant, **(above if on == "user" else given)}]
        users = [{"name": name, "associations": [{"account": tenant, **given}]}] if on == "user" else []
        return _accounting(ctl, tenant, accounts, users)

    return _prove(ctl, fields.ASSOCIATION, ROW, run, lambda columns: ctl.columns(columns, tenant, name))


def account(ctl: Ctl, tenant: str) -> list[Proof]:
    def printed(columns: list[str]) -> dict[str, str]:
        (row,) = ctl.show("account", "where", f"name={tenant}", f"format={','.join(columns)}")
        return dict(zip(columns, row))

    return _prove(
        ctl, fields.RECORD, RECORD, lambda given: _accounting(ctl, tenant, [{"name": tenant, **given}], []), printed
    )


def user(ctl: Ctl, tenant: str) -> list[Proof]:
    name = f"{tenant}-al"

    def run(given: dict) -> dict:
        users = [{"name": name, "associations": [{"account": tenant}], **given}]
        return _accounting(ctl, tenant, [{"name": tenant}], users)

    def printed(columns: list[str]) -> dict[str, str]:
        where = [f"name={name}", f"cluster={ctl.cluster}"]
        (row,) = ctl.show("user", "where", *where, f"format={','.join(columns)}")
        return dict(zip(columns, row))

    return _prove(ctl, fields.USER, USER, run, printed)


def qos(ctl: Ctl, tenant: str) -> list[Proof]:
    # Two, because one command changes both.
    names = [f"{tenant}-q1", f"{tenant}-q2"]

    def run(given: dict) -> dict:
        wanted = {"qos": [{"name": name, **given} for name in names]}
        return qos_reconcile.reconcile(wanted, False, Client("", runner=ctl.run), None)

    def printed(columns: list[str]) -> dict[str, str]:
        (row,) = ctl.show("qos", "where", f"name={names[1]}", f"format={','.join(columns)}")
        return dict(zip(columns, row))

    try:
        return _prove(ctl, fields.QOS_FIELDS, QOS, run, printed)
    finally:
        ctl.sacctmgr("delete", "qos", "where", f"name={','.join(names)}")


def _accounting(ctl: Ctl, tenant: str, accounts: list, users: list) -> dict:
    wanted = {"scope": [tenant], "accounts": accounts, "users": users}
    return accounting.reconcile(wanted, False, Client(ctl.cluster, runner=ctl.run), None)


def _prove(
    ctl: Ctl,
    table: t.Sequence[fields.Field],
    values: dict[str, tuple],
    run: Run,
    printed: t.Callable[[list[str]], dict[str, str]],
) -> list[Proof]:
    version = Client("", runner=ctl.run).version()
    proofs = {field.option: Proof(field, missing=field.missing(version)) for field in table}
    here = [field for field in table if field.exists(version)]
    for option, proof in proofs.items():
        if proof.missing:
            _refused({option: values[option][0]}, run, proof.missing)
        elif values[option][4] is None:
            proof.permanent = _refused({option: ""}, run, option)
    for number, step in enumerate(STEPS):
        given = {field.option: values[field.option][2 * number] for field in here}
        given = {option: value for option, value in given.items() if value is not None}
        run(given)
        again = {change["field"] for change in run(given)["plan"]}
        now = printed([field.column for field in here])
        for field in here:
            text = now[field.column]
            if text != values[field.option][2 * number + 1]:
                proofs[field.option].wrong[step] = text
            if field.option in again:
                proofs[field.option].again = f"still to do after {step}"
    return list(proofs.values())


def _refused(given: dict, run: Run, message: str) -> str:
    try:
        run(given)
    except Refused as exc:
        if message in str(exc):
            return str(exc)
        raise
    raise AssertionError(f"{given} was not refused")
