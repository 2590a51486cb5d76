# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pure: which probes run on which kind of host, in which context, as whom."""

from __future__ import annotations

import typing as t

from . import api

# A host is a login node, a compute node that attest has reserved, or another compute node.
# One that is closed takes no jobs just now.
KINDS = ("login", "reserved", "compute", "closed", "controller")
OF_KIND = {
    # As on a compute node, where these doors are open; what closes them there closes them here.
    "login": ("login", "cron", "at", "user-manager", "service"),
    "compute": ("ssh", "cron", "at", "user-manager", "service", "job", "container", "ssh-job"),
    "controller": ("controller",),
}
OF_KIND["reserved"] = OF_KIND["compute"]
OF_KIND["closed"] = tuple(context for context in OF_KIND["compute"] if context not in api.IN_JOB)
NEEDS_RESERVED = "runs only on nodes that attest has reserved"


class SelectionError(Exception):
    """``only`` or ``accepted`` names a probe that there is not."""


def selected(
    catalogue: t.Mapping[str, api.Probe], only: t.Sequence[str], accepted: t.Mapping[str, str]
) -> dict[str, api.Probe]:
    unknown = sorted((set(only) | set(accepted)) - set(catalogue))
    if unknown:
        raise SelectionError(
            f"there is no probe {', '.join(unknown)}; docs/attest.md lists them, and attest_probes_dir adds others"
        )
    return {id: probe for id, probe in catalogue.items() if not only or id in only}


def planned(catalogue: t.Mapping[str, api.Probe], kind: str) -> list[dict[str, str]]:
    """Every answer that a host of a kind owes: ``probe``, ``context``, ``actor``; ``omitted`` where it will not be tried."""
    found = []
    for context in OF_KIND[kind]:
        for id, probe in sorted(catalogue.items(), key=lambda item: (item[1].disruptive, item[0])):
            if context not in probe.contexts:
                continue
            for actor in probe.actors:
                # Who has no account has no job.
                if actor != "a" and context in api.IN_JOB:
                    continue
                omitted = NEEDS_RESERVED if kind == "compute" and (probe.disruptive or probe.neighbour) else ""
                found.append({"probe": id, "context": context, "actor": actor, "omitted": omitted})
    return found


def runs(owed: t.Iterable[t.Mapping[str, str]]) -> list[dict[str, t.Any]]:
    """The same, together for each context and actor, in the order of the contexts."""
    found: dict[tuple[str, str], list[str]] = {}
    for one in owed:
        if not one["omitted"]:
            found.setdefault((one["context"], one["actor"]), []).append(one["probe"])
    return [{"context": context, "actor": actor, "probes": probes} for (context, actor), probes in found.items()]
