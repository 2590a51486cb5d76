# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a probe is made of. A site's own probes import it too, as ``attest.api``.

This file and the probes run on managed nodes as an unprivileged user: Python 3.9 and its standard library only.
"""

from __future__ import annotations

import dataclasses
import errno
import os
import typing as t

# Verdicts. A probe that could not run is never a pass.
PASS = "pass"
FAIL = "FAIL"
NOT_APPLICABLE = "not applicable"
ERROR = "error"
# The attack succeeds, and the catalogue or the site says why that is so.
ACCEPTED = "accepted risk"
# For attest_run alone, which looks later: pass if that process is gone.
PENDING = "pending"
# In World.used: the other tenant's job that waits.
WAITING = "waiting job"

# Where a probe runs. The order is that of the reports.
CONTEXTS = {
    "login": "a session on a login node",
    "ssh": "ssh to a compute node without a job there",
    "cron": "cron",
    "at": "at",
    "user-manager": "systemd-run --user",
    "service": "a service that starts users' programs",
    "job": "a job with fewer GPUs than the node has",
    "container": "a container (user namespace) in that job",
    "ssh-job": "ssh to a compute node with a job there",
    "controller": "read by root on the controller",
}
EVERYWHERE = tuple(context for context in CONTEXTS if context != "controller")
NO_JOB = ("login", "ssh", "cron", "at", "user-manager", "service")
IN_JOB = ("job", "container", "ssh-job")

# Who attacks. The victim is always b.
ACTORS = {
    "a": "user of canary tenant A",
    "none": "user of no tenant",
    "capped": "user with tiny limits",
    "idle": "user who may run no job and submit one",
    "root": "nobody: read by root",
}


@dataclasses.dataclass(frozen=True)
class Outcome:
    verdict: str
    evidence: str
    # What attest_run still has to look at.
    process: dict[str, t.Any] | None = None
    # Whose answers it rests on (World.used); without them it proves nothing.
    needs: tuple[str, ...] = ()


def passed(evidence: str) -> Outcome:
    """The attack was refused; ``evidence`` is the errno or the answer."""
    return Outcome(PASS, evidence)


def failed(evidence: str) -> Outcome:
    """The attack succeeded."""
    return Outcome(FAIL, evidence)


def skipped(reason: str) -> Outcome:
    """There is nothing here to attack."""
    return Outcome(NOT_APPLICABLE, reason)


class NotProven(Exception):
    """The attack could not be made, so nothing is known."""


@dataclasses.dataclass(frozen=True)
class Probe:
    """``control``: what upholds the claim, for each context or, under "", for all others."""

    id: str
    claim: str
    control: t.Mapping[str, str]
    contexts: tuple[str, ...]
    attack: str
    function: t.Callable[[t.Any], Outcome] | None
    actors: tuple[str, ...] = ("a",)
    # Runs only on nodes that attest has reserved.
    disruptive: bool = False
    # Needs a victim's job on the same node; those are on the reserved ones too.
    neighbour: bool = False
    # Why the attack may succeed: no control exists.
    accepted: str = ""

    def control_in(self, context: str) -> str:
        return self.control.get(context, self.control.get("", ""))


# Filled by the decorator while the files of the catalogue are imported.
REGISTRY: dict[str, Probe] = {}


def probe(
    id: str,
    claim: str,
    control: str | t.Mapping[str, str],
    contexts: t.Sequence[str],
    **options: t.Any,
) -> t.Callable[[t.Callable[[t.Any], Outcome]], t.Callable[[t.Any], Outcome]]:
    """Enter a function into the catalogue. Its documentation string says what the attack is."""

    def enter(function: t.Callable[[t.Any], Outcome]) -> t.Callable[[t.Any], Outcome]:
        controls = {"": control} if isinstance(control, str) else dict(control)
        actors = tuple(options.pop("actors", ("a",)))
        attack = " ".join((function.__doc__ or "").split())
        found = Probe(id, claim, controls, tuple(contexts), attack, function, actors, **options)
        problems = unsound(found)
        if id in REGISTRY:
            problems.append("there is another probe of this name; give it one of its own")
        if problems:
            raise ValueError(f"probe {id}: {'; '.join(problems)}")
        REGISTRY[id] = found
        return function

    return enter


def unsound(found: Probe) -> list[str]:
    """Pure: what is wrong with an entry of the catalogue."""
    problems = []
    if not found.id or set(found.id) - set("abcdefghijklmnopqrstuvwxyz0123456789-"):
        problems.append("its name may have lower case letters, digits and '-' alone")
    if not found.claim or not found.attack:
        problems.append("say the claim, and in the function's documentation string the attack")
    if not found.contexts or set(found.contexts) - set(CONTEXTS):
        problems.append(f"contexts must be some of {', '.join(CONTEXTS)}")
    if not found.actors or set(found.actors) - set(ACTORS):
        problems.append(f"actors must be some of {', '.join(ACTORS)}")
    if not found.accepted and any(not found.control_in(context) for context in found.contexts):
        problems.append("name the control that upholds the claim in every context")
    if (found.disruptive or found.neighbour) and set(found.contexts) - set(IN_JOB):
        problems.append("a disruptive probe, or one that needs a neighbour, runs in a job's contexts only")
    return problems


def name(number: int) -> str:
    return errno.errorcode.get(number, str(number))


def answer(function: t.Callable[..., t.Any], *args: t.Any) -> str:
    """Call something that may be refused: its errno by name, or "" where it was not refused."""
    try:
        function(*args)
    except OSError as error:
        return name(error.errno or 0)
    return ""


def opened(path: str, flags: int = os.O_RDWR) -> str:
    """Errno of opening a file, "" when it opened. The file is not changed."""
    return answer(lambda: os.close(os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)))
