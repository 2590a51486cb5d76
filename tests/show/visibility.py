# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a tenant's user learns of another tenant from Slurm's own commands, measured on the running demo cluster.

bob of tenant-bar asks; whatever names tenant-foo, its teams or its users is seen. Run `make demo` first.
"""

from __future__ import annotations

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cluster"))
from remote import on, said

FOREIGN = re.compile(r"\b(tenant-foo|ml-team-foo|data-team-foo|alice|carol|dave)\b")
# Command, what it would give away, and whether PrivateData is meant to hide it.
ASKED = (
    (["squeue", "-a", "-h"], "jobs", True),
    (["scontrol", "-o", "show", "job"], "jobs", True),
    (["scontrol", "show", "job", "{job}"], "one job by its id", True),
    (["scontrol", "write", "batch_script", "{job}", "-"], "job scripts", True),
    (["sacct", "-a", "-X", "-n", "-S", "now-1hour"], "past jobs", True),
    (["sacct", "-a", "-u", "alice", "-n", "-S", "now-1hour"], "past jobs of a user", True),
    (["sacct", "-A", "tenant-foo,ml-team-foo", "-n", "-S", "now-1hour"], "past jobs of an account", True),
    (["sshare", "-a", "-h"], "usage and shares", True),
    (["sprio", "-h"], "pending jobs' priorities", True),
    (["sacctmgr", "-nP", "show", "user"], "users", True),
    (["sacctmgr", "-nP", "show", "user", "alice"], "one user by name", True),
    (["sacctmgr", "-nP", "show", "account"], "accounts", True),
    (["sacctmgr", "-nP", "show", "assoc"], "associations and limits", True),
    (["scontrol", "-o", "show", "reservation"], "reservations", True),
    (["scontrol", "-o", "show", "assoc_mgr"], "use of each QOS, by account and user", False),
    (["sacctmgr", "-nP", "show", "transaction"], "who changed which account and limit", False),
    (["sacctmgr", "-nP", "show", "qos"], "QOS and their limits", False),
    (["scontrol", "-o", "show", "partition"], "AllowAccounts of partitions", False),
    (["sdiag"], "users and their RPC counts", False),
    (["scontrol", "-o", "show", "node"], "load and allocation of nodes", False),
    (["sinfo", "-h"], "states of nodes", False),
)


def measure() -> list[tuple[str, str, bool, str]]:
    """(command, what, meant to be hidden, what bob saw), while a job of alice runs and another waits."""
    options = ["--parsable", "--time=2", "--output=/dev/null", "--chdir=/"]
    job = said("login", "sbatch", *options, "--wrap=sleep 60", user="alice")
    waiting = said("login", "sbatch", *options, "--begin=now+1hour", "--wrap=sleep 1", user="alice")
    table = []
    try:
        for argv, what, hidden in ASKED:
            argv = [word.replace("{job}", job) for word in argv]
            done = on("login", *argv, user="bob")
            seen = sorted(set(FOREIGN.findall(done.stdout)))
            answer = ", ".join(seen) if seen else "nothing of the other tenant"
            if done.returncode and not seen:
                answer += f" (refused: {' '.join((done.stderr or done.stdout).split())[:60]})"
            table.append((" ".join(argv).replace(job, "JOBID"), what, hidden, answer))
    finally:
        on("login", "scancel", job, waiting, user="alice")
    return table


def main() -> int:
    table = measure()
    print(f"Slurm {said('login', 'scontrol', '--version').split()[-1]}\n")
    print("| bob runs | would show | meant to be hidden | he sees |")
    print("| --- | --- | --- | --- |")
    for command, what, hidden, answer in table:
        print(f"| `{command}` | {what} | {'yes' if hidden else 'Slurm cannot'} | {answer} |")
    leaks = [command for command, _what, hidden, answer in table if hidden and not answer.startswith("nothing")]
    if leaks:
        print(f"\nvisible although it is meant to be hidden: {'; '.join(leaks)}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
