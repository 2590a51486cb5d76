# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""slurm_accounting at 100, 1,000 and 10,000 associations, against what people use instead, on the same server in one run.

A line for each size: a raw read of everything by sacctmgr, our run without a change; 1,000 users more (100 on the
smallest) by us, by one call for each, by `sacctmgr load`; how long somebody who reads has to wait meanwhile. Last line:
one JSON object.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "cluster"))

from engine import REPO, ClusterError
from remote import said, ssh_argv
from server import measured

CLUSTER = "demo"
SIZES = (100, 1000, 10000)
TEAM = 100
# Enough calls for a stable mean, few enough to wait for.
SAMPLE = 30
FOLDER = "/opt/bench"
# What a person asks who wants to see all of it; the fields are those that slurm_accounting reads.
RAW = """
sacctmgr -nP show assoc where cluster={cluster} wopi format={fields} >/dev/null
sacctmgr -nP show account withcoord format=account,description,organization,coordinators >/dev/null
sacctmgr -nP show user where cluster={cluster} format=user,defaultaccount,adminlevel >/dev/null
sacctmgr -nP show qos format=name >/dev/null
sacctmgr -nP show tres format=type,name >/dev/null
"""
FIELDS = (
    "account,user,partition,parentname,share,priority,qos,defaultqos,grpjobs,grpjobsaccrue,grpsubmit,grpwall,grptres,"
    "grptresmins,grptresrunmins,maxjobs,maxjobsaccrue,maxsubmit,maxtres,maxtrespernode,maxtresmins,maxwall"
)


def install() -> None:
    """The collection's code on the controller, where it would run."""
    target = f"{FOLDER}/ansible_collections/gpuops/tenancy"
    packed = subprocess.run(
        ["tar", "-C", str(REPO), "--exclude=__pycache__", "-cf", "-", "plugins/module_utils"],
        stdout=subprocess.PIPE,
        check=True,
    )
    said("ctl", "mkdir", "-p", target)
    subprocess.run(ssh_argv("ctl", ["tar", "-C", target, "-xf", "-"]), input=packed.stdout, check=True)
    said("ctl", "sh", "-c", f"cat > {FOLDER}/on_controller.py", stdin=(HERE / "on_controller.py").read_text())


def tenant(name: str, users: int) -> dict:
    """Arguments for a tenant: teams of 100, each fifth user with limits of her own."""
    teams = [f"{name}-t{number}" for number in range(max(1, users // TEAM))]
    own = {"max_jobs": 20, "max_submit_jobs": 200, "grp_tres_mins": {"gres/gpu": 10000}}
    return {
        "scope": [name],
        "accounts": [
            {
                "name": name,
                "fairshare": "100",
                "grp_tres": {"gres/gpu": 64, "cpu": 4096},
                "qos": ["normal"],
                "default_qos": "normal",
                "accounts": [{"name": team, "fairshare": "10", "description": f"Team {team}"} for team in teams],
            }
        ],
        "users": [
            {
                "name": f"{name}-u{number:05d}",
                "associations": [{"account": teams[number % len(teams)], **(own if number % 5 == 0 else {})}],
            }
            for number in range(users)
        ],
    }


def together(tenants: list[dict]) -> dict:
    return {key: [item for one in tenants for item in one[key]] for key in ("scope", "accounts", "users")}


def ours(params: dict) -> dict:
    out = said(
        "ctl",
        "env",
        f"PYTHONPATH={FOLDER}",
        "python3",
        f"{FOLDER}/on_controller.py",
        stdin=json.dumps({"cluster": CLUSTER, "params": params}),
        timeout=3600,
    )
    return json.loads(out)


def timed(script: str, timeout: float = 3600) -> float:
    started = time.monotonic()
    said("ctl", "sh", "-es", stdin=script, timeout=timeout)
    return time.monotonic() - started


class Reader:
    """Somebody who looks at one user again and again; ``longest`` is the longest he waited, in seconds."""

    SCRIPT = (
        "while [ -e {flag} ]; do s=$(date +%s%N);"
        " sacctmgr -nP show assoc where cluster={cluster} user=nobody >/dev/null 2>&1 || echo failed;"
        " echo $(( ($(date +%s%N) - s) / 1000000 )); sleep 0.1; done"
    )

    def __init__(self) -> None:
        self.flag = f"{FOLDER}/reading"
        self.waits: list[float] = []
        self.failed = 0

    def __enter__(self) -> Reader:
        said("ctl", "touch", self.flag)
        self.thread = threading.Thread(target=self._run)
        self.thread.start()
        return self

    def _run(self) -> None:
        lines = said("ctl", "sh", "-c", self.SCRIPT.format(flag=self.flag, cluster=CLUSTER), timeout=3600).split()
        self.failed = lines.count("failed")
        self.waits = [int(line) / 1000 for line in lines if line != "failed"]

    def __exit__(self, *_exc: object) -> None:
        said("ctl", "rm", "-f", self.flag)
        self.thread.join()

    @property
    def longest(self) -> float:
        return max(self.waits)


def remove(name: str, teams: int) -> None:
    for account in [*(f"{name}-t{number}" for number in range(teams)), name]:
        script = (
            f"sacctmgr -i delete user where account={account} cluster={CLUSTER}; "
            f"sacctmgr -i delete account where name={account} cluster={CLUSTER}"
        )
        said("ctl", "sh", "-c", f"({script}) >/dev/null 2>&1; true", timeout=3600)


def load_file(params: dict) -> str:
    """The same tenant as `sacctmgr load` reads it."""
    top = params["accounts"][0]
    lines = [
        f"Cluster - '{CLUSTER}'",
        "Parent - 'root'",
        f"Account - '{top['name']}':Fairshare=100:GrpTRES=gres/gpu=64,cpu=4096",
    ]
    lines.append(f"Parent - '{top['name']}'")
    lines += [
        f"Account - '{team['name']}':Description='{team['description']}':Fairshare=10" for team in top["accounts"]
    ]
    for team in top["accounts"]:
        lines.append(f"Parent - '{team['name']}'")
        for user in params["users"]:
            row = user["associations"][0]
            if row["account"] == team["name"]:
                limits = ":GrpTRESMins=gres/gpu=10000:MaxJobs=20:MaxSubmitJobs=200" if "max_jobs" in row else ""
                lines.append(f"User - '{user['name']}':DefaultAccount='{team['name']}':Fairshare=1{limits}")
    return "\n".join(lines) + "\n"


def measure(size: int, there: list[dict]) -> dict:
    """``there``: the tenants that are in the database; they are filled up to ``size`` associations of users."""
    have = sum(len(one["users"]) for one in there)
    new = tenant(f"bench{size}", size - have)
    ours(new)
    there.append(new)
    everything = together(there)
    # The first of each warms the server.
    raw = [timed(RAW.format(cluster=CLUSTER, fields=FIELDS)) for _turn in range(4)][1:]
    runs = [ours(everything) for _turn in range(4)][1:]
    if any(run["changed"] for run in runs):
        raise ClusterError(f"slurm_accounting changes again what it made, at {size} associations")

    users = min(size, 1000)
    more = tenant(f"more{size}", users)
    with Reader() as reader:
        added = ours(more)
    if reader.failed:
        raise ClusterError(f"{reader.failed} reads failed meanwhile")
    expect(more["users"])
    remove(more["scope"][0], max(1, users // TEAM))

    said("ctl", "sh", "-c", f"cat > {FOLDER}/load.cfg", stdin=load_file(more))
    loaded = timed(f"sacctmgr -i load file={FOLDER}/load.cfg >/dev/null")
    expect(more["users"])
    remove(more["scope"][0], max(1, users // TEAM))

    single = f"single{size}"
    said("ctl", "sacctmgr", "-i", "add", "account", single, "parent=root", f"cluster={CLUSTER}")
    calls = timed(
        "\n".join(
            f"sacctmgr -i add user {single}-u{number} account={single} cluster={CLUSTER} fairshare=1 >/dev/null"
            for number in range(SAMPLE)
        )
    )
    remove(single, 0)
    per_call = calls / SAMPLE
    return {
        "associations": size,
        "raw_read_seconds": statistics.median(raw),
        "nochange_seconds": statistics.median(run["seconds"] for run in runs),
        "nochange_processes": runs[0]["processes"],
        "users_added": users,
        "added_seconds": added["seconds"],
        "added_commands": added["commands"],
        "added_processes": added["processes"],
        "per_user_calls_seconds": per_call * users,
        "sacctmgr_load_seconds": loaded,
        "longest_reader_block_seconds": reader.longest,
        "memory_mb": max(run["memory_mb"] for run in [*runs, added]),
        "largest_child_mb": max(run["largest_child_mb"] for run in [*runs, added]),
    }


def expect(users: list[dict]) -> None:
    found = set(said("ctl", "sacctmgr", "-nP", "show", "assoc", "where", f"cluster={CLUSTER}", "format=user").split())
    missing = {user["name"] for user in users} - found
    if missing:
        raise ClusterError(f"{len(missing)} of {len(users)} users are not there")


def summary(rows: list[dict]) -> dict:
    by_size = {row["associations"]: row for row in rows}
    result = {"slurm": said("ctl", "scontrol", "--version").split()[-1], "sizes": rows}
    for size, row in by_size.items():
        result[f"nochange_over_raw_read_{size}"] = row["nochange_seconds"] / row["raw_read_seconds"]
    for row in rows:
        if row["users_added"] == 1000:
            # The largest database that was measured counts.
            result["per_user_over_ours_1000"] = row["per_user_calls_seconds"] / row["added_seconds"]
            result["sacctmgr_load_over_ours_1000"] = row["sacctmgr_load_seconds"] / row["added_seconds"]
    result["longest_reader_block_seconds"] = max(row["longest_reader_block_seconds"] for row in rows)
    result["peak_memory_mb"] = max(row["memory_mb"] for row in rows)
    return result


def measure_all(sizes: list[int]) -> dict:
    install()
    rows, there = [], []
    for size in sorted(sizes):
        rows.append(measure(size, there))
        print(" ".join(f"{key}={shown(value)}" for key, value in rows[-1].items()), flush=True)
    return summary(rows)


def shown(value: object) -> object:
    if isinstance(value, float):
        return round(value, 2)
    if isinstance(value, list):
        return [shown(item) for item in value]
    return {key: shown(item) for key, item in value.items()} if isinstance(value, dict) else value


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=lambda text: [int(item) for item in text.split(",")], default=list(SIZES))
    args = parser.parse_args()
    print(json.dumps(shown(measured("accounting", lambda: measure_all(args.sizes)))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
