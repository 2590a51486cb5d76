# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes plugins/doc_fragments/slurm_fields_*.py from the table of fields.

Without argument the file is written; with --check nothing is written, and the exit status says whether it is current.
"""

from __future__ import annotations

import importlib
import pathlib
import runpy
import sys

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = "ansible_collections.gpuops.tenancy.plugins.module_utils._slurm"
HEADER = """\
# Copyright: (c) 2026, gpuops.tenancy contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Made by tests/tools/gen_field_docs.py from plugins/module_utils/_slurm/fields.py and options.py. Do not edit.

from __future__ import annotations


class ModuleDocFragment:
"""


class Dumper(yaml.SafeDumper):
    """No anchors: each module's documentation stands for itself."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def documented(options: dict) -> dict:
    """As DOCUMENTATION wants it: suboptions instead of options."""
    found = {}
    for name, option in options.items():
        found[name] = {key: value for key, value in option.items() if key not in ("options", "no_log")}
        if "options" in option:
            found[name]["suboptions"] = documented(option["options"])
    return found


def outputs() -> dict:
    # Makes the collection importable from a checkout in any folder.
    runpy.run_path(str(ROOT / "tests" / "unit" / "conftest.py"))
    options = importlib.import_module(PACKAGE + ".options")
    found = {}
    for name, given in options.FRAGMENTS.items():
        text = yaml.dump({"options": documented(given)}, Dumper=Dumper, sort_keys=False, width=110, allow_unicode=True)
        path = ROOT / "plugins" / "doc_fragments" / f"slurm_fields_{name}.py"
        found[path] = f'{HEADER}    DOCUMENTATION = r"""\n{text}"""\n'
    return found


def main(argv: list) -> int:
    stale = [path for path, text in outputs().items() if not path.exists() or path.read_text() != text]
    for path in stale:
        if "--check" not in argv:
            path.write_text(outputs()[path], encoding="utf-8")
        print(("stale: " if "--check" in argv else "written: ") + str(path.relative_to(ROOT)))
    return 1 if stale and "--check" in argv else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
