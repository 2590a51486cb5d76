# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pure: what the program wrote becomes one answer for each probe that was asked."""

from __future__ import annotations

import typing as t

from . import api


def collected(
    probes: t.Sequence[str], context: str, lines: t.Sequence[t.Mapping[str, t.Any]], why: str
) -> list[dict[str, t.Any]]:
    """One answer for each probe. One that is missing is an error: ``why`` nothing came, or that it was cut off."""
    said = {line["id"]: line for line in lines if line.get("context") == context and "id" in line}
    started = {line["started"] for line in lines if line.get("context") == context and "started" in line}
    found = []
    for id in probes:
        if id in said and said[id].get("verdict") in (api.PASS, api.FAIL, api.NOT_APPLICABLE, api.ERROR, api.PENDING):
            line = said[id]
            needs = line.get("needs")
            one = answer(id, context, line["verdict"], str(line.get("evidence", "")), line.get("process"))
            found.append({**one, "needs": needs if isinstance(needs, list) else []})
        else:
            reason = f"began, and was cut off: {why}" if id in started else why
            found.append(answer(id, context, api.ERROR, reason))
    return found


def answer(id: str, context: str, verdict: str, evidence: str, process: t.Any = None) -> dict[str, t.Any]:
    return {"probe": id, "context": context, "verdict": verdict, "evidence": evidence, "process": process}


def worst(found: t.Sequence[t.Mapping[str, t.Any]]) -> list[dict[str, t.Any]]:
    """One answer for each probe, context and actor, of several services the worst."""
    order = (api.NOT_APPLICABLE, api.PASS, api.ERROR, api.FAIL)
    kept: dict[tuple[str, str, str], dict[str, t.Any]] = {}
    for one in found:
        key = (one["probe"], one["context"], one["actor"])
        if key not in kept or order.index(one["verdict"]) > order.index(kept[key]["verdict"]):
            kept[key] = dict(one)
    return list(kept.values())


def closed(probes: t.Sequence[str], context: str, why: str) -> list[dict[str, t.Any]]:
    """A door that the user cannot even get through: there is nothing behind it, and for node-login that is the claim."""
    return [answer(id, context, api.PASS if id == "node-login" else api.NOT_APPLICABLE, why) for id in probes]


def still_true(one: t.Mapping[str, t.Any], gone: t.Mapping[str, str]) -> dict[str, t.Any]:
    """Nobody is refused by a victim that is not there: of such an answer a pass proves nothing.

    :param gone: what the answer may have needed and is no more -> why.
    """
    kept = {key: value for key, value in one.items() if key != "needs"}
    missing = [gone[need] for need in one.get("needs", ()) if isinstance(need, str) and need in gone]
    if not missing or one["verdict"] != api.PASS:
        return kept
    return {**kept, "verdict": api.ERROR, "evidence": f"{'; '.join(missing)}; so nothing is proven: {one['evidence']}"}


def settled(one: t.Mapping[str, t.Any], alive: bool, stopped: bool) -> dict[str, t.Any]:
    """The answer of a probe that left a process behind, once its job is over."""
    if one["verdict"] != api.PENDING:
        return dict(one)
    if not stopped:
        return {**one, "verdict": api.ERROR, "evidence": f"{one['evidence']}: the job did not end", "process": None}
    verdict, word = (api.FAIL, "still runs after the job") if alive else (api.PASS, "is gone with the job")
    return {**one, "verdict": verdict, "evidence": f"{one['evidence']} {word}", "process": None}
