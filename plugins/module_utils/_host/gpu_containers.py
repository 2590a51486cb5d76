# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Containers that would lose their GPUs at systemd's next daemon-reload. Private to the gpuops.tenancy collection.

A reload writes the device rules of every scope anew, from what systemd was told when it was made. The NVIDIA hook of a
container engine adds its devices behind systemd's back, so they go: "Failed to initialize NVML: Unknown Error".
"""

from __future__ import annotations

import dataclasses
import glob
import os
import re
import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils import _command
from ansible_collections.gpuops.tenancy.plugins.module_utils._host import cgroups

# With systemd as cgroup manager; what an engine makes by itself systemd does not touch.
SCOPE = re.compile(r"^(docker|libpod|crio|cri-containerd|nerdctl)-.+\.scope$")


class Busy(Exception):
    """A daemon-reload has to wait; ``scopes`` are the containers that would lose their GPUs."""

    def __init__(self, scopes: t.Sequence[str]) -> None:
        super().__init__(
            f"systemd would have to read its units anew, and these containers would lose their GPUs by that: {', '.join(scopes)}. "
            "Nothing was changed: drain the node and run again when they have ended; containers started with CDI are free of this"
        )
        self.scopes = list(scopes)


@dataclasses.dataclass(frozen=True)
class Container:
    scope: str
    devices: tuple[str, ...]
    allow: tuple[str, ...]


def at_risk(containers: t.Iterable[Container]) -> list[str]:
    """The scopes that hold GPUs of which systemd does not know. Pure."""
    return sorted(
        it.scope
        for it in containers
        if it.devices
        and not any(re.match(r"(/dev/nvidia|/dev/char/|char-nvidia|char-195\b)", word) for word in it.allow)
    )


def refuse_reload() -> None:
    """:raises Busy: somebody would lose GPUs."""
    scopes = at_risk(read())
    if scopes:
        raise Busy(scopes)


def read() -> list[Container]:
    """Every container scope, with the NVIDIA devices that its processes see."""
    hierarchy = cgroups.read()
    found = []
    for folder, folders, _files in os.walk(hierarchy.units):
        for name in folders:
            if not SCOPE.match(name):
                continue
            path = os.path.join("/", os.path.relpath(os.path.join(folder, name), hierarchy.units))
            devices: set[str] = set()
            for pid in hierarchy.unit_pids(path):
                root = f"/proc/{pid}/root"
                devices |= {device[len(root) :] for device in glob.glob(f"{root}/dev/nvidia*")}
            found.append(Container(name, tuple(sorted(devices)), _allow(name)))
    return found


def _allow(scope: str) -> tuple[str, ...]:
    done = _command.run(["systemctl", "show", scope, "--property=DeviceAllow"])
    lines = [line.partition("=")[2] for line in done.stdout.splitlines()]
    return tuple(line.split(" ", 1)[0] for line in lines if line)
