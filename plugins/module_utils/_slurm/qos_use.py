# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who uses a QOS: associations of all clusters, partitions, jobs. Private to the gpuops.tenancy collection.

Slurm removes a QOS that is in use without a word, so a reading that fails is an error here.
"""

from __future__ import annotations

import re
import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import parse
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.client import Client, columns, failure
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.model import label

_ROW = ("cluster", "account", "user", "partition", "qos", "defaultqos")
_HINT = "who uses the QOS cannot be told, so nothing is removed"


def read(client: Client, names: t.Collection[str]) -> dict[str, list[str]]:
    """QOS -> who uses it, as text for a message."""
    if not names:
        return {}
    used = associations(client.read_text(["show", "assoc", "wopi", columns(_ROW)]), names)
    # Lists stored as a difference show only in effect; there each row that inherits is listed as well.
    effective = associations(client.read_text(["show", "assoc", columns(_ROW)]), names)
    for name in names:
        used[name] = used[name] or effective[name]
    partitions = client.run([client.program("scontrol"), "-o", "show", "partition"])
    jobs = client.run([client.program("squeue"), "-h", "-a", "-q", ",".join(sorted(names)), "-o", "%i|%u|%a|%q|%T"])
    for done in (partitions, jobs):
        if done.rc != 0:
            raise failure(done, _HINT)
    for line in partitions.stdout.splitlines():
        words = dict(word.partition("=")[::2] for word in line.split())
        name = words.get("QoS", "").lower()
        if name in names:
            used[name].append(f"partition {words.get('PartitionName')}")
    for line in jobs.stdout.splitlines():
        job = line.split("|")
        if len(job) == 5 and job[3] in names:
            used[job[3]].append(f"job {job[0]} of {job[1]} in {job[2]} ({job[4]})")
    return used


def associations(text: str, names: t.Collection[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {name: [] for name in names}
    for row in parse.rows(text, _ROW):
        what = f"{label((row['account'], row['user'], row['partition']))} on {row['cluster']}"
        listed = {re.sub(r"^[+-]", "", name) for name in parse.names(row["qos"])}
        for name in names:
            if row["defaultqos"] == name:
                found[name].append(f"default of {what}")
            elif name in listed:
                found[name].append(what)
    return found
