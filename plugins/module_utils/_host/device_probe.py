# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Open devices as somebody, in some cgroup, and say what the kernel answered. Private to the gpuops.tenancy collection.

EPERM: the device cgroup said no. EACCES: the file's mode did. ENXIO, EIO, EBUSY, or that it opened: nobody said no. What
systemd or a file says about a policy is never asked here.
"""

from __future__ import annotations

import dataclasses
import os
import sys
import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils import _command
from ansible_collections.gpuops.tenancy.plugins.module_utils._host import cgroups

# The device cgroup is asked after the file's mode, so a mode alone can hide what it would have said.
DENIED = ("EPERM", "EACCES")
SYSTEM_PYTHON = "/usr/bin/python3"
# A process of its own, that has nothing but the standard library. A MIG capability is a file of mode 0444: to read it is to
# have it, so reading alone is tried too. Of two refusals EPERM is shown.
CODE = """
import errno, os, sys
for path in sys.argv[1:]:
    said = []
    for flags in (os.O_RDWR, os.O_RDONLY):
        try:
            os.close(os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC))
            said.append("opened")
        except OSError as error:
            said.append(errno.errorcode.get(error.errno, str(error.errno)))
    print(min(said, key=lambda word: (word in ("EPERM", "EACCES"), word != "EPERM")), path)
"""


# The same by a process of root's, which first joins a cgroup ("" for none) and becomes the user.
JOIN = """
import os, sys
place, uid, gid, code, *devices = sys.argv[1:]
if place:
    with open(place, "w") as handle:
        handle.write(str(os.getpid()))
os.setgroups([])
os.setgid(int(gid))
os.setuid(int(uid))
sys.argv[1:] = devices
exec(code)
"""


@dataclasses.dataclass(frozen=True)
class Result:
    """``answers``: device -> answer. Without any, ``problem`` says why there are none: that is never a pass."""

    answers: t.Mapping[str, str]
    problem: str = ""

    @property
    def denied(self) -> bool:
        return bool(self.answers) and all(answer in DENIED for answer in self.answers.values())

    @property
    def open(self) -> list[str]:
        return sorted(path for path, answer in self.answers.items() if answer not in DENIED)


def parse(output: str) -> dict[str, str]:
    """What CODE prints. Pure."""
    return {path: said for said, _blank, path in (line.partition(" ") for line in output.splitlines()) if path}


def in_cgroup(folder: str, devices: t.Sequence[str], uid: int, gid: int) -> Result:
    """A child joins the cgroup, becomes the user and opens the devices. Nothing of it stays."""
    argv = [sys.executable, "-I", "-c", JOIN, os.path.join(folder, "cgroup.procs"), str(uid), str(gid), CODE, *devices]
    return _launched(argv)


def in_session(devices: t.Sequence[str], uid: int, gid: int) -> Result:
    """As a login that goes through pam_systemd: a new scope in the user's slice."""
    argv = ["systemd-run", "--quiet", "--scope", "--collect", f"--slice=user-{uid}.slice", "--"]
    return _launched([*argv, sys.executable, "-I", "-c", JOIN, "", str(uid), str(gid), CODE, *devices])


def in_manager(devices: t.Sequence[str], uid: int, gid: int) -> Result:
    """By ``systemd-run --user``: a service of the user's own manager."""
    environment = [f"XDG_RUNTIME_DIR=/run/user/{uid}", f"DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/{uid}/bus"]
    argv = ["setpriv", f"--reuid={uid}", f"--regid={gid}", "--clear-groups", "env", *environment]
    argv += ["systemd-run", "--user", "--quiet", "--pipe", "--wait", "--collect"]
    # What runs Ansible's modules may be a Python that only root can reach.
    python = SYSTEM_PYTHON if os.access(SYSTEM_PYTHON, os.X_OK) else sys.executable
    return _launched([*argv, "--", python, "-I", "-c", CODE, *devices])


def _launched(argv: t.Sequence[str]) -> Result:
    try:
        done = _command.run(argv, timeout=60, ok=(0,))
    except _command.CommandError as exc:
        return Result({}, str(exc))
    answers = parse(done.stdout)
    return Result(answers, "" if answers else f"{argv[0]} said nothing")


@dataclasses.dataclass(frozen=True)
class Attempt:
    """One way to a GPU. ``expected`` is whether it should be closed; ``result`` None: there is no such way here."""

    way: str
    expected: bool
    result: Result | None = None
    why: str = ""

    @property
    def verdict(self) -> str:
        """``pass``, ``fail`` or ``absent``; what could not be tried has failed. Pure."""
        if self.result is None:
            return "absent"
        if not self.result.answers:
            return "fail"
        # An exempt service must reach all of them.
        good = self.result.denied if self.expected else not any(it == "EPERM" for it in self.result.answers.values())
        return "pass" if good else "fail"

    def as_dict(self) -> dict[str, t.Any]:
        result = self.result or Result({})
        return {
            "way": self.way,
            "expected": "denied" if self.expected else "allowed",
            "verdict": self.verdict,
            "answers": dict(result.answers),
            "why": self.why or result.problem,
        }


def of_unit(
    hierarchy: cgroups.Hierarchy,
    way: str,
    control_group: str,
    expected: bool,
    devices: t.Sequence[str],
    uid: int,
    gid: int,
) -> Attempt:
    """In every cgroup of a running unit."""
    if not control_group:
        return Attempt(way, expected, why="it does not run")
    folders = hierarchy.deciding(control_group)
    answers: dict[str, str] = {}
    for folder in folders:
        result = in_cgroup(hierarchy.folder(folder), devices, uid, gid)
        if result.problem:
            return Attempt(way, expected, result)
        # The most telling answer of all its cgroups.
        for path, said in result.answers.items():
            if path not in answers or (said in DENIED) != expected:
                answers[path] = said
    return Attempt(way, expected, Result(answers)) if folders else Attempt(way, expected, why="it has no process")
