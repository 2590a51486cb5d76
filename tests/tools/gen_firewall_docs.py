# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes the port matrix into docs/firewall.md.

Without argument the file is written; with --check nothing is written, and the exit status says whether it is current.
"""

from __future__ import annotations

import importlib
import pathlib
import runpy
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "firewall.md"
BEGIN = "<!-- port matrix: made by tests/tools/gen_firewall_docs.py from plugins/module_utils/_firewall/matrix.py -->\n"
END = "<!-- end of the port matrix -->\n"


def outputs() -> dict:
    # Makes the collection importable from a checkout in any folder.
    runpy.run_path(str(ROOT / "tests" / "unit" / "conftest.py"))
    matrix = importlib.import_module("ansible_collections.gpuops.tenancy.plugins.module_utils._firewall.matrix")
    before, _begin, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _old, _end, after = rest.partition(END)
    return {PAGE: before + BEGIN + matrix.table() + END + after}


def main(argv: list) -> int:
    stale = [path for path, text in outputs().items() if path.read_text(encoding="utf-8") != text]
    for path in stale:
        if "--check" not in argv:
            path.write_text(outputs()[path], encoding="utf-8")
        print(("stale: " if "--check" in argv else "written: ") + str(path.relative_to(ROOT)))
    return 1 if stale and "--check" in argv else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
