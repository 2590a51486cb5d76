# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A file of secret bytes on a host. Private to the gpuops.tenancy collection."""

from __future__ import annotations

import contextlib
import dataclasses
import grp
import os
import pwd
import stat
import tempfile
import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils._plan import ADD, CHANGE, Change, Plan

_STAGE = ".tenancy-secret-"


class SecretError(Exception):
    """The secret cannot be put in place; the message says what to do."""


@dataclasses.dataclass(frozen=True)
class State:
    """A file, or the wish for one; ``content`` None: there is none, or it is not made yet."""

    content: bytes | None = dataclasses.field(repr=False)
    owner: str = ""
    group: str = ""
    mode: int = 0


def read(path: str) -> State:
    try:
        with open(path, "rb") as handle:
            status = os.fstat(handle.fileno())
            content = handle.read()
    except FileNotFoundError:
        return State(None)
    return State(
        content, _name(pwd.getpwuid, status.st_uid), _name(grp.getgrgid, status.st_gid), stat.S_IMODE(status.st_mode)
    )


def plan(dest: str, source: str, now: State, want: State, working: bool, replace: bool) -> Plan:
    """Pure. ``working``: the host already does its work with a secret of its own.

    :raises SecretError: the host would be cut off from the others.
    """
    if working and now.content is not None and want.content is None:
        raise SecretError(
            f"{source} does not exist and this host already works with a secret of its own ({dest}): a new one "
            f"would cut it off from the others. Copy the one in use to {source} (mode 0600, vault it if you like) and run again"
        )
    if working and now.content is not None and now.content != want.content and not replace:
        raise SecretError(
            f"this host works with another secret in {dest} than {source}: replacing it would cut it off from the others. "
            f"If the host's is the one in use everywhere, copy it to {source} and run again; if it is not, replace it on purpose"
        )
    if want.content == b"":
        raise SecretError(f"{source} is empty; remove it to have one made, or put the secret there")
    changes = Plan()
    after = f"made as {source}" if want.content is None else "the wanted one"
    if now.content is None:
        changes.add(Change(ADD, dest))
        changes.add(Change(ADD, dest, "secret", None, after))
    elif now.content != want.content:
        changes.add(Change(CHANGE, dest, "secret", "another", after))
    for field in ("owner", "group", "mode"):
        before, wanted = getattr(now, field), getattr(want, field)
        if before != wanted:
            show = (lambda value: f"{value:04o}") if field == "mode" else str
            kind, was = (ADD, None) if now.content is None else (CHANGE, show(before))
            changes.add(Change(kind, dest, field, was, show(wanted)))
    return changes


def write(dest: str, want: State) -> None:
    """Put the whole file in its place at once. Only for the holder of the lock."""
    dest = os.path.realpath(dest)
    directory = os.path.dirname(dest)
    if not os.path.isdir(directory):
        raise SecretError(f"there is no directory {directory}; install what reads the secret first")
    try:
        owner, group = pwd.getpwnam(want.owner).pw_uid, grp.getgrnam(want.group).gr_gid
    except KeyError as exc:
        raise SecretError(f"this host has no user or group of that name: {exc.args[0]}") from exc
    for entry in os.scandir(directory):
        # What a killed run left.
        if entry.name.startswith(_STAGE):
            os.unlink(entry.path)
    descriptor, temporary = tempfile.mkstemp(dir=directory, prefix=_STAGE)
    try:
        with os.fdopen(descriptor, "wb") as handle:
            handle.write(want.content or b"")
            os.fchown(handle.fileno(), owner, group)
            os.fchmod(handle.fileno(), want.mode)
            handle.flush()
            os.fsync(handle.fileno())
        os.rename(temporary, dest)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)


def _name(lookup: t.Callable[[int], t.Any], number: int) -> str:
    try:
        return lookup(number)[0]
    except KeyError:
        return str(number)
