# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What outlives a process: System V objects, message queues, files in directories that all users share."""

from __future__ import annotations

import contextlib
import os
import stat
import subprocess
import time
import typing as t

# Name in /proc/sysvipc, option of ipcrm.
SYSV = {"shm": "--shmem-id", "sem": "--semaphore-id", "msg": "--queue-id"}


def sysv(text: str, owns: t.Callable[[int], bool]) -> list[str]:
    """Ids of the objects in a file of /proc/sysvipc that belong to, or were made by, these users. Pure."""
    rows = text.splitlines()
    if not rows:
        return []
    header = rows[0].split()
    number = next(index for index, word in enumerate(header) if word.endswith("id"))
    owner, maker = header.index("uid"), header.index("cuid")
    found = []
    for row in rows[1:]:
        words = row.split()
        if len(words) == len(header) and (owns(int(words[owner])) or owns(int(words[maker]))):
            found.append(words[number])
    return found


def remove_sysv(proc: str, owns: t.Callable[[int], bool], dry: bool = False) -> list[str]:
    removed = []
    for kind, option in SYSV.items():
        path = os.path.join(proc, "sysvipc", kind)
        try:
            with open(path, encoding="utf-8") as handle:
                found = sysv(handle.read(), owns)
        except FileNotFoundError:
            # A kernel without.
            continue
        for number in found:
            if not dry:
                subprocess.run(["ipcrm", option, number], check=False, capture_output=True, timeout=30)
            removed.append(f"{kind} {number}")
    return removed


def remove_files(directory: str, owns: t.Callable[[int], bool], deadline: float, dry: bool = False) -> tuple[int, bool]:
    """Remove the users' files below a directory, on its file system only. How many, and whether it was all done in time.

    Works on open directories and never follows a link, so that renaming things meanwhile leads nowhere.
    """
    count = 0
    try:
        top = os.stat(directory)
    except FileNotFoundError:
        return 0, True
    done = True
    for _path, folders, files, here in os.fwalk(directory, topdown=True, follow_symlinks=False):
        if time.monotonic() > deadline:
            return count, False
        for name in [*files, *folders]:
            with contextlib.suppress(OSError):
                status = os.stat(name, dir_fd=here, follow_symlinks=False)
                folder = stat.S_ISDIR(status.st_mode)
                if folder and status.st_dev != top.st_dev:
                    # Another file system is mounted there: not ours to look into.
                    folders.remove(name)
                elif not folder and owns(status.st_uid):
                    if not dry:
                        os.unlink(name, dir_fd=here)
                    count += 1
    # Folders when they are empty, from below. One that holds another user's file stays.
    for _path, folders, _files, here in os.fwalk(directory, topdown=False, follow_symlinks=False):
        if time.monotonic() > deadline:
            return count, False
        for name in folders:
            with contextlib.suppress(OSError):
                status = os.stat(name, dir_fd=here, follow_symlinks=False)
                if stat.S_ISDIR(status.st_mode) and owns(status.st_uid) and status.st_dev == top.st_dev:
                    if not dry:
                        os.rmdir(name, dir_fd=here)
                    count += 1
    return count, done
