# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A canary's job on a chosen node. For the modules, which run as root."""

from __future__ import annotations

import re
import time
import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils._command import run

from .place import PlaceError, as_user

# The largest that Slurm takes: behind everybody's jobs, whatever these count for.
NICE = "--nice=2147483645"


def node(name: str, path: t.Sequence[str]) -> dict[str, str]:
    """What Slurm says of a node: key -> value.

    :raises PlaceError: Slurm does not know it.
    """
    done = run(["env", f"PATH={':'.join(path)}", "scontrol", "-o", "show", "node", name], timeout=30)
    found = values(done.stdout)
    if done.rc or found.get("NodeName") != name:
        raise PlaceError(f"Slurm does not know node {name}: {' '.join((done.stderr or done.stdout).split())[:200]}")
    return found


def values(line: str) -> dict[str, str]:
    """Pure: scontrol's words of one line. A value with spaces loses all but its first word."""
    return dict(word.partition("=")[::2] for word in line.split() if "=" in word)


def gpus(found: t.Mapping[str, str]) -> int:
    """Pure: how many GPUs a node has, types added up."""
    text = re.sub(r"\(.*?\)", "", found.get("Gres", ""))
    return sum(int(number) for number in re.findall(r"(?:^|,)gpu(?::[^:,]+)?:(\d+)", text))


def options(
    found: t.Mapping[str, str], reservation: str, partition: str, account: str, memory: int, minutes: int
) -> list[str]:
    """Pure: sbatch's options for a small job on this node alone."""
    partition = partition or found.get("Partitions", "").split(",")[0]
    return [
        "--parsable",
        "--job-name=gpuops-attest",
        f"--account={account}",
        f"--nodelist={found['NodeName']}",
        "--nodes=1",
        "--ntasks=1",
        f"--mem={memory}",
        f"--time={minutes}",
        "--no-requeue",
        "--chdir=/",
        "--output=/dev/null",
        "--open-mode=append",
        "--export=NONE",
        *([f"--partition={partition}"] if partition else []),
        # Last in the queue, unless the node is reserved for it.
        *([f"--reservation={reservation}"] if reservation else [NICE]),
    ]


def submit(user: str, argv: t.Sequence[str], script: str, path: t.Sequence[str]) -> tuple[str, str]:
    """Submit. (job id, "") or ("", Slurm's answer). slurmctld learns of new users a moment after slurmdbd."""
    until = time.monotonic() + 15
    while True:
        done = as_user(user, ["sbatch", *argv], path, stdin=script)
        if done.rc == 0:
            return done.stdout.strip().split(";", maxsplit=1)[0], ""
        if time.monotonic() > until or "account" not in done.stderr.lower():
            return "", " ".join((done.stderr or done.stdout).split())[:300]
        time.sleep(1)


def state(job: str, path: t.Sequence[str]) -> str:
    """State and reason of a job, "" once it is over. A controller that does not answer ends no job."""
    done = run(["env", f"PATH={':'.join(path)}", "squeue", "-h", "-j", job, "-o", "%T %r"], timeout=30)
    if done.rc and "invalid job id" not in done.stderr.lower():
        return f"UNKNOWN ({' '.join(done.stderr.split())[:150]})"
    return done.stdout.strip() if done.rc == 0 else ""


def cancel(user: str, jobs: t.Sequence[str], path: t.Sequence[str]) -> None:
    if jobs:
        as_user(user, ["scancel", *jobs], path)
