# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Starts the canary that is attacked. For attest_victim, which is root."""

from __future__ import annotations

import glob
import json
import secrets
import shlex
import sys
import time
import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils._command import run

from . import place, slurm_node

WAITS = (
    "--parsable",
    "--job-name=gpuops-attest",
    "--begin=now+1day",
    "--time=1",
    "--mem=10",
    "--chdir=/",
    "--output=/dev/null",
    "--export=NONE",
    slurm_node.NICE,
)


def release(params: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """:raises PlaceError: there is no such canary."""
    place.stage(params["program"], params["run_id"])
    entry, path = place.account(params["user"]), params["search_path"]
    secret = secrets.token_hex(16)
    spec = {"victim": True, "secret": secret, "seconds": params["seconds"], "home": entry.pw_dir}
    waiting = ""
    if params["waiting"]:
        script = f"#!/bin/sh\nATTEST_SECRET={secret}\nexit 0\n"
        waiting, refusal = slurm_node.submit(entry.pw_name, [*WAITS, f"--account={params['account']}"], script, path)
        if refusal:
            return {"victim": {}, "waiting_job": "", "problem": f"Slurm refused the waiting job: {refusal}"}
    file, out = place.specify(entry, "victim", spec)
    command = [sys.executable, place.PROGRAM, file]
    job = partition = ""
    if params["node"]:
        found = slurm_node.node(params["node"], path)
        partition = params["partition"] or found.get("Partitions", "").split(",")[0]
        minutes = params["seconds"] // 60 + 1
        options = slurm_node.options(
            found, params["reservation"], params["partition"], params["account"], params["memory"], minutes
        )
        script = f"#!/bin/sh\nexport ATTEST_SECRET={secret}\n{shlex.join(command)}\n"
        job, refusal = slurm_node.submit(entry.pw_name, options, script, path)
        if not job:
            return {"victim": {}, "waiting_job": waiting, "problem": f"Slurm refused the victim's job: {refusal}"}
    else:
        unit = f"{place.UNITS}-victim"
        argv = [
            "systemd-run",
            "--quiet",
            "--collect",
            f"--unit={unit}",
            f"--uid={entry.pw_uid}",
            f"--gid={entry.pw_gid}",
        ]
        run([*argv, f"--property=RuntimeMaxSec={params['seconds'] + 30}", "--", *command], timeout=30, ok=(0,))
    until = time.monotonic() + params["deadline"]
    while not (text := place.read(out)):
        state = slurm_node.state(job, path) if job else "started"
        if time.monotonic() > until or not state:
            slurm_node.cancel(entry.pw_name, [job] if job else [], path)
            return {
                "victim": {},
                "waiting_job": waiting,
                "problem": f"the victim did not come up; job {job or 'none'} is {state or 'over'}",
            }
        time.sleep(0.2)
    victim = json.loads(text)
    spool = sorted(glob.glob(f"{glob.escape(params['spool_dir'])}/job*{job}/slurm_script")) if job else []
    victim.update(
        host=params["host"],
        address=params["address"],
        user=entry.pw_name,
        uid=entry.pw_uid,
        job=job,
        spool=spool,
        partition=partition,
        secret=secret,
    )
    return {"victim": victim, "waiting_job": waiting, "problem": ""}
