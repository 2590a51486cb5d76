# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a rule set of ours does to a packet that opens a connection, without a kernel.

It understands what the collection writes and fails on anything else, so that no rule goes unread.
"""

from __future__ import annotations

import dataclasses
import ipaddress
import re

SET = re.compile(r"^  set (\S+) \{ type ipv[46]_addr; flags interval;(?: elements = \{ (.*) \};)? \}$")
HEAD = re.compile(r"^  chain (\S+) \{$")


@dataclasses.dataclass(frozen=True)
class Packet:
    source: str = ""
    target: str = ""
    port: int = 0
    protocol: str = "tcp"
    uid: int | None = None
    version: int = 4
    # Kinds of the interfaces that it is forwarded from and to. A network card has none.
    comes: str = ""
    leaves: str = ""
    # The port that it was sent to, before it was turned to a container's.
    published: int | None = None


class Rules:
    def __init__(self, text: str):
        self.sets: dict[str, list] = {}
        self.chains: dict[str, list[str]] = {}
        chain: list[str] = []
        for line in text.splitlines():
            if match := SET.match(line):
                self.sets[match[1]] = [ipaddress.ip_network(one) for one in (match[2] or "").split(", ") if one]
            elif match := HEAD.match(line):
                chain = self.chains.setdefault(match[1], [])
            elif line.startswith("    "):
                chain.append(line.strip())

    def verdict(self, chain: str, packet: Packet) -> str:
        """accept, drop or reject, as the base chain ends."""
        policy = re.search(r"policy (\w+);", self.chains[chain][0])[1]
        return self._walk(chain, packet) or policy

    def _walk(self, chain: str, packet: Packet) -> str | None:
        for rule in self.chains[chain]:
            if rule.startswith("type filter"):
                continue
            found = self._rule(rule, packet)
            if found in ("accept", "drop", "reject"):
                return found
            if found and found.startswith("jump "):
                inner = self._walk(found[5:], packet)
                if inner:
                    return inner
            elif found and found.startswith("goto "):
                return self._walk(found[5:], packet)
        return None

    def _rule(self, rule: str, packet: Packet) -> str | None:
        words = rule.split()
        while words:
            word = words.pop(0)
            if word in ("ip", "ip6") and words[0] in ("saddr", "daddr"):
                address = packet.source if words.pop(0) == "saddr" else packet.target
                if not self._address(word, address, words):
                    return None
            elif word in ("tcp", "udp") and words[0] in ("dport", "sport"):
                way = words.pop(0)
                if word != packet.protocol or way == "sport" or not self._within(words, packet.port):
                    return None
            elif word == "meta" and words[0] == "skuid":
                words.pop(0)
                negated = words[0] == "!="
                if negated:
                    words.pop(0)
                inside = self._within(words, packet.uid)
                if packet.uid is None or inside == negated:
                    return None
            elif word == "ct":
                if not self._tracked(words, packet):
                    return None
            elif word == "meta" and words[0] in ("iifkind", "oifkind"):
                kind = packet.comes if words.pop(0) == "iifkind" else packet.leaves
                if not self._named(words, kind):
                    return None
            elif word == "meta" and words[:2] in (["l4proto", "6"], ["l4proto", "17"]):
                words.pop(0)
                if (words.pop(0) == "6") != (packet.protocol == "tcp"):
                    return None
            elif word == "meta" or word in ("iifname", "oifname"):
                # l4proto of ICMP, loopback, DHCP: none of the packets here.
                return None
            elif word == "counter":
                del words[:2]
            elif word in ("limit", "log"):
                return None
            elif word in ("jump", "goto"):
                return f"{word} {words[0]}"
            elif word in ("accept", "drop", "reject"):
                return word
            else:
                raise AssertionError(f"not understood: {word} in {rule}")
        return None

    @staticmethod
    def _tracked(words: list[str], packet: Packet) -> bool:
        what, value = words.pop(0), words.pop(0)
        if (what, value) == ("original", "proto-dst"):
            first, _dash, last = words.pop(0).partition("-")
            return packet.published is not None and int(first) <= packet.published <= int(last or first)
        if (what, value) == ("status", "dnat"):
            return packet.published is not None
        return (what, value) == ("state", "new")

    @staticmethod
    def _named(words: list[str], value: str) -> bool:
        inside = words[1 : words.index("}")]
        del words[: words.index("}") + 1]
        # A rule that asks for the kind of an interface without one does not match, whatever it asks.
        return f'"{value}"' in [one.rstrip(",") for one in inside]

    def _address(self, family: str, address: str, words: list[str]) -> bool:
        negated = words[0] == "!="
        if negated:
            words.pop(0)
        name = words.pop(0)
        one = ipaddress.ip_address(address)
        if one.version != (4 if family == "ip" else 6):
            return False
        networks = self.sets[name[1:]] if name.startswith("@") else [ipaddress.ip_network(name)]
        return any(one in network for network in networks) != negated

    @staticmethod
    def _within(words: list[str], value: int | None) -> bool:
        if words.pop(0) != "{":
            words.clear()
            return False
        inside = []
        while (word := words.pop(0)) != "}":
            inside.append(word.rstrip(","))
        if value is None:
            return False
        for one in inside:
            first, _dash, last = one.partition("-")
            if int(first) <= value <= int(last or first):
                return True
        return False
