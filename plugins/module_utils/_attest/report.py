# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pure: answers of all hosts become one verdict for each claim, and a report."""

from __future__ import annotations

import re
import typing as t

from . import api, planning

# What an operator has to look at first stands first.
ORDER = (api.FAIL, api.ERROR, api.ACCEPTED, api.NOT_APPLICABLE, api.PASS)
BAD = (api.FAIL, api.ERROR)
# What of the controller's job table one tenant may have at most.
SHARE = 0.8
NO_NODE = "no node could be reserved for it"


def rows(
    catalogue: t.Mapping[str, api.Probe],
    hosts: t.Sequence[t.Mapping[str, t.Any]],
    accepted: t.Mapping[str, str],
) -> list[dict[str, str]]:
    """One row for everything that a host owes an answer to, the worst first.

    :param hosts: ``host``, ``kind``, ``answers``, ``problem`` (why there are none).
    :param accepted: the site's accepted risks: probe -> reason.
    """
    reserved = any(one["kind"] == "reserved" for one in hosts)
    found = []
    for one in hosts:
        said = {(answer["probe"], answer["context"], answer["actor"]): answer for answer in one["answers"]}
        for owed in planning.planned(catalogue, one["kind"]):
            probe = catalogue[owed["probe"]]
            answer = said.get((owed["probe"], owed["context"], owed["actor"]))
            if owed["omitted"]:
                verdict = api.NOT_APPLICABLE if reserved else api.ERROR
                evidence = owed["omitted"] if reserved else NO_NODE
            elif answer is None:
                verdict, evidence = api.ERROR, one["problem"] or "no answer came"
            else:
                verdict, evidence = answer["verdict"], answer["evidence"]
            reason = accepted.get(probe.id) or probe.accepted
            if verdict == api.FAIL and reason:
                verdict, evidence = api.ACCEPTED, f"{reason}. Seen: {evidence}"
            found.append(
                {
                    "probe": probe.id,
                    "claim": probe.claim,
                    "control": probe.control_in(owed["context"]),
                    "attack": probe.attack,
                    "host": one["host"],
                    "context": owed["context"],
                    "actor": owed["actor"],
                    "verdict": verdict if verdict in ORDER else api.ERROR,
                    "evidence": evidence,
                }
            )
    contexts = list(api.CONTEXTS)
    return sorted(
        found,
        key=lambda row: (
            ORDER.index(row["verdict"]),
            row["probe"],
            row["host"],
            contexts.index(row["context"]),
            row["actor"],
        ),
    )


def counts(found: t.Sequence[t.Mapping[str, str]]) -> dict[str, int]:
    return {verdict: sum(row["verdict"] == verdict for row in found) for verdict in ORDER}


def summary(found: t.Sequence[t.Mapping[str, str]], most: int = 40) -> list[str]:
    """Lines for the end of the run: what is wrong, together where only the host differs, and the numbers."""
    lines: dict[tuple[str, str, str], list[str]] = {}
    for row in found:
        if row["verdict"] in BAD:
            words = f"{row['verdict']} {row['probe']}: a tenant {row['claim']}" if row["verdict"] == api.FAIL else ""
            words = words or f"error {row['probe']}: not proven"
            lines.setdefault((words, row["control"], row["evidence"][:160]), []).append(
                f"{row['host']}/{row['context']}/{row['actor']}"
            )
    shown = [
        f"{words} - not on {', '.join(where[:6])}{' ...' if len(where) > 6 else ''} ({evidence}); control: {control}"
        for (words, control, evidence), where in lines.items()
    ]
    rest = [f"... and {len(shown) - most} more; see the report"] if len(shown) > most else []
    numbers = ", ".join(f"{count} {verdict}" for verdict, count in counts(found).items())
    probes = len({row["probe"] for row in found})
    return [*shown[:most], *rest, f"{probes} probes, {len(found)} answers: {numbers}"]


def controller(table: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """The controller as a host of the report: what its limits come to."""
    answers = [job_table(table)] if max_jobs(table["config"]) and table["accounts"] else []
    return {"host": table["host"], "kind": "controller", "answers": answers, "problem": table["problem"]}


def max_jobs(config: str) -> int:
    """MaxJobCount of `scontrol show config`, 0 where it is not there."""
    found = re.search(r"^MaxJobCount\s*=\s*(\d+)", config, re.MULTILINE)
    return int(found[1]) if found else 0


def job_table(table: t.Mapping[str, t.Any]) -> dict[str, str]:
    """The answer of probe job-table: no account right below root may have the table nearly to itself.

    Jobs stay in the table for MinJobAge after they have ended, so that a part of it is never free.

    A QOS caps an account only where every QOS of the account has a cap of the kind.
    """
    qos = {one["name"]: one for one in table["qos"]}
    most, said, bad, total = max_jobs(table["config"]), [], [], 0
    for account in table["accounts"]:
        if account.get("parent", "root") != "root" or account["name"] in table["ours"]:
            continue
        cap = account.get("grp_submit_jobs")
        names = account.get("qos") or list(table["default_qos"])
        caps = [qos.get(name, {}).get("max_submit_jobs_per_account") for name in names]
        if cap is None and caps and None not in caps:
            cap = sum(int(one) for one in caps)
        said.append(f"{account['name']} {'no limit' if cap is None else cap}")
        total += int(cap or 0)
        if cap is None or int(cap) > most * SHARE:
            bad.append(account["name"])
    together = f"together {total}{', more than fit' if total > most else ''}; " if len(said) > 1 else ""
    return {
        "probe": "job-table",
        "context": "controller",
        "actor": "root",
        "verdict": api.FAIL if bad else api.PASS if said else api.NOT_APPLICABLE,
        "evidence": f"MaxJobCount {most}, {most * SHARE:.0f} for one; {together}{', '.join(said) or 'no account'}",
    }
