# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Schema errors in an operator's words: what is wrong, and the fix. Private to the collection gpuops.tenancy."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from typing import Any

from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant import names, units
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.errors import Path, listed
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.load import Source
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.schema import EMAIL, resolve

_TYPES = {
    "object": "a mapping of keys to values",
    "array": "a list",
    "string": "text",
    "integer": "a whole number",
    "boolean": "true or false",
}
_SIZE_FIX = "write a number and a unit, such as 100GB (decimal) or 100GiB (binary)"
_TRES_FIX = {
    "gpu": "gres/gpu",
    "gpus": "gres/gpu",
    "gres": "gres/gpu",
    "cpus": "cpu",
    "cores": "cpu",
    "memory": "mem",
    "ram": "mem",
    "nodes": "node",
    "license": "license/NAME",
    "licenses": "license/NAME",
}

Found = Iterator["tuple[Path, str]"]


def explain(source: Source, path: Path, error: Any) -> Found:
    rule, value = error.validator, error.instance
    if rule == "additionalProperties":
        yield from _unknown_keys(path, error)
    elif rule == "required":
        for key in error.validator_value:
            if key not in value:
                yield path, "the key {!r} is missing; add it{}".format(key, " ('schema: 1')" if key == "schema" else "")
    elif rule == "type":
        yield path, _wrong_type(source, path, error)
    elif rule in ("pattern", "minLength", "maxLength"):
        yield path, _wrong_text(source, path, error)
    elif rule == "enum":
        shown = source.show(path, value)
        near = names.near(value, error.validator_value) if isinstance(value, str) and not source.secret(path) else ""
        yield path, "{} is not one of {}{}".format(shown, ", ".join(error.validator_value), near)
    elif rule == "const":
        yield path, f"is {source.show(path, value)}; this release reads documents of 'schema: {error.validator_value}'"
    elif rule == "minimum":
        yield path, _too_small(source, path, value)
    elif rule == "maximum":
        yield path, f"is {source.show(path, value)}; the largest value is {error.validator_value}"
    elif rule == "minProperties":
        yield path, "is empty; remove the line, which clears the limit"
    elif rule == "uniqueItems":
        for index, item in enumerate(value):
            if item in value[:index]:
                yield path + (index,), f"{source.show(path + (index,), item)} is listed twice; keep one"
    else:
        yield path, f"does not fit the schema ({rule})"


def _unknown_keys(path: Path, error: Any) -> Found:
    schema = error.schema
    patterns = list(schema.get("patternProperties", ()))
    for key in error.instance:
        if key not in schema["properties"] and not any(re.fullmatch(one, key) for one in patterns):
            if "mem" in schema["properties"] and patterns:
                yield path + (key,), f"is not a resource that can be limited; {_tres_fix(key)}"
            else:
                yield path + (key,), f"is not a known key{_key_fix(key, schema, bool(path))}"


def _tres_fix(key: str) -> str:
    word, _sep, kind = key.partition(":")
    fix = _TRES_FIX.get(word.lower())
    if fix:
        return "write %s" % (fix + ":" + kind if kind and fix == "gres/gpu" else fix)
    return "write cpu, mem, node, billing, gres/NAME, gres/NAME:TYPE or license/NAME"


def _squash(key: str) -> str:
    return re.sub("[^a-z0-9]", "", key.lower())


def _key_fix(key: str, schema: dict, nested: bool) -> str:
    """A typo, Slurm's own spelling (GrpTRES), or a key that belongs one level deeper."""
    known = schema["properties"]
    for name in known:
        if _squash(name) == _squash(key):
            return f"; write {name}"
    for name, below in known.items():
        for inner in resolve(below).get("properties", {}):
            if _squash(inner) == _squash(key):
                return f"; write {inner} below {name}"
    if nested and _squash(key) in ("coordinator", "coordinators"):
        return "; a coordinator could raise limits and add users, so tenants have none"
    close = names.near(key, known)
    deeper = {inner: name for name, below in known.items() for inner in resolve(below).get("properties", {})}
    for inner in difflib.get_close_matches(key, deeper, n=1, cutoff=0.8) if not close else ():
        close = f"; did you mean {inner}, below {deeper[inner]}?"
    return close or f"; known here are {', '.join(known)}"


def _wrong_type(source: Source, path: Path, error: Any) -> str:
    value, wanted = error.instance, error.validator_value
    wanted = [wanted] if isinstance(wanted, str) else wanted
    need = listed(_TYPES.get(one, one) for one in wanted)
    shown = source.show(path, value)
    if value is None:
        return f"is empty; remove the line, or give it a value ({need})"
    if path and path[-1] == "fairshare" and value == "parent":
        return (
            "may not be 'parent': everybody below would have the same factor, however much each has used; write a "
            "number, 1 for equal shares, or 'one_factor: true' at the account if that is meant"
        )
    special = _unit_fix(error.schema.get("pattern"))
    if special and isinstance(value, (int, float)) and not isinstance(value, bool):
        return f"{shown} is a bare number; {special}"
    if "string" in wanted and path in source.raw and not source.secret(path):
        text, seen = source.raw[path]
        return f'YAML reads {text} as {seen}; quote it if it is a name: "{text}"'
    if wanted == ["array"] and isinstance(value, (str, int)):
        return "is {}, but must be a list; write [{}]".format(shown, "..." if source.secret(path) else value)
    if wanted == ["integer"] and isinstance(value, str) and re.fullmatch("[0-9]+", value):
        return "is text, but must be a whole number; remove the quotes"
    if wanted == ["integer"] and isinstance(value, str) and value.lower() in ("unlimited", "none", "infinite"):
        return f"is {shown}; remove the line, which clears the limit"
    kind = "a mapping" if isinstance(value, dict) else "a list" if isinstance(value, list) else shown
    return f"is {kind}, but must be {need}"


def _unit_fix(pattern: str | None) -> str | None:
    if pattern == units.DURATION:
        return "Slurm reads it as minutes in one option and as seconds in the next: write HH:MM:SS or D-HH:MM:SS"
    if pattern in (units.SIZE, units.MEMORY):
        return _SIZE_FIX
    return None


def _wrong_text(source: Source, path: Path, error: Any) -> str:
    value, schema = error.instance, error.schema
    shown = source.show(path, value)
    if "x-name" in schema:
        return "{} {}".format(shown, names.shape(value, schema["maxLength"]) or "is not a name; " + names.ALLOWED)
    if error.validator == "maxLength":
        return f"has {len(value)} characters; at most {schema['maxLength']} are possible"
    pattern = schema.get("pattern")
    if pattern == units.DURATION:
        return f"{shown} is not a time; write HH:MM:SS or D-HH:MM:SS, with hours below 24 after days"
    if pattern == units.SIZE and re.fullmatch("[0-9.]+[kKMGTPE]", value) and not source.secret(path):
        return f"{shown} leaves open whether it counts by 1000 or by 1024; write {value}B or {value.upper()}iB"
    if pattern in (units.SIZE, units.MEMORY):
        return f"{shown} is not a size; {_SIZE_FIX}"
    if pattern == EMAIL:
        return f"{shown} is not a mail address; write name@domain"
    if not value.strip():
        return "is empty; remove the line, or write something"
    return f"{shown} contains a quote, a line break or a separator, which back ends would mangle; remove it"


def _too_small(source: Source, path: Path, value: Any) -> str:
    if value == -1:
        return "is -1; to clear a limit, remove the line"
    return f"is {source.show(path, value)}; it cannot be negative"
