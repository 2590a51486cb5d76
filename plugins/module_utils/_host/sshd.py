# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""sshd's configuration, tried before it is in place. Private to the gpuops.tenancy collection."""

from __future__ import annotations

import os
import re
import tempfile
import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils import _command

MAIN = "/etc/ssh/sshd_config"
# Somebody whom no Match block means.
SOMEBODY = "user=nobody,host=localhost,addr=127.0.0.1"


class SshdError(Exception):
    """sshd does not take the file, or something else in its configuration outranks it."""


def staged(main: str, folder: str, stage: str) -> str:
    """The main file with its Include of a folder turned to another one. Pure.

    :raises SshdError: it does not include the folder.
    """
    text, count = re.subn(
        rf"^(\s*Include\s+){re.escape(folder)}/\*\.conf\s*$",
        rf"\g<1>{stage}/*.conf",
        main,
        flags=re.IGNORECASE | re.MULTILINE,
    )
    if not count:
        raise SshdError(f"it does not include {folder}/*.conf: put 'Include {folder}/*.conf' at its top")
    return text


def settings(text: str) -> dict[str, str]:
    """Keyword -> value of what stands outside of Match blocks, the first one of each. Pure."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        words = line.split("#", 1)[0].split()
        if not words:
            continue
        if words[0].lower() == "match":
            break
        found.setdefault(words[0].lower(), " ".join(words[1:]))
    return found


def outranked(wanted: t.Mapping[str, str], effective: str) -> list[str]:
    """Keywords that sshd would not go by, as ``sshd -T`` prints them. Pure."""
    said = dict(line.split(" ", 1) for line in effective.splitlines() if " " in line)
    return [
        f"{key} is {said.get(key, 'unknown')} instead of {value}"
        for key, value in wanted.items()
        if said.get(key, "").lower() != value.lower()
    ]


def check(path: str, text: str, main: str = MAIN) -> list[list[str]]:
    """Have sshd read the whole configuration with this drop-in in it. Returns the commands.

    :raises SshdError: sshd refuses it, or does not go by it.
    """
    folder = os.path.dirname(path)
    with open(main, encoding="utf-8", errors="surrogateescape") as handle:
        now = handle.read()
    with tempfile.TemporaryDirectory() as stage:
        names = os.listdir(folder) if os.path.isdir(folder) else []
        for name in names:
            if name != os.path.basename(path):
                os.symlink(os.path.join(folder, name), os.path.join(stage, name))
        _put(os.path.join(stage, os.path.basename(path)), text)
        trial = os.path.join(stage, "main")
        try:
            _put(trial, staged(now, folder, stage))
        except SshdError as exc:
            raise SshdError(f"{main}: {exc}") from exc
        sshd = _command.located("sshd", _command.SEARCH_PATH)
        commands = [[sshd, "-t", "-f", trial], [sshd, "-T", "-f", trial, "-C", SOMEBODY]]
        said = [_command.run(argv, timeout=30) for argv in commands]
    for done in said:
        if done.rc != 0:
            words = " ".join(f"{done.stderr} {done.stdout}".split()).replace(stage, folder)
            raise SshdError(f"sshd refuses {path}: {words}")
    wrong = outranked(settings(text), said[1].stdout)
    if wrong:
        raise SshdError(
            f"{path} would not be in force, since {main} or a file before it says otherwise: {'; '.join(wrong)}"
        )
    return commands


def _put(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8", errors="surrogateescape") as handle:
        handle.write(text)
