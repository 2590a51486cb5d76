# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The one way to have systemd read its units anew, and containers that would lose their GPUs by it. Private to the
gpuops.tenancy collection.

A reload writes the device rules of every scope anew, from what systemd was told when it was made. The NVIDIA hook of a
container engine adds its devices behind systemd's back, so they go: "Failed to initialize NVML: Unknown Error".
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import fnmatch
import glob
import os
import re
import stat
import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils import _command
from ansible_collections.gpuops.tenancy.plugins.module_utils._host import cgroups, device_probe

RELOAD = ["systemctl", "daemon-reload"]
BUSY = {"type": "str", "choices": ["fail", "skip"], "default": "fail"}
# With systemd as cgroup manager; what an engine makes by itself systemd does not touch.
SCOPE = re.compile(r"^(docker|libpod|crio|cri-containerd|nerdctl)-.+\.scope$")
_DEVICE = re.compile(r"^/dev/nvidia[a-z0-9-]*(/[a-z0-9-]+)?$")

# Major number -> the drivers that have it.
Drivers = t.Mapping[int, t.Collection[str]]


class Busy(Exception):
    """A daemon-reload has to wait; ``scopes`` are the containers that would lose their GPUs."""

    def __init__(self, scopes: t.Sequence[str]) -> None:
        super().__init__(
            f"systemd has to read its units anew, and these containers would lose their GPUs by that: {', '.join(scopes)}. "
            "It was not told to: drain the node and run again when they have ended; containers started with CDI are free of this"
        )
        self.scopes = list(scopes)


@dataclasses.dataclass(frozen=True)
class Container:
    """What systemd goes by (``allow``: device or group of devices, rights), and what one of its processes has in /dev."""

    scope: str
    policy: str = "auto"
    allow: tuple[tuple[str, str], ...] = ()
    devices: t.Mapping[str, tuple[int, int]] = dataclasses.field(default_factory=dict)
    pid: int = 0


def refused(container: Container, drivers: Drivers) -> list[str]:
    """The devices that systemd does not let it open. Pure."""
    if container.policy == "auto" and not container.allow:
        return []
    return [
        path
        for path, (major, minor) in container.devices.items()
        if not any(_covers(entry, rights, path, major, minor, drivers) for entry, rights in container.allow)
    ]


def _covers(entry: str, rights: str, path: str, major: int, minor: int, drivers: Drivers) -> bool:
    # Every container may make device files ("char-* m"), which opens none.
    if not set(rights) & set("rw"):
        return False
    if not entry.startswith("char-"):
        return entry in (path, f"/dev/char/{major}:{minor}")
    group = entry[len("char-") :]
    return group == str(major) or any(fnmatch.fnmatchcase(name, group) for name in drivers.get(major, ()))


def at_risk(
    containers: t.Iterable[Container], drivers: Drivers, opens: t.Callable[[Container, t.Sequence[str]], bool]
) -> list[str]:
    """The scopes that can open a GPU now and could not after a reload."""
    found = set()
    for container in containers:
        paths = refused(container, drivers)
        if paths and opens(container, paths):
            found.add(container.scope)
    return sorted(found)


def refuse_reload() -> None:
    """:raises Busy: somebody would lose GPUs."""
    try:
        hierarchy = cgroups.read()
    except cgroups.NoHierarchy:
        # Then there are no device rules that could be lost.
        return
    scopes = at_risk(read(hierarchy), read_drivers(), lambda container, paths: _opens(hierarchy, container, paths))
    if scopes:
        raise Busy(scopes)


def waits_for(busy: str, warn: t.Callable[[str], None]) -> list[str]:
    """The containers for whose sake nothing is to be changed now.

    :raises Busy: there are some, and ``busy`` is ``fail``.
    """
    try:
        refuse_reload()
    except Busy as exc:
        if busy == "fail":
            raise
        warn(str(exc))
        return exc.scopes
    return []


def reload(fds: t.Sequence[int] = ()) -> None:
    """Have systemd read its units anew. Nothing that runs is restarted.

    :raises Busy: somebody would lose GPUs.
    """
    refuse_reload()
    _command.run(RELOAD, timeout=120, pass_fds=fds, ok=(0,))


def parse_drivers(text: str) -> dict[int, set[str]]:
    """The character devices in /proc/devices. Pure."""
    found: dict[int, set[str]] = collections.defaultdict(set)
    for line in text.partition("Block devices:")[0].splitlines():
        words = line.split()
        if len(words) == 2 and words[0].isdigit():
            found[int(words[0])].add(words[1])
    return found


def read_drivers() -> dict[int, set[str]]:
    with open("/proc/devices", encoding="utf-8", errors="replace") as handle:
        return parse_drivers(handle.read())


def parse(show: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Policy and list of devices in the output of ``systemctl show``. Pure."""
    policy, allow = "auto", []
    for line in show.splitlines():
        key, _equals, value = line.partition("=")
        if key == "DevicePolicy":
            policy = value
        elif key == "DeviceAllow" and value:
            entry, _blank, rights = value.partition(" ")
            allow.append((entry, rights))
    return policy, tuple(allow)


def read(hierarchy: cgroups.Hierarchy) -> list[Container]:
    """Every container scope, once for each view of /dev that its processes have."""
    found = []
    for folder, folders, _files in os.walk(hierarchy.units):
        for name in filter(SCOPE.match, folders):
            path = os.path.join("/", os.path.relpath(os.path.join(folder, name), hierarchy.units))
            views: dict[str, tuple[int, dict[str, tuple[int, int]]]] = {}
            for pid in hierarchy.unit_pids(path):
                with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                    space = os.readlink(f"/proc/{pid}/ns/mnt")
                    if space not in views:
                        views[space] = (pid, devices(f"/proc/{pid}/root"))
            show = ["systemctl", "show", name, "--property=DevicePolicy", "--property=DeviceAllow"]
            if any(seen for _pid, seen in views.values()):
                policy, allow = parse(_command.run(show, ok=(0,)).stdout)
                found += [Container(name, policy, allow, seen, pid) for pid, seen in views.values()]
    return found


def devices(root: str) -> dict[str, tuple[int, int]]:
    """NVIDIA's device files below a root directory, with their numbers."""
    found = {}
    for place in glob.glob(f"{root}/dev/nvidia*") + glob.glob(f"{root}/dev/nvidia-caps*/*"):
        path = place[len(root) :]
        with contextlib.suppress(FileNotFoundError):
            status = os.lstat(place)
            if _DEVICE.match(path) and stat.S_ISCHR(status.st_mode):
                found[path] = (os.major(status.st_rdev), os.minor(status.st_rdev))
    return dict(sorted(found.items()))


def _opens(hierarchy: cgroups.Hierarchy, container: Container, paths: t.Sequence[str]) -> bool:
    """Whether one of the devices opens in the container's cgroup; yes, if that cannot be found out."""
    group = hierarchy.of_process(container.pid)
    if group is None:
        # It has just ended.
        return False
    places = [f"/proc/{container.pid}/root{path}" for path in paths]
    tried = device_probe.in_cgroup(hierarchy.folder(group), places, 0, 0)
    return bool(tried.problem or tried.open)
