# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a site says about its networks, checked and made plain. Pure. Private to the gpuops.tenancy collection."""

from __future__ import annotations

import dataclasses
import re
import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils._firewall import matrix
from ansible_collections.gpuops.tenancy.plugins.module_utils._firewall.values import (
    FirewallError,
    Network,
    collapsed,
    network,
    ports,
    shown,
)

MODES = ("enforce", "report")
POLICIES = ("deny", "log", "allow")
# How variables with a host's addresses begin.
ADDRESS = "tenancy_address_"
# A name becomes part of the rules' text.
_NAME = re.compile(r"^[a-z][a-z0-9_-]{0,30}$")


@dataclasses.dataclass(frozen=True)
class Opening:
    """Connections to the outside that users may open."""

    name: str
    to: tuple[Network, ...]
    ports: tuple[str, ...]
    protocols: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Group:
    """Compute nodes among which jobs may talk, and what may leave them."""

    name: str
    hosts: tuple[str, ...]
    policy: str
    exceptions: tuple[Opening, ...] = ()
    whole_node: bool = False  # the policy binds every process, not users' alone


@dataclasses.dataclass(frozen=True)
class Spec:
    mode: str
    addresses: dict[str, tuple[Network, ...]]  # host -> its own addresses
    roles: dict[str, tuple[str, ...]]  # role -> hosts
    networks: dict[str, tuple[Network, ...]]  # zone without hosts in the inventory -> networks
    # Hosts of the cluster that are an operators' or a monitoring machine besides.
    zone_hosts: dict[str, tuple[str, ...]]
    groups: tuple[Group, ...]
    rows: tuple[matrix.Row, ...]
    row_networks: dict[str, tuple[Network, ...]]  # site's own row -> the networks that are its source
    login_policy: str
    exceptions: tuple[Opening, ...]
    uids: tuple[str, ...]
    log_group: int | None
    storage_ports: tuple[str, ...] = ()  # none: all

    def host_roles(self, host: str) -> tuple[str, ...]:
        return tuple(role for role in matrix.ROLES if host in self.roles[role])

    def group(self, host: str) -> Group | None:
        return next((group for group in self.groups if host in group.hosts), None)


def addresses(hosts: t.Iterable[str], variables: t.Mapping[str, t.Mapping[str, t.Any]]) -> dict[str, list[str]]:
    """Host -> what its variables ``tenancy_address_*`` hold, one address or a list each."""
    found: dict[str, list[str]] = {}
    for host in hosts:
        own: list[str] = []
        for name in sorted(variables[host]):
            value = variables[host][name]
            if name.startswith(ADDRESS) and value:
                own += [str(one) for one in ([value] if isinstance(value, str) else value)]
        found[host] = own
    return found


def parse(given: t.Mapping[str, t.Any]) -> Spec:
    """:raises FirewallError: with everything that is wrong, one problem a line."""
    problems: list[str] = []

    def attempt(function: t.Callable[..., t.Any], *args: t.Any) -> t.Any:
        try:
            return function(*args)
        except FirewallError as error:
            problems.append(str(error))
            return ()

    mode = str(given.get("mode"))
    if mode not in MODES:
        problems.append(f"firewall_mode is {mode!r}; write {' or '.join(MODES)}")
    roles = {role: tuple(dict.fromkeys(map(str, given.get(role) or []))) for role in matrix.ROLES}
    hosts = list(dict.fromkeys(host for role in matrix.ROLES for host in roles[role]))
    own = {host: attempt(_host_addresses, host, (given.get("addresses") or {}).get(host) or []) for host in hosts}
    attempt(_unshared, own)
    networks = {zone: attempt(_networks, f"firewall_{zone}", given.get(zone)) for zone in matrix.NETWORK_ZONES}
    zone_hosts = {
        zone: attempt(_known, f"firewall_{zone}_hosts", given.get(f"{zone}_hosts"), hosts)
        for zone in ("management", "monitoring")
    }
    if not networks["management"] and not zone_hosts["management"]:
        problems.append(
            "firewall_management is empty, so nobody could log in; name the networks that operators and this controller "
            "come from"
        )
    numbers = attempt(_ports_of, given.get("ports") or {})
    rows, row_networks = attempt(_rows, given, numbers or dict(matrix.PORTS)) or ((), {})
    exceptions = attempt(_exceptions, "firewall_egress_exceptions", given.get("egress_exceptions"))
    groups = attempt(_groups, given, roles["compute"], [one.name for one in exceptions])
    login_policy = attempt(_policy, "firewall_egress_login", given.get("egress_login"))
    uids = attempt(_uids, given.get("user_uids"))
    log_group = attempt(_log_group, given.get("log_group"))
    storage_ports = attempt(ports, "firewall_storage_ports", given.get("storage_ports") or [])
    if problems:
        raise FirewallError("\n".join(dict.fromkeys(problems)))
    return Spec(
        mode,
        own,
        roles,
        networks,
        zone_hosts,
        groups,
        rows,
        row_networks,
        login_policy,
        exceptions,
        uids,
        log_group,
        storage_ports,
    )


def admins(spec: Spec) -> list[str]:
    """Where operators come from, as text: the machine that loads the rules must be among them."""
    found = [
        *spec.networks["management"],
        *(one for host in spec.zone_hosts["management"] for one in spec.addresses[host]),
    ]
    return [shown(network) for network in collapsed(found)]


def _networks(where: str, given: t.Any) -> tuple[Network, ...]:
    if isinstance(given, (str, t.Mapping)):
        raise FirewallError(f"{where} must be a list of networks")
    return tuple(network(where, one) for one in given or [])


def _host_addresses(host: str, given: t.Sequence[str]) -> tuple[Network, ...]:
    if not given:
        raise FirewallError(f"{host} has no address; set {ADDRESS}cluster for it in the inventory")
    found = tuple(network(f"{ADDRESS}* of {host}", one) for one in given)
    for one in found:
        if one.prefixlen != one.max_prefixlen:
            raise FirewallError(f"{ADDRESS}* of {host}: {one} is a network; write the host's address alone")
    return found


def _unshared(own: t.Mapping[str, t.Sequence[Network]]) -> None:
    owner: dict[Network, str] = {}
    for host, found in own.items():
        for one in found:
            if owner.setdefault(one, host) != host:
                raise FirewallError(f"{owner[one]} and {host} have the same address {shown(one)}; correct one of them")


def _known(where: str, given: t.Any, hosts: t.Sequence[str]) -> tuple[str, ...]:
    for host in given or []:
        if host not in hosts:
            raise FirewallError(f"{where}: {host} is no host of the cluster; give its address in {where[:-6]} instead")
    return tuple(given or [])


def _ports_of(given: t.Mapping[str, t.Any]) -> dict[str, tuple[str, ...]]:
    unknown = sorted(set(given) - set(matrix.PORTS))
    if unknown:
        raise FirewallError(f"firewall_ports: there is no {unknown[0]}; there are {', '.join(matrix.PORTS)}")
    return {**matrix.PORTS, **{name: ports(f"firewall_ports.{name}", value) for name, value in given.items()}}


def _rows(
    given: t.Mapping[str, t.Any], numbers: t.Mapping[str, t.Sequence[str]]
) -> tuple[tuple[matrix.Row, ...], dict[str, tuple[Network, ...]]]:
    known = {row.name: row for row in matrix.ROWS}
    without, asked = list(given.get("rows_off") or []), list(given.get("rows_on") or [])
    for where, names in (("firewall_rows_off", without), ("firewall_rows_on", asked)):
        for name in names:
            if name not in known:
                raise FirewallError(f"{where}: there is no row {name}; there are {', '.join(known)}")
    if "ssh_admin" in without:
        raise FirewallError("firewall_rows_off: without ssh_admin nobody could log in any more; leave it")
    rows = [
        dataclasses.replace(row, ports=tuple(one for name in row.ports for one in numbers[name]))
        for row in matrix.ROWS
        if (row.usual or row.name in asked) and row.name not in without
    ]
    row_networks: dict[str, tuple[Network, ...]] = {}
    for extra in given.get("rows_extra") or []:
        name = _named("firewall_rows_extra", extra, [*known, *row_networks, *(row.name for row in rows)])
        where = f"firewall_rows_extra.{name}"
        on = tuple(extra.get("to") or matrix.ALL)
        for role in on:
            if role not in matrix.ROLES:
                raise FirewallError(f"{where}: there is no role {role}; there are {', '.join(matrix.ROLES)}")
        zones = tuple(one for one in extra.get("from") or [] if one in matrix.ZONES)
        row_networks[name] = tuple(network(where, one) for one in extra.get("from") or [] if one not in matrix.ZONES)
        if not zones and not row_networks[name]:
            raise FirewallError(f"{where}: say from where: zones ({', '.join(matrix.ZONES)}) or networks")
        rows.append(
            matrix.Row(name, on, zones, ports(where, extra.get("ports")), "the site's own", _protocols(where, extra))
        )
    return tuple(row for row in rows if row.ports), row_networks


def _named(where: str, given: t.Mapping[str, t.Any], taken: t.Sequence[str]) -> str:
    name = str(given.get("name") or "")
    if not _NAME.match(name):
        raise FirewallError(
            f"{where}: the name {name!r} must be a-z, 0-9, _ and -, begin with a letter, at most 31 long"
        )
    if name in taken:
        raise FirewallError(f"{where}: the name {name} is taken; choose another one")
    return name


def _protocols(where: str, given: t.Mapping[str, t.Any]) -> tuple[str, ...]:
    found = tuple(given.get("protocols") or ("tcp",))
    for one in found:
        if one not in ("tcp", "udp"):
            raise FirewallError(f"{where}: protocol {one!r}; write tcp or udp")
    return found


def _exceptions(where: str, given: t.Any, taken: t.Sequence[str] = ()) -> tuple[Opening, ...]:
    found: list[Opening] = []
    for one in given or []:
        name = _named(where, one, [*taken, *(other.name for other in found)])
        to = _networks(f"{where}.{name}", one.get("to"))
        if not to:
            raise FirewallError(f"{where}.{name}: say to which networks")
        numbers = ports(f"{where}.{name}", one["ports"]) if one.get("ports") else ()
        found.append(Opening(name, to, numbers, _protocols(f"{where}.{name}", one)))
    return tuple(found)


def _policy(where: str, given: t.Any) -> str:
    if given not in POLICIES:
        raise FirewallError(f"{where} is {given!r}; write one of {', '.join(POLICIES)}")
    return str(given)


def _groups(given: t.Mapping[str, t.Any], compute: t.Sequence[str], taken: t.Sequence[str]) -> tuple[Group, ...]:
    """One for each tenant with nodes of its own, those of the site, and the nodes that are in none: the shared ones."""
    shared = _policy("firewall_egress", given.get("egress"))
    owners = {host: given.get("owners", {}).get(host) or "" for host in compute}
    groups: list[Group] = []
    for one in given.get("node_groups") or []:
        name = _named("firewall_node_groups", one, [group.name for group in groups] + ["shared"])
        where = f"firewall_node_groups.{name}"
        hosts = [*(one.get("hosts") or []), *(host for host in compute if owners[host] == name)]
        for host in hosts:
            if host not in compute:
                raise FirewallError(f"{where}: {host} is no compute node")
            if owners[host] not in ("", name):
                raise FirewallError(
                    f"{where}: {host} is {owners[host]}'s (slurm_compute_owner), so it is in that group; take it out"
                )
            for other in groups:
                if host in other.hosts:
                    raise FirewallError(f"{where}: {host} is in {other.name} already; a node belongs to one group")
        policy = _policy(f"{where}.egress", one.get("egress") or shared)
        exceptions = _exceptions(f"{where}.egress_exceptions", one.get("egress_exceptions"), taken)
        groups.append(Group(name, tuple(dict.fromkeys(hosts)), policy, exceptions, bool(one.get("whole_node"))))
    placed = {host for group in groups for host in group.hosts}
    rest: dict[str, list[str]] = {"": []}
    for host in compute:
        if host not in placed:
            rest.setdefault(owners[host], []).append(host)
    return (*groups, *(Group(owner or "shared", tuple(hosts), shared) for owner, hosts in rest.items()))


def unbound(users: t.Iterable[t.Mapping[str, t.Any]], given: t.Any) -> list[str]:
    """Users whose numbers lie in none of the ranges, as text."""
    ranges = [tuple(map(int, one.split("-"))) for one in _uids(given)]
    return [
        f"{user['name']} ({user['uid']})"
        for user in users
        if not any(first <= int(user["uid"]) <= last for first, last in ranges)
    ]


def _uids(given: t.Any) -> tuple[str, ...]:
    found = []
    for one in given or []:
        match = re.match(r"^(\d{1,10})-(\d{1,10})$", str(one))
        if not match or not 0 < int(match[1]) <= int(match[2]) <= 4294967294:
            raise FirewallError(f"firewall_user_uids: {one!r}; write FIRST-LAST, above 0 and up to 4294967294")
        found.append(f"{int(match[1])}-{int(match[2])}")
    if not found:
        raise FirewallError("firewall_user_uids is empty; give the numbers of tenants' users, for example 1000-61183")
    return tuple(found)


def _log_group(given: t.Any) -> int | None:
    if given is None or given == "":
        return None
    if not str(given).isdigit() or int(given) > 65535:
        raise FirewallError(
            f"firewall_log_group: {given!r}; write a number up to 65535, or nothing for the kernel's log"
        )
    return int(given)
