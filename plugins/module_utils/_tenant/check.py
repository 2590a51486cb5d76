# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Does a document fit the schema? Private to the collection gpuops.tenancy; controller only (library jsonschema)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant import explain, names
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.errors import Path, Problem, TenantError
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.load import Source
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.schema import SCHEMA, resolve

try:
    import jsonschema
except ImportError:
    jsonschema = None


def require_library() -> None:
    if not hasattr(jsonschema, "Draft202012Validator"):
        raise TenantError(
            "tenant documents are checked with the Python library jsonschema, version 4 or later, which the Python of "
            "ansible-playbook does not have; install it there (pip install jsonschema, or python3-jsonschema)"
        )


def check(source: Source) -> list[Problem]:
    """Every way in which the document departs from the schema."""
    require_library()
    found = [source.problem(path, text) for path, text in _vaulted_in_the_open(source)]
    for error in _validator().iter_errors(source.data):
        path = tuple(error.absolute_path)
        for place, text in explain.explain(source, path, error):
            if place not in source.reported:
                found.append(source.problem(place, text))
    return sorted(set(found), key=lambda one: (one.line, one.path, one.text))


def _validator() -> Any:
    def pattern(validator: Any, value: str, instance: Any, schema: dict) -> Iterator[Any]:
        # The library searches, and Python's $ lets a line break pass at the end.
        if isinstance(instance, str) and not re.fullmatch(value, instance):
            yield jsonschema.ValidationError("does not match")

    base = jsonschema.Draft202012Validator
    checker = base.TYPE_CHECKER.redefine(
        # JSON Schema takes 3.0 for an integer; Slurm would be handed "3.0".
        "integer",
        lambda _checker, value: isinstance(value, int) and not isinstance(value, bool),
    )
    return jsonschema.validators.extend(base, {"pattern": pattern}, type_checker=checker)(SCHEMA)


def leaves(part: dict, data: Any, path: Path = ()) -> Iterator[tuple[dict, Any, Path]]:
    """(schema, value, path) of each value that the schema knows."""
    part = resolve(part)
    if "if" in part:
        part = resolve(part["then" if isinstance(data, dict) else "else"])
    if isinstance(data, dict):
        for key, below in part.get("properties", {}).items():
            if key in data:
                yield from leaves(below, data[key], path + (key,))
    elif isinstance(data, list):
        for index, item in enumerate(data):
            if "items" in part:
                yield from leaves(part["items"], item, path + (index,))
    else:
        yield part, data, path


def fold_names(source: Source) -> list[Problem]:
    """Folds names to lower case in place, as Slurm would, and says so."""
    warnings = []
    for part, value, path in list(leaves(SCHEMA, source.data)):
        folded = names.fold(value)
        if "x-name" in part and folded != value:
            _put(source.data, path, folded)
            text = f"{source.show(path, value)} is folded to lower case, as Slurm does; write it so"
            warnings.append(source.problem(path, text))
    return warnings


def _put(data: Any, path: Path, value: Any) -> None:
    for part in path[:-1]:
        data = data[part]
    data[path[-1]] = value


def _vaulted_in_the_open(source: Source) -> Iterator[tuple[Path, str]]:
    hidden = {path for part, _value, path in leaves(SCHEMA, source.data) if part.get("x-vault")}
    for path in sorted(source.secrets - hidden - source.reported, key=str):
        yield (
            path,
            "may not be a vaulted value, because plans and reports show it; write it in clear",
        )
