# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The catalogue on the Ansible controller: what comes with the collection, and what a site adds.

It is the same source that runs on the nodes: ``program`` puts it into one file (a zip that Python runs).
"""

from __future__ import annotations

import base64
import importlib
import io
import pathlib
import sys
import types
import typing as t
import zipfile

from . import api

HERE = pathlib.Path(__file__).resolve().parent
# What the program on the nodes is made of, besides the probes.
PARTS = ("__init__", "api", "runner", "victim")
MAIN = "import sys\nfrom attest.runner import main\nsys.exit(main(sys.argv[1:]))\n"


class CatalogueError(Exception):
    """A site's probe cannot be used; the message names its file and the fix."""


def own_modules() -> list[str]:
    return sorted(path.stem for path in (HERE / "probes").glob("*.py") if path.stem != "__init__")


def site_files(folder: str | None) -> dict[str, str]:
    """Name and text of each of the site's files of probes."""
    if not folder:
        return {}
    path = pathlib.Path(folder)
    if not path.is_dir():
        raise CatalogueError(f"{folder} is no directory; make it, or correct attest_probes_dir")
    found = {}
    for file in sorted(path.glob("*.py")):
        if not file.stem.isidentifier():
            raise CatalogueError(f"{file}: give the file a name of letters, digits and '_'")
        found[file.stem] = file.read_text(encoding="utf-8")
    return found


def load(site: t.Mapping[str, str]) -> dict[str, api.Probe]:
    """All probes by name, the site's included."""
    for name in own_modules():
        importlib.import_module(f"{__package__}.probes.{name}")
    catalogue = dict(api.REGISTRY)
    saved = {name: sys.modules.get(name) for name in ("attest", "attest.api")}
    package = types.ModuleType("attest")
    package.__path__ = []  # type: ignore[attr-defined]
    package.api = api  # type: ignore[attr-defined]
    sys.modules.update({"attest": package, "attest.api": api})
    try:
        for name, text in site.items():
            try:
                exec(compile(text, f"{name}.py", "exec"), {"__name__": f"attest.site.{name}"})
            except Exception as error:
                raise CatalogueError(f"{name}.py in attest_probes_dir: {type(error).__name__}: {error}") from error
        found = dict(api.REGISTRY)
    finally:
        # The next run of the same process may have another site.
        for name in set(api.REGISTRY) - set(catalogue):
            del api.REGISTRY[name]
        for name, module in saved.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module
    return found


def program(site: t.Mapping[str, str]) -> str:
    """The program for the nodes, in base64. The same sources give the same bytes."""
    files = {f"attest/{name}.py": (HERE / f"{name}.py").read_text(encoding="utf-8") for name in PARTS}
    files["__main__.py"] = MAIN
    for name in ("__init__", *own_modules()):
        files[f"attest/probes/{name}.py"] = (HERE / "probes" / f"{name}.py").read_text(encoding="utf-8")
    files["attest/site/__init__.py"] = ""
    for name, text in site.items():
        files[f"attest/site/{name}.py"] = text
    modules = [f"probes.{name}" for name in own_modules()] + [f"site.{name}" for name in site]
    files["attest/index.py"] = f"MODULES = {modules!r}\n"
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(files):
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), files[name], zipfile.ZIP_DEFLATED)
    return base64.b64encode(buffer.getvalue()).decode()
