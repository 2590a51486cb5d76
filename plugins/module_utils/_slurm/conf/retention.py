# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long slurmdbd keeps what. Private to the gpuops.tenancy collection.

Nothing is written where nothing is asked for, and then slurmdbd keeps everything. It archives what it purges, but only
where both are said: a purge alone destroys the records.
"""

from __future__ import annotations

import re
import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.conf.version import ConfigError

# kind -> the key that ends it, the key that archives it first
KINDS = {
    "events": ("PurgeEventAfter", "ArchiveEvents"),
    "jobs": ("PurgeJobAfter", "ArchiveJobs"),
    "reservations": ("PurgeResvAfter", "ArchiveResvs"),
    "steps": ("PurgeStepAfter", "ArchiveSteps"),
    "suspensions": ("PurgeSuspendAfter", "ArchiveSuspend"),
    "transactions": ("PurgeTXNAfter", "ArchiveTXN"),
    "usage": ("PurgeUsageAfter", "ArchiveUsage"),
}
_AGE = re.compile(r"^[1-9]\d*(?:hours?|days?|months?)$")


def keys(spec: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """Keys of slurmdbd.conf for what the site has asked for."""
    wanted = dict(spec.get("retention") or {})
    unknown = sorted(set(wanted) - set(KINDS))
    if unknown:
        raise ConfigError(f"retention of {', '.join(unknown)}: there is only {', '.join(KINDS)}")
    lost = _unarchived(spec)
    result: dict[str, t.Any] = {"ArchiveDir": spec.get("archive_dir") or None}
    for kind, (purge, archive) in KINDS.items():
        if wanted.get(kind):
            result[purge] = str(wanted[kind])
            result[archive] = kind not in lost
    return result


def check(values: t.Mapping[str, str], spec: t.Mapping[str, t.Any]) -> None:
    """Refuse a purge whose age is not plain, or that nobody archives and nobody has asked for; options count as well."""
    lost = _unarchived(spec)
    for kind, (purge, archive) in KINDS.items():
        age = values.get(purge)
        if age is None:
            continue
        if not _AGE.match(age):
            raise ConfigError(
                f"slurmdbd.conf: {purge}={age} is refused: write a number above 0 and its unit, as 24months, 90days or 36hours "
                "(a bare number means months)"
            )
        archived = values.get(archive, "no").lower() in ("yes", "true", "1") and (
            "ArchiveDir" in values or "ArchiveScript" in values
        )
        if not archived and kind not in lost:
            raise ConfigError(
                f"slurmdbd.conf: {purge}={age} would destroy {kind} without a copy: set slurm_database_archive_dir, "
                f"or say that they may be lost: slurm_database_purge_unarchived: [{kind}]"
            )


def _unarchived(spec: t.Mapping[str, t.Any]) -> set[str]:
    lost = {str(kind) for kind in spec.get("purge_unarchived") or []}
    if lost - set(KINDS):
        raise ConfigError(f"slurm_database_purge_unarchived: there is only {', '.join(KINDS)}")
    return lost
