# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Prove that users can run jobs, by running one. Private to the gpuops.tenancy collection.

``sbatch --test-only`` proves nothing: it passes under a cap of zero GPUs and fails because a node is drained.
"""

from __future__ import annotations

import dataclasses
import typing as t

SCRIPT = "#!/bin/sh\nexit 0\n"
JOB_NAME = "tenancy-smoke-test"
ENDED = (
    "COMPLETED",
    "FAILED",
    "CANCELLED",
    "TIMEOUT",
    "NODE_FAIL",
    "OUT_OF_MEMORY",
    "BOOT_FAIL",
    "DEADLINE",
    "PREEMPTED",
    "REVOKED",
)
# sbatch's words where a limit that may be meant keeps the job out, in contrast to a user who is not set up.
_LIMITS = (
    "SubmitJob",
    "MaxSubmitJob",
    "GrpSubmitJob",
    "MaxWall",
    "GRES",
    "AssocMax",
    "QOSMax",
    "QOSGrp",
    "AssocGrp",
    "PartitionTimeLimit",
)


@dataclasses.dataclass
class Attempt:
    """One job of one user. ``reason`` says why it is not proven."""

    user: str
    account: str
    qos: str = ""
    partition: str = ""
    gres: str = ""
    job_id: str = ""
    state: str = ""
    node: str = ""
    reason: str = ""
    refused: bool = False

    @property
    def proven(self) -> bool:
        return self.state == "COMPLETED"

    @property
    def open(self) -> bool:
        """Still waiting or running."""
        return bool(self.job_id) and not self.state.startswith(ENDED)

    def as_dict(self) -> dict[str, t.Any]:
        return {**dataclasses.asdict(self), "proven": self.proven}


def submit_argv(attempt: Attempt, sbatch: str = "sbatch") -> list[str]:
    """sbatch as the user, script on standard input; one minute at most, and nothing written."""
    argv = [
        "runuser",
        "-u",
        attempt.user,
        "--",
        sbatch,
        "--parsable",
        f"--account={attempt.account}",
        "--time=00:01:00",
        f"--job-name={JOB_NAME}",
        "--output=/dev/null",
        "--error=/dev/null",
        "--chdir=/",
        "--no-requeue",
    ]
    for option in ("qos", "partition", "gres"):
        if getattr(attempt, option):
            argv.append(f"--{option}={getattr(attempt, option)}")
    return argv


def note_submission(attempt: Attempt, rc: int, stdout: str, stderr: str) -> None:
    """Take over what sbatch said."""
    job_id = stdout.strip().split(";")[0]
    if rc == 0 and job_id.isdigit():
        attempt.job_id, attempt.state = job_id, "PENDING"
        return
    attempt.state = "REFUSED"
    attempt.reason = " ".join((stderr.strip() or stdout.strip() or f"sbatch ended with {rc}").split())
    attempt.refused = not any(word in attempt.reason for word in _LIMITS)


def note_queue(attempts: t.Iterable[Attempt], squeue: str) -> None:
    """Take over states and reasons; squeue -o '%i|%T|%N|%r'."""
    by_id = {attempt.job_id: attempt for attempt in attempts if attempt.open}
    for line in squeue.splitlines():
        job_id, state, node, reason = line.split("|", 3)
        if job_id in by_id:
            attempt = by_id[job_id]
            attempt.state, attempt.node = state, node
            attempt.reason = "" if reason == "None" else reason


def note_history(attempts: t.Iterable[Attempt], sacct: str) -> None:
    """Take over the end of jobs that have left the queue; sacct -nPX -o jobid,state,nodelist,exitcode."""
    by_id = {attempt.job_id: attempt for attempt in attempts if attempt.open}
    for line in sacct.splitlines():
        job_id, state, node, exit_code = line.split("|", 3)
        if job_id in by_id and state.startswith(ENDED):
            attempt = by_id[job_id]
            attempt.state, attempt.node = state.split()[0], node
            attempt.reason = "" if attempt.proven else f"{state}, exit code {exit_code}"


def give_up(attempts: t.Iterable[Attempt], deadline: int) -> list[str]:
    """Job ids to cancel at the deadline, with the reason noted."""
    late = [attempt for attempt in attempts if attempt.open]
    for attempt in late:
        why = attempt.reason or "no reason given"
        attempt.reason = f"{attempt.state} after {deadline} s ({why})"
        attempt.state = "NOT_PROVEN"
    return [attempt.job_id for attempt in late]
