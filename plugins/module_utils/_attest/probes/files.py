# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files, shared memory and Slurm's own files."""

from __future__ import annotations

import ctypes
import glob
import os
import uuid

from ..api import NotProven, answer, failed, name, opened, passed, probe, skipped

IN_SESSION = ("login", "cron", "at", "job")
TMPFS = "slurm_compute: job_container/tmpfs (private /tmp and /dev/shm of each job)"


def neighbour(world) -> dict:
    if not world.here:
        raise NotProven("no victim runs on this host")
    return world.here[0]


def unread(paths: list[str]):
    """None of these may be read."""
    answers = {path: opened(path, os.O_RDONLY) for path in paths}
    evidence = ", ".join(f"{path} {said or 'read'}" for path, said in sorted(answers.items()))
    return failed(evidence) if "" in answers.values() else passed(evidence)


@probe("job-tmp", "sees no file that another job has put into /tmp", TMPFS, ("job",), neighbour=True)
def job_tmp(world):
    """Open a world-readable file that another tenant's job on the node has in its /tmp."""
    return unread([neighbour(world)["files"]["tmp_open"]])


@probe("job-shm", "sees no file that another job has put into /dev/shm", TMPFS, ("job",), neighbour=True)
def job_shm(world):
    """Open a world-readable file that another tenant's job on the node has in its /dev/shm."""
    return unread([neighbour(world)["files"]["shm_open"]])


@probe(
    "private-files",
    "reads and removes no private file of others in /tmp and /dev/shm",
    "kernel: file modes, sticky bit of /tmp and /dev/shm",
    ("login",),
    actors=("a", "none"),
)
def private_files(world):
    """Open, and try to rename away, another tenant's files of mode 0600."""
    files = neighbour(world)["files"]
    paths = [files["tmp_private"], files["shm_private"]]
    found = unread(paths)
    if found.verdict != "pass":
        return found
    said = [found.evidence]
    for path in paths:
        away = f"{path}-{uuid.uuid4().hex[:8]}"
        refusal = answer(os.rename, path, away)
        if refusal == "":
            os.rename(away, path)
            return failed(f"rename of {path}: done, and undone")
        said.append(f"rename {refusal}")
    return passed(", ".join(said))


@probe("other-home", "enters no other user's home", "identity: HOME_MODE 0700", ("login", "job"), actors=("a", "none"))
def other_home(world):
    """List another tenant's home directory, and open a world-readable file in it."""
    home = world.facts["homes"]["b"]
    said = answer(os.listdir, home) or "listed"
    if said == "ENOENT":
        return skipped(f"{home} is not on this host")
    inside = next((one["files"].get("home") for one in world.here if one["files"].get("home")), "")
    through = opened(inside, os.O_RDONLY) if inside else "no file to open"
    evidence = f"list {home}: {said}; open a file in it: {through or 'read'}"
    return failed(evidence) if said == "listed" or through == "" else passed(evidence)


@probe(
    "other-scratch", "enters no other user's scratch", "attest_scratch: modes of users' directories", ("login", "job")
)
def other_scratch(world):
    """List the other tenant's directory below each of the site's scratch directories."""
    users = world.facts["users"], world.facts["accounts"]
    paths = [os.path.join(top, names["b"]) for top in world.facts.get("scratch", []) for names in users]
    answers = {path: answer(os.listdir, path) or "listed" for path in paths}
    answers = {path: said for path, said in answers.items() if said != "ENOENT"}
    if not answers:
        return skipped("attest_scratch names no directory that has one of the other tenant")
    evidence = ", ".join(f"{path} {said}" for path, said in answers.items())
    return failed(evidence) if "listed" in answers.values() else passed(evidence)


@probe(
    "ipc",
    "attaches no other user's private shared memory, messages or semaphores",
    "kernel: modes of IPC objects",
    ("login", "job"),
)
def ipc(world):
    """shmat, msgctl (IPC_STAT) and semctl (GETVAL) on another tenant's System V objects of mode 0600, by their ids."""
    if not world.here:
        return skipped("no victim runs on this host")
    ids = world.here[0]["ipc"]
    libc = ctypes.CDLL(None, use_errno=True)
    libc.shmat.restype = ctypes.c_ssize_t
    answers = {}
    for what, call in (
        ("shmat", lambda: libc.shmat(ids["shm"], None, 0o10000)),
        ("msgctl", lambda: libc.msgctl(ids["msg"], 2, ctypes.create_string_buffer(512))),
        ("semctl", lambda: libc.semctl(ids["sem"], 0, 12)),
    ):
        answers[what] = name(ctypes.get_errno()) if call() == -1 else ""
    evidence = ", ".join(f"{what} {said or 'worked'}" for what, said in answers.items())
    return failed(evidence) if "" in answers.values() else passed(evidence)


@probe(
    "slurm-files",
    "writes to none of Slurm's files and directories",
    "slurm_config, slurm_controller, slurm_compute: owners and modes",
    IN_SESSION,
)
def slurm_files(world):
    """Open Slurm's and munge's configuration for writing, and make a file in their directories, spool and log."""
    answers = {}
    for path in world.facts["slurm_files"]:
        for found in sorted(glob.glob(path)):
            if os.path.isdir(found):
                made = os.path.join(found, f".attest-{uuid.uuid4().hex[:8]}")
                said = opened(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
                if said == "":
                    os.unlink(made)
            else:
                said = opened(found, os.O_WRONLY)
            answers[found] = said
    if not answers:
        raise NotProven(f"none of {', '.join(world.facts['slurm_files'])} is here")
    evidence = ", ".join(f"{path} {said or 'written'}" for path, said in answers.items())
    return failed(evidence) if "" in answers.values() else passed(evidence)


@probe(
    "slurm-secrets",
    "reads none of Slurm's secrets",
    "munge, slurm_database, slurm_controller: owners and modes",
    IN_SESSION,
    actors=("a",),
)
def slurm_secrets(world):
    """Open munge.key, slurmdbd.conf, JWT keys and slurmctld's state for reading."""
    answers = {}
    for pattern in world.facts["slurm_secrets"]:
        # A path without a star is tried as it is: in a closed folder it cannot be seen.
        for path in [pattern] if glob.escape(pattern) == pattern else sorted(glob.glob(pattern)):
            answers[path] = opened(path, os.O_RDONLY)
    answers = {path: said for path, said in answers.items() if said != "ENOENT"}
    if not answers:
        return skipped("none of them is on this host")
    evidence = ", ".join(f"{path} {said or 'read'}" for path, said in sorted(answers.items()))
    return failed(evidence) if "" in answers.values() else passed(evidence)


@probe(
    "job-spool",
    "reads no other job's script and environment in slurmd's spool",
    "slurm_compute: slurmd's modes of its spool",
    ("job",),
    neighbour=True,
)
def job_spool(world):
    """Open slurm_script and everything else in the spool directory of another tenant's job on the node."""
    paths = neighbour(world).get("spool", [])
    if not paths:
        raise NotProven("root did not find the script of the other tenant's job in slurmd's spool")
    return unread(paths)
