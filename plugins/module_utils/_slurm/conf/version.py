# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Slurm releases. Private to the gpuops.tenancy collection."""

from __future__ import annotations

import re
import typing as t

Version = tuple[int, int]

OLDEST: Version = (22, 5)
_PATTERN = re.compile(r"(?<![\d.])(\d{2})\.(\d{2})(?:[.\-]|$|\s|~)")


class ConfigError(ValueError):
    """A configuration that must not be written; the message names the object and the fix."""


def parse(text: t.Any) -> Version:
    """The release in "22.05", "slurm-wlm 22.05.8" or "24.11.5-4+deb13u1"."""
    match = _PATTERN.search(str(text).strip())
    if match is None:
        raise ConfigError(f"{text!r} is no Slurm version; write it like 24.11")
    version = (int(match.group(1)), int(match.group(2)))
    if version < OLDEST:
        raise ConfigError(f"Slurm {show(version)} is older than {show(OLDEST)}, the oldest release supported here")
    return version


def show(version: Version) -> str:
    return f"{version[0]:02d}.{version[1]:02d}"
