# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The one table of what can be set on an association, an account, a user and a QOS. Private to the collection.

Argument specs, documentation, reader, normaliser and compiler are made from it. The names for ``set`` and for
``format=`` differ in sacctmgr, and one of them being accepted says nothing about the other.
"""

from __future__ import annotations

import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.field import (
    FACTOR,
    FAIRSHARE,
    FLAGS,
    INT,
    NAME,
    QOS,
    QOS_LIST,
    SECONDS,
    SWITCH,
    TEXT,
    TIME,
    TRES,
    WORD,
    Field,
    Version,
    make,
    shown,
)
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.fields_qos import QOS_FIELDS

# Whoever reads the table needs these.
KINDS = (FACTOR, FAIRSHARE, FLAGS, INT, NAME, QOS, QOS_LIST, SECONDS, SWITCH, TEXT, TIME, TRES, WORD)

ASSOCIATION: tuple[Field, ...] = (
    make(
        "fairshare",
        "Fairshare",
        "share",
        FAIRSHARE,
        "Shares relative to the other children of the same parent, or V(parent).",
        "V(-1) sets Slurm's own default, 1.",
        clear="1",
        unset=1,
    ),
    make("priority", "Priority", "priority", INT, "Priority added to jobs."),
    make(
        "grp_tres",
        "GrpTRES",
        "grptres",
        TRES,
        "TRES that all running jobs below this object may use together, for example V({gres/gpu: 128}).",
    ),
    make(
        "grp_tres_mins",
        "GrpTRESMins",
        "grptresmins",
        TRES,
        "TRES minutes that all jobs below this object may use together.",
    ),
    make(
        "grp_tres_run_mins",
        "GrpTRESRunMins",
        "grptresrunmins",
        TRES,
        "TRES minutes that all running jobs below this object may still need together.",
    ),
    make(
        "grp_jobs",
        "GrpJobs",
        "grpjobs",
        INT,
        "Jobs that may run below this object together. More are accepted and wait.",
    ),
    make(
        "grp_jobs_accrue",
        "GrpJobsAccrue",
        "grpjobsaccrue",
        INT,
        "Waiting jobs below this object that may gain priority by their age at the same time.",
    ),
    make(
        "grp_submit_jobs",
        "GrpSubmitJobs",
        "grpsubmit",
        INT,
        "Jobs that may wait or run below this object together. More are refused.",
    ),
    make("grp_wall", "GrpWall", "grpwall", TIME, "Wall clock time that all jobs below this object may use together."),
    make("max_jobs", "MaxJobs", "maxjobs", INT, "Running jobs of each user. More are accepted and wait."),
    make(
        "max_jobs_accrue",
        "MaxJobsAccrue",
        "maxjobsaccrue",
        INT,
        "Waiting jobs of each user that may gain priority by their age at the same time.",
    ),
    make(
        "max_submit_jobs", "MaxSubmitJobs", "maxsubmit", INT, "Waiting and running jobs of each user. More are refused."
    ),
    make("max_tres_per_job", "MaxTRESPerJob", "maxtres", TRES, "TRES that one job may use."),
    make("max_tres_per_node", "MaxTRESPerNode", "maxtrespernode", TRES, "TRES that one job may use on a node."),
    make("max_tres_mins_per_job", "MaxTRESMinsPerJob", "maxtresmins", TRES, "TRES minutes that one job may use."),
    make(
        "max_tres_run_mins",
        "MaxTRESRunMins",
        "maxtresrunmins",
        TRES,
        "TRES minutes that the running jobs of each user may still need together.",
    ),
    make("max_wall", "MaxWall", "maxwall", TIME, "Wall clock time of one job."),
    # "set MinPrioThreshold=", as the manual has it, is refused.
    make(
        "min_prio_threshold",
        "MinPrioThresh",
        "minpriothresh",
        INT,
        "Priority that a job needs for resources to be reserved for it.",
    ),
    # An empty list inherits the parent's; "QOS=-1" is refused by sacctmgr.
    make(
        "qos",
        "QOS",
        "qos",
        QOS_LIST,
        "QOS that may be used, exactly these. The empty list inherits the parent's.",
        "Left alone on an object that is blocked, see O(block_qos).",
        clear="",
        unset=frozenset(),
    ),
    make(
        "default_qos",
        "DefaultQOS",
        "defaultqos",
        QOS,
        "QOS of a job that names none. It has to be in the effective list of everything that inherits it. "
        "The empty string clears it.",
    ),
    make(
        "comment",
        "Comment",
        "comment",
        TEXT,
        "Text of the association. Slurm folds it to lower case.",
        clear="",
        unset="",
        since=(23, 11),
    ),
)

# The account as a record of the whole database, not of one cluster.
RECORD: tuple[Field, ...] = (
    make(
        "description",
        "Description",
        "description",
        TEXT,
        "Text of the account. Slurm folds it to lower case.",
        clear="",
        unset="",
    ),
    make(
        "organization",
        "Organization",
        "organization",
        TEXT,
        "Text of the account. Slurm folds it to lower case.",
        clear="",
        unset="",
    ),
    # "Flags=-1" and "Flags-=UsersAreCoords" SET the flag, as any word does that is none.
    make(
        "users_are_coordinators",
        "Flags",
        "flags",
        SWITCH,
        "Whether every user of the account coordinates it and all below it. Excludes a list of coordinators.",
        clear="NoUsersAreCoords",
        unset=False,
        since=(23, 11),
        choices=("UsersAreCoords",),
    ),
)

# The user as a record of the whole database (the default WCKey: of one cluster).
USER: tuple[Field, ...] = (
    make(
        "admin_level",
        "AdminLevel",
        "admin",
        WORD,
        "Rights over the whole database, in all clusters. V(administrator) may do everything.",
        clear="None",
        unset="none",
        choices=("none", "operator", "administrator"),
    ),
    make(
        "default_wckey",
        "DefaultWCKey",
        "defaultwckey",
        NAME,
        "Workload characterization key of a job that names none. Added to the user where it is missing.",
        "Slurm cannot take a default away, only change it.",
        clear="",
        unset="",
    ),
)

FLAG_SINCE: dict[str, Version] = {"Relative": (23, 11)}

BY_OPTION: dict[str, Field] = {field.option: field for field in ASSOCIATION + RECORD + USER}
QOS_BY_OPTION: dict[str, Field] = {field.option: field for field in QOS_FIELDS}
FLAG_NAMES = QOS_BY_OPTION["flags"].choices


def specs(table: t.Iterable[Field]) -> dict[str, dict[str, t.Any]]:
    """Part of an argument spec: omitted means leave alone, so nothing has a default."""
    return {field.option: field.spec() for field in table}


def existing(table: t.Iterable[Field], version: Version) -> tuple[Field, ...]:
    return tuple(field for field in table if field.exists(version))


def missing(table: t.Mapping[str, Field], given: t.Mapping[str, t.Any], version: Version) -> list[str]:
    """Why what is given cannot be had on this version of Slurm."""
    found = [table[option].missing(version) for option in given]
    for flag in given.get("flags") or ():
        since = FLAG_SINCE.get(flag, version)
        if version < since:
            found.append(f"flag {flag} needs Slurm {shown(since)}, and this is {shown(version)}; leave it out")
    return [problem for problem in found if problem]
