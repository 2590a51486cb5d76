# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Jobs of the lab's users, and what slurmctld counts of them."""

from __future__ import annotations

import pathlib
import re
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "cluster"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import remote
from fair_tree import Row
from remote import on, said

CLUSTER = "demo"


def sbatch(user: str, *options: str, seconds: int = 600):
    base = ["sbatch", "--parsable", "--time=1", "--mem=10", "--chdir=/", "--output=/dev/null"]
    return on("login", *base, *options, f"--wrap=sleep {seconds}", user=user)


def submit(user: str, *options: str, seconds: int = 600) -> str:
    done = sbatch(user, *options, seconds=seconds)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def job(number: str) -> dict[str, str]:
    words = said("ctl", "scontrol", "-o", "show", "job", number).split()
    return dict(word.split("=", 1) for word in words if "=" in word)


def states(*jobs: str) -> dict[str, tuple[str, str]]:
    """Job -> (state, reason)."""
    lines = said("ctl", "squeue", "-h", "-t", "all", "-j", ",".join(jobs), "-o", "%i|%T|%r").splitlines()
    return {number: (state, reason) for number, state, reason in (line.split("|") for line in lines)}


def wait_for(condition, seconds: float = 60, what: str = ""):
    """What the condition says, as soon as it is true."""
    return remote.wait_for(condition, seconds, lambda: f"{said('ctl', 'squeue', '-a')}\n{what}")


def all_are(wanted: str, *jobs: str) -> bool:
    """A job that squeue does not know is in no state."""
    found = states(*jobs)
    return all(job in found and found[job][0] == wanted for job in jobs)


def running(*jobs: str) -> bool:
    return all_are("RUNNING", *jobs)


def ended(*jobs: str) -> bool:
    return all_are("COMPLETED", *jobs)


def reason(number: str, expected: str) -> None:
    wait_for(lambda: states(number)[number] == ("PENDING", expected), what=f"{number} waits by {expected}")


def looked_at(number: str, since: float) -> bool:
    """The scheduler has considered the job after that moment."""
    text = job(number).get("LastSchedEval", "")
    return bool(re.match(r"\d{4}-", text)) and moment(text) > since


def moment(text: str) -> float:
    return float(said("ctl", "date", "-d", text, "+%s"))


def now() -> float:
    return float(said("ctl", "date", "+%s.%N"))


def cancel(*jobs: str) -> None:
    said("ctl", "scancel", *jobs)
    wait_for(lambda: not said("ctl", "squeue", "-h", "-o", "%i", "-j", ",".join(jobs)), what=f"{jobs} gone")


def count_usage() -> None:
    """slurmctld counts usage and ranks users when it starts, and then every PriorityCalcPeriod."""
    counted = "/var/spool/slurmctld/priority_last_decay_ran"
    before = said("ctl", "stat", "-c", "%Y", counted)
    # It counts whole seconds.
    time.sleep(1)
    said("ctl", "systemctl", "restart", "slurmctld")
    wait_for(lambda: on("ctl", "stat", "-c", "%Y", counted).stdout.strip() not in ("", before), what="usage counted")
    wait_for(lambda: "is UP" in on("ctl", "scontrol", "ping").stdout, what="slurmctld")


def shares() -> dict[tuple[str, str, str], dict[str, str]]:
    """sshare, by (account, user, partition)."""
    columns = "Account,User,Partition,RawShares,RawUsage,FairShare,LevelFS"
    lines = said("ctl", "sshare", "-a", "-m", "-P", "-n", "-o", columns).splitlines()
    found = {}
    for line in lines:
        row = dict(zip(columns.split(","), (value.strip() for value in line.split("|"))))
        found[row["Account"], row["User"], row["Partition"]] = row
    return found


def rows(measured: dict[tuple[str, str, str], dict[str, str]]) -> list[Row]:
    """The tree and its shares as slurmdbd has them, with the usage that was measured."""
    columns = "format=account,user,partition,parentname,share"
    found = []
    for line in said("ctl", "sacctmgr", "-nP", "show", "assoc", f"cluster={CLUSTER}", columns).splitlines():
        account, user, partition, parent, share = line.split("|")
        key = (account, user, partition)
        found.append(Row(key, account if user else parent, int(share), int(measured[key]["RawUsage"])))
    return found


def usage(kind: str, name: str) -> dict[str, float]:
    """UsageRaw, and what GrpTRESMins counts, of a QOS or an account."""
    flag = {"qos": "qos", "accounts": "assoc"}[kind]
    text = said("ctl", "scontrol", "-o", "show", "assoc_mgr", f"{kind}={name}", f"flags={flag}")
    line = next(one for one in text.splitlines() if re.match(rf"(QOS={name}\(|.*Account={name} UserName= )", one))
    found = {"UsageRaw": float(re.search(r"UsageRaw(?:/Norm/Efctv)?=([0-9.]+)", line).group(1))}
    minutes = re.search(r"GrpTRESMins=(\S+)", line).group(1)
    found.update({tres: float(used) for tres, used in re.findall(r"([a-z/:0-9]+)=[0-9N]+\((\d+)\)", minutes)})
    return found
