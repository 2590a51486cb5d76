# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What Slurm's own commands give away of another tenant."""

from __future__ import annotations

import re

from ..api import NotProven, failed, passed, probe, skipped

CTLD = "slurm_config: PrivateData in slurm.conf"
DBD = "slurm_database: PrivateData in slurmdbd.conf"
# Slurm's words when it hides something. All else with a bad exit status means that nothing is known.
REFUSED = re.compile(
    r"access/permission denied|permission denied|invalid job id|invalid user|not found|nothing|does not exist"
    r"|invalid account|no associations|requested reservation is invalid|doesn't exist",
    re.IGNORECASE,
)


def ask(world, *commands: list[str]):
    """Run the commands; whatever names the victim, or shows its secret, has leaked."""
    said = []
    for argv in commands:
        code, out, err = world.run(argv)
        # A refusal repeats what was asked for.
        seen = world.foreign("\n".join(line for line in out.splitlines() if not REFUSED.search(line)))
        if seen:
            return failed(f"{' '.join(argv)} shows {', '.join(seen)}")
        if code and not REFUSED.search(out + err):
            raise NotProven(f"{' '.join(argv)} ended with {code}: {' '.join((err or out).split())[:200]}")
        said.append(f"{argv[0]} {argv[1]}: {'refused' if code else 'nothing of the other tenant'}")
    return passed("; ".join(said))


def victim_job(world) -> str:
    job = world.waiting_job or next((one["job"] for one in world.victims if one.get("job")), "")
    if not job:
        raise NotProven("the other tenant has no job to look for")
    return job


LOGIN = {"contexts": ("login",), "actors": ("a", "none")}


@probe("see-jobs", "sees no other tenant's jobs", CTLD, **LOGIN)
def see_jobs(world):
    """squeue, scontrol show job and sprio, while another tenant has jobs; and one of these by its id."""
    job = victim_job(world)
    return ask(
        world,
        ["squeue", "-a", "-h", "-o", "%i %u %a %j"],
        ["scontrol", "-o", "show", "job"],
        ["scontrol", "show", "job", job],
        ["sprio", "-h", "-o", "%i %u %o"],
    )


@probe(
    "see-job-script", "reads no other tenant's job script", "slurm: a script is its owner's and the operators'", **LOGIN
)
def see_job_script(world):
    """scontrol write batch_script of another tenant's job."""
    return ask(world, ["scontrol", "write", "batch_script", victim_job(world), "-"])


@probe("see-past-jobs", "sees no other tenant's past jobs", DBD, **LOGIN)
def see_past_jobs(world):
    """sacct for all users, for the other tenant's user, account and job."""
    facts = world.facts
    return ask(
        world,
        ["sacct", "-a", "-X", "-n", "-P", "-S", "now-1hour", "-o", "jobid,user,account,jobname"],
        ["sacct", "-a", "-n", "-P", "-u", facts["users"]["b"], "-S", "now-1hour", "-o", "jobid,user,account"],
        ["sacct", "-a", "-n", "-P", "-A", facts["accounts"]["b"], "-S", "now-1hour", "-o", "jobid,user,account"],
        ["sacct", "-n", "-P", "-j", victim_job(world), "-o", "jobid,user,account,submitline%200"],
    )


@probe("see-usage", "sees no other tenant's shares and usage", CTLD, **LOGIN)
def see_usage(world):
    """sshare for all users and for the other tenant's account."""
    return ask(
        world,
        ["sshare", "-a", "-h", "-P"],
        ["sshare", "-h", "-P", "-A", world.facts["accounts"]["b"], "-a"],
    )


@probe("see-users", "sees no other tenant's users", DBD, **LOGIN)
def see_users(world):
    """sacctmgr show user and show association."""
    user = world.facts["users"]["b"]
    return ask(
        world,
        ["sacctmgr", "-nP", "show", "user"],
        ["sacctmgr", "-nP", "show", "user", user],
        ["sacctmgr", "-nP", "show", "assoc"],
        ["sacctmgr", "-nP", "show", "assoc", f"users={user}"],
    )


@probe("see-accounts", "sees no other tenant's accounts", DBD, **LOGIN)
def see_accounts(world):
    """sacctmgr show account, all and by name."""
    account = world.facts["accounts"]["b"]
    return ask(world, ["sacctmgr", "-nP", "show", "account"], ["sacctmgr", "-nP", "show", "account", account])


@probe("see-reservations", "sees no other tenant's reservations", CTLD, **LOGIN)
def see_reservations(world):
    """scontrol show reservation, all and by name, while another tenant has one."""
    name = world.facts.get("foreign_reservation")
    if not name:
        raise NotProven("there is no reservation of the other tenant to look for")
    said = []
    for argv in (["scontrol", "-o", "show", "reservation"], ["scontrol", "-o", "show", "reservation", name]):
        code, out, err = world.run(argv)
        # The reservation of attest itself names both canaries, and may be seen.
        if f"ReservationName={name} " in out:
            return failed(f"{' '.join(argv)} shows {name}")
        if code and not REFUSED.search(out + err):
            raise NotProven(f"{' '.join(argv)} ended with {code}: {' '.join((err or out).split())[:200]}")
        said.append(" ".join((out + err).split())[:80] or "nothing")
    return passed("; ".join(said))


@probe(
    "see-reports",
    "sees no usage of other tenants in reports",
    DBD,
    contexts=("login",),
    accepted="sreport's cluster and user reports ignore PrivateData before Slurm 25.05",
)
def see_reports(world):
    """sreport of accounts and of top users since last month."""
    own = set(world.facts["accounts"].values()) - {world.facts["accounts"]["b"]}
    seen, rows = set(), 0
    for report in (["cluster", "AccountUtilizationByUser"], ["user", "TopUsage"]):
        argv = ["sreport", "-nP", *report, "start=now-30days", "end=now", "format=account,login"]
        code, out, err = world.run(argv)
        if code:
            raise NotProven(f"{' '.join(argv)} ended with {code}: {' '.join((err or out).split())[:200]}")
        for line in out.splitlines():
            rows += 1
            seen |= {line.partition("|")[0]} - own - {"", "root"}
    if seen:
        return failed(f"sreport shows {len(seen)} foreign accounts")
    return passed(f"{rows} rows, none of another account") if rows else skipped("sreport has no hour to report yet")


@probe(
    "see-transactions",
    "does not learn who changed which account and limit",
    "none",
    contexts=("login",),
    accepted="sacctmgr show transaction answers everybody; no setting hides it",
)
def see_transactions(world):
    """sacctmgr show transaction."""
    return ask(world, ["sacctmgr", "-nP", "show", "transaction"])


@probe(
    "see-qos-use",
    "does not learn who uses which QOS now",
    "none",
    contexts=("login",),
    accepted="scontrol show assoc_mgr lists users and accounts below QOS Records; no setting hides it",
)
def see_qos_use(world):
    """scontrol show assoc_mgr, while another tenant has jobs."""
    return ask(world, ["scontrol", "-o", "show", "assoc_mgr"])


@probe(
    "see-rpc-users",
    "does not learn who talks to the controller",
    "none",
    contexts=("login",),
    accepted="sdiag lists users and their RPC counts; no setting hides it",
)
def see_rpc_users(world):
    """sdiag."""
    return ask(world, ["sdiag"])
