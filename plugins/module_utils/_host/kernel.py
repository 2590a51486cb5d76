# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernel settings and mount options as they are, not as a file says. Private to the gpuops.tenancy collection."""

from __future__ import annotations

import dataclasses
import os
import re
import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils._plan import ADD, CHANGE, Change

HEADER = "# Managed by Ansible (gpuops.tenancy): a change made here is undone by the next run.\n"
SYS = "/proc/sys"
READ_ONLY = f"{SYS} is read-only here: set {{}} on the machine that this container runs on"
_KEY = re.compile(r"^[a-z][a-z0-9_.-]+$")
_SIZES = {"": 1 / 1024, "k": 1, "m": 1024, "g": 1024 * 1024}
# The kernel says words since 5.8.
_HIDEPID = {"0": "off", "1": "noaccess", "2": "invisible", "4": "ptraceable"}
FLAGS = ("nosuid", "nodev", "noexec")


class KernelError(Exception):
    """A setting cannot be had as asked."""


def setting_path(key: str) -> str:
    """Pure."""
    if not _KEY.match(key) or ".." in key:
        raise KernelError(f"{key!r} is no name of a kernel setting; write it like kernel.dmesg_restrict")
    return os.path.join(SYS, key.replace(".", "/"))


def text(settings: t.Mapping[str, str]) -> str:
    """What sysctl.d gets. Pure."""
    for key, value in settings.items():
        setting_path(key)
        if "\n" in value:
            raise KernelError(f"the value of {key} is more than one line")
    return HEADER + "".join(f"{key} = {value}\n" for key, value in settings.items()) if settings else ""


def read_setting(key: str) -> str | None:
    """None where this kernel has no such setting."""
    try:
        with open(setting_path(key), encoding="utf-8") as handle:
            return " ".join(handle.read().split())
    except FileNotFoundError:
        return None


def write_setting(key: str, value: str) -> None:
    """:raises KernelError: the kernel refuses the value."""
    try:
        with open(setting_path(key), "w", encoding="utf-8") as handle:
            handle.write(value)
    except OSError as exc:
        raise KernelError(f"the kernel refuses {key} = {value}: {exc.strerror}") from exc


def plan_settings(wanted: t.Mapping[str, str], current: t.Mapping[str, str | None]) -> list[Change]:
    """Settings that have another value in the kernel. Pure."""
    return [
        Change(CHANGE, "kernel", key, current[key], value)
        for key, value in wanted.items()
        if current[key] is not None and current[key] != " ".join(value.split())
    ]


@dataclasses.dataclass(frozen=True)
class Mount:
    path: str
    options: tuple[str, ...]


def parse_mount(mountinfo: str, path: str) -> Mount:
    """The topmost mount at a path, with the options of the mount and of the file system. Pure."""
    found = None
    for line in mountinfo.splitlines():
        left, _dash, right = line.partition(" - ")
        words = left.split(" ")
        if words[4].replace("\\040", " ") == path:
            found = Mount(path, tuple(words[5].split(",") + right.split(" ")[2].split(",")))
    if found is None:
        raise KernelError(f"{path} is no mount point on this host")
    return found


def normal(option: str) -> str:
    """An option in the kernel's words. Pure."""
    key, equals, value = option.partition("=")
    if key == "hidepid":
        return f"hidepid={_HIDEPID.get(value, value)}"
    if key == "size":
        match = re.match(r"^(\d+)([kmg]?)$", value.lower())
        if not match:
            raise KernelError(f"{option!r}: give the size in k, m or g, so that it can be read back")
        return f"size={int(int(match.group(1)) * _SIZES[match.group(2)])}k"
    if equals or key in FLAGS:
        return option
    raise KernelError(f"{option!r} is no option that can be read back")


def plan_mount(mount: Mount, wanted: t.Iterable[str]) -> list[Change]:
    """Pure."""
    there = {normal(option) for option in mount.options if option in FLAGS or "=" in option}
    changes = []
    for option in wanted:
        want = normal(option)
        key = want.partition("=")[0]
        now = next((it for it in sorted(there) if it.partition("=")[0] == key), None)
        # What is at its default is not shown.
        if now != want and not (want == "hidepid=off" and now is None):
            changes.append(Change(CHANGE if now else ADD, mount.path, key, now, want))
    return changes
