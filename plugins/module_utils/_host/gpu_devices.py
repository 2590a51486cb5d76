# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""NVIDIA's device nodes and what may be said of each. Private to the gpuops.tenancy collection.

Slurm's ``ConstrainDevices`` denies what gres.conf lists and nothing else: a node that exists and is not listed opens in
every job, as far as its mode lets users open it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fnmatch
import os
import re
import stat
import typing as t

FOLDERS = ("/dev", "/dev/nvidia-caps", "/dev/nvidia-caps-imex-channels")
# Needed by every process that uses any GPU; the driver keeps what is behind them apart.
CONTROL = re.compile(r"^/dev/(nvidiactl|nvidia-uvm|nvidia-uvm-tools|nvidia-modeset)$")
# The fabric manager's. The driver makes them 0666 again whatever mode they are given, and asks whoever changes something
# for a right of its own. Jobs do not need them, and gres.conf has no word to deny them.
FABRIC = re.compile(r"^/dev/(nvidia-nvlink|nvidia-nvswitchctl|nvidia-nvswitch\d+)$")
GPU = re.compile(r"^/dev/nvidia\d+$")
DRM = "/sys/class/drm"
DISPLAY = re.compile(r"^/dev/dri/(card|renderD)\d+$")
NVIDIA = "0x10de"
CAPABILITY = re.compile(r"^/dev/nvidia-caps/nvidia-cap(\d+)$")
# cap1 creates and destroys everybody's MIG instances, cap2 watches them. File modes keep users from both.
ADMIN_CAPABILITIES = (1, 2)
GPUS, CONTROLS, FABRICS, DISPLAYS = "gpu", "control", "fabric", "display"
INSTANCES, ADMIN, OTHER = "instance", "admin", "other"


@dataclasses.dataclass(frozen=True)
class Node:
    path: str
    mode: int = 0o666
    uid: int = 0
    gid: int = 0

    @property
    def kind(self) -> str:
        for kind, pattern in ((CONTROLS, CONTROL), (FABRICS, FABRIC), (GPUS, GPU), (DISPLAYS, DISPLAY)):
            if pattern.match(self.path):
                return kind
        capability = CAPABILITY.match(self.path)
        if capability:
            return ADMIN if int(capability.group(1)) in ADMIN_CAPABILITIES else INSTANCES
        return OTHER

    @property
    def for_all(self) -> bool:
        """Whether the file's mode lets a user who is neither its owner nor in its group open it."""
        return bool(self.mode & 0o006)


def read(folders: t.Iterable[str] = FOLDERS, drm: str = DRM) -> list[Node]:
    """The nodes that exist; a folder that does not exist holds none.

    :raises OSError: a folder cannot be read: that is not the same as having no GPU.
    """
    paths = [
        os.path.join(folder, name)
        for folder in folders
        for name in _names(folder)
        if folder != "/dev" or name.startswith("nvidia")
    ]
    paths += [f"/dev/dri/{name}" for name in _names(drm) if _vendor(drm, name) == NVIDIA]
    found = []
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            status = os.lstat(path)
            if stat.S_ISCHR(status.st_mode):
                found.append(Node(path, stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid))
    return sorted(
        found, key=lambda node: [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", node.path)]
    )


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except FileNotFoundError:
        return []


def _vendor(drm: str, name: str) -> str:
    """Of the graphics card behind a device of /dev/dri; a screen has none."""
    try:
        with open(os.path.join(drm, name, "device", "vendor"), encoding="ascii") as handle:
            return handle.read().strip()
    except (FileNotFoundError, NotADirectoryError):
        return ""


def without(nodes: t.Iterable[Node], accepted: t.Collection[str]) -> list[Node]:
    """Those that none of the patterns names. The rights to everybody's MIG instances nobody can accept. Pure."""
    return [
        node
        for node in nodes
        if node.kind == ADMIN or not any(fnmatch.fnmatchcase(node.path, pattern) for pattern in accepted)
    ]


def problems(nodes: t.Iterable[Node], listed: t.Iterable[str]) -> list[str]:
    """What every job could open although nobody allocated it. Pure."""
    known = set(listed)
    return [said for said in (_problem(node, known) for node in nodes) if said]


def _problem(node: Node, known: t.Container[str]) -> str:
    path, mode = node.path, f"{node.mode:04o}"
    if node.kind == ADMIN:
        if path in known:
            return f"{path} is given to jobs by gres.conf: it is the right to change or watch everybody's MIG instances; take it out"
        if node.for_all:
            return f"{path} has mode {mode}: every job may change or watch everybody's MIG instances; make it 0400"
    if node.kind in (ADMIN, CONTROLS, FABRICS) or path in known:
        return ""
    if node.kind == GPUS:
        return f"{path} is not in gres.conf: it opens in every job; add it there, or remove the device node"
    # What only root may open is safe without a line; a MIG instance's is 0444 where it is in use.
    if not node.for_all:
        return ""
    if node.kind == INSTANCES:
        return f"{path} is not in gres.conf: it opens in every job; add it there, or make it 0400"
    if node.kind == DISPLAYS:
        return (
            f"{path} has mode {mode}: the GPU opens in every job; have udev make it 0660 for a group that no tenant is in, "
            "or add it to its GPU in gres.conf (MultipleFiles)"
        )
    return (
        f"{path} is not in gres.conf and has mode {mode}: it opens in every job; have its driver make it 0600, "
        "add it to gres.conf if jobs are to get it one by one, or say in gpu_access_known_devices why everybody may"
    )
