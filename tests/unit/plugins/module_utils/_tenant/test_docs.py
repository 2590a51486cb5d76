# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The generated documentation is current, and every key in it is explained."""

from __future__ import annotations

import importlib.util
import json
import pathlib

import jsonschema
import pytest
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant import check
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.schema import SCHEMA

ROOT = pathlib.Path(__file__).resolve().parents[5]


def generator():
    spec = importlib.util.spec_from_file_location("gen_tenant_docs", ROOT / "tests" / "tools" / "gen_tenant_docs.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_documentation_is_current():
    for path, text in generator().outputs().items():
        assert path.read_text(encoding="utf-8") == text, "run tests/tools/gen_tenant_docs.py"


def test_the_published_schema_is_a_schema_without_our_annotations():
    published = json.loads((ROOT / "docs" / "schema" / "tenant.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(published)
    assert "x-" not in json.dumps(list(keys_of(published)))


def keys_of(part):
    if isinstance(part, dict):
        for key, value in part.items():
            yield key
            yield from keys_of(value)
    elif isinstance(part, list):
        for value in part:
            yield from keys_of(value)


def objects(part, path=()):
    if isinstance(part, dict):
        if "properties" in part:
            yield path, part
        for key, value in part.items():
            yield from objects(value, path + (key,))


@pytest.mark.parametrize(
    ("path", "part"), list(objects(SCHEMA)), ids=lambda one: str(one) if isinstance(one, tuple) else ""
)
def test_every_object_is_closed_and_every_key_explained(path, part):
    assert part["additionalProperties"] is False
    children = {**part["properties"], **part.get("patternProperties", {})}
    for key, child in children.items():
        child = SCHEMA["$defs"][child["$ref"].rpartition("/")[2]] if "$ref" in child else child
        assert child["description"].endswith("."), key
        if child.get("type") in ("integer", "string", "array") and "patternProperties" not in part:
            assert "Unit:" in child["description"] or "Default:" in child["description"], key
        validator = check._validator().evolve(schema=child)
        for example in child["examples"]:
            assert list(validator.iter_errors(example)) == [], key
