# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where attest's files lie on a node, and how a program is started as a canary. For the modules, which run as root."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import pwd
import shutil
import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils._command import Completed, run

# Gone with the next boot, whatever happens.
FOLDER = "/run/gpuops-attest"
PROGRAM = f"{FOLDER}/attest.pyz"
# Names the run that may use the folder: a module whose run was killed sees another one here, and ends.
RUN = f"{FOLDER}/run"
# What a canary's passwd entry says, so that nobody else is ever taken for one.
MARK = "gpuops.tenancy attest canary"
UNITS = "gpuops-attest"


class PlaceError(Exception):
    """The node cannot be used; the message says why and what to do."""


def account(user: str) -> pwd.struct_passwd:
    """The canary's entry.

    :raises PlaceError: there is no such user, or it is not a canary.
    """
    try:
        entry = pwd.getpwnam(user)
    except KeyError:
        raise PlaceError(f"user {user} is unknown here; onboard the canaries first (role attest does)") from None
    if not is_canary(entry):
        raise PlaceError(
            f"user {user} is no canary of attest (its comment is {entry.pw_gecos!r}); set another attest_prefix"
        )
    return entry


def is_canary(entry: pwd.struct_passwd) -> bool:
    return entry.pw_gecos.split(",")[0] == MARK and entry.pw_uid >= 1000


def stage(program: str, run_id: str) -> None:
    """Put the program where every user can run it."""
    os.makedirs(FOLDER, mode=0o755, exist_ok=True)
    os.chmod(FOLDER, 0o755)
    for path, data, mode in ((PROGRAM, base64.b64decode(program), 0o644), (RUN, run_id.encode(), 0o644)):
        write(path, data, mode)


def write(path: str, data: bytes, mode: int, owner: pwd.struct_passwd | None = None) -> None:
    """A file as a whole, in a folder of ours."""
    with open(os.open(f"{path}.new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, mode), "wb") as stream:
        os.fchmod(stream.fileno(), mode)
        if owner:
            os.fchown(stream.fileno(), owner.pw_uid, owner.pw_gid)
        stream.write(data)
    os.rename(f"{path}.new", path)


def current(run_id: str) -> bool:
    """Whether the folder is still this run's."""
    with contextlib.suppress(OSError), open(RUN) as stream:
        return stream.read() == run_id
    return False


def folder_of(entry: pwd.struct_passwd) -> str:
    """The canary's own folder: only she writes there, and root only reads it as data."""
    path = f"{FOLDER}/{entry.pw_name}"
    if not os.path.isdir(path):
        os.mkdir(path, 0o700)
        os.chown(path, entry.pw_uid, entry.pw_gid)
    return path


def specify(entry: pwd.struct_passwd, name: str, spec: t.Mapping[str, t.Any]) -> tuple[str, str]:
    """Write a specification. Returns its path and that of the answers."""
    folder_of(entry)
    path, out = f"{FOLDER}/{entry.pw_name}-{name}.json", f"{FOLDER}/{entry.pw_name}/{name}.jsonl"
    write(path, json.dumps({**spec, "out": out}).encode(), 0o400, entry)
    return path, out


def read(path: str, limit: int = 4 << 20) -> str:
    """What a canary wrote; "" as long as there is nothing. It is a user's file: no link is followed."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as stream:
            return stream.read(limit).decode("utf-8", "replace")
    except OSError:
        return ""


def lines(path: str) -> list[dict[str, t.Any]]:
    """Complete lines of answers; one that cannot be read is left out, so that its probe has no answer."""
    found = []
    for line in read(path).split("\n")[:-1]:
        with contextlib.suppress(ValueError):
            value = json.loads(line)
            if isinstance(value, dict):
                found.append(value)
    return found


def as_user(
    user: str,
    argv: t.Sequence[str],
    path: t.Sequence[str],
    stdin: str | None = None,
    env: t.Mapping[str, str] | None = None,
    timeout: float = 30,
) -> Completed:
    """Run a program as a canary, with nothing of root's environment."""
    return run(user_argv(user, argv, path, env), timeout=timeout, stdin=stdin)


def user_argv(
    user: str, argv: t.Sequence[str], path: t.Sequence[str], env: t.Mapping[str, str] | None = None
) -> list[str]:
    variables = {"PATH": ":".join(path), "LC_ALL": "C", "TZ": "UTC", "USER": user, "LOGNAME": user, **(env or {})}
    return [
        "runuser",
        "-u",
        user,
        "--",
        "env",
        "-i",
        "-C",
        "/",
        *(f"{key}={value}" for key, value in variables.items()),
        *argv,
    ]


def installed(program: str, path: t.Sequence[str]) -> bool:
    return shutil.which(program, path=":".join(path)) is not None
