# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""systemd's device policies: sessions and services that run users' code get every device but the GPUs.

systemd has no list of devices to deny, and any ``DeviceAllow`` denies all the rest. So everything is allowed that does
not begin like a GPU's driver in /proc/devices, and storage, fabric and management devices go on working. Private to
the gpuops.tenancy collection.
"""

from __future__ import annotations

import dataclasses
import glob
import os
import re
import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils import _systemd
from ansible_collections.gpuops.tenancy.plugins.module_utils._host import drop_ins

NAME = "50-tenancy-gpu.conf"
HEADER = "# Managed by Ansible (gpuops.tenancy): a change made here is undone by the next run.\n"
# Every session, and every user manager, of everybody.
SESSIONS = "user-.slice"
# A number that no user has.
SOMEBODY = 4294967294
_UNIT = re.compile(r"^[A-Za-z0-9:_.@\\-]+$")
_PREFIX = re.compile(r"^[a-z0-9_-]+$")
_ALLOW = re.compile(r"^(/dev/[^\s%]+|(char|block)-[^\s%]+)( [rwm]{1,3})?$")


class PolicyError(Exception):
    """The policy cannot be had as asked; nothing was touched."""


def patterns(prefixes: t.Iterable[str]) -> list[str]:
    """Shell patterns that together match every name except those that begin with one of the prefixes. Pure."""
    wanted = sorted(set(prefixes))
    for prefix in wanted:
        if not _PREFIX.match(prefix):
            raise PolicyError(
                f"{prefix!r} cannot begin the name of a driver in /proc/devices; use small letters, digits, '-', '_'"
            )
    # A longer prefix says nothing more than a shorter one that it begins with.
    wanted = [it for it in wanted if not any(it != other and it.startswith(other) for other in wanted)]
    branches = sorted({prefix[:length] for prefix in wanted for length in range(len(prefix))})
    found = []
    for branch in branches:
        after = sorted({prefix[len(branch)] for prefix in wanted if prefix.startswith(branch) and prefix != branch})
        if branch:
            found.append(branch)
        # In a set of characters '-' stands for itself only at its end.
        found.append(f"{branch}[!{''.join(sorted(after, key=lambda c: (c == '-', c)))}]*")
    return found or ["*"]


def denying(section: str, prefixes: t.Iterable[str], allow: t.Iterable[str] = ()) -> str:
    """A drop-in that leaves a unit every device but those of the drivers. Pure."""
    lines = ["DevicePolicy=closed", "DeviceAllow=", "DeviceAllow=block-* rwm"]
    lines += [f"DeviceAllow=char-{pattern} rwm" for pattern in patterns(prefixes)]
    for item in allow:
        if not _ALLOW.match(item):
            raise PolicyError(
                f"{item!r} is no device that can be allowed; write it like '/dev/fuse rw' or 'char-drm rw'"
            )
        lines.append(f"DeviceAllow={item}")
    return HEADER + f"[{section}]\n" + "".join(f"{line}\n" for line in lines)


def exempting(section: str) -> str:
    """A drop-in that gives a unit all devices, whatever service.d or user-.slice.d say. Pure."""
    return HEADER + f"[{section}]\nDevicePolicy=auto\nDeviceAllow=\n"


def service(name: str) -> str:
    """The unit's name in full. Pure."""
    if not _UNIT.match(name):
        raise PolicyError(f"{name!r} is no name of a service")
    return name if name.endswith(".service") else f"{name}.service"


def wanted(
    services: t.Iterable[str],
    exempt: t.Iterable[str],
    exempt_uids: t.Iterable[int],
    prefixes: t.Sequence[str],
    allow: t.Sequence[str],
) -> dict[str, str]:
    """Path -> text of every drop-in. Pure."""
    denied, exempted = {service(name) for name in services}, {service(name) for name in exempt}
    for both in sorted(denied & exempted):
        raise PolicyError(f"{both} runs users' code and is exempt: take it out of one of the two lists")
    texts = {SESSIONS: denying("Slice", prefixes, allow)}
    texts.update({name: denying("Service", prefixes, allow) for name in denied})
    texts.update({name: exempting("Service") for name in exempted})
    texts.update({f"user-{uid}.slice": exempting("Slice") for uid in exempt_uids})
    return {os.path.join(_systemd.FOLDER, f"{unit}.d", NAME): text for unit, text in sorted(texts.items())}


def unit_of(path: str) -> str:
    return os.path.basename(os.path.dirname(path))[: -len(".d")]


def concrete(unit: str) -> str:
    """A unit that systemd can be asked about: of a template, and of all slices of users, an instance that need not exist. Pure."""
    return f"user-{SOMEBODY}.slice" if unit == SESSIONS else unit.replace("@.", f"@{SOMEBODY}.")


def read(paths: t.Iterable[str]) -> dict[str, str | None]:
    """Path -> text of what is there, our own drop-ins for other units included."""
    return {path: drop_ins.read(path) for path in {*paths, *glob.glob(os.path.join(_systemd.FOLDER, "*.d", NAME))}}


@dataclasses.dataclass(frozen=True)
class InForce:
    """What systemd goes by for a unit."""

    unit: str
    policy: str = "auto"
    allow: tuple[str, ...] = ()
    drop_ins: tuple[str, ...] = ()
    loaded: bool = True


def parse(unit: str, show: str) -> InForce:
    """The output of ``systemctl show``. Pure."""
    values: dict[str, list[str]] = {}
    for line in show.splitlines():
        key, equals, value = line.partition("=")
        if equals:
            values.setdefault(key, []).append(value)
    allow = tuple(value.split(" ", 1)[0] for value in values.get("DeviceAllow", []) if value)
    paths = tuple(" ".join(values.get("DropInPaths", [])).split())
    return InForce(
        unit,
        values.get("DevicePolicy", ["auto"])[0],
        allow,
        paths,
        values.get("LoadState", ["loaded"])[0] == "loaded",
    )


def overruled(found: InForce, text: str) -> str:
    """Why a unit does not have the policy of its drop-in; empty when it has. Pure."""
    expected = parse(found.unit, text)
    if not found.loaded:
        # It does not exist here, or is masked.
        return ""
    if found.policy != expected.policy:
        return _because(found, f"has DevicePolicy={found.policy}")
    extra, missing = set(found.allow) - set(expected.allow), set(expected.allow) - set(found.allow)
    if extra:
        return _because(found, f"also allows {', '.join(sorted(extra))}")
    return _because(found, f"does not allow {', '.join(sorted(missing))}") if missing else ""


def _because(found: InForce, what: str) -> str:
    others = [path for path in found.drop_ins if os.path.basename(path) != NAME]
    hint = f"; look at {', '.join(others)}" if others else ""
    return f"{found.unit} {what} in spite of its drop-in {NAME}{hint}"
