# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a tenant may not do through Slurm. Every object that is touched is a canary's."""

from __future__ import annotations

import grp
import os
import re

from ..api import NotProven, failed, passed, probe, skipped

ENFORCE = "slurm_config: AccountingStorageEnforce"


def submit(world, *options: str) -> tuple[str, str]:
    """Submit a held job. (job id, "") where Slurm took it, and it is cancelled at once; else ("", its answer)."""
    argv = ["sbatch", "--parsable", "--hold", "--time=1", "--mem=10", "--chdir=/", "--output=/dev/null", *options]
    code, out, err = world.run(argv, stdin="#!/bin/sh\nexit 0\n")
    if code == 0:
        job = out.strip().split(";")[0]
        world.run(["scancel", job])
        return job, ""
    return "", " ".join((err or out).split())[:200]


def refused(world, pattern: str, *options: str):
    job, answer = submit(world, *options)
    words = " ".join(options)
    if job:
        return failed(f"sbatch {words}: accepted as job {job}, and cancelled")
    if not re.search(pattern, answer, re.IGNORECASE):
        raise NotProven(f"sbatch {words}: refused for another reason: {answer}")
    return passed(f"sbatch {words}: {answer}")


@probe(
    "submit-without-account",
    "submits nothing without an account",
    f"{ENFORCE}=associations",
    ("login",),
    actors=("none",),
)
def submit_without_account(world):
    """sbatch as a user whom no tenant knows."""
    return refused(world, "invalid account|user.s account|associat")


@probe(
    "submit-foreign-account",
    "submits to no other tenant's account",
    f"{ENFORCE}=associations",
    ("login",),
    actors=("a", "none"),
)
def submit_foreign_account(world):
    """sbatch --account of another tenant."""
    return refused(world, "invalid account", f"--account={world.facts['accounts']['b']}")


@probe("submit-foreign-qos", "submits to no QOS that the tenant was not given", f"{ENFORCE}=qos", ("login",))
def submit_foreign_qos(world):
    """sbatch --qos with every QOS of the cluster except the own ones."""
    code, out, err = world.run(["sacctmgr", "-nP", "show", "qos", "format=name"])
    if code:
        raise NotProven(f"sacctmgr show qos ended with {code}: {err.strip()[:200]}")
    own = set(world.facts["qos"])
    foreign = [name for name in out.split() if name not in own]
    if not foreign:
        return skipped("there is no QOS that the tenant was not given")
    answers = [refused(world, "invalid qos|access|submit", f"--qos={name}") for name in foreign]
    return next(
        (one for one in answers if one.verdict != "pass"), passed("; ".join(one.evidence for one in answers)[:600])
    )


def partitions(text: str) -> list[tuple[str, dict[str, str]]]:
    """Pure: the partitions of ``scontrol -o show partition``."""
    lines = [dict(word.partition("=")[::2] for word in line.split()) for line in text.splitlines()]
    return [(values["PartitionName"], values) for values in lines if "PartitionName" in values]


def closed(values: dict[str, str], what: str, own: set[str]) -> bool:
    """Pure: whether a partition lets nobody in who has these alone. Slurm looks at what it denies where it allows all."""
    allowed, denied = (values.get(f"{word}{what}", "") for word in ("Allow", "Deny"))
    if allowed.upper() not in ("", "ALL", "(NULL)"):
        return not own & set(allowed.split(","))
    return bool(own & set(denied.split(",")))


def name_of(gid: int) -> str:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)


@probe(
    "submit-foreign-partition",
    "submits to no partition that is not for the tenant",
    "slurm_config: AllowAccounts, AllowGroups and AllowQos of partitions",
    ("login",),
)
def submit_foreign_partition(world):
    """sbatch --partition with every partition that by AllowAccounts, AllowGroups, AllowQos, or what they deny, is not for the user."""
    code, out, err = world.run(["scontrol", "-a", "-o", "show", "partition"])
    if code:
        raise NotProven(f"scontrol show partition ended with {code}: {err.strip()[:200]}")
    groups = {name_of(gid) for gid in {os.getgid(), *os.getgroups()}}
    own = {"Accounts": {world.facts["accounts"]["a"]}, "Groups": groups, "Qos": set(world.facts["qos"])}
    foreign = [name for name, values in partitions(out) if any(closed(values, what, own[what]) for what in own)]
    if not foreign:
        return skipped("every partition is for this user")
    answers = [refused(world, "partition|invalid account|group|access|qos", f"--partition={name}") for name in foreign]
    return next(
        (one for one in answers if one.verdict != "pass"), passed("; ".join(one.evidence for one in answers)[:600])
    )


@probe(
    "submit-foreign-reservation",
    "runs nothing in another tenant's reservation",
    "slurm: Accounts of reservations",
    ("login",),
    actors=("a", "none"),
)
def submit_foreign_reservation(world):
    """sbatch --reservation of another tenant."""
    name = world.facts.get("foreign_reservation")
    if not name:
        raise NotProven("there is no reservation of the other tenant to submit to")
    return refused(world, "reservation|access denied|invalid account", f"--reservation={name}")


@probe(
    "change-foreign-job",
    "changes, holds and cancels no other tenant's job",
    "slurm: jobs belong to their users",
    ("login",),
    actors=("a", "none"),
)
def change_foreign_job(world):
    """scontrol update and scontrol hold of another tenant's waiting job."""
    job = world.waiting_job
    if not job:
        raise NotProven("the other tenant has no waiting job")
    said = []
    for argv in (["scontrol", "update", f"JobId={job}", "Comment=attest"], ["scontrol", "hold", job]):
        code, out, err = world.run(argv)
        if code == 0 and not (out + err).strip():
            return failed(f"{' '.join(argv)}: done")
        answer = " ".join((err or out).split())[:150]
        if not re.search("denied|invalid job id|invalid user|not permitted", answer, re.IGNORECASE):
            raise NotProven(f"{' '.join(argv)}: {answer}")
        said.append(f"{argv[1]}: {answer}")
    return passed("; ".join(said))


def tried(world, *commands: list[str]):
    """sacctmgr's exit status and words prove nothing: what it wrote is read back."""
    account, user = world.facts["accounts"]["a"], world.facts["users"]["a"]
    read = [
        "sacctmgr",
        "-nP",
        "show",
        "assoc",
        "where",
        f"account={account}",
        f"user={user}",
        "format=account,user,grpjobs,maxjobs,maxsubmit",
    ]
    rights = ["sacctmgr", "-nP", "show", "user", "where", f"name={user}", "withcoord", "format=user,admin,coord"]
    before = [world.run(argv)[1] for argv in (read, rights)]
    if not all(user in text for text in before):
        raise NotProven(f"{' '.join(read)} does not show the user herself")
    said = []
    for argv in commands:
        _code, out, err = world.run(argv)
        said.append(f"{' '.join(argv[2:5])}: {' '.join((err + ' ' + out).split())[:120] or 'no word'}")
    after = [world.run(argv)[1] for argv in (read, rights)]
    if after != before:
        return failed(f"{' '.join(after)!r} was {' '.join(before)!r} before")
    return passed("; ".join(said))


@probe(
    "become-coordinator",
    "makes nobody coordinator or administrator",
    "slurm_database: slurmdbd's AdminLevel; no coordinators",
    ("login",),
)
def become_coordinator(world):
    """sacctmgr add coordinator for the own account, and AdminLevel=Administrator for oneself."""
    account, user = world.facts["accounts"]["a"], world.facts["users"]["a"]
    return tried(
        world,
        ["sacctmgr", "-i", "add", "coordinator", f"account={account}", f"names={user}"],
        ["sacctmgr", "-i", "modify", "user", "where", f"name={user}", "set", "AdminLevel=Administrator"],
    )


@probe(
    "raise-own-limits",
    "raises none of its own limits",
    "slurm_database: slurmdbd's AdminLevel; no coordinators",
    ("login",),
)
def raise_own_limits(world):
    """sacctmgr modify of one's own user and account."""
    account, user = world.facts["accounts"]["a"], world.facts["users"]["a"]
    return tried(
        world,
        ["sacctmgr", "-i", "modify", "user", "where", f"name={user}", "set", "MaxJobs=999", "MaxSubmitJobs=999"],
        ["sacctmgr", "-i", "modify", "account", "where", f"name={account}", "set", "GrpJobs=999"],
    )
