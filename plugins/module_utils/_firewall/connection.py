# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Over which connection a module was started. Private to the gpuops.tenancy collection."""

from __future__ import annotations

import dataclasses
import os
import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils import _systemd

_FARTHEST = 64


@dataclasses.dataclass(frozen=True)
class Connection:
    """``since`` is the start of the session's sshd in seconds since the epoch; ``address`` is the client's."""

    address: str
    since: float


def current(pid: int | None = None, proc: str = "/proc") -> Connection | None:
    """The ssh connection that this process descends from, or None (a local connection, a container's)."""
    process = os.getpid() if pid is None else pid
    address = ""
    for _step in range(_FARTHEST):
        name, parent = _stat(process, proc)
        # sudo cleans the environment: some ancestor before it still has the address.
        address = address or _environment(process, proc).get("SSH_CONNECTION", "").partition(" ")[0]
        if address and name.startswith("sshd"):
            since = _systemd.process_start(process)
            return None if since is None else Connection(address, since)
        if parent <= 1:
            return None
        process = parent
    return None


def _stat(pid: int, proc: str) -> tuple[str, int]:
    try:
        with open(f"{proc}/{pid}/stat", encoding="utf-8", errors="replace") as handle:
            text = handle.read()
    except OSError:
        return "", 0
    # The name stands in brackets and may hold anything.
    before, _bracket, after = text.rpartition(")")
    return before.partition("(")[2], int(after.split()[1])


def _environment(pid: int, proc: str) -> t.Mapping[str, str]:
    try:
        with open(f"{proc}/{pid}/environ", "rb") as handle:
            words = handle.read().decode("utf-8", "replace").split("\0")
    except OSError:
        return {}
    return dict(word.split("=", 1) for word in words if "=" in word)
