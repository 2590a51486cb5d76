# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The PAM stack of sshd on a compute node: who has no job here does not come in, and who has one ends up in it.

The order is everything. After ``@include common-account`` a line ``sufficient pam_localuser.so`` may have ended the stack;
pam_systemd in the session part moves the login out of the job again, to where every GPU and all memory is. Private to the
gpuops.tenancy collection.
"""

from __future__ import annotations

import dataclasses
import glob
import os
import re
import typing as t

# Where PAM looks for modules is settled when it is built; those that it cannot do without lie there. Debian's looks into
# the second place, too.
FOLDERS = ("/usr/lib/*/security", "/lib/security", "/lib64/security", "/usr/lib/security", "/usr/lib64/security")
_OWN, _BESIDES = "pam_unix.so", "/lib/security"
BEGIN, END = "# BEGIN gpuops.tenancy {}\n", "# END gpuops.tenancy {}\n"
ADOPT, SYSTEMD, MEMBER = "pam_slurm_adopt.so", "pam_systemd.so", "pam_succeed_if.so"
# Written for sessions without a person at a terminal: the same modules without pam_systemd, whatever pam-auth-update does.
INCLUDES = {"common-session": "common-session-noninteractive"}
_LINE = re.compile(
    r"^-?(?P<type>auth|account|password|session)\s+(?P<control>\[[^\]]*\]|\S+)\s+(?P<module>\S+)(?P<args>.*)$"
)
_INCLUDE = re.compile(r"^@include\s+(?P<file>\S+)\s*$")
_BLOCK = re.compile(r"^# BEGIN gpuops\.tenancy (\w+)\n.*?^# END gpuops\.tenancy \1\n", re.MULTILINE | re.DOTALL)
_GROUP = re.compile(r"^[a-z_][a-z0-9_-]{0,31}$")


class PamError(Exception):
    """The file is not one that this can be put into; the message says what to change."""


@dataclasses.dataclass(frozen=True)
class Line:
    text: str
    type: str = ""
    control: str = ""
    module: str = ""
    include: str = ""


def parse(text: str) -> list[Line]:
    """Pure. A line that goes on with a backslash is one line."""
    lines = []
    for raw in re.findall(r"(?:[^\n]*\\\n)*[^\n]*\n?", text):
        if not raw:
            continue
        words = raw.replace("\\\n", " ").split("#", 1)[0].strip()
        include, match = _INCLUDE.match(words), _LINE.match(words)
        if include:
            lines.append(Line(raw, include=include.group("file")))
        elif match:
            name = match.group("module").rsplit("/", 1)[-1]
            control = match.group("control").lower()
            if control in ("include", "substack"):
                lines.append(Line(raw, match.group("type"), control, include=name))
            else:
                lines.append(Line(raw, match.group("type"), control, name))
        else:
            lines.append(Line(raw))
    return lines


@dataclasses.dataclass(frozen=True)
class Wanted:
    group: str
    adopt: t.Sequence[str]
    mkhomedir: bool = False


def account_block(want: Wanted) -> str:
    return (
        BEGIN.format("account")
        + f"account [success=1 default=ignore] {MEMBER} quiet user ingroup {want.group}\n"
        + f"account required {ADOPT} {' '.join(want.adopt)}".rstrip()
        + "\n"
        + END.format("account")
    )


def session_block(include: str, want: Wanted) -> str:
    lines = [f"@include {include}\n"]
    if want.mkhomedir:
        lines.append("session required pam_mkhomedir.so skel=/etc/skel umask=0077\n")
    # An administrator is adopted by no job, so his login may be a session of systemd's.
    lines.append(f"session [success=ignore default=1] {MEMBER} quiet user ingroup {want.group}\n")
    lines.append(f"-session optional {SYSTEMD}\n")
    return BEGIN.format("session") + "".join(lines) + END.format("session")


def compute(text: str, want: Wanted) -> str:
    """The stack of a compute node made from any stack, its own result included. Pure.

    :raises PamError: a line of the file could let people in before adoption is asked, or there is no place for it.
    """
    if not _GROUP.match(want.group):
        raise PamError(f"{want.group!r} is no name of a group")
    lines = parse(without(text))
    place = next((number for number, line in enumerate(lines) if _account_include(line)), None)
    if place is None:
        raise PamError(
            "it has no '@include common-account' and no 'account include', so adoption has no place before it"
        )
    for line in lines[:place]:
        if line.type == "account" and ends_stack(line.control):
            raise PamError(
                f"'{line.text.strip()}' lets people in, or jumps, before pam_slurm_adopt is asked: take it out; "
                "administrators come in as members of the exempt group"
            )
    found, replaced = [], False
    for number, line in enumerate(lines):
        if number == place:
            found.append(account_block(want))
        if line.include in INCLUDES and line.type in ("", "session"):
            found.append(session_block(INCLUDES[line.include], want))
            replaced = True
        elif line.type == "session" and line.module == SYSTEMD:
            continue
        else:
            found.append(line.text if line.text.endswith("\n") else f"{line.text}\n")
    if not replaced:
        raise PamError(
            "it has no '@include common-session', so it is not known where a login becomes a session of systemd's"
        )
    return "".join(found)


def without(text: str) -> str:
    """The text as it was before ``compute``, and without anybody's line for adoption. Pure."""

    def one(match: re.Match[str]) -> str:
        if match.group(1) != "session":
            return ""
        there = next((line.include for line in parse(match.group(0)) if line.include), "")
        names = [name for name, other in INCLUDES.items() if other == there]
        return f"@include {names[0]}\n" if names else ""

    text = _BLOCK.sub(one, text)
    return "".join(line.text for line in parse(text) if not (line.type == "account" and line.module == ADOPT))


def ends_stack(control: str) -> bool:
    """Whether a line with this control can decide, or skip lines, before those below it are asked. Pure."""
    if control == "sufficient":
        return True
    return bool(control.startswith("[") and re.search(r"=\s*(done|\d+)", control))


def modules(want: Wanted) -> list[str]:
    """What this host's PAM has to have: a line with a module that is not there lets nobody in. Pure."""
    lines = parse(account_block(want) + session_block("any", want))
    return sorted({line.module for line in lines if line.module and not line.text.startswith("-")})


def lacking(want: Wanted, folders: t.Iterable[str] = FOLDERS) -> list[str]:
    """The modules that PAM would not find."""
    there = [folder for pattern in folders for folder in glob.glob(pattern)]
    places = [folder for folder in there if folder == _BESIDES or os.path.exists(os.path.join(folder, _OWN))]
    return [name for name in modules(want) if not any(os.path.exists(os.path.join(folder, name)) for folder in places)]


def problems(text: str) -> list[str]:
    """What is wrong with the order in a stack, as it is read back. Pure."""
    found = []
    lines = parse(text)
    adopt = [number for number, line in enumerate(lines) if line.type == "account" and line.module == ADOPT]
    include = [number for number, line in enumerate(lines) if _account_include(line)]
    if not adopt:
        return ["pam_slurm_adopt is not in it: everybody comes in without a job"]
    if include and include[0] < adopt[0]:
        found.append(f"pam_slurm_adopt comes after {lines[include[0]].include}, which may have let the user in")
    if lines[adopt[0]].control != "required":
        found.append(f"pam_slurm_adopt is {lines[adopt[0]].control} instead of required")
    for number, line in enumerate(lines):
        guarded = number > 0 and lines[number - 1].module == MEMBER and lines[number - 1].type == "session"
        if line.type == "session" and line.module == SYSTEMD and not guarded:
            found.append("pam_systemd moves a login out of the job it was adopted by")
        if line.include in INCLUDES and line.type in ("", "session"):
            found.append(f"{line.include} may hold pam_systemd, which moves a login out of the job it was adopted by")
    return found


def _account_include(line: Line) -> bool:
    return bool(line.include) and (line.include == "common-account" or line.type == "account")
