# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What holds across the files of the collection."""

from __future__ import annotations

import ast
import pathlib
import re

import pytest
import yaml
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import fields

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODULES = sorted((ROOT / "plugins" / "modules").glob("*.py"))
ROLES = sorted(path.parent.parent for path in (ROOT / "roles").glob("*/tasks/main.yml"))


def documentation(module: pathlib.Path) -> dict:
    for node in ast.parse(module.read_text()).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "DOCUMENTATION":
            return yaml.safe_load(node.value.value)
    raise AssertionError(f"{module} has no DOCUMENTATION")


def test_the_action_group_holds_slurms_modules():
    group = yaml.safe_load((ROOT / "meta" / "runtime.yml").read_text())["action_groups"]["slurm"]
    extends = {
        module.stem
        for module in MODULES
        if "gpuops.tenancy.attributes.actiongroup_slurm" in documentation(module)["extends_documentation_fragment"]
    }
    assert set(group) == {module.stem for module in MODULES if module.stem.startswith("slurm_")} == extends


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.stem)
def test_what_modules_have_in_common_has_one_name_and_one_text(module):
    document, text = documentation(module), module.read_text()
    own = set(document.get("options", {}))
    fragments = set(document["extends_documentation_fragment"])
    assert not own & {"search_path", "lock_timeout", "binary_dir"}
    if fragments & {"gpuops.tenancy.slurm", "gpuops.tenancy.host.lock"} or re.search(r"\bLock\(", text):
        assert fragments & {"gpuops.tenancy.slurm", "gpuops.tenancy.host.lock"}
        assert "lock_timeout" in text or "COMMON" in text


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.stem)
def test_every_module_is_tested_or_used_by_a_scenario(module):
    places = [
        *(ROOT / "tests").rglob("*.py"),
        *(ROOT / "molecule").rglob("*.py"),
        *(ROOT / "roles").rglob("*.yml"),
        *(ROOT / "playbooks").glob("*.yml"),
    ]
    assert any(
        re.search(rf"\b{module.stem}\b", place.read_text()) for place in places if place != pathlib.Path(__file__)
    )


@pytest.mark.parametrize("path", sorted((ROOT / "plugins" / "module_utils").rglob("*.py")), ids=lambda path: path.stem)
def test_module_utils_are_private(path):
    relative = path.relative_to(ROOT / "plugins" / "module_utils")
    assert relative.parts[0].startswith("_")


@pytest.mark.parametrize("path", sorted((ROOT / "plugins" / "module_utils").rglob("*.py")), ids=lambda path: path.stem)
def test_no_package_imports_another_systems_package(path):
    own = path.relative_to(ROOT / "plugins" / "module_utils").parts[0]
    if not (path.parent / "__init__.py").exists() or own.endswith(".py"):
        return
    imported = set(re.findall(r"plugins\.module_utils\.(_[a-z]+)\.", path.read_text()))
    assert imported <= {own}


@pytest.mark.parametrize("role", ROLES, ids=lambda path: path.name)
def test_a_roles_specification_matches_its_defaults(role):
    specs = yaml.safe_load((role / "meta" / "argument_specs.yml").read_text())["argument_specs"]
    options = {name: option for spec in specs.values() for name, option in spec["options"].items()}
    defaults = yaml.safe_load((role / "defaults" / "main.yml").read_text()) or {}
    assert set(defaults) <= set(options), "a variable without a type"
    for name, option in options.items():
        assert "default" not in option, f"{name}: a default belongs into defaults/main.yml alone"
        assert name in defaults or option.get("required") or "description" in option
    assert all(name.startswith(f"{role.name}_") for name in defaults)
    assert (role / "README.md").exists()


def test_the_controller_takes_every_field_that_a_qos_has():
    spec = yaml.safe_load((ROOT / "roles" / "slurm_controller" / "meta" / "argument_specs.yml").read_text())
    taken = spec["argument_specs"]["main"]["options"]["slurm_controller_qos"]["options"]
    assert set(taken) == {"name", *fields.QOS_BY_OPTION}
