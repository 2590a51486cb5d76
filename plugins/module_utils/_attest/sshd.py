# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A canary's way in by ssh: a key that lives for one login. For attest_run, which is root."""

from __future__ import annotations

import contextlib
import os
import pwd
import re
import shlex
import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils._command import run

from . import place

COMMENT = "gpuops-attest"
ADDRESS = "127.0.0.1"
# What pam_slurm_adopt tells whom it refuses for this reason and no other.
JOBLESS = "pam_slurm_adopt: you have no active jobs"


class NoWay(Exception):
    """sshd has no place for a key that root could write, or does not run."""


def settings(user: str) -> dict[str, list[str]]:
    """What sshd would do with this user: keyword -> words."""
    binary = next((path for path in ("/usr/sbin/sshd", "/usr/local/sbin/sshd") if os.path.exists(path)), "sshd")
    done = run([binary, "-T", "-C", f"user={user},host=localhost,addr={ADDRESS},laddr={ADDRESS},lport=22"], timeout=20)
    if done.rc:
        raise NoWay(f"sshd -T does not say where keys lie: {' '.join(done.stderr.split())[:200]}")
    return parsed(done.stdout)


def parsed(text: str) -> dict[str, list[str]]:
    """Pure."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        key, *words = line.split() or [""]
        found.setdefault(key.lower(), []).extend(words)
    return found


def place_of_keys(found: t.Mapping[str, t.Sequence[str]], entry: pwd.struct_passwd) -> str:
    """Pure: the file for the key. One that root keeps is preferred: it works without a home."""
    files = [
        path if path.startswith("/") else f"{entry.pw_dir}/{path}"
        for path in (
            re.sub("%u", entry.pw_name, re.sub("%h", entry.pw_dir, word))
            for word in found.get("authorizedkeysfile", [])
        )
        if path != "none"
    ]
    outside = [path for path in files if not path.startswith(f"{entry.pw_dir}/")]
    if not files:
        raise NoWay("sshd has no AuthorizedKeysFile for this user; a key for attest cannot be placed")
    return (outside or files)[0]


class Key:
    """Made, placed, and taken away again."""

    def __init__(self, entry: pwd.struct_passwd) -> None:
        self.user = entry.pw_name
        found = settings(entry.pw_name)
        self.file = place_of_keys(found, entry)
        self.lists = {
            key: found[key] for key in ("allowusers", "allowgroups", "denyusers", "denygroups") if key in found
        }
        self.port = (found.get("port") or ["22"])[0]
        self.private = f"{place.FOLDER}/key-{entry.pw_name}"
        if not os.path.exists(self.private):
            run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", COMMENT, "-f", self.private], timeout=20, ok=(0,))
        with open(f"{self.private}.pub") as stream:
            public = stream.read()
        self.made: list[str] = []
        folder = os.path.dirname(self.file)
        owner = entry if self.file.startswith(f"{entry.pw_dir}/") else None
        if owner and not os.path.isdir(entry.pw_dir):
            os.mkdir(entry.pw_dir, 0o700)
            os.chown(entry.pw_dir, entry.pw_uid, entry.pw_gid)
            self.made.append(entry.pw_dir)
        if not os.path.isdir(folder):
            os.mkdir(folder, 0o700 if owner else 0o755)
            if owner:
                os.chown(folder, entry.pw_uid, entry.pw_gid)
            self.made.append(folder)
        if os.path.exists(self.file) and COMMENT not in place.read(self.file):
            raise NoWay(f"{self.file} holds keys that are not attest's; remove them")
        place.write(self.file, public.encode(), 0o600 if owner else 0o644, owner)

    def argv(self, command: t.Sequence[str]) -> list[str]:
        return [
            "ssh",
            "-v",
            "-F",
            "none",
            "-i",
            self.private,
            "-p",
            self.port,
            "-o",
            "BatchMode=yes",
            "-o",
            "IdentitiesOnly=yes",
            "-o",
            "StrictHostKeyChecking=no",
            "-o",
            "UserKnownHostsFile=/dev/null",
            "-o",
            "ConnectTimeout=15",
            f"{self.user}@{ADDRESS}",
            shlex.join(command),
        ]

    def remove(self) -> None:
        with contextlib.suppress(OSError):
            os.unlink(self.file)
        for folder in reversed(self.made):
            with contextlib.suppress(OSError):
                os.rmdir(folder)


def refusal(log: str, lists: t.Mapping[str, t.Sequence[str]]) -> tuple[str, str]:
    """Pure: what a login that did not come about proves, and why.

    "jobless": adoption let the user not in for want of a job. "closed": sshd knew the key and let the user not in, for
    whatever reason. "broken": nothing is known.
    """
    words = [line for line in log.splitlines() if not line.startswith("debug") and line.strip()]
    said = " ".join(" ".join(words).split())[-300:]
    if JOBLESS in log:
        return "jobless", f"sshd knew the key and refused the login: {said}"
    if "Authenticated to" in log:
        return "broken", f"sshd let the user in, but nothing answered: {said}"
    if "Server accepts key" in log:
        return "closed", f"sshd knew the key and refused the login: {said or 'connection closed'}"
    if lists:
        shown = "; ".join(f"{key} {' '.join(value)}" for key, value in lists.items())
        return "closed", f"sshd lets only some in ({shown}): {said}"
    return "broken", f"sshd did not take the key, so nothing is proven: {said}"
