# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nothing is purged unless asked, and nothing is destroyed unless asked twice."""

from __future__ import annotations

import pytest
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.conf import files, retention
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.conf.read import option
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.conf.version import ConfigError

SPEC = {
    "host": "ctl", "address": "10.0.0.1", "user": "slurm", "log_dir": "/var/log/slurm", "storage_host": "localhost",
    "storage_name": "slurm_acct_db", "storage_user": "slurm",
}  # fmt: skip


def text(release=(24, 11), **changes):
    return files.database({**SPEC, **changes}, release)


@pytest.mark.parametrize("release", [(22, 5), (24, 11)])
@pytest.mark.parametrize("changes", [{}, {"retention": {}}, {"retention": {"jobs": None}}, {"archive_dir": "/archive"}])
def test_everything_is_kept_unless_asked(release, changes):
    assert "Purge" not in text(release, **changes)


@pytest.mark.parametrize("release", [(22, 5), (24, 11)])
def test_what_is_asked_is_archived(release):
    conf = text(release, retention={"jobs": "24months", "steps": "90days"}, archive_dir="/archive")
    assert option(conf, "PurgeJobAfter") == "24months"
    assert option(conf, "PurgeStepAfter") == "90days"
    assert option(conf, "ArchiveDir") == "/archive"
    assert (option(conf, "ArchiveJobs"), option(conf, "ArchiveSteps")) == ("yes", "yes")
    assert option(conf, "PurgeEventAfter") is None


@pytest.mark.parametrize("kind", retention.KINDS)
def test_without_an_archive_only_what_is_named_may_be_lost(kind):
    with pytest.raises(ConfigError, match=f"destroy {kind} without a copy"):
        text(retention={kind: "1months"})
    conf = text(retention={kind: "1months"}, purge_unarchived=[kind])
    assert option(conf, retention.KINDS[kind][0]) == "1months"
    assert option(conf, retention.KINDS[kind][1]) == "no"


@pytest.mark.parametrize(
    "options",
    [
        {"PurgeJobAfter": "12months"},
        {"purgejobafter": "12months"},
        {"PurgeJobAfter": "12months", "ArchiveJobs": False, "ArchiveDir": "/archive"},
        {"PurgeJobAfter": "12months", "ArchiveJobs": True},
        {"PurgeJobAfter": "12months", "ArchiveSteps": True, "ArchiveDir": "/archive"},
    ],
)
@pytest.mark.parametrize("where", ["options", "options_extra"])
def test_free_options_are_held_to_the_same(where, options):
    with pytest.raises(ConfigError, match="without a copy"):
        text(**{where: options})
    text(**{where: {"PurgeJobAfter": "12months", "ArchiveJobs": True, "ArchiveScript": "/usr/local/bin/archive"}})


@pytest.mark.parametrize("age", ["12", "0days", "1year", "12 months", "months", "-1days", "12monthsago"])
def test_an_age_without_its_unit_is_refused(age):
    with pytest.raises(ConfigError, match="a bare number means months"):
        text(retention={"jobs": age}, archive_dir="/archive")


def test_unknown_kinds_are_named():
    with pytest.raises(ConfigError, match="retention of job: there is only"):
        text(retention={"job": "1days"}, archive_dir="/archive")
    with pytest.raises(ConfigError, match="purge_unarchived: there is only"):
        text(purge_unarchived=["job"])
