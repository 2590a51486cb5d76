# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""All attacks on one node, side by side as far as they may be. For attest_run, which is root."""

from __future__ import annotations

import time
import typing as t

from . import answers, api, contexts, place, slurm_node, sshd
from .job import Job

JOB_CONTEXTS = ("job", "container", "ssh-job")


class Superseded(Exception):
    """Another run has taken over this node."""


def attack(params: t.Mapping[str, t.Any]) -> list[dict[str, t.Any]]:
    """Run everything and return one answer for each probe, context and actor.

    :raises PlaceError: the node cannot be used.
    """
    run_id, path = params["run_id"], params["search_path"]
    place.stage(params["program"], run_id)
    facts = {**params["facts"], "path": ":".join(path)}
    doors = [
        contexts.Entry(one["context"], one["actor"], facts["users"][one["actor"]], one["probes"], unit=unit)
        for one in params["runs"]
        if one["context"] not in JOB_CONTEXTS
        for unit in (facts["services"] or [""] if one["context"] == "service" else [""])
    ]
    in_job = {one["context"]: one["probes"] for one in params["runs"] if one["context"] in JOB_CONTEXTS}
    found: list[dict[str, t.Any]] = []
    by_ssh = False
    started = time.monotonic()
    try:
        for entry in doors:
            contexts.start(entry, {"actor": entry.actor, "facts": facts}, path)
        # Who is to be refused for want of a job must not have one yet.
        wait([entry for entry in doors if entry.context == "ssh"], started, run_id)
        if in_job:
            # An epilog may end all processes of a user whose last job on the node is over: the others come first.
            found, by_ssh = with_job(params, facts, in_job, lambda: wait(doors, started, run_id))
        wait(doors, started, run_id)
        for entry in doors:
            found += judged(entry, facts, by_ssh if entry.context == "ssh" else entry.actor != "a" and came_in(doors))
        gone = missing(facts, {need for one in found for need in one.get("needs", ())}, path)
    finally:
        for entry in doors:
            contexts.finish(entry, path)
    return answers.worst([answers.still_true(one, gone) for one in found])


def came_in(doors: t.Sequence[contexts.Entry]) -> bool:
    """Whether the canary with an account got a session on this login node."""
    return any(place.lines(entry.out) for entry in doors if (entry.context, entry.actor) == ("login", "a"))


def missing(facts: t.Mapping[str, t.Any], needed: t.Collection[str], path: t.Sequence[str]) -> dict[str, str]:
    """Victims that are gone, now that all was tried -> why. A victim's job is over when she is."""
    found = {}
    for one in facts["victims"]:
        host = one["host"]
        if host not in needed:
            continue
        if host == facts["host"] and not alive({"pid": one["pids"][0], "start": one["start"]}):
            found[host] = f"the victim on {host} is gone"
        elif one["job"] and not slurm_node.state(one["job"], path).startswith("RUNNING"):
            found[host] = f"the victim's job {one['job']} on {host} does not run any more"
    job = facts.get("pending_job")
    if api.WAITING in needed and not slurm_node.state(job, path).startswith("PENDING"):
        found[api.WAITING] = f"the other tenant's job {job} does not wait any more"
    return found


def wait(doors: t.Sequence[contexts.Entry], started: float, run_id: str) -> None:
    while any(not over(entry) and not contexts.late(entry, time.monotonic() - started) for entry in doors):
        check(run_id)
        time.sleep(0.2)


def check(run_id: str) -> None:
    if not place.current(run_id):
        raise Superseded("another run of attest has taken over this node; run one at a time")


def over(entry: contexts.Entry) -> bool:
    if entry.closed or entry.broken:
        return True
    if entry.process is not None:
        return entry.process.poll() is not None
    return any(line.get("done") for line in place.lines(entry.out))


def judged(entry: contexts.Entry, facts: t.Mapping[str, t.Any], control: bool = False) -> list[dict[str, t.Any]]:
    """Answers of one door.

    :param control: whether a login by the same door came about that differs in nothing but what is to be refused.
    """
    log = contexts.said(entry)
    came = place.lines(entry.out) if entry.out else []
    if entry.key is not None and not came:
        kind, why = sshd.refusal(log, entry.key.lists)
        if expected(entry, kind, control, facts["ssh_to_jobs"]):
            entry.closed = why
        else:
            entry.broken = why if kind == "broken" else f"{why}; {NO_PROOF[entry.context]}"
    if entry.closed:
        found = answers.closed(entry.probes, entry.context, entry.closed)
    else:
        why = entry.broken or f"{entry.context} gave no answer in time: {' '.join(plain(log).split())[-300:]}"
        found = answers.collected(entry.probes, entry.context, came, why)
    where = f"{entry.unit}: " if entry.unit else ""
    return [{**one, "actor": entry.actor, "evidence": where + one["evidence"]} for one in found]


NO_PROOF = {
    "login": "users have to get in here, so nothing is proven",
    "ssh": "that is not for want of a job, so it proves nothing as long as nobody came in with one",
    "ssh-job": "the user has a job here, so adoption is broken (see attest_ssh_to_jobs)",
}


def expected(entry: contexts.Entry, kind: str, control: bool, ssh_to_jobs: bool) -> bool:
    """Pure: whether a refused login is what the site wants, so that there is nothing behind it."""
    if kind == "broken":
        return False
    if entry.context == "login":
        # Who is in no tenant need not get in where others do.
        return entry.actor == "none" and control
    return not ssh_to_jobs or entry.context == "ssh" and (kind == "jobless" or control)


def plain(log: str) -> str:
    return "\n".join(line for line in log.splitlines() if not line.startswith("debug"))


def with_job(
    params: t.Mapping[str, t.Any],
    facts: t.Mapping[str, t.Any],
    in_job: t.Mapping[str, list[str]],
    others: t.Callable[[], None],
) -> tuple[list[dict[str, t.Any]], bool]:
    """The job's contexts: inside it, in a container in it, and by ssh while it runs. And whether ssh let the user in."""
    path, user = params["search_path"], facts["users"]["a"]
    if params["private"]:
        none = [one for context in in_job for one in answers.closed(in_job[context], context, params["private"])]
        return [{**one, "actor": "a"} for one in none], False
    job = Job(params, facts, in_job)
    found, by_ssh = [], False
    try:
        job.start(lambda: check(params["run_id"]))
        came = place.lines(job.out)
        for context in ("job", "container"):
            found += answers.collected(in_job.get(context, []), context, came, job.why)
        if "ssh-job" in in_job:
            entry = contexts.Entry("ssh-job", "a", user, in_job["ssh-job"])
            if job.running:
                try:
                    contexts.start(entry, {"actor": "a", "facts": facts, "gpus": job.gpus}, path)
                    wait([entry], time.monotonic(), params["run_id"])
                finally:
                    contexts.finish(entry, path)
            else:
                entry.broken = job.why
            found += judged(entry, facts)
            by_ssh = bool(entry.out and place.lines(entry.out))
        others()
    finally:
        job.end()
    stopped = not slurm_node.state(job.id, path) if job.id else True
    return [{**answers.settled(one, alive(one.get("process")), stopped), "actor": "a"} for one in found], by_ssh


def alive(process: t.Mapping[str, t.Any] | None) -> bool:
    """Whether exactly this process still runs."""
    if not process:
        return False
    try:
        with open(f"/proc/{int(process['pid'])}/stat") as stream:
            fields = stream.read().rsplit(")", 1)[1].split()
    except (OSError, ValueError, KeyError, IndexError):
        return False
    return fields[19] == str(process.get("start")) and fields[0] not in "ZX"
