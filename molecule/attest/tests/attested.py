# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run of attest.yml, and what it could leave behind."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tests" / "cluster"))
from recorded import Run, playbook
from remote import on, said

# Containers have the kernel of the machine: where that lets programs trace each other, the site says that it knows.
YAMA = pathlib.Path("/proc/sys/kernel/yama/ptrace_scope")
KNOWN = {} if YAMA.exists() and YAMA.read_text() > "0" else {"ptrace-own": "kernel.yama.ptrace_scope is this machine's"}
HOSTS = ("ctl", "login", "gpu1", "gpu2", "gpu3")


@dataclasses.dataclass
class Attested:
    run: Run
    folder: pathlib.Path
    seconds: float

    @property
    def answers(self) -> list[dict]:
        return json.loads((self.folder / "attest.json").read_text())["answers"]


def attest(folder: pathlib.Path, *args: str, **variables) -> Attested:
    started = time.monotonic()
    variables["attest_accepted"] = {**KNOWN, **variables.get("attest_accepted", {})}
    run = playbook("attest.yml", "-e", json.dumps({"attest_report_dir": str(folder), **variables}), *args).wait()
    return Attested(run, folder, time.monotonic() - started)


def traces() -> dict[str, list[str]]:
    """What attest could leave behind, by kind; the same before and after."""
    found = {
        "accounts": said("ctl", "sacctmgr", "-nP", "show", "account", "format=account").splitlines(),
        "associations": said("ctl", "sacctmgr", "-nP", "show", "assoc", "format=account,user").splitlines(),
        "users in Slurm": said("ctl", "sacctmgr", "-nP", "show", "user", "format=user").splitlines(),
        "jobs": [
            line
            for line in said("ctl", "squeue", "-h", "-o", "%i %u").splitlines()
            if line.split()[1].startswith("attest")
        ],
        "reservations": on("ctl", "scontrol", "-o", "show", "reservation").stdout.splitlines(),
    }
    for host in HOSTS:
        found[f"users of {host}"] = said(host, "getent", "passwd").splitlines()
        found[f"groups of {host}"] = said(host, "getent", "group").splitlines()
        found[f"files of {host}"] = said(
            host,
            "sh",
            "-c",
            "ls -d /home/* /tmp/attest* /dev/shm/attest* /run/gpuops-attest* /var/spool/cron/crontabs/* 2>/dev/null; true",
        ).splitlines()
        found[f"processes of {host}"] = [
            line
            for line in said(host, "ps", "-eo", "user:20,args").splitlines()
            if "attest" in line and "ps -eo" not in line
        ]
        found[f"units of {host}"] = said(
            host, "systemctl", "list-units", "--all", "--plain", "--no-legend", "gpuops-attest*", "user@*"
        ).splitlines()
        found[f"IPC of {host}"] = [
            " ".join(line.split()[:4]) for kind in ("shm", "msg", "sem") for line in said(host, "cat", f"/proc/sysvipc/{kind}").splitlines()
        ]  # fmt: skip
    return {kind: sorted(items) for kind, items in found.items()}
