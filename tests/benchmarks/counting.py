# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Counts the Slurm commands that run on the controller."""

from __future__ import annotations

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cluster"))
from remote import said

FOLDER = "/opt/counting"
SHIM = f'#!/bin/sh\necho "${{0##*/}}" >> {FOLDER}/log\nexec "/usr/bin/${{0##*/}}" "$@"\n'


def counting_bin() -> str:
    """A folder of Slurm's commands, each noting its name before it becomes the real one."""
    said("ctl", "mkdir", "-p", FOLDER)
    for name in ("sacctmgr", "scontrol", "squeue"):
        said("ctl", "sh", "-c", f"cat > {FOLDER}/{name}; chmod 0755 {FOLDER}/{name}", stdin=SHIM)
    said("ctl", "touch", f"{FOLDER}/log")
    return FOLDER


def processes(name: str = "sacctmgr") -> int:
    """How many processes of a command have run through the folder."""
    return int(said("ctl", "sh", "-c", f"grep -c ^{name} {FOLDER}/log || true"))
