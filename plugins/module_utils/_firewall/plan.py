# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What has to be changed on a host. Pure. Private to the gpuops.tenancy collection."""

from __future__ import annotations

import dataclasses
import ipaddress
import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils._firewall import connection, host, rules, runtime
from ansible_collections.gpuops.tenancy.plugins.module_utils._firewall.values import FirewallError
from ansible_collections.gpuops.tenancy.plugins.module_utils._plan import (
    ADD,
    CHANGE,
    DISRUPTIVE,
    REMOVE,
    SAFE,
    Change,
    Plan,
)


@dataclasses.dataclass(frozen=True)
class Seen:
    """What the host has, and None where there is no such thing."""

    main: str | None
    runtime: str | None
    saved: str | None
    boot: str | None
    runtime_file: str | None
    units: t.Mapping[str, str | None]  # file -> text
    enabled: bool
    started: bool
    waiting: bool


@dataclasses.dataclass(frozen=True)
class Wanted:
    rules: str
    main: str  # the same as nft shows it
    structure: str
    runtime: str
    units: t.Mapping[str, str]


def make(seen: Seen, wanted: Wanted) -> Plan:
    """Pure."""
    plan = Plan()
    table = f"table inet {runtime.TABLE}"
    if seen.runtime is None:
        kind = "made from what was saved" if seen.saved else "made"
        plan.add(Change(ADD, table, "chains", None, kind, SAFE))
    elif runtime.without_kept(seen.runtime) != wanted.runtime:
        plan.add(Change(CHANGE, table, "chains", "others", "those of the role", SAFE))
    if seen.runtime_file != wanted.structure:
        plan.add(Change(CHANGE, host.RUNTIME, "content", _there(seen.runtime_file), "written", SAFE))
    if seen.runtime is not None and seen.runtime != seen.saved:
        plan.add(Change(CHANGE, host.SAVED, "content", _there(seen.saved), "what the table holds", SAFE))
    if seen.main != wanted.main:
        plan.add(Change(CHANGE, f"table inet {rules.TABLE}", "rules", _there(seen.main), "loaded", DISRUPTIVE))
    for path, text in wanted.units.items():
        if seen.units.get(path) != text:
            plan.add(Change(CHANGE, path, "content", _there(seen.units.get(path)), "written", SAFE))
    if not seen.enabled:
        plan.add(Change(CHANGE, host.UNIT, "enabled", False, True, SAFE))
    if unconfirmed(seen, wanted):
        plan.add(Change(CHANGE, host.MAIN, "content", _there(seen.boot), "written when confirmed", SAFE))
    return plan


def unconfirmed(seen: Seen, wanted: Wanted) -> bool:
    """Whether something is left for firewall_confirm. Pure."""
    return seen.main != wanted.main or seen.boot != wanted.rules or seen.waiting or not seen.started


def removal(seen: Seen) -> Plan:
    """Pure.

    :raises FirewallError: something is blocked.
    """
    plan = Plan()
    if seen.runtime is not None:
        if runtime.quarantined(seen.runtime) or runtime.networks(seen.runtime, "blocked"):
            raise FirewallError(
                "the firewall is not removed while something is blocked or the host is in quarantine: end that with "
                "firewall_block first"
            )
        plan.add(Change(REMOVE, f"table inet {runtime.TABLE}", risk=DISRUPTIVE))
    if seen.main is not None:
        plan.add(Change(REMOVE, f"table inet {rules.TABLE}", risk=DISRUPTIVE))
    for path, text in seen.units.items():
        if text is not None:
            plan.add(Change(REMOVE, path))
    if seen.boot is not None or seen.runtime_file is not None:
        plan.add(Change(REMOVE, host.MAIN))
    return plan


def check_connection(found: connection.Connection | None, admins: t.Sequence[str]) -> None:
    """:raises FirewallError: the rules would shut out whoever loads them. Pure."""
    if found is None:
        return
    address = ipaddress.ip_address(found.address.partition("%")[0])
    mapped = getattr(address, "ipv4_mapped", None)
    address = mapped or address
    if not any(address in ipaddress.ip_network(one) for one in admins):
        raise FirewallError(
            f"this run comes from {address}, and the rules admit operators from {', '.join(admins) or 'nowhere'} only; "
            "add the controller's address to firewall_management"
        )


def _there(text: str | None) -> str:
    return "absent" if text is None else "another one"
