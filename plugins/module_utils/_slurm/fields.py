# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The one table of what can be set on an association and on a QOS. Private to the gpuops.tenancy collection.

Argument spec, reader, normaliser and compiler are made from it. The names for ``set`` and for ``format=`` differ in
sacctmgr, and one of them being accepted says nothing about the other.
"""

from __future__ import annotations

import dataclasses
import typing as t

INT = "int"
FACTOR = "factor"  # a decimal number
TIME = "time"  # minutes or [D-]HH:MM:SS, kept in seconds
SECONDS = "seconds"  # set as a number of seconds, printed as a time
TRES = "tres"
QOS = "qos"
QOS_LIST = "qos_list"
FAIRSHARE = "fairshare"
TEXT = "text"
WORD = "word"
FLAGS = "flags"

_TYPES = {
    INT: {"type": "int"},
    FACTOR: {"type": "float"},
    TIME: {"type": "str"},
    SECONDS: {"type": "int"},
    TRES: {"type": "dict"},
    QOS: {"type": "str"},
    QOS_LIST: {"type": "list", "elements": "str"},
    FAIRSHARE: {"type": "str"},
    TEXT: {"type": "str"},
    WORD: {"type": "str"},
    FLAGS: {"type": "list", "elements": "str"},
}


@dataclasses.dataclass(frozen=True)
class Field:
    """One thing that can be set.

    option: name in module arguments and results. set_name, column: what sacctmgr calls it for ``set`` and
    ``format=``. clear: the value that unsets it (TRES are cleared name by name instead). unset: what an unset field is
    after normalising. since: first Slurm version that has it.
    """

    option: str
    set_name: str
    column: str
    type: str
    clear: str = "-1"
    unset: t.Any = None
    since: tuple[int, int] = (22, 5)

    def spec(self) -> dict[str, t.Any]:
        return dict(_TYPES[self.type])


def _qos(option: str, set_name: str, column: str, kind: str, clear: str = "-1", unset: t.Any = None) -> Field:
    return Field(option, set_name, column, kind, clear, unset)


ASSOCIATION: tuple[Field, ...] = (
    Field("fairshare", "Fairshare", "share", FAIRSHARE, clear="1", unset=1),
    Field("priority", "Priority", "priority", INT),
    Field("grp_tres", "GrpTRES", "grptres", TRES, unset={}),
    Field("grp_tres_mins", "GrpTRESMins", "grptresmins", TRES, unset={}),
    Field("grp_tres_run_mins", "GrpTRESRunMins", "grptresrunmins", TRES, unset={}),
    Field("grp_jobs", "GrpJobs", "grpjobs", INT),
    Field("grp_submit_jobs", "GrpSubmitJobs", "grpsubmit", INT),
    Field("grp_wall", "GrpWall", "grpwall", TIME),
    Field("max_jobs", "MaxJobs", "maxjobs", INT),
    Field("max_submit_jobs", "MaxSubmitJobs", "maxsubmit", INT),
    Field("max_tres_per_job", "MaxTRESPerJob", "maxtres", TRES, unset={}),
    Field("max_tres_per_node", "MaxTRESPerNode", "maxtrespernode", TRES, unset={}),
    Field("max_tres_mins_per_job", "MaxTRESMinsPerJob", "maxtresmins", TRES, unset={}),
    Field("max_wall", "MaxWall", "maxwall", TIME),
    # An empty list inherits the parent's; "QOS=-1" is refused by sacctmgr.
    Field("qos", "QOS", "qos", QOS_LIST, clear="", unset=frozenset()),
    Field("default_qos", "DefaultQOS", "defaultqos", QOS),
)

# The account as a record of the whole database, not of one cluster.
RECORD: tuple[Field, ...] = (
    Field("description", "Description", "description", TEXT, clear="", unset=""),
    Field("organization", "Organization", "organization", TEXT, clear="", unset=""),
)

QOS_FIELDS: tuple[Field, ...] = (
    _qos("description", "Description", "description", TEXT, clear="", unset=""),
    _qos("priority", "Priority", "priority", INT, clear="0", unset=0),
    _qos("flags", "Flags", "flags", FLAGS, unset=frozenset()),
    _qos("preempt", "Preempt", "preempt", QOS_LIST, clear="", unset=frozenset()),
    _qos("preempt_mode", "PreemptMode", "preemptmode", WORD, clear="cluster", unset="cluster"),
    _qos("preempt_exempt_time", "PreemptExemptTime", "preemptexempttime", TIME),
    _qos("grace_time", "GraceTime", "gracetime", SECONDS, clear="0", unset=0),
    _qos("usage_factor", "UsageFactor", "usagefactor", FACTOR, clear="1", unset=1.0),
    _qos("usage_threshold", "UsageThreshold", "usagethres", FACTOR),
    _qos("limit_factor", "LimitFactor", "limitfactor", FACTOR),
    _qos("grp_tres", "GrpTRES", "grptres", TRES, unset={}),
    _qos("grp_tres_mins", "GrpTRESMins", "grptresmins", TRES, unset={}),
    _qos("grp_tres_run_mins", "GrpTRESRunMins", "grptresrunmins", TRES, unset={}),
    _qos("grp_jobs", "GrpJobs", "grpjobs", INT),
    _qos("grp_submit_jobs", "GrpSubmitJobs", "grpsubmit", INT),
    _qos("grp_wall", "GrpWall", "grpwall", TIME),
    _qos("max_tres_per_job", "MaxTRESPerJob", "maxtres", TRES, unset={}),
    _qos("max_tres_per_node", "MaxTRESPerNode", "maxtrespernode", TRES, unset={}),
    _qos("max_tres_mins_per_job", "MaxTRESMinsPerJob", "maxtresmins", TRES, unset={}),
    _qos("max_wall", "MaxWall", "maxwall", TIME),
    _qos("max_tres_per_user", "MaxTRESPerUser", "maxtrespu", TRES, unset={}),
    _qos("max_jobs_per_user", "MaxJobsPerUser", "maxjobspu", INT),
    # The column is maxsubmitpu, but "set MaxSubmitPU=" is refused.
    _qos("max_submit_jobs_per_user", "MaxSubmitJobsPerUser", "maxsubmitpu", INT),
    _qos("max_tres_per_account", "MaxTRESPerAccount", "maxtrespa", TRES, unset={}),
    _qos("max_jobs_per_account", "MaxJobsPerAccount", "maxjobspa", INT),
    _qos("max_submit_jobs_per_account", "MaxSubmitJobsPerAccount", "maxsubmitpa", INT),
    _qos("min_tres_per_job", "MinTRESPerJob", "mintres", TRES, unset={}),
)

FLAG_NAMES = (
    "DenyOnLimit",
    "EnforceUsageThreshold",
    "NoDecay",
    "NoReserve",
    "OverPartQOS",
    "PartitionMaxNodes",
    "PartitionMinNodes",
    "PartitionTimeLimit",
    "Relative",
    "RequiresReservation",
    "UsageFactorSafe",
)

BY_OPTION: dict[str, Field] = {field.option: field for field in ASSOCIATION + RECORD}
QOS_BY_OPTION: dict[str, Field] = {field.option: field for field in QOS_FIELDS}


def specs(table: t.Iterable[Field]) -> dict[str, dict[str, t.Any]]:
    """Part of an argument spec: omitted means leave alone, so nothing has a default."""
    return {field.option: field.spec() for field in table}
