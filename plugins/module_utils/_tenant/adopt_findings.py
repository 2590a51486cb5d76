# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What adoption reports. Pure; private to the collection gpuops.tenancy.

Reasons are written without names, so that what concerns two thousand users is one paragraph of the report.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

LEFT = "left"  # stays in Slurm as it is; no document says so
CHANGES = "changes"  # onboarding will change it
DECIDE = "decide"  # nothing happens by itself; somebody has to know
_HEADINGS = {
    CHANGES: "Onboarding will change this",
    LEFT: "Stays in Slurm as it is, and no document says so",
    DECIDE: "To know and to decide",
}

# (account, user, partition), user empty for the account itself
Key = tuple[str, str, str]


@dataclass(frozen=True)
class Finding:
    """``fix`` may hold NAME, ACCOUNT and CLUSTER. ``covers``: rows that are accounted for by this finding."""

    kind: str
    object: str
    why: str
    fix: str
    field: str = ""
    value: str = ""
    covers: frozenset = frozenset()
    name: str = ""
    account: str = ""

    def concrete(self, cluster: str) -> str:
        words = {"NAME": self.name, "ACCOUNT": self.account, "CLUSTER": cluster}
        text = self.fix
        for word, meant in words.items():
            text = text.replace(word, meant) if meant else text
        return text

    def as_dict(self, cluster: str) -> dict:
        return {
            "kind": self.kind,
            "object": self.object,
            "field": self.field,
            "value": self.value,
            "why": self.why,
            "fix": self.concrete(cluster),
        }


def label(key: Key) -> str:
    account, user, partition = key
    if not user:
        return f"account {account}"
    return f"user {user} in {account}" + (f" partition {partition}" if partition else "")


def show(value: Any) -> str:
    """One line, whatever it holds."""
    if isinstance(value, dict):
        return ",".join(f"{name}={amount}" for name, amount in sorted(value.items()))
    if isinstance(value, (list, tuple, set, frozenset)):
        return ",".join(str(one) for one in value)
    text = str(value).replace("\\", "\\\\").replace("\r", "\\r").replace("\n", "\\n")
    return "".join(char if char.isprintable() else "?" for char in text)


def grouped(findings: Iterable[Finding]) -> list[tuple[str, list[list[Finding]]]]:
    """[(kind, [findings with the same reason, ...]), ...], the kinds that need eyes first."""
    result = []
    listed = list(findings)
    for kind in _HEADINGS:
        groups: dict[tuple[str, str], list[Finding]] = {}
        for one in listed:
            if one.kind == kind:
                groups.setdefault((one.why, one.fix), []).append(one)
        if groups:
            result.append((kind, list(groups.values())))
    return result


def report(cluster: str, documents: Iterable[str], findings: Iterable[Finding]) -> str:
    """Markdown for a file."""
    lines = [f"# Adoption of cluster {cluster}", "", "Written by adopt.yml, and again by every run of it.", ""]
    names = sorted(documents)
    lines += [f"Documents: {', '.join(names) or 'none'}.", ""]
    kinds = grouped(findings)
    if not kinds:
        lines += ["Everything that Slurm has on this cluster is in these documents.", ""]
    for kind, groups in kinds:
        lines += [f"## {_HEADINGS[kind]} ({sum(len(group) for group in groups)})", ""]
        for group in groups:
            fix = group[0].concrete(cluster) if len(group) == 1 else group[0].fix.replace("CLUSTER", cluster)
            lines += [f"**Why:** {group[0].why}.", f"**Do:** {fix}.", ""]
            lines += [f"- {_line(one)}" for one in group]
            lines.append("")
    return "\n".join(lines)


def screen(cluster: str, findings: Iterable[Finding], most: int = 5) -> list[str]:
    """The same, as short as the objects are many."""
    lines = []
    for kind, groups in grouped(findings):
        lines.append(f"{_HEADINGS[kind].upper()}:")
        for group in groups:
            shown = "; ".join(_line(one) for one in group[:most])
            more = f"; and {len(group) - most} more" if len(group) > most else ""
            lines.append(f"  {group[0].why}: {shown}{more}")
    return lines


def _line(one: Finding) -> str:
    what = one.object + (f", {one.field}" if one.field else "")
    return f"{what}: {one.value}" if one.value else what
