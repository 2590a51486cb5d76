# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every field of associations, accounts, users and QOS on the running test cluster: set, changed, cleared, unchanged.

The rows come from what proves them (tests/integration/accounting/proof.py). Run `make demo` first.
"""

from __future__ import annotations

import json
import os
import pathlib
import re
import runpy
import secrets
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "cluster"))
sys.path.insert(0, str(ROOT / "tests" / "integration" / "accounting"))
runpy.run_path(str(ROOT / "tests" / "unit" / "conftest.py"))

from definition import state  # noqa: E402

# As in tests/integration/accounting/conftest.py, so that another cluster can be measured too.
PREFIX = json.loads(os.environ.get("TENANCY_CTL_EXEC", "null")) or ["ssh", "-F", str(state() / "ssh_config"), "ctl"]
QOS = ("tst-high", "tst-low")


def measure(ctl, proof, tenant: str) -> list[tuple[str, object]]:
    found = [("association", item) for item in proof.association(ctl, tenant, "account")]
    found += [("account", item) for item in proof.account(ctl, tenant)]
    found += [("user", item) for item in proof.user(ctl, tenant)]
    return found + [("QOS", item) for item in proof.qos(ctl, tenant)]


def cells(item) -> list[str]:
    if item.missing:
        return [re.sub(r".*(needs Slurm \S+), .*", r"\1: refused", item.missing), "", "", ""]
    found = [f"printed {item.wrong[step]!r}" if step in item.wrong else "yes" for step in ("set", "change", "clear")]
    if item.permanent:
        found[2] = "cannot be: refused"
    return [*found, item.again or "yes"]


def main() -> int:
    import proof
    from controller import Ctl

    cluster = os.environ.get("TENANCY_CLUSTER", "demo")
    ctl, tenant = Ctl(PREFIX, cluster), f"t{secrets.token_hex(3)}x"
    for name in QOS:
        ctl.sacctmgr("add", "qos", f"name={name}")
    try:
        table = measure(ctl, proof, tenant)
    finally:
        ctl.sacctmgr("delete", "user", "where", f"name={tenant}-al")
        ctl.sacctmgr("delete", "account", "where", f"name={tenant}")
        ctl.sacctmgr("delete", "qos", "where", f"name={','.join(QOS)}")
    print(f"Slurm {ctl.execute(['sacctmgr', '-V']).stdout.split()[-1]}\n")
    print("| object | option | `set` | `format=` | set | changed | cleared | unchanged when run again |")
    print("|---|---|---|---|---|---|---|---|")
    for kind, item in table:
        names = [kind, f"`{item.field.option}`", f"`{item.field.set_name}`", f"`{item.field.column}`"]
        print(f"| {' | '.join([*names, *cells(item)])} |")
    wrong = [f"{kind} {item.field.option}" for kind, item in table if not item.good]
    if wrong:
        print(f"\nnot as it should be: {', '.join(wrong)}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
