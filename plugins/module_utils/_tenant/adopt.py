# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""An existing cluster becomes tenant documents and a report. Pure; private to gpuops.tenancy; controller only.

Drafts go through every check that onboarding makes. What a check refuses is left out and reported, and the rest is
drafted again, until everything passes. What onboarding would then change is computed from the documents themselves.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant import adopt_text, check
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.adopt_compare import Comparison, left_over
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.adopt_draft import Draft
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.adopt_findings import (
    DECIDE,
    LEFT,
    Finding,
    label,
    show,
)
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.adopt_tree import Options, Refusals
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.errors import Problem
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.folder import Checked, check_sources
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.load import Source, parse

_USER = re.compile(r"^(?:teams\[(\d+)\]\.)?users\[(\d+)\]")
_TEAM = re.compile(r"^teams\[(\d+)\]")


@dataclass
class Adoption:
    texts: dict[str, str]  # tenant -> text of the document
    documents: dict[str, dict]  # tenant -> normalised, existing ones too
    findings: list[Finding]


def adopt(survey: dict, options: Options, existing: list[Source], refusals: tuple[str, ...] = ()) -> Adoption:
    """`existing`: documents that are there already, which only count; `refusals`: what pre-flight has to say."""
    check.require_library()
    there = check_sources(existing, options.policy)
    outlines = {one.outline.tenant: one.outline for one in there}
    refused = Refusals()
    while True:
        draft = Draft(survey, options, outlines, refused)
        texts = {name: _text(draft, name, survey["cluster"]) for name in draft.documents}
        sources = [parse(text, f"{name}.yml") for name, text in texts.items()]
        checked = check_sources([*existing, *sources], options.policy)
        known = len(refused)
        for one, tenant in zip(checked[len(existing) :], draft.documents):
            for problem in one.problems:
                _refuse(refused, draft, tenant, problem)
        if len(refused) == known:
            break
    documents = {one.outline.tenant: one.document for one in checked if one.document is not None}
    comparison = Comparison(survey, options.policy.block_qos)
    for document in documents.values():
        comparison.add(document)
    findings = [*comparison.findings, *draft.findings]
    covered = comparison.covered.union(*(one.covers for one in draft.findings))
    findings += _uncovered(survey, covered, checked)
    findings += _records(survey, options)
    findings += _rights(survey)
    findings += [
        Finding(DECIDE, "pre-flight", "onboarding will stop at its pre-flight", "put it right first", "", show(one))
        for one in refusals
    ]
    return Adoption(texts, documents, findings)


def _text(draft: Draft, tenant: str, cluster: str) -> str:
    left = {key for one in draft.findings for key in one.covers if draft.top.get(key[0]) == tenant}
    return adopt_text.text(draft.documents[tenant], cluster, len(left))


def _refuse(refused: Refusals, draft: Draft, tenant: str, problem: Problem) -> None:
    """Leave out the smallest thing that the problem is about; if it is out already, what holds it."""
    why, _mark, fix = problem.text.partition("; ")
    reason = (f"no document can say it: {why}", fix or "see docs/tenant-document.md")
    data = draft.documents[tenant]
    user, team = _USER.match(problem.path), _TEAM.match(problem.path)
    if user:
        place = data["teams"][int(user[1])] if user[1] else data
        entry = place["users"][int(user[2])]
        name = entry if isinstance(entry, str) else entry["name"]
        if (tenant, name) not in refused.users:
            refused.users[(tenant, name)] = reason
            return
    if team:
        name = data["teams"][int(team[1])]["name"]
        if name not in refused.accounts:
            refused.accounts[name] = reason
            return
    refused.tenants.setdefault(tenant, reason)


def _uncovered(survey: dict, covered: set, checked: list[Checked]) -> Iterator[Finding]:
    broken = {one.outline.tenant for one in checked if one.document is None}
    tops: dict[str, str] = {}
    for one in survey["accounts"]:
        tops[one["name"]] = one["name"] if one["parent"] == "root" else tops.get(one["parent"], "")
    for key in left_over(survey, covered):
        if key[0] == "root":
            why, fix = "Slurm's own account is never part of a tenant", "give the user an account of a tenant"
        elif tops.get(key[0]) in broken:
            why, fix = "there is a document of the tenant, and it has errors", "correct it, and run this again"
        else:
            why = "there is a document of the tenant, and it does not name this"
            fix = "add it there, or take it out of Slurm"
        yield Finding(LEFT, label(key), why, fix, "", "", frozenset([key]), key[1] or key[0], key[0])


def _records(survey: dict, options: Options) -> Iterator[Finding]:
    for one in survey["without_association"]:
        what = f"{one['kind']} {one['name']}"
        if one["clusters"]:
            why = "has associations on other clusters of this database only"
            yield Finding(LEFT, what, why, "nothing here", "clusters", show(one["clusters"]), name=one["name"])
        else:
            yield Finding(
                LEFT,
                what,
                "has a record and no association on any cluster, as the deletion of a parent account leaves it",
                f"remove it (sacctmgr delete {one['kind']} where name=NAME) when nobody misses it",
                name=one["name"],
            )
    for kind, gone in sorted(survey["departed"].items()):
        gone = sorted(set(gone) - options.policy.retired)
        if gone:
            yield Finding(
                DECIDE,
                f"deleted {kind}",
                "Slurm keeps them because jobs refer to them, and whoever gets such a name again gets their history",
                "put them on the list 'retired' of the ledger (tenancy_ledger), so that no document can name them",
                "",
                show(gone),
            )


def _rights(survey: dict) -> Iterator[Finding]:
    for user in survey["users"]:
        if user["name"] == "root":
            continue
        for field in sorted(set(user) - {"name", "default_account", "admin_level", "associations"}):
            if user[field]:
                why = "no document can name this; it stays in Slurm, and nothing watches it"
                yield Finding(
                    DECIDE, f"user {user['name']}", why, "keep a note of it, or clear it", field, show(user[field])
                )
        if user["admin_level"]:
            yield Finding(
                DECIDE,
                f"user {user['name']}",
                "has rights over Slurm as a whole, tenants' limits included; no document says so",
                "take them away (sacctmgr modify user where name=NAME set AdminLevel=None) from who is no operator",
                "admin_level",
                user["admin_level"],
                name=user["name"],
            )
