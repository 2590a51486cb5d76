# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that come back by themselves unless somebody proves that he can still get in.

The old files are kept, then a timer of systemd's is set that puts them back, then the new ones take their place. Only a
confirmation stops the timer. Killing whoever changed the files changes nothing about that; a reboot puts the old files
back too. Private to the gpuops.tenancy collection.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import time
import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils import _command, _files

BASE = "/var/lib/gpuops-tenancy/rollback"
UNITS = "/etc/systemd/system"
# What runs when the timer ends: nothing but this file, the standard library and the kept files.
PROGRAM = '''"""Written by Ansible (gpuops.tenancy): puts files back that nobody has confirmed."""
import fcntl, json, os, shutil, subprocess, sys, time

folder = sys.argv[1]
with open(folder + ".lock", "w") as lock:
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        with open(os.path.join(folder, "manifest.json")) as handle:
            manifest = json.load(handle)
    except FileNotFoundError:
        sys.exit(0)
    for entry in manifest["files"]:
        if entry["kept"] is None:
            if os.path.lexists(entry["path"]):
                os.unlink(entry["path"])
            continue
        temporary = entry["path"] + ".tenancy-back"
        shutil.copyfile(os.path.join(folder, entry["kept"]), temporary)
        os.chown(temporary, entry["uid"], entry["gid"])
        os.chmod(temporary, entry["mode"])
        os.replace(temporary, entry["path"])
    for argv in manifest["activate"]:
        subprocess.call(argv)
    with open(folder + ".last", "w") as handle:
        json.dump({"at": time.time(), "files": [entry["path"] for entry in manifest["files"]]}, handle)
    os.unlink(os.path.join(folder, "manifest.json"))
'''


class RollbackError(Exception):
    """The change cannot be guarded, confirmed or undone; the message says why and what holds now."""


class Guard:
    """``name``: one guarded set of files at a time has it."""

    def __init__(self, name: str, base: str = BASE, units: str = UNITS) -> None:
        self.name = name
        self.folder = os.path.join(base, name)
        self.manifest = os.path.join(self.folder, "manifest.json")
        self.program = os.path.join(base, "put-back.py")
        self.unit = f"gpuops-tenancy-rollback-{name}"
        self.boot_unit = os.path.join(units, f"{self.unit}-boot.service")
        self.boot_link = os.path.join(units, "multi-user.target.wants", f"{self.unit}-boot.service")

    def pending(self) -> dict[str, t.Any] | None:
        """The change that nobody has confirmed yet."""
        try:
            with open(self.manifest, encoding="utf-8") as handle:
                return json.load(handle)
        except FileNotFoundError:
            return None

    def keep(self, paths: t.Sequence[str], activate: t.Sequence[t.Sequence[str]]) -> None:
        """Keep the files as they are. The manifest comes last: without it there is nothing to put back."""
        os.makedirs(self.folder, mode=0o700, exist_ok=True)
        os.chmod(os.path.dirname(self.folder), 0o700)
        entries = []
        for number, path in enumerate(paths):
            try:
                status = os.stat(path)
            except FileNotFoundError:
                entries.append({"path": path, "kept": None})
                continue
            kept = os.path.join(self.folder, str(number))
            shutil.copyfile(path, kept)
            os.chmod(kept, 0o600)
            _files.sync(kept)
            entries.append(
                {
                    "path": path,
                    "kept": str(number),
                    "uid": status.st_uid,
                    "gid": status.st_gid,
                    "mode": status.st_mode & 0o7777,
                }
            )
        _files.write(self.program, PROGRAM, 0o600)
        manifest = {"files": entries, "activate": [list(argv) for argv in activate], "changed_at": None}
        _files.write(self.manifest, json.dumps(manifest))

    def arm(self, seconds: int) -> None:
        """Set the timer, and have a boot before its end do the same."""
        self._write_boot_unit()
        self._stop_timer()
        _command.run(
            [
                "systemd-run",
                f"--unit={self.unit}",
                f"--on-active={seconds}",
                "--timer-property=AccuracySec=1s",
                "--collect",
                "--description=put unconfirmed files back",
                *self.put_back,
            ],
            ok=(0,),
        )

    @property
    def put_back(self) -> list[str]:
        return [sys.executable, self.program, self.folder]

    def _write_boot_unit(self) -> None:
        text = (
            "# Written by Ansible (gpuops.tenancy), gone with the confirmation of the change.\n"
            f"[Unit]\nDescription=Put unconfirmed files back\nConditionPathExists={self.manifest}\nBefore=ssh.service sshd.service\n"
            f"[Service]\nType=oneshot\nExecStart={' '.join(self.put_back)}\n[Install]\nWantedBy=multi-user.target\n"
        )
        _files.write(self.boot_unit, text, 0o644)
        os.makedirs(os.path.dirname(self.boot_link), exist_ok=True)
        if not os.path.islink(self.boot_link):
            os.symlink(self.boot_unit, self.boot_link)

    def _stop_timer(self) -> None:
        for suffix in ("timer", "service"):
            _command.run(["systemctl", "stop", f"{self.unit}.{suffix}"])
            _command.run(["systemctl", "reset-failed", f"{self.unit}.{suffix}"])

    def in_place(self) -> None:
        """Note the moment from which on a login proves something."""
        found = self.pending()
        if found is None:
            raise RollbackError(
                "the old files came back before the new ones were in force; raise the time for the rollback"
            )
        found["changed_at"] = time.time()
        _files.write(self.manifest, json.dumps(found))

    def confirm(self) -> None:
        """The new files are final. The timer's program takes the same lock: it has put all back, or never will."""
        with self._lock():
            if self.pending() is None:
                raise RollbackError("the old files are back: their time was over before the confirmation came")
            os.unlink(self.manifest)
        self.clear()

    def restore(self) -> list[str]:
        """Put the files back now. Returns the command."""
        _command.run(self.put_back, timeout=120, ok=(0,))
        self.clear()
        return self.put_back

    def clear(self) -> None:
        """Nothing is pending: timer, unit and kept files go."""
        self._stop_timer()
        for path in (self.boot_link, self.boot_unit):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
        shutil.rmtree(self.folder, ignore_errors=True)

    def came_back(self) -> dict[str, t.Any] | None:
        """The last change that was undone because nobody confirmed it; told once."""
        path = f"{self.folder}.last"
        try:
            with open(path, encoding="utf-8") as handle:
                found = json.load(handle)
        except (FileNotFoundError, ValueError):
            return None
        return found

    def forget(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{self.folder}.last")

    @contextlib.contextmanager
    def _lock(self) -> t.Iterator[None]:
        import fcntl

        with open(f"{self.folder}.lock", "w", encoding="ascii") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield


def login_of(pid: int, parent: t.Callable[[int], tuple[int, str] | None]) -> int | None:
    """The sshd process that a process came in by; None where it came by no ssh. Pure.

    :param parent: pid -> its parent's pid and its own name.
    """
    seen = 0
    while pid > 1 and seen < 64:
        found = parent(pid)
        if found is None:
            return None
        above, name = found
        if name.startswith("sshd"):
            return pid
        pid, seen = above, seen + 1
    return None


def parent_of(pid: int) -> tuple[int, str] | None:
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as handle:
            text = handle.read()
    except OSError:
        return None
    name = text[text.index("(") + 1 : text.rindex(")")]
    return int(text.rpartition(")")[2].split()[1]), name
