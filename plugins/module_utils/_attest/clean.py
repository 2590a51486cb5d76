# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nothing of attest stays on a host, also after a run that was killed. For attest_clean, which is root.

Only what belongs to a canary's uid, or lies where only attest writes, is touched.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import re
import shutil
import signal
import time
import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils._command import run

from . import place, sshd

SHARED = ("/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue")
IPC = {"shm": "-m", "msg": "-q", "sem": "-s"}
# The columns of /proc/sysvipc that hold the ids.
IDS = {"shm": "shmid", "msg": "msqid", "sem": "semid"}


def canaries(users: t.Sequence[str]) -> list[pwd.struct_passwd]:
    """Those that are here.

    :raises PlaceError: a name belongs to somebody else.
    """
    found = []
    for user in users:
        with contextlib.suppress(KeyError):
            pwd.getpwnam(user)
            found.append(place.account(user))
    return found


def plan(users: t.Sequence[str]) -> list[tuple[str, t.Callable[[], None]]]:
    """Read the host: what there is to do, in words, and what does it."""
    found: list[tuple[str, t.Callable[[], None]]] = []
    here = canaries(users)
    for unit in units():
        found.append((f"stop {unit}", lambda unit=unit: stop(unit)))
    for entry in here:
        manager = f"user@{entry.pw_uid}.service"
        if run(["systemctl", "is-active", "--quiet", manager]).rc == 0:
            found.append((f"stop {manager}", lambda manager=manager: stop(manager)))
        if shutil.which("crontab") and run(["crontab", "-l", "-u", entry.pw_name]).rc == 0:
            found.append(
                (f"remove {entry.pw_name}'s crontab", lambda name=entry.pw_name: quiet(["crontab", "-r", "-u", name]))
            )
        for number in at_jobs(entry.pw_name):
            found.append((f"remove at job {number} of {entry.pw_name}", lambda number=number: quiet(["atrm", number])))
        if processes(entry.pw_uid):
            found.append((f"end {entry.pw_name}'s processes", lambda uid=entry.pw_uid: end(uid)))
        key = key_of(entry)
        if key:
            found.append((f"remove {key}", lambda key=key: os.unlink(key)))
        for path in owned(entry.pw_uid):
            found.append((f"remove {path}", lambda path=path: erase(path)))
        for kind, number in ipc(entry.pw_uid):
            found.append(
                (
                    f"remove {kind} {number} of {entry.pw_name}",
                    lambda kind=kind, number=number: quiet(["ipcrm", IPC[kind], number]),
                )
            )
    if os.path.lexists(place.FOLDER):
        # First: a module whose run was killed sees that its time is over.
        found.insert(0, (f"remove {place.RUN}", lambda: forget(place.RUN)))
        found.append((f"remove {place.FOLDER}", lambda: erase(place.FOLDER)))
    return found


def removals(users: t.Sequence[str]) -> list[tuple[str, t.Callable[[], None]]]:
    """The local users themselves, and their homes."""
    with open("/etc/passwd") as stream:
        local = {line.split(":", 1)[0] for line in stream}
    found: list[tuple[str, t.Callable[[], None]]] = []
    for entry in canaries(users):
        if entry.pw_name not in local:
            continue
        home = entry.pw_dir
        if os.path.basename(home) == entry.pw_name and os.path.isdir(home) and os.lstat(home).st_uid == entry.pw_uid:
            found.append((f"remove {home}", lambda home=home: erase(home)))
        found.append(
            (
                f"remove user {entry.pw_name}",
                lambda name=entry.pw_name: run(["userdel", name], ok=(0,), timeout=60) and None,
            )
        )
    return found


def units() -> list[str]:
    done = run(["systemctl", "list-units", "--all", "--plain", "--no-legend", "--full", f"{place.UNITS}*"], timeout=30)
    return [line.split()[0] for line in done.stdout.splitlines() if line.split()]


def stop(unit: str) -> None:
    run(["systemctl", "stop", unit], timeout=60)
    run(["systemctl", "reset-failed", unit], timeout=30)


def quiet(argv: t.Sequence[str]) -> None:
    run(argv, timeout=30)


def at_jobs(user: str) -> list[str]:
    if not shutil.which("atq"):
        return []
    lines = [line.split() for line in run(["atq"], timeout=30).stdout.splitlines()]
    return [words[0] for words in lines if words and words[-1] == user]


def processes(uid: int) -> list[int]:
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{entry}/status") as stream:
                text = stream.read()
                ids = re.search(r"^Uid:\s+(\d+)\s+(\d+)", text, re.MULTILINE)
                if ids and uid in map(int, ids.groups()) and not re.search(r"^State:\s+[ZX]", text, re.MULTILINE):
                    found.append(int(entry))
    return found


def end(uid: int) -> None:
    """They are canaries and nothing else; one may start another meanwhile."""
    until = time.monotonic() + 10
    while processes(uid) and time.monotonic() < until:
        for pid in processes(uid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.1)


def key_of(entry: pwd.struct_passwd) -> str:
    try:
        path = sshd.place_of_keys(sshd.settings(entry.pw_name), entry)
    except Exception:
        # No sshd here, so no key.
        return ""
    return path if os.path.isfile(path) and sshd.COMMENT in place.read(path) else ""


def owned(uid: int) -> list[str]:
    found = []
    for folder in SHARED:
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            for item in entries:
                with contextlib.suppress(OSError):
                    if item.stat(follow_symlinks=False).st_uid == uid:
                        found.append(item.path)
    return found


def ipc(uid: int) -> list[tuple[str, str]]:
    found = []
    for kind in IPC:
        with contextlib.suppress(OSError), open(f"/proc/sysvipc/{kind}") as stream:
            names = stream.readline().split()
            for line in stream:
                row = dict(zip(names, line.split()))
                if row.get("uid") == str(uid):
                    found.append((kind, row[IDS[kind]]))
    return found


def forget(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


def erase(path: str) -> None:
    if os.path.islink(path) or not os.path.isdir(path):
        forget(path)
    else:
        shutil.rmtree(path, ignore_errors=True)
