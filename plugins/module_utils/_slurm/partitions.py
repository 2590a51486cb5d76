# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Partitions as slurmctld runs them: limits, QOS, and who may use them. Pure; private to the gpuops.tenancy collection."""

from __future__ import annotations

import dataclasses
import re
import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.effective import Level
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.parse import ParseError

# No value of these holds a blank.
_WORD = re.compile(r"(?:^|\s)([A-Za-z]+)=(\S*)")
_EVERYBODY = ("", "all", "(null)", "n/a", "none")
_TIME = re.compile(r"(?:([0-9]+)-)?([0-9]+):([0-9]{2}):([0-9]{2})")


@dataclasses.dataclass(frozen=True)
class Partition:
    """``allow_*`` is None where everybody may. ``limits`` holds max_time in seconds, max_nodes, min_nodes."""

    name: str
    qos: str = ""
    state: str = "UP"
    limits: t.Mapping[str, int] = dataclasses.field(default_factory=dict)
    allow_accounts: frozenset[str] | None = None
    deny_accounts: frozenset[str] = frozenset()
    allow_qos: frozenset[str] | None = None
    deny_qos: frozenset[str] = frozenset()
    allow_groups: frozenset[str] | None = None
    # Jobs of a higher one come before all jobs of lower ones.
    tier: int = 1

    @property
    def level(self) -> Level:
        return Level(f"partition {self.name}", self.limits)

    def refuses_account(self, account: str) -> str:
        """Why jobs of the account do not get in; a list of accounts does not admit their children on every version."""
        if self.allow_accounts is not None:
            return "" if account in self.allow_accounts else f"account {account} is not in AllowAccounts"
        return f"account {account} is in DenyAccounts" if account in self.deny_accounts else ""

    def refuses_qos(self, qos: str) -> str:
        if self.allow_qos is not None:
            return "" if qos in self.allow_qos else f"QOS {qos} is not in AllowQos"
        return f"QOS {qos} is in DenyQos" if qos in self.deny_qos else ""

    def refuses(self, account: str, qos: str) -> str:
        """Why a job never gets in, or nothing: its state may change any time, and groups are the hosts' matter."""
        return self.refuses_account(account) or self.refuses_qos(qos)


def parse(text: str) -> dict[str, Partition]:
    """``scontrol -o show partition``."""
    found = {}
    for line in text.splitlines():
        words = {name.lower(): value for name, value in _WORD.findall(line)}
        if not line.strip():
            continue
        if not words.get("partitionname"):
            raise ParseError(f"scontrol printed {line!r} as a partition, which cannot be read")
        found[words["partitionname"]] = Partition(
            words["partitionname"],
            "" if words.get("qos", "").lower() in _EVERYBODY else words["qos"],
            words.get("state", "UP"),
            _limits(words),
            _names(words, "allowaccounts"),
            _names(words, "denyaccounts") or frozenset(),
            _names(words, "allowqos"),
            _names(words, "denyqos") or frozenset(),
            _names(words, "allowgroups"),
            int(words["prioritytier"]) if words.get("prioritytier", "").isdigit() else 1,
        )
    return found


def _names(words: t.Mapping[str, str], option: str) -> frozenset[str] | None:
    """Folded, as slurmdbd folds accounts and QOS."""
    value = words.get(option, "").lower()
    return None if value in _EVERYBODY else frozenset(value.split(","))


def _limits(words: t.Mapping[str, str]) -> dict[str, int]:
    found = {}
    match = _TIME.fullmatch(words.get("maxtime", ""))
    if match:
        days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
        found["max_time"] = days * 86400 + hours * 3600 + minutes * 60 + seconds
    for option, name in (("maxnodes", "max_nodes"), ("minnodes", "min_nodes")):
        if words.get(option, "").isdigit():
            found[name] = int(words[option])
    # Slurm prints 0 where nothing is set.
    if not found.get("min_nodes", 1):
        del found["min_nodes"]
    return found
