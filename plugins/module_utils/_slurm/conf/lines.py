# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Key=value text as Slurm's parser reads it. Private to the gpuops.tenancy collection."""

from __future__ import annotations

import re
import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.conf import refused, table
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.conf.version import ConfigError, Version

HEADER = "# Managed by Ansible (gpuops.tenancy): a change made here is undone by the next run.\n"
_KEY = re.compile(r"^[A-Za-z][A-Za-z0-9_]*$")


def value(where: str, key: str, raw: t.Any) -> str | None:
    """One value as text; None where the key is to be left out."""
    if raw is None:
        return None
    if isinstance(raw, bool):
        return "yes" if raw else "no"
    if isinstance(raw, t.Mapping):
        text = ",".join(f"{name}={item}" for name, item in raw.items())
    elif isinstance(raw, (list, tuple)):
        text = ",".join(str(item) for item in raw)
    else:
        text = str(raw)
    if text == "":
        return None
    bad = next((char for char in text if char in '#"\\' or ord(char) < 32), None)
    if bad is not None:
        raise ConfigError(f"{where}: the value of {key} holds {bad!r}, which Slurm's parser would misread; remove it")
    return f'"{text}"' if " " in text else text


def pairs(where: str, items: t.Iterable[tuple[str, t.Any]]) -> str:
    """One line: Key=value Key=value, without those that have no value."""
    words: list[str] = []
    for key, raw in items:
        if not _KEY.match(key):
            raise ConfigError(f"{where}: {key!r} is no key")
        text = value(where, key, raw)
        if text is not None:
            words.append(f"{key}={text}")
    return " ".join(words)


def options(
    file: str,
    version: Version,
    defaults: t.Mapping[str, t.Any],
    wanted: t.Mapping[str, t.Any] | None = None,
    extra: t.Mapping[str, t.Any] | None = None,
) -> dict[str, str]:
    """Defaults, overridden by known options, overridden by extra ones; sorted, without what has no value.

    Keys of ``wanted`` must be in the table for this release. Those of ``extra`` need not, but what is refused stays
    refused. A default that this release does not know is left out.
    """
    merged: dict[str, t.Any] = {}
    for key, raw in defaults.items():
        if table.supports(file, key, version):
            merged[key] = raw
    for key, raw in (wanted or {}).items():
        merged[table.require(file, str(key), version)] = raw
    for key, raw in (extra or {}).items():
        if not _KEY.match(str(key)):
            raise ConfigError(f"{file}: {key!r} is no key")
        merged[table.spelled(file, str(key)) or str(key)] = raw
    result: dict[str, str] = {}
    for key in sorted(merged, key=str.lower):
        text = value(file, key, merged[key])
        if text is not None:
            refused.check(file, key, text.strip('"'))
            result[key] = text
    return result


def text(items: t.Mapping[str, str]) -> str:
    return "".join(f"{key}={item}\n" for key, item in items.items())
