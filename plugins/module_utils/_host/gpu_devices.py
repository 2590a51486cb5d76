# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""NVIDIA's device nodes and what may be said of each. Private to the gpuops.tenancy collection.

Slurm's ``ConstrainDevices`` denies what gres.conf lists and nothing else: a node that exists and is not listed opens in
every job.
"""

from __future__ import annotations

import dataclasses
import os
import re
import stat
import typing as t

FOLDERS = ("/dev", "/dev/nvidia-caps", "/dev/nvidia-caps-imex-channels")
# Needed by every process that uses any GPU; the driver keeps what is behind them apart.
CONTROL = re.compile(r"^/dev/(nvidiactl|nvidia-uvm|nvidia-uvm-tools|nvidia-modeset|nvidia-nvlink|nvidia-nvswitchctl)$")
GPU = re.compile(r"^/dev/nvidia\d+$")
CAPABILITY = re.compile(r"^/dev/nvidia-caps/nvidia-cap(\d+)$")
# cap1 creates and destroys everybody's MIG instances, cap2 watches them. File modes keep users from both.
ADMIN_CAPABILITIES = (1, 2)
GPUS, CONTROLS, INSTANCES, ADMIN, OTHER = "gpu", "control", "instance", "admin", "other"


@dataclasses.dataclass(frozen=True)
class Node:
    path: str
    mode: int = 0o666
    uid: int = 0
    gid: int = 0

    @property
    def kind(self) -> str:
        if CONTROL.match(self.path):
            return CONTROLS
        if GPU.match(self.path):
            return GPUS
        capability = CAPABILITY.match(self.path)
        if capability:
            return ADMIN if int(capability.group(1)) in ADMIN_CAPABILITIES else INSTANCES
        return OTHER

    @property
    def for_all(self) -> bool:
        """Whether the file's mode lets a user who is neither its owner nor in its group open it."""
        return bool(self.mode & 0o006)


def read(folders: t.Iterable[str] = FOLDERS) -> list[Node]:
    """The nodes that exist; a folder that does not exist holds none.

    :raises OSError: a folder cannot be read: that is not the same as having no GPU.
    """
    found = []
    for folder in folders:
        try:
            names = sorted(os.listdir(folder))
        except FileNotFoundError:
            continue
        for name in names:
            if not name.startswith("nvidia"):
                continue
            path = os.path.join(folder, name)
            status = os.lstat(path)
            if stat.S_ISCHR(status.st_mode):
                found.append(Node(path, stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid))
    return sorted(
        found, key=lambda node: [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", node.path)]
    )


def problems(nodes: t.Iterable[Node], listed: t.Iterable[str]) -> list[str]:
    """What every job could open although nobody allocated it. Pure."""
    known = set(listed)
    found = []
    for node in nodes:
        if node.kind == CONTROLS:
            continue
        if node.kind == ADMIN:
            if node.path in known:
                found.append(
                    f"{node.path} is given to jobs by gres.conf: it is the right to change or watch everybody's MIG instances; take it out"
                )
            elif node.for_all:
                found.append(
                    f"{node.path} has mode {node.mode:04o}: every job may change or watch everybody's MIG instances; make it 0400"
                )
        # A capability that only root may open is safe without a line; a MIG instance's is 0444 where it is in use.
        elif node.path not in known and (node.kind == GPUS or node.for_all):
            found.append(
                f"{node.path} is not in gres.conf: it opens in every job; add it there, or remove the device node"
            )
    return found
