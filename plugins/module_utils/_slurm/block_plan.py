# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""plan(state, ledger, request) -> ledger to write first, changes of rows, ledger to write last. Pure; private.

Every run makes the whole ledger true: what a block in it covers gets the blocking QOS as only and default QOS, what no
block covers any more gets back what it held. So a run that was killed anywhere is finished by the next.
"""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils._plan import ADD, CHANGE, DISRUPTIVE, REMOVE, SAFE, Change
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import fields, qos, values
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.block_ledger import (
    ACCOUNT,
    USER,
    Block,
    Ledger,
    Saved,
)
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.changes import AccountingPlan, field_change
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.desired import Refused
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.model import ROOT, Key, State, chain, depths, label

_QOS = fields.BY_OPTION["qos"]
_DEFAULT = fields.BY_OPTION["default_qos"]
Wanted = dict[Key, tuple[frozenset[str], t.Optional[str]]]


@dataclasses.dataclass(frozen=True)
class Request:
    """``targets``: (kind, name)."""

    blocked: bool
    targets: tuple[tuple[str, str], ...]
    owner: str
    reason: str | None = None
    now: str = ""
    block_qos: str = "blocked"
    force: bool = False
    warnings: tuple[str, ...] = ()


@dataclasses.dataclass
class BlockPlan:
    first: Ledger
    last: Ledger
    records: list[Change]
    wanted: Wanted
    targets: list[Key]
    # (account, user) of everything that is blocked after the run.
    covered: set[tuple[str, str]]
    release: list[str]
    still_blocked: list[str]
    warnings: list[str]


def build(params: t.Mapping[str, t.Any], now: str) -> Request:
    problems: list[str] = []
    warnings: list[str] = []
    targets: list[tuple[str, str]] = []

    def name(kind: str, given: t.Any) -> str:
        try:
            folded = values.check_name(kind, given)
        except values.ValueProblem as exc:
            problems.append(str(exc))
            return ""
        if folded != given:
            warnings.append(f"{kind} {given} is written {folded} in Slurm, which knows lower case only")
        return folded

    for kind, option in ((USER, "users"), (ACCOUNT, "accounts")):
        for given in params.get(option) or []:
            folded = name(kind, given)
            if folded == ROOT:
                problems.append(f"{kind} root is Slurm's own and is never blocked; name the tenant's {kind}s")
            targets.append((kind, folded))
    if not targets:
        problems.append("neither users nor accounts are named")
    reason = params.get("reason")
    if reason is not None:
        reason = " ".join(str(reason).split())
    request = Request(
        params["state"] == "blocked",
        tuple(dict.fromkeys(targets)),
        name("owner", params["owner"]),
        reason,
        now,
        name("QOS", params.get("block_qos") or "blocked"),
        bool(params.get("force")),
        tuple(warnings),
    )
    if problems:
        raise Refused(problems)
    return request


def make_plan(state: State, ledger: Ledger, request: Request) -> BlockPlan:
    """Refuses before anything is written."""
    _check(state, ledger, request)
    first = _absorb(state, ledger, request.block_qos)
    records = _records(first, request)
    cover = covering(state, first)
    for key, ids in cover.items():
        row = state.associations[key].values
        there = first.rows.get(key) or Saved(row["qos"], row["default_qos"])
        first.rows[key] = dataclasses.replace(there, by=there.by | ids)
    warnings = list(request.warnings)
    wanted: Wanted = {key: (frozenset((request.block_qos,)), request.block_qos) for key in cover}
    last = first.copy()
    for key, saved in first.rows.items():
        if key in cover or saved.by & set(first.blocks):
            continue
        del last.rows[key]
        if key in state.associations:
            wanted[key] = _restored(state, key, saved, warnings)
    covered = {(key[0], key[1]) for key in cover if key[1]}
    release = sorted(job for job, where in first.held.items() if where not in covered)
    for job in release:
        del last.held[job]
    targets = _targets(state, request)
    if request.force and not request.blocked:
        for key in targets:
            if key not in wanted and state.associations[key].values["qos"] == {request.block_qos}:
                wanted[key] = (frozenset(), None)
    _defaults_fit(state, wanted, cover, warnings)
    still = _still(state, first, wanted, targets, request)
    return BlockPlan(first, last, records, wanted, targets, covered, release, still, warnings)


def changes(state: State, wanted: Wanted) -> AccountingPlan:
    """What still differs. A list that was stored as a difference to the parent's comes back in two steps: no list and no
    default, then the difference together with the default, which it may be what allows or what asks for."""
    plan = AccountingPlan()
    for key in sorted(wanted):
        row = state.associations.get(key)
        if row is None:
            continue
        names, default = wanted[key]
        own = row.values["qos"]
        if is_difference(names) and own and own != names:
            names, default = frozenset(), None
        for field, was, will in ((_QOS, own, names), (_DEFAULT, row.values["default_qos"], default)):
            if was != will:
                plan.add(field_change(CHANGE, key, field, was, will))
    return plan


def is_difference(names: t.Iterable[str]) -> bool:
    return any(name[0] in "+-" for name in names)


def covering(state: State, ledger: Ledger) -> dict[Key, frozenset[str]]:
    """Row -> ids of the blocks that cover it now, or covered it before it was moved elsewhere."""
    parents = state.parents()
    users: dict[str, set[str]] = {}
    accounts: dict[str, set[str]] = {}
    for block in ledger.blocks.values():
        (users if block.kind == USER else accounts).setdefault(block.name, set()).add(block.id)
    above = {name: frozenset().union(*(accounts.get(item, ()) for item in chain(name, parents))) for name in parents}
    found = {}
    for key in state.associations:
        ids = set(users.get(key[1], ()) if key[1] else ()) | above.get(key[0], frozenset())
        saved = ledger.rows.get(key)
        if saved:
            ids |= saved.by & set(ledger.blocks)
        if ids and key != (ROOT, "", "") and key[1] != ROOT:
            found[key] = frozenset(ids)
    return found


def _check(state: State, ledger: Ledger, request: Request) -> None:
    problems = []
    if request.block_qos not in state.qos:
        problems.append(
            f"the blocking QOS {request.block_qos} does not exist; add it to slurm_controller_qos and run site.yml"
        )
    users = {key[1] for key in state.associations}
    for kind, name in request.targets:
        known = name in users if kind == USER else state.account_row(name) is not None
        recorded = name in ledger.names(kind)
        if not known and not recorded:
            what = "has no association" if kind == USER else "does not exist"
            problems.append(f"{kind} {name} {what} on cluster {state.cluster}; correct the name")
    if problems:
        raise Refused(problems)


def _absorb(state: State, ledger: Ledger, block_qos: str) -> Ledger:
    """A row that came while it was covered holds the block and nothing of its own to go back to."""
    found = ledger.copy()
    for key, ids in covering(state, ledger).items():
        if key in found.rows:
            continue
        row = state.associations[key].values
        if row["qos"] == {block_qos}:
            found.rows[key] = Saved(by=ids)
        else:
            found.rows[key] = Saved(row["qos"], row["default_qos"], ids)
    return found


def _records(ledger: Ledger, request: Request) -> list[Change]:
    """Changes ``ledger``."""
    found: list[Change] = []
    for kind, name in request.targets:
        block = Block(kind, name, request.owner, request.reason or "", request.now)
        there = ledger.blocks.get(block.id)
        what = f"block of {block.id}"
        if not request.blocked:
            if there:
                del ledger.blocks[block.id]
                found += [Change(REMOVE, what), Change(REMOVE, what, "reason", there.reason, None)]
        elif there is None:
            ledger.blocks[block.id] = block
            found += [Change(ADD, what, risk=DISRUPTIVE), Change(ADD, what, "reason", None, block.reason)]
        elif request.reason is not None and there.reason != request.reason:
            ledger.blocks[block.id] = dataclasses.replace(there, reason=request.reason)
            found.append(Change(CHANGE, what, "reason", there.reason, request.reason, SAFE))
    return found


def _targets(state: State, request: Request) -> list[Key]:
    """Rows that the request is about."""
    parents = state.parents()
    users = {name for kind, name in request.targets if kind == USER}
    accounts = {name for kind, name in request.targets if kind == ACCOUNT}
    return [
        key
        for key in sorted(state.associations)
        if key[1] != ROOT and (key[1] in users or accounts.intersection(chain(key[0], parents)))
    ]


def _restored(state: State, key: Key, saved: Saved, warnings: list[str]) -> tuple[frozenset[str], str | None]:
    """Without QOS that have been deleted meanwhile. A list that would be empty by that would mean the parent's."""
    names = frozenset(name for name in saved.qos if name.lstrip("+-") in state.qos)
    gone = ", ".join(sorted(name.lstrip("+-") for name in saved.qos - names))
    if gone and not names:
        raise Refused([f"{label(key)} had QOS {gone} alone, which no longer exists; define it again, then unblock"])
    default = saved.default_qos if saved.default_qos in state.qos else None
    if gone or default != saved.default_qos:
        warnings.append(f"{label(key)}: QOS {gone or saved.default_qos} no longer exists and is not given back")
    return names, default


def _defaults_fit(state: State, wanted: Wanted, cover: t.Container[Key], warnings: list[str]) -> None:
    """A default that the list no longer allows cannot be given back: Slurm would refuse all of it."""
    rows = {key: (row.values["qos"], row.values["default_qos"]) for key, row in state.associations.items()}
    rows.update({key: given for key, given in wanted.items() if key in rows})
    tree = qos.Tree(state.parents(), rows)
    depth = depths(state.parents())
    # A difference is to what the row above will have, so from above.
    for key in sorted(rows, key=lambda item: (bool(item[1]), depth.get(item[0], 0))):
        names = rows[key][0]
        if is_difference(names):
            above = tree.above(key)
            listed = tree.listed(above) if above else frozenset()
            added = {name[1:] for name in names if name[0] == "+"}
            tree.fixed[key] = frozenset((listed | added) - {name[1:] for name in names if name[0] == "-"})
    for key in sorted(wanted):
        if key in cover or key not in rows:
            continue
        names, default = wanted[key]
        if default and default not in tree.listed(key):
            wanted[key] = (names, None)
            warnings.append(
                f"{label(key)}: its default QOS {default} is not in its list any more and is not given back"
            )


def _still(state: State, ledger: Ledger, wanted: Wanted, targets: t.Sequence[Key], request: Request) -> list[str]:
    if request.blocked:
        return []
    found = []
    cover = covering(state, ledger)
    for key in targets:
        if key in cover:
            found.append(f"{label(key)}: {', '.join(sorted(cover[key]))}")
        elif key not in wanted and state.associations[key].values["qos"] == {request.block_qos}:
            found.append(f"{label(key)}: not recorded here, so somebody's own block; force lifts it")
    return found
