# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every way to a GPU besides the scheduler, tried. Private to the gpuops.tenancy collection."""

from __future__ import annotations

import os
import pwd
import re
import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils import _command
from ansible_collections.gpuops.tenancy.plugins.module_utils._host import cgroups, device_policy, gpu_holders
from ansible_collections.gpuops.tenancy.plugins.module_utils._host.device_probe import (
    Attempt,
    in_manager,
    in_session,
    of_unit,
)

_MANAGER = re.compile(r"^user@(\d+)\.service$")
_SLICE = re.compile(r"^user-(\d+)\.slice$")


def show(unit: str, *properties: str) -> dict[str, str]:
    done = _command.run(["systemctl", "show", unit, *(f"--property={name}" for name in properties)], ok=(0,))
    return dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)


def instances(unit: str) -> list[str]:
    """The unit, or the running instances of a template."""
    if "@." not in unit:
        return [unit]
    pattern = unit.replace("@.", "@*.")
    argv = ["systemctl", "list-units", "--plain", "--no-legend", "--full", "--state=active", pattern]
    return [line.split()[0] for line in _command.run(argv, ok=(0,)).stdout.splitlines() if line.split()]


def live_slices(hierarchy: cgroups.Hierarchy) -> list[int]:
    """The users who have sessions, or a manager, now."""
    found = []
    try:
        names = os.listdir(os.path.join(hierarchy.units, "user.slice"))
    except FileNotFoundError:
        return []
    for name in names:
        match = _SLICE.match(name)
        if match:
            found.append(int(match.group(1)))
    return sorted(found)


def manager_of(unit: str) -> int | None:
    """Whose manager a unit is. Pure."""
    match = _MANAGER.match(unit)
    return int(match.group(1)) if match else None


def user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


class Survey:
    """The ways, for one user who is nobody in particular."""

    def __init__(self, devices: t.Sequence[str], uid: int, gid: int, exempt_uids: t.Container[int] = ()) -> None:
        self.devices = devices
        self.uid = uid
        self.gid = gid
        self.exempt_uids = exempt_uids
        self.hierarchy = cgroups.read()

    def services(self, names: t.Iterable[str], expected: bool) -> list[Attempt]:
        found = []
        for name in names:
            unit = device_policy.service(name)
            # The manager of a user who is exempt is part of his session.
            running = [it for it in instances(unit) if not (expected and manager_of(it) in self.exempt_uids)]
            if not running:
                found.append(Attempt(f"service {unit}", expected, why="no instance of it runs"))
            for instance in running:
                group = show(instance, "ControlGroup").get("ControlGroup", "")
                # What is exempt is asked as root, who runs it: the file's mode is not the question.
                uid, gid = (self.uid, self.gid) if expected else (0, 0)
                found.append(of_unit(self.hierarchy, f"service {instance}", group, expected, self.devices, uid, gid))
        return found

    def new_session(self) -> Attempt:
        return Attempt("a new session", True, in_session(self.devices, self.uid, self.gid))

    def new_manager(self) -> Attempt:
        way, unit = "systemd-run --user", f"user@{self.uid}.service"
        state = show(unit, "LoadState", "ActiveState")
        if state.get("LoadState") != "loaded":
            return Attempt(way, True, why=f"{unit} is {state.get('LoadState')}: users have no managers here")
        ran = state.get("ActiveState") == "active"
        if not ran:
            started = _command.run(["systemctl", "start", unit], timeout=60)
            if started.rc != 0:
                _command.run(["systemctl", "reset-failed", unit])
                return Attempt(way, True, why=f"{unit} does not start here: {' '.join(started.stderr.split())}")
        try:
            return Attempt(way, True, in_manager(self.devices, self.uid, self.gid))
        finally:
            if not ran:
                _command.run(["systemctl", "stop", unit], timeout=120)

    def live_sessions(self) -> list[Attempt]:
        """What people who are logged in right now can open. On v1 a slice keeps the rules it was made with."""
        found = []
        for uid in live_slices(self.hierarchy):
            if uid in self.exempt_uids:
                continue
            path = f"/user.slice/user-{uid}.slice"
            way = f"live session of {user_name(uid)}"
            found.append(of_unit(self.hierarchy, way, path, True, self.devices, self.uid, self.gid))
        return found

    def holders(self, exempt_services: t.Iterable[str]) -> list[gpu_holders.Holder]:
        """Processes that had a GPU open before it was closed to them, and keep it: no policy takes that away."""
        units = [it for name in exempt_services for it in instances(device_policy.service(name))]
        groups = [group for group in (show(it, "ControlGroup").get("ControlGroup", "") for it in units) if group]
        spare = {pid for group in groups for pid in self.hierarchy.unit_pids(group)}
        return gpu_holders.read(self.hierarchy, self.devices, self.exempt_uids, spare)
