# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rules of one host as text for nft. Pure. Private to the gpuops.tenancy collection.

One table of our own, replaced as a whole in one transaction: other tables are never touched. Protocols stand by number,
since their names need a package that hosts may lack.
"""

from __future__ import annotations

import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils._firewall import matrix
from ansible_collections.gpuops.tenancy.plugins.module_utils._firewall.spec import Opening, Spec
from ansible_collections.gpuops.tenancy.plugins.module_utils._firewall.values import (
    FirewallError,
    Network,
    collapsed,
    shown,
)

TABLE = "tenancy"
FAMILIES = ((4, "ip"), (6, "ip6"))
# Without these no connection works as it should, or none at all over IPv6.
ICMP = "meta l4proto 1 icmp type { 3, 11, 12 } accept"
ICMP6 = "meta l4proto 58 icmpv6 type { 1, 2, 3, 4 } accept"
NEIGHBOURS = "meta l4proto 58 icmpv6 type { 133, 134, 135, 136, 137 } ip6 hoplimit 255 accept"
LISTENERS = "meta l4proto 58 icmpv6 type { 130, 131, 132, 143 } ip6 saddr fe80::/10 accept"
PING = "meta l4proto 1 icmp type 8 limit rate 50/second burst 50 packets accept"
PING6 = "meta l4proto 58 icmpv6 type 128 limit rate 50/second burst 50 packets accept"
DHCP = "meta nfproto ipv4 udp sport 67 udp dport 68 accept"
DHCP6 = "ip6 saddr fe80::/10 udp sport 547 udp dport 546 accept"
NUMBERS = {"tcp": 6, "udp": 17}
# What containers and virtual machines are plugged into, whatever the engine calls it.
INSIDE = '{ "bridge", "veth" }'


def render(spec: Spec, host: str) -> str:
    """:raises FirewallError: the host is none of the cluster."""
    roles = spec.host_roles(host)
    if not roles:
        raise FirewallError(f"{host} is in none of the groups that the firewall knows; it must not run there")
    return _Host(spec, host, roles).text()


class _Host:
    def __init__(self, spec: Spec, host: str, roles: t.Sequence[str]) -> None:
        self.spec = spec
        self.host = host
        self.roles = roles
        self.group = spec.group(host)
        self.sets: dict[str, list[Network]] = {}  # those that a rule names
        self.counters: list[str] = []
        self.known = self._known()

    def text(self) -> str:
        chains = [self._input(), *self._denied("in", "drop")]
        if self._has_users():
            chains += self._outgoing()
        lines = [f"table inet {TABLE}", f"delete table inet {TABLE}", f"table inet {TABLE} {{"]
        for name in self.counters:
            lines.append(f"  counter {name} {{ }}")
        for name, networks in self.sets.items():
            for version, _family in FAMILIES:
                elements = ", ".join(shown(one) for one in networks if one.version == version)
                filled = f" elements = {{ {elements} }};" if elements else ""
                lines.append(f"  set {name}_{version} {{ type ipv{version}_addr; flags interval;{filled} }}")
        for chain in chains:
            lines += [f"  {line}" for line in chain]
        return "\n".join([*lines, "}"]) + "\n"

    # --- who is who ---------------------------------------------------------------------------------------------------

    def _known(self) -> dict[str, list[Network]]:
        """Every set that a rule could name."""
        spec = self.spec
        known = {role: self._of(spec.roles[role]) for role in matrix.ROLES}
        known["scheduler"] = self._of([host for role in matrix.SERVERS for host in spec.roles[role]])
        known["members"] = self._of(spec.addresses)
        known["peers"] = self._of(self.group.hosts if self.group else ())
        for zone in matrix.NETWORK_ZONES:
            known[zone] = collapsed(spec.networks[zone])
        for zone, hosts in spec.zone_hosts.items():
            known[f"{zone}_hosts"] = self._of(hosts)
        for name, networks in spec.row_networks.items():
            known[f"row_{name}"] = collapsed(networks)
        for one in self._exceptions():
            known[f"to_{one.name}"] = collapsed(one.to)
        return known

    def _of(self, hosts: t.Iterable[str]) -> list[Network]:
        return collapsed(one for host in hosts for one in self.spec.addresses[host])

    def _match(self, family: tuple[int, str], side: str, name: str) -> str | None:
        """``ip saddr @name_4``, or None where the set holds nobody of the family."""
        version, keyword = family
        if not any(one.version == version for one in self.known[name]):
            return None
        self.sets.setdefault(name, self.known[name])
        return f"{keyword} {side} @{name}_{version}"

    def _strangers(self, family: tuple[int, str], side: str) -> str:
        """A host of the cluster is what it is, also where its address lies in an operators' network."""
        self.sets.setdefault("members", self.known["members"])
        return f"{family[1]} {side} != @members_{family[0]}"

    def _sources(self, row: matrix.Row, family: tuple[int, str]) -> t.Iterator[str]:
        for zone in row.sources:
            if zone == "outside":
                yield self._strangers(family, "saddr")
                continue
            match = self._match(family, "saddr", zone)
            if match:
                yield f"{match} {self._strangers(family, 'saddr')}" if zone in matrix.NETWORK_ZONES else match
            if zone in self.spec.zone_hosts:
                match = self._match(family, "saddr", f"{zone}_hosts")
                if match:
                    yield match
        if row.name in self.spec.row_networks:
            match = self._match(family, "saddr", f"row_{row.name}")
            if match:
                yield f"{match} {self._strangers(family, 'saddr')}"

    def _count(self, name: str) -> str:
        if name not in self.counters:
            self.counters.append(name)
        return f"counter name {name}"

    # --- incoming -----------------------------------------------------------------------------------------------------

    def _input(self) -> list[str]:
        policy = "drop" if self.spec.mode == "enforce" else "accept"
        rules = ['iifname "lo" accept', "ct state established,related accept"]
        rules += [ICMP, ICMP6, NEIGHBOURS, LISTENERS, PING, PING6, DHCP, DHCP6]
        for row, source, protocol in self._admitted():
            ports = f"{protocol} dport {{ {', '.join(row.ports)} }}"
            rules.append(f"{source} {ports} {self._count(f'in_{row.name}')} accept")
        return _chain("input", f"type filter hook input priority 0; policy {policy};", [*rules, "goto denied_in"])

    def _admitted(self) -> t.Iterator[tuple[matrix.Row, str, str]]:
        """Each row of the matrix that holds for this host, with each of its sources and protocols."""
        for row in self.spec.rows:
            if set(row.on) & set(self.roles):
                for family in FAMILIES:
                    for source in self._sources(row, family):
                        for protocol in row.protocols:
                            yield row, source, protocol

    def _forward(self) -> list[str]:
        """From and to containers behind a bridge. A port that one publishes is as open as if the host had it itself."""
        rules = ["ct state established,related accept"]
        for row, source, protocol in self._admitted():
            # One rule a port: nft shows a set of them in a way that it does not read.
            rules += [
                f"ct status dnat {source} meta l4proto {NUMBERS[protocol]} ct original proto-dst {port} "
                f"{self._count(f'in_{row.name}')} accept"
                for port in row.ports
            ]
        # The interface that a packet comes from does not tell: it is a bridge, too, where the node is plugged into one.
        known = [f"{family[1]} saddr @members_{family[0]}" for family in FAMILIES]
        self.sets.setdefault("members", self.known["members"])
        rules += [f"{sign} meta oifkind {INSIDE} goto denied_in" for sign in ("ct status dnat", *known)]
        # Nothing says whose a container is, so it is a user's.
        rules += [f"meta iifkind {INSIDE} jump egress", f"meta oifkind {INSIDE} goto denied_in", "jump egress"]
        return _chain("forward", "type filter hook forward priority 0; policy accept;", rules)

    def _denied(self, way: str, verdict: str) -> list[list[str]]:
        log = f'log prefix "tenancy {"denied" if self.spec.mode == "enforce" else "would deny"} {way}: "'
        if self.spec.log_group is not None:
            log += f" group {self.spec.log_group}"
        return [
            _chain(
                f"denied_{way}",
                "",
                [
                    self._count(f"denied_{way}"),
                    f"limit rate 5/second burst 20 packets {log}",
                    verdict if self.spec.mode == "enforce" else "accept",
                ],
            )
        ]

    # --- outgoing -----------------------------------------------------------------------------------------------------

    def _has_users(self) -> bool:
        return bool({"login", "compute"} & set(self.roles))

    def _exceptions(self) -> tuple[Opening, ...]:
        return (self.group.exceptions if self.group else ()) + self.spec.exceptions

    def _users(self) -> str:
        return f"meta skuid {{ {', '.join(self.spec.uids)} }}"

    def _outgoing(self) -> list[list[str]]:
        whole = self.group is not None and self.group.whole_node
        output = ['oifname "lo" accept', "ct state established,related accept"]
        if whole:
            # The kernel's own, which no user sends.
            output += [
                ICMP,
                ICMP6,
                NEIGHBOURS.replace(" ip6 hoplimit 255", ""),
                LISTENERS.partition(" ip6 saddr")[0] + " accept",
            ]
            output += ["udp sport 68 udp dport 67 accept", "udp sport 546 udp dport 547 accept", "jump egress"]
        else:
            output.append(f"{self._users()} jump egress")
        chains = [_chain("output", "type filter hook output priority 0; policy accept;", output)]
        if "compute" in self.roles:
            chains.append(self._forward())
        reject = "reject with icmpx type admin-prohibited"
        return [*chains, _chain("egress", "", self._egress(whole)), *self._denied("out", reject)]

    def _egress(self, whole: bool) -> list[str]:
        own = {"peers", *self.roles} | ({"scheduler"} if set(self.roles) & set(matrix.SERVERS) else set())
        rules = []
        for row in self.spec.rows:
            # The other end holds to the same matrix; both do, so that one of them may be late.
            if not own & set(row.sources):
                continue
            targets = ["peers"] if own & set(row.sources) == {"peers"} else list(row.on)
            for target in targets:
                for match in self._to(target):
                    for protocol in row.protocols:
                        rules.append(f"{match} {protocol} dport {{ {', '.join(row.ports)} }} accept")
        for match in self._to("storage"):
            if self.spec.storage_ports:
                ports = f"dport {{ {', '.join(self.spec.storage_ports)} }}"
                rules += [f"{match} {protocol} {ports} accept" for protocol in NUMBERS]
            else:
                rules.append(f"{match} accept")
        for one in self._exceptions():
            for match in self._to(f"to_{one.name}"):
                for protocol in one.protocols if one.ports else [""]:
                    ports = f" {protocol} dport {{ {', '.join(one.ports)} }}" if one.ports else ""
                    rules.append(f"{match}{ports} {self._count(f'out_{one.name}')} accept")
        if whole:
            # Forwarded packets have no owner and do not match.
            rules += [
                f"meta skuid != {{ {', '.join(self.spec.uids)} }} {match} accept" for match in self._to("management")
            ]
        for closed in ("members", "management"):
            rules += [f"{match} goto denied_out" for match in self._to(closed)]
        policy = self.group.policy if self.group else self.spec.login_policy
        if policy == "deny":
            return [*rules, "goto denied_out"]
        if policy == "log":
            group = "" if self.spec.log_group is None else f" group {self.spec.log_group}"
            rules.append(f'ct state new limit rate 20/second burst 100 packets log prefix "tenancy outside: "{group}')
        return [*rules, f"{self._count('out_outside')} accept"]

    def _to(self, name: str) -> list[str]:
        return [match for family in FAMILIES for match in [self._match(family, "daddr", name)] if match]


def _chain(name: str, hook: str, rules: t.Sequence[str]) -> list[str]:
    return [f"chain {name} {{", *([f"  {hook}"] if hook else []), *(f"  {rule}" for rule in rules), "}"]
