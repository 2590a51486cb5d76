# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The canary that is attacked: a process with a secret, files, IPC objects and a listening port.

Runs on a node as a user of canary tenant B, from the same program as the probes, until its file disappears.
"""

from __future__ import annotations

import ctypes
import json
import os
import socket
import subprocess
import sys
import time
import typing as t

VARIABLE = "ATTEST_SECRET"


def main(spec: t.Mapping[str, t.Any]) -> int:
    if VARIABLE not in os.environ:
        # Only what a process was started with stands in its /proc/PID/environ.
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, VARIABLE: spec["secret"]})
    os.umask(0o022)
    made: list[str] = []
    libc = ctypes.CDLL(None, use_errno=True)
    ids = {"shm": libc.shmget(0, 4096, 0o1600), "msg": libc.msgget(0, 0o1600), "sem": libc.semget(0, 1, 0o1600)}
    secret = ctypes.create_string_buffer(spec["secret"].encode())
    try:
        with listening(("0.0.0.0", 0)) as port, listening("\0attest-" + spec["secret"][:8]):
            found = {
                "pids": [os.getpid()],
                "start": started(),
                "port": port.getsockname()[1],
                "abstract": "attest-" + spec["secret"][:8],
                "files": files(spec, made),
                "ipc": ids,
                "secret_at": ctypes.addressof(secret),
                "credential": credential(),
                "job": os.environ.get("SLURM_JOB_ID", ""),
            }
            with open(spec["out"] + ".new", "w") as stream:
                json.dump(found, stream)
            os.rename(spec["out"] + ".new", spec["out"])
            until = time.monotonic() + spec["seconds"]
            while time.monotonic() < until and os.path.exists(spec["out"]):
                time.sleep(0.3)
    finally:
        for path in made:
            if os.path.exists(path):
                os.unlink(path)
        libc.shmctl(ids["shm"], 0, None)
        libc.msgctl(ids["msg"], 0, None)
        libc.semctl(ids["sem"], 0, 0)
    return 0


def started() -> str:
    """When this process began: with its number, what it is known by."""
    with open("/proc/self/stat") as stream:
        return stream.read().rsplit(")", 1)[1].split()[19]


def listening(address: t.Any) -> socket.socket:
    family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
    server = socket.socket(family, socket.SOCK_STREAM)
    server.bind(address)
    server.listen(16)
    return server


def files(spec: t.Mapping[str, t.Any], made: list[str]) -> dict[str, str]:
    """Files as programs make them (readable for all), and private ones."""
    names = {
        f"{what}_{kind}": f"{folder}/attest-{kind}-{spec['secret'][:8]}"
        for what, folder in (("tmp", "/tmp"), ("shm", "/dev/shm"))
        for kind in ("open", "private")
    }
    if os.path.isdir(spec["home"]):
        names["home"] = os.path.join(spec["home"], "attest-open")
    for what, path in names.items():
        mode = 0o600 if what.endswith("private") else 0o644
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, mode), "w") as stream:
            stream.write(spec["secret"] + "\n")
        made.append(path)
    return names


def credential() -> str:
    """A munge credential that this uid alone may decode."""
    try:
        done = subprocess.run(
            # As long-lived as munged allows.
            ["munge", "-n", "-u", str(os.getuid()), "--ttl=-1"],
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip()
