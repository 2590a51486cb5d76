# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The second table: what is blocked or quarantined while the host runs. Pure. Private to the gpuops.tenancy collection.

It stands before the port matrix and accepts nothing by itself, and it knows no `established`: what it blocks stops at
once, connections that exist included. Loading the rules of a host never replaces it; its chains may be made anew, its
sets stay.
"""

from __future__ import annotations

import ipaddress
import re
import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils._firewall.rules import (
    DHCP,
    DHCP6,
    FAMILIES,
    NEIGHBOURS,
)
from ansible_collections.gpuops.tenancy.plugins.module_utils._firewall.values import (
    FirewallError,
    Network,
    collapsed,
    network,
    shown,
)

TABLE = "tenancy_runtime"
QUARANTINED = "quarantined"
# Filled while the host runs: no part of what the role wants.
KEPT = (QUARANTINED, "blocked_4", "blocked_6")
_SET = re.compile(r"^\tset (\S+) \{\n(.*?)^\t\}\n", re.MULTILINE | re.DOTALL)
_ELEMENTS = re.compile(r"^\t\telements = \{(.*?)\}\n", re.MULTILINE | re.DOTALL)
_CHAINS = {
    "input": "type filter hook input priority -10; policy accept;",
    "forward": "type filter hook forward priority -10; policy accept;",
    "output": "type filter hook output priority -10; policy accept;",
    "quarantine_in": "",
    "quarantine_out": "",
}


def structure(admins: t.Sequence[str]) -> str:
    """Text for nft that makes the table, or renews its chains and who the operators are, and leaves the rest."""
    lines = [f"table inet {TABLE} {{"]
    for version, _keyword in FAMILIES:
        lines += [
            f"  set {name}_{version} {{ type ipv{version}_addr; flags interval; }}" for name in ("blocked", "admins")
        ]
    # Holds ipv4 and ipv6 when the host is in quarantine: a set that may stay empty, as a switch.
    lines += [f"  set {QUARANTINED} {{ typeof meta nfproto; }}", "  counter blocked { }", "  counter quarantine { }"]
    lines += [f"  chain {name} {{ {hook} }}" if hook else f"  chain {name} {{ }}" for name, hook in _CHAINS.items()]
    lines.append("}")
    lines += [f"flush chain inet {TABLE} {name}" for name in _CHAINS]
    lines.append(f"table inet {TABLE} {{")
    for name, rules in _rules().items():
        lines += [f"  chain {name} {{", *(f"    {rule}" for rule in rules), "  }"]
    lines.append("}")
    networks = collapsed(network("operators", one) for one in admins)
    for version, _keyword in FAMILIES:
        lines.append(f"flush set inet {TABLE} admins_{version}")
        elements = ", ".join(shown(one) for one in networks if one.version == version)
        if elements:
            lines.append(f"add element inet {TABLE} admins_{version} {{ {elements} }}")
    return "\n".join(lines) + "\n"


def _rules() -> dict[str, list[str]]:
    drop = "counter name blocked drop"
    blocked = {
        side: [f"{word} {side} @blocked_{number} {drop}" for number, word in FAMILIES] for side in ("saddr", "daddr")
    }
    neighbours = [NEIGHBOURS.replace(" ip6 hoplimit 255", "")]
    stop = "counter name quarantine drop"
    return {
        "input": ['iifname "lo" accept', f"meta nfproto @{QUARANTINED} jump quarantine_in", *blocked["saddr"]],
        "forward": [f"meta nfproto @{QUARANTINED} {stop}", *blocked["saddr"], *blocked["daddr"]],
        "output": ['oifname "lo" accept', f"meta nfproto @{QUARANTINED} jump quarantine_out", *blocked["daddr"]],
        "quarantine_in": [
            *[f"{word} saddr @admins_{number} accept" for number, word in FAMILIES],
            *neighbours,
            DHCP,
            DHCP6,
            stop,
        ],
        "quarantine_out": [
            *[f"{word} daddr @admins_{number} accept" for number, word in FAMILIES],
            *neighbours,
            "udp sport 68 udp dport 67 accept",
            "udp sport 546 udp dport 547 accept",
            stop,
        ],
    }


def without_kept(listing: str) -> str:
    """The table as nft lists it, without what was put into it while the host ran."""

    def bare(match: re.Match[str]) -> str:
        return _ELEMENTS.sub("", match[0]) if match[1] in KEPT else match[0]

    return _SET.sub(bare, listing)


def elements(listing: str, name: str) -> list[str]:
    """What a set of the listing holds.

    :raises FirewallError: the listing has no such set.
    """
    for match in _SET.finditer(listing):
        if match[1] == name:
            found = _ELEMENTS.search(match[2])
            return [one.strip() for one in found[1].split(",") if one.strip()] if found else []
    raise FirewallError(f"the table {TABLE} has no set {name}; run the role firewall on the host")


def networks(listing: str, name: str) -> list[Network]:
    """The networks of both families of a set; ranges as the networks they consist of."""
    found: list[Network] = []
    for version, _keyword in FAMILIES:
        for one in elements(listing, f"{name}_{version}"):
            found += parse(one)
    return found


def parse(text: str) -> list[Network]:
    first, dash, last = text.partition("-")
    if not dash:
        return [network("blocked", text)]
    return list(ipaddress.summarize_address_range(ipaddress.ip_address(first), ipaddress.ip_address(last)))


def quarantined(listing: str) -> bool:
    return bool(elements(listing, QUARANTINED))


def blocked(now: t.Sequence[Network], add: t.Sequence[Network], remove: t.Sequence[Network]) -> list[Network]:
    """What is blocked afterwards: a part of a network may be let go alone."""
    left = list(now)
    for gone in remove:
        kept: list[Network] = []
        for one in left:
            if one.version != gone.version or not one.overlaps(gone):
                kept.append(one)
            elif gone.prefixlen > one.prefixlen:
                kept += one.address_exclude(gone)  # type: ignore[arg-type]
        left = kept
    return collapsed([*left, *add])


def refuse_operators(add: t.Sequence[Network], admins: t.Sequence[Network]) -> None:
    """:raises FirewallError: it would block an operator."""
    for one in add:
        for admin in admins:
            if one.version == admin.version and one.overlaps(admin):
                raise FirewallError(
                    f"{shown(one)} holds {shown(admin)}, where operators come from (firewall_management): blocking it "
                    "would lock you out; name the addresses to block more exactly"
                )


def change(before: t.Sequence[Network], after: t.Sequence[Network], quarantine: bool | None) -> str:
    """Text for nft, one transaction; empty when nothing changes."""
    lines = []
    for version, _keyword in FAMILIES:
        old, new = ([one for one in side if one.version == version] for side in (before, after))
        if old == new:
            continue
        lines.append(f"flush set inet {TABLE} blocked_{version}")
        if new:
            lines.append(f"add element inet {TABLE} blocked_{version} {{ {', '.join(shown(one) for one in new)} }}")
    if quarantine is not None:
        lines.append(f"flush set inet {TABLE} {QUARANTINED}")
        if quarantine:
            lines.append(f"add element inet {TABLE} {QUARANTINED} {{ ipv4, ipv6 }}")
    return "".join(f"{line}\n" for line in lines)
