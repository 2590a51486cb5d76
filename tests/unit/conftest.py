# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make ``ansible_collections.gpuops.tenancy`` importable from a checkout in any folder."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import pathlib
import sys

import hypothesis

# No database of examples in the checkout; CI tries the same examples each time. How quickly examples are found says
# nothing of our code, and less on a busy machine.
hypothesis.settings.register_profile(
    "gpuops",
    database=None,
    deadline=None,
    derandomize=bool(os.environ.get("CI")),
    suppress_health_check=[hypothesis.HealthCheck.filter_too_much, hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("gpuops")

ROOT = pathlib.Path(__file__).resolve().parents[2]


def _namespace(name: str, *paths: pathlib.Path) -> None:
    """A package without code of its own, found at the given folders."""
    if name in sys.modules:
        return
    spec = importlib.machinery.ModuleSpec(name, None, is_package=True)
    spec.submodule_search_locations = [str(path) for path in paths]
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    parent, _dot, child = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], child, module)


# Helpers shared by tests lie beside this file.
sys.path.insert(0, str(ROOT / "tests" / "unit"))
_namespace("ansible_collections")
_namespace("ansible_collections.gpuops")
_namespace("ansible_collections.gpuops.tenancy", ROOT)
