# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run proves with and what it hands over. Private to the gpuops.tenancy collection."""

from __future__ import annotations

from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.pick import normalised, pick_user

_NODES = {
    "shared": "shared with other tenants",
    "exclusive": "no other tenant is on a node at the same time",
    "private_nodes": "its own, in partition {0}; jobs name it: --partition={0}, or SBATCH_PARTITION, SLURM_PARTITION and SALLOC_PARTITION",
}


def smoke_jobs(document: dict, user: str | None = None) -> list[dict]:
    """One job for each account of the tenant, as its first user; with `user`, one for each account of hers."""
    document = normalised(document)
    chosen = document["users"] if user is None else [pick_user(document, user)]
    jobs: dict[str, dict] = {}
    rows = [(one["name"], association) for one in chosen for association in one["associations"]]
    # An association for one partition proves nothing about the others: it comes last.
    for name, association in sorted(rows, key=lambda row: bool(row[1]["partition"])):
        job = {"user": name, "account": association["account"]}
        # Who has nodes of its own is refused everywhere else.
        own = document["name"] if document.get("isolation") == "private_nodes" else ""
        if association["partition"] or own:
            job["partition"] = association["partition"] or own
        jobs.setdefault(association["account"], job)
    return list(jobs.values())


def summary(
    document: dict, proof: list[dict], accounting: dict, login_hosts: list[str], user: str | None = None
) -> list[str]:
    """Lines that a person can hand to the tenant."""
    document = normalised(document)
    slurm = document["slurm"]
    lines = [
        f"Tenant {document['name']} ({document['description']})",
        f"log in at: {', '.join(login_hosts)}",
        f"nodes: {_NODES.get(document.get('isolation', 'shared'), '').format(document['name'])}",
        f"fair share: {slurm['fairshare']}",
        f"limits of the whole tenant: {_limits(slurm['limits'])}",
        f"QOS: {', '.join(slurm['qos']) or 'inherited'}; default {slurm['default_qos'] or 'inherited'}",
    ]
    for team in document["teams"]:
        lines.append(f"team {team['name']}: fair share {team['fairshare']}, limits {_limits(team['limits'])}")
    chosen = document["users"] if user is None else [pick_user(document, user)]
    lines.append(f"{len(chosen)} user{'' if len(chosen) == 1 else 's'}")
    for one in chosen[:50]:
        accounts = ", ".join(dict.fromkeys(association["account"] for association in one["associations"]))
        lines.append(f"  {one['name']}: {accounts}")
    if len(chosen) > 50:
        lines.append(f"  and {len(chosen) - 50} more")
    for blocked in accounting.get("blocked") or []:
        lines.append(f"BLOCKED, and left so: {blocked}")
    for extra in accounting.get("unmanaged") or []:
        lines.append(f"in Slurm but not in the document, and still there: {extra}")
    lines += [_proof(result) for result in proof]
    return lines


def _limits(limits: dict) -> str:
    said = []
    for key, value in sorted(limits.items()):
        said.append(
            f"{key} "
            + (
                ", ".join(f"{name}={amount}" for name, amount in value.items())
                if isinstance(value, dict)
                else f"{value}"
            )
        )
    return "; ".join(said) or "none"


def _proof(result: dict) -> str:
    who = f"{result['user']} in {result['account']}"
    if result["proven"]:
        return f"proven: a job of {who} ran on {result['node']}"
    return f"NOT PROVEN for {who}: {result['reason'] or result['state']}"
