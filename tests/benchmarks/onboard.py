# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""onboard.yml for a tenant of 1,000 users in 10 teams, against one sacctmgr call for each user, in the same run.

Counts the sacctmgr processes on the server and measures wall time of the whole playbook, less the local accounts of the
demo (a directory's work) and the proof. Last line: one JSON object.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import sys
import tempfile
import time

import yaml

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "cluster"))
sys.path.insert(0, str(HERE))
from counting import counting_bin, processes
from engine import ClusterError
from recorded import Run, playbook
from remote import said
from server import measured

USERS, TEAMS = 1000, 10
# Enough calls for a stable mean, few enough to wait for.
SAMPLE = 40


def write_document(folder: pathlib.Path, users: int, teams: int) -> None:
    """A tenant of that size; each fifth user has limits of her own."""
    members: list[list] = [[] for _team in range(teams)]
    for number in range(users):
        name = f"bench-u{number:04d}"
        limits = {"max_jobs": 20, "max_submit_jobs": 200}
        members[number % teams].append(name if number % 5 else {"name": name, "limits": limits})
    document = {
        "schema": 1,
        "name": "bench",
        "description": "Benchmark",
        "contacts": ["bench@bench.example"],
        "slurm": {
            "fairshare": 100,
            "limits": {"grp_tres": {"gres/gpu": 64}},
            "qos": ["normal", "high"],
            "default_qos": "normal",
        },
        "teams": [
            {"name": f"bench-t{team}", "fairshare": 10 + team, "description": f"Team {team}", "users": members[team]}
            for team in range(teams)
        ],
    }
    (folder / "bench.yml").write_text(yaml.safe_dump(document, sort_keys=False))


def onboard(folder: pathlib.Path) -> tuple[Run, float, int]:
    """One run of the playbook: what it did, seconds, sacctmgr processes."""
    variables = {
        "tenant": "bench",
        "tenancy_tenants_dir": str(folder),
        "slurm_config_search_path": [counting_bin(), "/usr/sbin", "/usr/bin"],
    }
    before = processes()
    started = time.monotonic()
    skipped = "onboard_access,onboard_identity,onboard_proof"
    run = playbook("onboard.yml", "-e", json.dumps(variables), "--skip-tags", skipped).wait()
    seconds = time.monotonic() - started
    if run.returncode:
        raise ClusterError(f"onboard.yml failed: {run.output[-2000:]}")
    return run, seconds, processes() - before


def remove(teams: int, extra: list[str]) -> None:
    for account in [*extra, *[f"bench-t{team}" for team in range(teams)], "bench"]:
        said(
            "ctl",
            "sh",
            "-c",
            f"sacctmgr -i delete user where account={account} >/dev/null 2>&1; sacctmgr -i delete account {account} >/dev/null 2>&1; true",
            timeout=900,
        )


def measure(users: int, teams: int, folder: pathlib.Path) -> dict:
    write_document(folder, users, teams)
    remove(teams, ["bench-single"])
    first, seconds, used = onboard(folder)
    if not first.of("slurm_accounting")[-1]["changed"]:
        raise ClusterError(f"onboard.yml changed nothing: {first.output[-2000:]}")
    rows = len(
        said(
            "ctl",
            "sacctmgr",
            "-nP",
            "show",
            "assoc",
            "format=user",
            "where",
            "account=" + ",".join(f"bench-t{n}" for n in range(teams)),
        ).split()
    )
    if rows != users:
        raise ClusterError(f"{rows} user associations instead of {users}")

    second, second_seconds, second_used = onboard(folder)
    if second.changed:
        raise ClusterError(f"the second run changed something: {second.output[-2000:]}")

    # The same kind of work, one call for each user, in the database that now has the tenant in it.
    said("ctl", "sacctmgr", "-i", "add", "account", "bench-single", "parent=root")
    script = "\n".join(
        f"sacctmgr -i add user bench-s{number:04d} account=bench-single defaultaccount=bench-single fairshare=1 >/dev/null"
        for number in range(SAMPLE)
    )
    started = time.monotonic()
    said("ctl", "sh", "-s", stdin=script, timeout=900)
    per_user = (time.monotonic() - started) / SAMPLE
    remove(teams, ["bench-single"])
    return {
        "users": users,
        "teams": teams,
        "slurm": said("ctl", "scontrol", "--version").split()[-1],
        "sacctmgr_processes": used,
        "seconds": round(seconds, 1),
        "second_run_sacctmgr_processes": second_used,
        "second_run_seconds": round(second_seconds, 1),
        "per_user_call_seconds_extrapolated": round(per_user * users, 1),
        "times_faster": round(per_user * users / seconds, 1),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--users", type=int, default=USERS)
    parser.add_argument("--teams", type=int, default=TEAMS)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = measured("onboard", lambda: measure(args.users, args.teams, pathlib.Path(folder)))
    print(f"one run of onboard.yml: {figures['seconds']} s, {figures['sacctmgr_processes']} sacctmgr processes")
    print(
        f"a second one, nothing to do: {figures['second_run_seconds']} s, {figures['second_run_sacctmgr_processes']} sacctmgr processes"
    )
    print(
        f"one call per user, from {SAMPLE}: {figures['per_user_call_seconds_extrapolated']} s, {args.users} sacctmgr processes"
    )
    print(json.dumps(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
