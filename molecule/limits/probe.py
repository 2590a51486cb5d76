# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which limit holds, asked of Slurm: runs as root on the controller, cases as JSON on standard input.

A case sets limits on an association, the account above it, the QOS of a job, the QOS and the partition, submits jobs
and says which were refused, which wait and why, which run. Lanes run side by side, each with a node, a partition, QOS
and accounts of its own. Everything is removed at the end.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time

USER = "eve"
SETTLE = 20.0
# Says that it runs: one that is ended while it begins does not hear it, and keeps its node for a minute.
JOB = "#!/bin/sh\nscontrol update JobId=$SLURM_JOB_ID Comment=begun\nexec sleep 60\n"


def run(*argv: str, ok: bool = True, stdin: str | None = None) -> str:
    done = subprocess.run(argv, input=stdin or "", capture_output=True, text=True, check=False, timeout=60)
    if ok and done.returncode:
        raise RuntimeError(f"{argv} ended with {done.returncode}: {done.stdout}{done.stderr}")
    return (done.stdout + ("" if ok else done.stderr)).strip()


class Lane:
    def __init__(self, number: int):
        self.node = f"gpu{number}"
        self.top, self.team = f"lim{number}-top", f"lim{number}-team"
        self.qos = {"job": f"lim{number}-job", "partition_qos": f"lim{number}-part"}
        self.partition = f"lim{number}"
        self.before: dict[str, list[str]] = {}

    def make(self) -> None:
        for name in self.qos.values():
            run("sacctmgr", "-i", "add", "qos", name)
        names = ",".join(self.qos.values())
        run("sacctmgr", "-i", "add", "account", self.top, f"qos=normal,{names}")
        run("sacctmgr", "-i", "add", "account", self.team, f"parent={self.top}")
        run("sacctmgr", "-i", "add", "user", USER, f"account={self.team}")
        # Shared CPUs, so that one small node runs as many jobs as a case needs.
        run("scontrol", "create", f"PartitionName={self.partition}", f"Nodes={self.node}", "MaxTime=10:00:00",
            "DefaultTime=1", "OverSubscribe=FORCE:8", "State=UP")  # fmt: skip

    def remove(self) -> None:
        self.clear()
        run("scontrol", "delete", f"PartitionName={self.partition}", ok=False)
        run("sacctmgr", "-i", "delete", "user", USER, f"account={self.team}", ok=False)
        run("sacctmgr", "-i", "delete", "account", self.team, ok=False)
        run("sacctmgr", "-i", "delete", "account", self.top, ok=False)
        run("sacctmgr", "-i", "delete", "qos", *self.qos.values(), ok=False)

    def where(self, level: str) -> list[str]:
        if level == "user":
            return ["user", "where", f"name={USER}", f"account={self.team}"]
        if level in ("team", "top"):
            return ["account", "where", f"name={getattr(self, level)}"]
        return ["qos", "where", f"name={self.qos[level]}"]

    def set(self, case: dict) -> None:
        """Each level by one command; what the last case set is cleared by the same. From above, and what is set above
        is cleared below once more (TRES after having been set there): else 24.11 does not tell slurmctld of what a user
        of a team inherits."""
        wanted, above = case["set"], []
        work = []
        for level in ("top", "team", "user", "job", "partition_qos"):
            words = list(wanted.get(level, []))
            names = {word.split("=")[0] for word in words}
            old = self.before.get(level, []) + (above if level in ("team", "user") else [])
            old = [word for word in old if word.split("=")[0] not in names]
            own = [
                word
                for word in {word.split("=")[0]: word for word in old}.values()
                if clear(word) != f"{word.split('=')[0]}=-1"
            ]
            if own and level in ("team", "user"):
                work.append(["sacctmgr", "-i", "modify", *self.where(level), "set", *own])
            words += list({clear(word) for word in old})
            above = above + wanted.get(level, []) + self.before.get(level, [])
            if words:
                work.append(["sacctmgr", "-i", "modify", *self.where(level), "set", *words])
        self.before = wanted
        for argv in work:
            run(*argv)
        uses = self.qos["partition_qos"] if case.get("partition_qos") else ""
        options = [
            f"QOS={uses}",
            *case.get("partition", [f"Nodes={self.node}", "MaxTime=10:00:00", "MaxNodes=UNLIMITED"]),
        ]
        run("scontrol", "update", f"PartitionName={self.partition}", *options)

    def clear(self) -> None:
        run("scancel", "-Q", "-p", self.partition, ok=False)
        deadline = time.monotonic() + SETTLE
        while run("squeue", "-h", "-p", self.partition, "-o", "%i") and time.monotonic() < deadline:
            time.sleep(0.1)

    def case(self, case: dict) -> dict:
        self.set(case)
        base = ["runuser", "-u", USER, "--", "sbatch", "--parsable", "--chdir=/", "--output=/dev/null", "--mem=10",
                f"--account={self.team}", f"--partition={self.partition}", f"--qos={self.qos['job']}"]  # fmt: skip
        found = []
        for job in case["jobs"]:
            done = subprocess.run([*base, *job], input=JOB, capture_output=True, text=True, check=False, timeout=60)
            said = {"id": done.stdout.strip(), "state": "ACCEPTED", "reason": ""}
            if done.returncode:
                said = {"id": "", "state": "REFUSED", "reason": " ".join(done.stderr.split())}
            found.append(said)
        self.settle(found)
        self.launched()
        self.clear()
        return {"name": case["name"], "jobs": found}

    def launched(self) -> None:
        """Until all that run are past their beginning."""
        deadline = time.monotonic() + SETTLE
        while time.monotonic() < deadline:
            said = run("squeue", "-h", "-p", self.partition, "-t", "RUNNING", "-o", "%k").splitlines()
            if all(comment == "begun" for comment in said):
                return
            time.sleep(0.1)

    def settle(self, found: list[dict]) -> None:
        """Until each job runs or has a reason that is not the scheduler's own business."""
        open_ = {said["id"]: said for said in found if said["id"]}
        deadline = time.monotonic() + SETTLE
        while open_ and time.monotonic() < deadline:
            undecided = False
            for line in run("squeue", "-h", "-p", self.partition, "-o", "%i|%T|%r").splitlines():
                job, state, reason = line.split("|")
                if job not in open_:
                    continue
                open_[job].update(state=state, reason=reason)
                undecided |= state in ("PENDING", "CONFIGURING") and reason in (
                    "None",
                    "Priority",
                    "Resources",
                    "Cleaning",
                )
            if not undecided:
                return
            time.sleep(0.1)


def clear(word: str) -> str:
    name, _equals, value = word.partition("=")
    if "/" in value or "cpu=" in value or "node=" in value:
        return f"{name}=" + ",".join(f"{part.rsplit('=', 1)[0]}=-1" for part in value.split(","))
    return f"{name}=-1"


def main() -> int:
    cases = json.load(sys.stdin)
    lanes = [Lane(number) for number in (1, 2, 3)]
    found: list[dict] = []
    errors: list[str] = []
    lock = threading.Lock()
    started = time.monotonic()

    def work(lane: Lane) -> None:
        while True:
            with lock:
                if not cases or errors:
                    return
                case = cases.pop(0)
            try:
                answer = lane.case(case)
            except Exception as error:
                errors.append(f"{case['name']}: {error}")
                return
            with lock:
                found.append(answer)

    try:
        for lane in lanes:
            lane.remove()
            lane.make()
        threads = [threading.Thread(target=work, args=(lane,)) for lane in lanes]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        for lane in lanes:
            lane.remove()
    json.dump({"found": found, "errors": errors, "seconds": round(time.monotonic() - started, 1)}, sys.stdout)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
