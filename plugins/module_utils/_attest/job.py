# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The job in which the canary attacks: small, short, last in the queue, gone in the end. For attest_run."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
import time
import typing as t

from . import place, slurm_node

# Seconds that the probes in the job may take, and that a job may take to end.
WORK = 150
END = 40
# Seconds that the job waits for the probes that come by ssh.
HOLD = 140


class Job:
    """``why``: why answers are missing. ``running``: it is there for the probes that come by ssh."""

    def __init__(
        self, params: t.Mapping[str, t.Any], facts: t.Mapping[str, t.Any], in_job: t.Mapping[str, list[str]]
    ) -> None:
        self.params, self.facts = params, facts
        self.path, self.user = params["search_path"], facts["users"]["a"]
        self.id, self.why, self.running = "", "the job gave no answer in time", False
        found = slurm_node.node(params["node"], self.path)
        # Fewer than the node has.
        self.gpus = 1 if slurm_node.gpus(found) > 1 else 0
        reservation = facts["reservation"] if params["kind"] == "reserved" else ""
        self.options = slurm_node.options(
            found, reservation, params["partition"], facts["accounts"]["a"], facts["memory"], 5
        )
        if self.gpus:
            self.options.append(f"--gres=gpu:{self.gpus}")
        parts = [
            {"context": context, "probes": in_job[context]} for context in ("job", "container") if context in in_job
        ]
        spec = {
            "actor": "a",
            "facts": facts,
            "gpus": self.gpus,
            "parts": parts,
            "hold": HOLD if "ssh-job" in in_job else 0,
        }
        self.spec, self.out = place.specify(place.account(self.user), "job-a", spec)

    def start(self, check: t.Callable[[], None]) -> None:
        """Submit, and wait until the program in it has answered."""
        command = shlex.join([sys.executable, place.PROGRAM, self.spec])
        self.id, refusal = slurm_node.submit(self.user, self.options, f"#!/bin/sh\n{command}\n", self.path)
        if not self.id:
            self.why = f"Slurm refused the job: {refusal}"
            return
        until, begun, state = time.monotonic() + self.params["job_deadline"], False, ""
        while time.monotonic() < until:
            check()
            if any(line.get("done") for line in place.lines(self.out)):
                self.running = True
                return
            state = slurm_node.state(self.id, self.path)
            if not state:
                self.why = f"job {self.id} ended before all was answered"
                return
            if state.startswith("RUNNING") and not begun:
                begun, until = True, time.monotonic() + WORK
            time.sleep(0.3)
        self.why = f"job {self.id} did not answer in time; it is {state}"

    def end(self) -> None:
        """Let it end by itself, as a tenant's job does; one that does not is cancelled."""
        if not self.id:
            return
        with contextlib.suppress(OSError):
            os.close(os.open(f"{self.out}.release", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644))
        until = time.monotonic() + (END if self.running else 0)
        while slurm_node.state(self.id, self.path) and time.monotonic() < until:
            time.sleep(0.3)
        if slurm_node.state(self.id, self.path):
            slurm_node.cancel(self.user, [self.id], self.path)
            until = time.monotonic() + END
            while slurm_node.state(self.id, self.path) and time.monotonic() < until:
                time.sleep(0.3)
