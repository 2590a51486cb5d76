# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What onboarding would change on a cluster, field by field. Pure; private to the collection gpuops.tenancy.

The proof of an adoption: made from the documents as onboarding reads them, not from how they were written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant import accounting
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.adopt_findings import (
    CHANGES,
    DECIDE,
    Finding,
    Key,
    label,
    show,
)
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.adopt_level import NAMED, is_blocked, unnamed

_WHY = {
    "fairshare": (
        "fairshare=parent on an account takes its shares away from it; a document gives it shares of its own",
        "write the fairshare that you mean into the document",
    ),
    "qos": (
        "the list is stored as a difference to the one above; the document says what that amounts to now",
        "nothing: what may be used stays the same, but later changes above no longer reach this one",
    ),
    "text": (
        "the text is empty or has blanks, quotes, '|', capitals or a line break, which Slurm's output cannot carry",
        "correct the document if you want other words",
    ),
    "default_account": ("there is no default account, and jobs that name no account are refused", "nothing"),
}
_OTHER = ("the document says something else", "correct the document, or let onboarding do it")
_MISSING = ("is in the document and not in Slurm", "nothing, or take it out of the document")


class Comparison:
    """`covered`: rows that a document names; `findings`: what differs, and what stays unnamed on those rows."""

    def __init__(self, survey: dict, block_qos: str) -> None:
        self.block_qos = block_qos
        self.accounts = {one["name"]: one for one in survey["accounts"]}
        self.users = {one["name"]: one for one in survey["users"]}
        self.top: dict[str, str] = {}
        for one in survey["accounts"]:
            self.top[one["name"]] = one["name"] if one["parent"] == "root" else self.top.get(one["parent"], "")
        self.covered: set[Key] = set()
        self.findings: list[Finding] = []

    def add(self, document: dict) -> None:
        wanted = accounting.arguments(document)
        for account in wanted["accounts"]:
            self._account(account)
        for user in wanted["users"]:
            self._user(user, document["name"])

    def _account(self, wanted: dict) -> None:
        key = (wanted["name"], "", "")
        there = self.accounts.get(wanted["name"])
        if there is None:
            self._change(key, "", "", "", _MISSING)
            return
        self._row(key, there, wanted)
        if there["parent"] != wanted["parent"]:
            self._change(key, "parent", there["parent"], wanted["parent"], _OTHER)
        for text in ("description", "organization"):
            was, will = there.get(text) or "", wanted[text].strip()
            if was != will:
                self._change(key, text, was, will, _WHY["text"])
        if there.get("coordinators"):
            self.findings.append(
                Finding(
                    DECIDE,
                    label(key),
                    "coordinators may add users and raise limits; no document names them, and onboarding leaves them",
                    "take them away (sacctmgr delete coordinator where account=ACCOUNT names=...) unless you want them",
                    "coordinators",
                    show(there["coordinators"]),
                    account=wanted["name"],
                )
            )

    def _user(self, wanted: dict, tenant: str) -> None:
        there = self.users.get(wanted["name"], {"associations": [], "default_account": ""})
        rows = {(one["account"], wanted["name"], one["partition"]): one for one in there["associations"]}
        keys = []
        for one in wanted["associations"]:
            key = (one["account"], wanted["name"], one.get("partition", ""))
            keys.append(key)
            if key in rows:
                self._row(key, rows[key], one)
            else:
                self._change(key, "", "", "", _MISSING)
        for key in sorted(set(rows) - set(keys)):
            if self.top.get(key[0]) == tenant:
                self.covered.add(key)
                why = "the document names the user without this association, and onboarding makes a user's exact"
                self._change(key, "", "", "removed", (why, "add it to the document, or let onboarding remove it"))
        default = wanted.get("default_account")
        if default and default != there["default_account"]:
            why = _OTHER if there["default_account"] else _WHY["default_account"]
            self._change(("", wanted["name"], ""), "default_account", there["default_account"], default, why)

    def _row(self, key: Key, there: dict, wanted: dict) -> None:
        self.covered.add(key)
        blocked = is_blocked(there, self.block_qos)
        for field in sorted(NAMED):
            if blocked and field in ("qos", "default_qos"):
                continue
            was, will = _stored(there, field), _normal(field, wanted[field])
            if was != will:
                self._change(key, field, _told(was), _told(will), _WHY.get(field, _OTHER))
        for field in unnamed(there):
            self.findings.append(
                Finding(
                    DECIDE,
                    label(key),
                    "no document can name this; it stays in Slurm, and nothing watches it",
                    "keep a note of it, or clear it",
                    field,
                    show(there[field]),
                )
            )

    def _change(self, key: Key, field: str, was: str, will: str, reason: tuple[str, str]) -> None:
        what = label(key) if key[0] else f"user {key[1]}"
        value = f"{show(was) or 'nothing'} -> {show(will) or 'nothing'}" if field or will else "created"
        self.findings.append(Finding(CHANGES, what, *reason, field, value, name=key[1] or key[0], account=key[0]))


def _stored(row: dict, field: str) -> Any:
    if field == "qos" and row.get("qos_difference"):
        return sorted(row["qos_difference"])
    return _normal(field, row.get(field))


def _normal(field: str, value: Any) -> Any:
    """None where nothing is set."""
    if field == "fairshare":
        return 1 if value is None else value
    if isinstance(value, dict):
        return {name: _mib(amount) if name == "mem" else amount for name, amount in value.items()} or None
    if isinstance(value, list):
        return sorted(value) or None
    return None if value in (None, "", -1) else value


def _mib(amount: Any) -> int:
    return int(str(amount).rstrip("M"))


def _told(value: Any) -> str:
    return "" if value is None else show(value)


def left_over(survey: dict, covered: Iterable[Key]) -> Iterator[Key]:
    """Rows that neither a document nor a finding accounts for; Slurm's own account root and its user aside."""
    known = set(covered)
    for account in survey["accounts"]:
        if account["name"] != "root" and (account["name"], "", "") not in known:
            yield (account["name"], "", "")
    for user in survey["users"]:
        for row in user["associations"]:
            key = (row["account"], user["name"], row["partition"])
            if key not in known and key[:2] != ("root", "root"):
                yield key
