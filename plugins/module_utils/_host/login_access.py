# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""From where a tenant's users may log in, as sshd reads it. Pure. Private to the gpuops.tenancy collection.

A Match block that names the tenant's users and denies them, and nobody else: no list of who is admitted, which an
operator could be missing from.
"""

from __future__ import annotations

import ipaddress
import re
import typing as t

DIRECTORY = "/etc/ssh/sshd_config.d"
# A name must not be a pattern, nor a list.
_USER = re.compile(r"^[a-z0-9_][a-z0-9_.-]{0,31}$")
_TENANT = re.compile(r"^[a-z0-9][a-z0-9._-]*$")


class AccessError(ValueError):
    """A message for whoever wrote the document or the variables."""


def path(tenant: str, directory: str = DIRECTORY) -> str:
    if not _TENANT.match(tenant):
        raise AccessError(f"{tenant!r} is no name of a tenant")
    return f"{directory}/60-tenancy-{tenant}.conf"


def networks(given: t.Iterable[str]) -> list[ipaddress.IPv4Network | ipaddress.IPv6Network]:
    found = []
    for one in given:
        try:
            found.append(ipaddress.ip_network(one, strict=True))
        except ValueError as error:
            # Not the value itself: it may come from a vault.
            raise AccessError("allow_from holds something that is no network; correct the tenant's document") from error
    return found


def text(tenant: str, users: t.Sequence[str], allow_from: t.Sequence[str], protected: t.Iterable[str] = ()) -> str:
    """The file's content; empty where nothing is to be restricted.

    :raises AccessError: a name that sshd would take for a pattern, or that belongs to an operator.
    """
    path(tenant)
    for user in users:
        if not _USER.match(user):
            raise AccessError(f"user {user!r} of {tenant} has a name that sshd could take for a pattern")
        if user in protected:
            raise AccessError(
                f"user {user} of {tenant} is an operator here; a tenant's networks must not bind operators"
            )
    allowed = networks(allow_from)
    if not allowed or not users:
        return ""
    elsewhere = ",".join(["*", *(f"!{one}" for one in allowed)])
    return (
        "# Managed by Ansible (gpuops.tenancy): a change made here is undone by the next run.\n"
        f"# The users of {tenant}, from anywhere but the networks that its document names.\n"
        f"Match User {','.join(sorted(users))} Address {elsewhere}\n"
        "    DenyUsers *\n"
    )


def outside(allow_from: t.Sequence[str]) -> list[str]:
    """An address of each family that is in none of the networks, to ask sshd about; none where there is no such address."""
    allowed = networks(allow_from)
    result = []
    # Addresses for documentation, from which nobody comes.
    for candidates in (("192.0.2.1", "198.51.100.1", "203.0.113.1"), ("2001:db8::1", "2001:db8:ffff::1", "fd00::1")):
        for one in candidates:
            address = ipaddress.ip_address(one)
            if not any(address in network for network in allowed):
                result.append(one)
                break
    return result


def denied(settings: str, user: str) -> bool:
    """Whether ``sshd -T -C user=...`` says that the user is denied."""
    patterns = [line.split()[1:] for line in settings.splitlines() if line.startswith("denyusers ")]
    return any(word in ("*", user) for words in patterns for word in words)
