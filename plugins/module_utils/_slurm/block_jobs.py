# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The jobs of whom a block concerns. Private to the gpuops.tenancy collection.

All of them are held before the block and released after it: what waits stays waiting, what runs runs on and waits if it
is requeued. Without that slurmctld takes a job whose QOS is no longer granted off the counts of submitted jobs, and
takes it off once more when it ends: the count of the whole tenant wraps round, and nobody of it can submit until
slurmctld starts anew (seen on 22.05).
"""

from __future__ import annotations

import shlex
import time
import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.client import Client, SlurmError, failure
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.model import Key

WAIT = 15.0
_PORTION = 200
_HELD = ("JobHeldAdmin", "JobHeldUser")


def free(client: Client, covered: t.Container[tuple[str, str]]) -> dict[str, tuple[str, str]]:
    """Jobs of these (account, user) that nobody holds."""
    return {job: where for job, where, reason in _queue(client) if where in covered and reason not in _HELD}


def hold(client: Client, jobs: t.Iterable[str]) -> list[str]:
    """One that ends meanwhile is gone: the status of scontrol says nothing."""
    commands = hold_argv(client, "hold", jobs)
    for argv in commands:
        client.run(argv)
    return [shlex.join(argv) for argv in commands]


def release(client: Client, jobs: t.Sequence[str]) -> list[str]:
    commands = hold_argv(client, "release", jobs)
    for argv in commands:
        client.run(argv)
    if jobs:
        left = sorted(job for job, _where, reason in _queue(client) if job in set(jobs) and reason == _HELD[0])
        if left:
            raise SlurmError(f"jobs {', '.join(left[:20])} are still held; is slurmctld up? Run again")
    return [shlex.join(argv) for argv in commands]


def hold_argv(client: Client, verb: str, jobs: t.Iterable[str]) -> list[list[str]]:
    ids = sorted(jobs)
    return [
        [client.program("scontrol"), verb, ",".join(ids[first : first + _PORTION])]
        for first in range(0, len(ids), _PORTION)
    ]


def cancel_argv(client: Client, jobs: t.Sequence[dict[str, str]]) -> list[list[str]]:
    """What waits, never what runs: of an array too."""
    ids = list(dict.fromkeys(job["id"].split("_")[0].split("+")[0] for job in jobs))
    return [
        [client.program("scancel"), "-M", client.cluster, "-t", "PENDING", *ids[first : first + _PORTION]]
        for first in range(0, len(ids), _PORTION)
    ]


def cancel(client: Client, cancels: t.Sequence[list[str]], targets: t.Sequence[Key]) -> None:
    """Established by looking again, since scancel succeeds whatever it does."""
    for argv in cancels:
        done = client.run(argv)
        if done.rc != 0:
            raise failure(done, "the block is in place; what was queued is not cancelled")
    deadline = time.monotonic() + WAIT
    while cancels:
        left = [job["id"] for job in client.jobs_of(targets) if job["state"] == "PENDING"]
        if not left:
            return
        if time.monotonic() > deadline:
            raise SlurmError(
                f"the block is in place, but jobs {', '.join(left[:20])} are still queued after {WAIT:g} s; run again"
            )
        time.sleep(1)


def _queue(client: Client) -> list[tuple[str, tuple[str, str], str]]:
    """(job, (account, user), reason); of an array its number, which stands for all that waits of it."""
    argv = [client.program("squeue"), "-h", "-M", client.cluster, "-t", "PENDING,RUNNING,SUSPENDED"]
    argv += ["-o", "%A|%u|%a|%r"]
    done = client.run(argv)
    if done.rc != 0:
        raise failure(done, "the jobs cannot be listed, so nothing is changed")
    found = []
    for line in done.stdout.splitlines():
        if not line or line.startswith("CLUSTER:"):
            continue
        parts = line.split("|")
        if len(parts) != 4:
            raise SlurmError(f"squeue printed {line!r}, which cannot be read")
        job, user, account, reason = parts
        found.append((job, (account, user), reason))
    return found
