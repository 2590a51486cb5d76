# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes: who keeps them closed, and what changes that. Pure; private to the gpuops.tenancy collection.

A node has one reason and many people who may want it closed. The reason is therefore kept as a list of holds,
``[owner] text; [owner] text; words of whoever wrote no owner``. An owner adds and removes his own hold; the node is
resumed when the last one goes.
"""

from __future__ import annotations

import dataclasses
import re
import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils._plan import (
    CHANGE,
    DISRUPTIVE,
    SAFE,
    Change,
    Plan,
)
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import hostlist
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.desired import Refused

DRAIN, RESUME = "drain", "resume"
# Flags that keep jobs away, besides the state DOWN.
_CLOSED = frozenset(("DRAIN", "FAIL"))
# slurmctld's own words for a node that it sets to DOWN and takes back by itself.
_PASSING = "Not responding"
_OWNER = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")
_HOLD = re.compile(r"\[([A-Za-z0-9][A-Za-z0-9._-]{0,63})\] ([^;]*)(?:; |$)")
_BY = re.compile(r"^(.*?) ?\[([^\[\]@]*)@([^\[\]@]*)\]$", re.DOTALL)
# ';' ends a hold, '[' begins one, and scontrol removes quotes.
_UNSAFE = re.compile(r"[\x00-\x1f\x7f;\[\]\"']")

Holds = tuple[tuple[str, str], ...]


@dataclasses.dataclass(frozen=True)
class Node:
    """``state``: IDLE, MIXED, ALLOCATED, DOWN ...; ``flags``: DRAIN, COMPLETING, NOT_RESPONDING ..."""

    name: str
    state: str
    flags: frozenset[str] = frozenset()
    reason: str = ""
    reason_by: str = ""
    reason_time: str = ""

    @property
    def closed(self) -> bool:
        return self.state == "DOWN" or bool(self.flags & _CLOSED)

    @property
    def holds(self) -> Holds:
        """The reason of a node that takes jobs holds nothing."""
        if not self.closed:
            return ()
        found = parse_holds(self.reason)
        if not self.flags & _CLOSED:
            # slurmctld would not take the node back while it reads other words there.
            found = tuple(hold for hold in found if hold != ("", _PASSING))
        return found

    @property
    def shown(self) -> str:
        return "+".join([self.state, *sorted(self.flags)])

    def as_dict(self) -> dict[str, t.Any]:
        return {
            "name": self.name,
            "state": self.state,
            "flags": sorted(self.flags),
            "reason": self.reason,
            "reason_by": self.reason_by,
            "reason_time": self.reason_time,
            "owners": [owner for owner, _text in self.holds if owner],
        }


@dataclasses.dataclass(frozen=True)
class Wanted:
    nodes: tuple[str, ...]
    state: str
    owner: str
    reason: str = ""


@dataclasses.dataclass(frozen=True)
class NodeChange(Change):
    """``words``: what ``scontrol update`` is told besides the names of the nodes."""

    node: str = ""
    words: tuple[str, ...] = ()


def parse_holds(reason: str) -> Holds:
    """Holds with an owner first, then what is nobody's, with the owner ''."""
    found: list[tuple[str, str]] = []
    position = 0
    while True:
        match = _HOLD.match(reason, position)
        if match is None:
            break
        found.append((match[1], match[2].strip()))
        position = match.end()
    rest = reason[position:].strip()
    return (*found, ("", rest)) if rest else tuple(found)


def show_holds(holds: Holds) -> str:
    return "; ".join(f"[{owner}] {text}" if owner else text for owner, text in holds)


def build(params: t.Mapping[str, t.Any]) -> Wanted:
    problems: list[str] = []
    names: list[str] = []
    for text in params["nodes"]:
        try:
            found = hostlist.expand(str(text))
        except hostlist.HostlistError as exc:
            problems.append(str(exc))
            continue
        names += found
        if not found:
            problems.append("nodes holds an empty name; name the nodes")
    if not names and not problems:
        problems.append("nodes is empty; name the nodes")
    owner, reason = params["owner"], (params.get("reason") or "").strip()
    if not _OWNER.match(owner):
        problems.append(f"owner {owner!r} is refused: use letters, digits, '.', '_' and '-', at most 64")
    if _UNSAFE.search(reason):
        problems.append(f"reason {reason!r} is refused: remove quotes, ';', brackets and control characters")
    if params["state"] != RESUME and not reason:
        problems.append(f"state {params['state']} needs a reason")
    if problems:
        raise Refused(problems)
    return Wanted(tuple(dict.fromkeys(names)), params["state"], owner, reason)


def named(nodes: t.Mapping[str, Node], wanted: Wanted) -> list[Node]:
    unknown = [name for name in wanted.nodes if name not in nodes]
    if unknown:
        raise Refused([f"Slurm knows no node {hostlist.fold(unknown)}; it knows {hostlist.fold(nodes)}"])
    return [nodes[name] for name in wanted.nodes]


def make_plan(nodes: t.Mapping[str, Node], wanted: Wanted) -> Plan:
    change = _release if wanted.state == RESUME else _drain
    return Plan(one for node in named(nodes, wanted) for one in change(node, wanted))


def _drain(node: Node, wanted: Wanted) -> list[NodeChange]:
    others = tuple(hold for hold in node.holds if hold[0] != wanted.owner)
    reason = show_holds(((wanted.owner, wanted.reason), *others))
    there = "DRAIN" in node.flags
    words = ("State=DRAIN", f"Reason={reason}")
    changes = []
    if not there:
        changes.append(
            NodeChange(CHANGE, f"node {node.name}", "state", node.shown, "DRAIN", DISRUPTIVE, node.name, words)
        )
    if not there or node.reason != reason:
        before = node.reason or None
        changes.append(NodeChange(CHANGE, f"node {node.name}", "reason", before, reason, SAFE, node.name, words))
    return changes


def _release(node: Node, wanted: Wanted) -> list[NodeChange]:
    others = tuple(hold for hold in node.holds if hold[0] != wanted.owner)
    if others == node.holds:
        return []
    name = f"node {node.name}"
    if others:
        reason = show_holds(others)
        return [NodeChange(CHANGE, name, "reason", node.reason, reason, SAFE, node.name, (f"Reason={reason}",))]
    words = ("State=RESUME",)
    return [
        NodeChange(CHANGE, name, "state", node.shown, "RESUME", SAFE, node.name, words),
        NodeChange(CHANGE, name, "reason", node.reason, None, SAFE, node.name, words),
    ]


def compile_plan(plan: Plan) -> list[list[str]]:
    """Words after ``scontrol``: one command for all nodes that change alike."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for change in t.cast("list[NodeChange]", plan.changes):
        groups.setdefault(change.words, []).append(change.node)
    return [["update", f"NodeName={hostlist.fold(names)}", *words] for words, names in groups.items()]


def kept(nodes: t.Mapping[str, Node], wanted: Wanted) -> list[str]:
    """Nodes that stay closed after a resume, because somebody else wants it."""
    return [
        node.name
        for node in named(nodes, wanted)
        if node.closed and any(owner != wanted.owner for owner, _text in node.holds)
    ]


def parse(text: str) -> dict[str, Node]:
    """``scontrol show node``, in its form of many lines: there free text ends at the end of its line."""
    found: dict[str, Node] = {}
    for record in re.split(r"(?m)^(?=NodeName=)", text):
        if not record.startswith("NodeName="):
            continue
        name = record[len("NodeName=") :].split(None, 1)[0]
        state = re.search(r"(?m)^   State=(\S+)", record)
        if state is None:
            raise ValueError(f"scontrol shows no state of node {name}")
        base, *flags = state[1].split("+")
        # A reason of several lines goes on below its first word.
        reason = re.search(r"(?m)^   Reason=(.*(?:\n {10}.*)*)", record)
        found[name] = _node(name, base, flags, reason[1] if reason else "")
    return found


# Releases mark what is now a flag by a letter behind the state.
_MARKS = {"*": "NOT_RESPONDING", "$": "MAINTENANCE", "~": "POWERED_DOWN", "#": "POWERING_UP", "!": "POWERING_DOWN"}


def _node(name: str, base: str, flags: t.Sequence[str], reason: str) -> Node:
    words = []
    for word in (base, *flags):
        bare = word.rstrip("".join(_MARKS) + "%@^-")
        words.append(bare)
        words += [_MARKS[mark] for mark in word[len(bare) :] if mark in _MARKS]
    first, *more = reason.split("\n")
    match = _BY.match(first)
    text, by, when = match.groups() if match else (first, "", "")
    text = " ".join(part for part in (text.strip(), *(line.strip() for line in more)) if part)
    return Node(name, words[0], frozenset(words[1:]), text, by, when)
