# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes the table of claims in docs/attest.md from the catalogue of probes.

Without argument the page is written; with --check nothing is written, and the exit status says whether it is current.
"""

from __future__ import annotations

import importlib
import pathlib
import runpy
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = "ansible_collections.gpuops.tenancy.plugins.module_utils._attest"
PAGE = ROOT / "docs" / "attest.md"
BEGIN = "<!-- Made by tests/tools/gen_attest_docs.py from the catalogue in plugins/module_utils/_attest/probes. Do not edit. -->"
END = "<!-- End of what is made. -->"


def controls(probe) -> str:
    """What upholds it, and where, if that differs."""
    found: dict[str, list[str]] = {}
    for context in probe.contexts:
        found.setdefault(probe.control_in(context), []).append(context)
    if len(found) == 1:
        return next(iter(found))
    return "<br>".join(f"{', '.join(where)}: {control}" for control, where in found.items())


def table() -> str:
    # Makes the collection importable from a checkout in any folder.
    runpy.run_path(str(ROOT / "tests" / "unit" / "conftest.py"))
    catalogue = importlib.import_module(PACKAGE + ".catalogue").load({})
    lines = ["| probe | a tenant ... | control | the attack | tried in |", "| --- | --- | --- | --- | --- |"]
    accepted = ["| probe | a tenant ... | why it may succeed | the attack |", "| --- | --- | --- | --- |"]
    for id, probe in sorted(catalogue.items()):
        attack = probe.attack.replace("|", "\\|")
        if probe.accepted:
            accepted.append(f"| `{id}` | {probe.claim} | {probe.accepted} | {attack} |")
            continue
        where = ", ".join(probe.contexts) + (" (reserved nodes)" if probe.disruptive or probe.neighbour else "")
        lines.append(f"| `{id}` | {probe.claim} | {controls(probe)} | {attack} | {where} |")
    return "\n".join([*lines, "", "## What is known not to hold", "", *accepted])


def outputs() -> dict[pathlib.Path, str]:
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    return {PAGE: f"{before}{BEGIN}\n\n{table()}\n\n{END}{rest.split(END)[1]}"}


def main(argv: list[str]) -> int:
    stale = [path for path, text in outputs().items() if path.read_text(encoding="utf-8") != text]
    for path in stale:
        if "--check" not in argv:
            path.write_text(outputs()[path], encoding="utf-8")
        print(("stale: " if "--check" in argv else "written: ") + str(path.relative_to(ROOT)))
    return 1 if stale and "--check" in argv else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
