# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs on the controller: one run of slurm_accounting without Ansible around it, measured.

Standard input: {"cluster": NAME, "params": {...}}; output: one JSON object.
"""

from __future__ import annotations

import json
import resource
import sys
import time

from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import accounting
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.client import Client


def main() -> None:
    given = json.load(sys.stdin)
    client = Client(given["cluster"])
    started = time.monotonic()
    result = accounting.reconcile(given["params"], False, client, None)
    seconds = time.monotonic() - started
    json.dump(
        {
            "seconds": seconds,
            "changed": result["changed"],
            "commands": len(result["commands"]),
            "processes": client.processes,
            # ru_maxrss is in KiB on Linux.
            "memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            "largest_child_mb": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024,
        },
        sys.stdout,
    )


if __name__ == "__main__":
    main()
