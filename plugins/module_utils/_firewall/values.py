# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Networks and ports as a site writes them and as nft takes them. Pure. Private to the gpuops.tenancy collection."""

from __future__ import annotations

import ipaddress
import re
import typing as t

Network = t.Union[ipaddress.IPv4Network, ipaddress.IPv6Network]

_PORTS = re.compile(r"^(\d{1,5})(?:-(\d{1,5}))?$")


class FirewallError(ValueError):
    """A message for whoever wrote the variables: what is wrong, where, and what to write."""


def collapsed(networks: t.Iterable[Network]) -> list[Network]:
    """The same addresses without overlaps, IPv4 first: a set of nftables refuses overlaps."""
    given = list(networks)
    result: list[Network] = []
    for version in (4, 6):
        result += ipaddress.collapse_addresses(one for one in given if one.version == version)  # type: ignore[type-var]
    return result


def shown(network: Network) -> str:
    """A single address without its prefix length, as nft lists it."""
    return str(network.network_address) if network.prefixlen == network.max_prefixlen else str(network)


def network(where: str, text: t.Any) -> Network:
    try:
        return ipaddress.ip_network(str(text).strip(), strict=True)
    except ValueError as error:
        try:
            meant = ipaddress.ip_network(str(text).strip(), strict=False)
        except ValueError:
            raise FirewallError(f"{where}: {text!r} is no address or network") from error
        raise FirewallError(f"{where}: {text} has bits set behind its prefix; write {meant}") from error


def ports(where: str, given: t.Any) -> tuple[str, ...]:
    """Ports and ranges, as nft takes them."""
    found = []
    for one in given if isinstance(given, (list, tuple)) else [given]:
        match = _PORTS.match(str(one))
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
        if not 1 <= first <= last <= 65535:
            raise FirewallError(f"{where}: {one!r} is no port; write a number from 1 to 65535, or FIRST-LAST")
        found.append(str(first) if first == last else f"{first}-{last}")
    return tuple(found)
