# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the demo's users may really do in each QOS and partition, and who says so. Run `make demo` first."""

from __future__ import annotations

import argparse
import pathlib
import runpy
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "cluster"))
runpy.run_path(str(ROOT / "tests" / "unit" / "conftest.py"))

from ansible_collections.gpuops.tenancy.plugins.module_utils import _command  # noqa: E402
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import effective_report  # noqa: E402
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.client import Client  # noqa: E402
from remote import ssh_argv  # noqa: E402


def on_controller(argv, timeout=60, pass_fds=()):
    """Client's runner: the demo's controller by ssh."""
    return _command.run(ssh_argv("ctl", list(argv)), timeout=timeout)


def measure(**filters) -> list[dict]:
    state, qos, partitions = effective_report.read(Client("demo", runner=on_controller))
    return effective_report.report(state, qos, partitions, **filters)


def lines(entries: list[dict]) -> list[str]:
    """Rows of one user with the same limits in several partitions are one block."""
    blocks: dict[tuple, list[str]] = {}
    for entry in entries:
        own = f"partition {entry['partition']}"
        what = tuple(_limit(limit).replace(own, "the partition") for limit in entry["limits"]) or ("no limit",)
        key = (entry["user"], entry["account"], entry["qos"], entry["refused_because"], what)
        blocks.setdefault(key, []).append(entry["partition"])
    found = [
        "| user | account | QOS | partitions | limit that holds | who says so | what it makes void |",
        "|" + " --- |" * 7,
    ]
    for (user, account, name, refused, what), where in blocks.items():
        first = f"| {user} | {account} | {name} | {', '.join(where)} "
        for number, limit in enumerate([f"{refused} | | "] if refused else what):
            columns = limit if " | " in limit else f"{limit} | | "
            found.append(f"{first if not number else '| | | | '}| {columns} |")
    return found


def _limit(limit: dict) -> str:
    what = " ".join(filter(None, [limit["option"], limit["resource"], str(limit["value"])]))
    void = ", ".join(f"{item['option']} {item['value']} of {item['level']}" for item in limit["instead_of"])
    return f"{what} | {limit['level']} | {void}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("users", nargs="*", help="only these users")
    print("\n".join(lines(measure(users=parser.parse_args().users))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
