# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a tenant gets its users have at once, in slurmctld and not in the database alone."""

from __future__ import annotations

import pathlib
import re
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tests" / "cluster"))
from recorded import module
from remote import said

NOTHING = {"max_jobs": -1, "max_wall": -1, "max_tres_per_job": {}, "max_tres_per_node": {}}


def told() -> dict[str, str]:
    """Limits of carol, of a team of tenant-foo, by which slurmctld goes."""
    shown = said("ctl", "scontrol", "-o", "show", "assoc_mgr", "users=carol", "flags=assoc")
    line = next(line for line in shown.splitlines() if "UserName=carol(" in line)
    return dict(re.findall(r" (MaxJobs|MaxWallPJ|MaxTRESPJ|MaxTRESPN)=([^ (]*)", line))


def give(**limits) -> None:
    tenant = {"cluster": "demo", "scope": ["tenant-foo"], "accounts": [{"name": "tenant-foo", **limits}]}
    run = module("ctl", "slurm_accounting", tenant)
    assert run.returncode == 0, run.output
    again = module("ctl", "slurm_accounting", tenant)
    assert (again.returncode, again.changed) == (0, [])


@pytest.fixture
def as_it_was():
    rows = ["sacctmgr", "-nP", "show", "assoc", "tree", "account=tenant-foo,ml-team-foo,data-team-foo"]
    before, database = told(), said("ctl", *rows)
    yield
    give(**NOTHING)
    assert (told(), said("ctl", *rows)) == (before, database)


def test_a_user_of_a_team_is_told_what_the_tenant_has_now(as_it_was):
    give(max_jobs=7, max_wall="50", max_tres_per_job={"gres/gpu": 2, "cpu": 8}, max_tres_per_node={"gres/gpu": 1})
    assert told() == {"MaxJobs": "7", "MaxWallPJ": "50", "MaxTRESPJ": "cpu=8,gres/gpu=2", "MaxTRESPN": "gres/gpu=1"}
    give(max_jobs=3, max_wall="60", max_tres_per_job={"gres/gpu": 3}, max_tres_per_node={"gres/gpu": 1})
    assert told() == {"MaxJobs": "3", "MaxWallPJ": "60", "MaxTRESPJ": "gres/gpu=3", "MaxTRESPN": "gres/gpu=1"}
