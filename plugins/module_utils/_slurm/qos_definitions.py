# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The site's QOS definitions: read, plan, compile. Private to the gpuops.tenancy collection."""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils import _plan
from ansible_collections.gpuops.tenancy.plugins.module_utils._plan import ADD, CHANGE, REMOVE, Plan
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import fields, options, parse, qos_use, tres, values
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.changes import AccountingChange, plain, risk
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.client import Client, SlurmError, columns
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.command import Command
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.desired import Refused, named
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.model import Key

Values = dict[str, t.Any]
_SHOWN = 10


@dataclasses.dataclass
class QosState:
    """``used``: who is in the way of a removal, by name of the QOS; read only for those that are to go."""

    qos: dict[str, Values]
    tres: frozenset[str] = frozenset()
    version: fields.Version = (24, 11)
    used: dict[str, list[str]] = dataclasses.field(default_factory=dict)


def build(params: t.Mapping[str, t.Any]) -> dict[str, Values]:
    problems: list[str] = []
    found: dict[str, Values] = {}
    for item in named(params, "qos", "QOS", options.ONE_QOS):
        name = item["name"]
        if name in found:
            problems.append(f"QOS {name} is named twice; join the two entries")
        found[name] = {}
        for field in fields.QOS_FIELDS:
            if item.get(field.option) is None:
                continue
            try:
                found[name][field.option] = values.from_option(field, item[field.option])
            except values.ValueProblem as exc:
                problems.append(f"QOS {name}: {exc}")
    if problems:
        raise Refused(problems)
    return found


def read(client: Client, going: t.Collection[str] = ()) -> QosState:
    version = client.version()
    printed = [field for field in fields.existing(fields.QOS_FIELDS, version) if field.type != fields.TEXT]
    names = ("name", *(field.column for field in printed))
    text = client.read_text(["show", "qos", columns(names)])
    descriptions = client.read_text(["show", "qos", columns(("name", "description"))])
    resources = client.read_text(["show", "tres", columns(("type", "name"))])
    try:
        found = {
            row["name"]: {
                **{field.option: field.unset for field in fields.QOS_FIELDS},
                **{field.option: values.from_text(field, row[field.column]) for field in printed},
            }
            for row in parse.rows(text, names)
        }
        described = parse.texts(descriptions, list(found))
        if described is None:
            described = {
                name: parse.whole(client.read_text(["show", "qos", "where", f"name={name}", columns(("description",))]))
                for name in found
            }
        for name, description in described.items():
            found[name]["description"] = description.lower()
        used = qos_use.read(client, set(going) & set(found)) if going else {}
        return QosState(found, parse.tres_names(resources), version, used)
    except (parse.ParseError, values.ValueProblem) as exc:
        raise SlurmError(str(exc)) from exc


def make_plan(state: QosState, wanted: t.Mapping[str, Values]) -> Plan:
    problems: list[str] = []
    plan = Plan()
    for name, given in sorted(wanted.items()):
        for other in sorted(given.get("preempt", frozenset()) - set(state.qos) - set(wanted)):
            problems.append(f"QOS {name}: preempt names {other}, which does not exist; define it, or leave it out")
        problems += [f"QOS {name}: {problem}" for problem in fields.missing(fields.QOS_BY_OPTION, given, state.version)]
        there = state.qos.get(name)
        key = (name, "", "")
        if there is None:
            plan.add(AccountingChange(ADD, f"qos {name}", key=key))
        for field in fields.QOS_FIELDS:
            if field.option not in given:
                continue
            will = given[field.option]
            was = there[field.option] if there else field.unset
            if field.type == fields.TRES:
                for resource in tres.unknown(will, state.tres):
                    problems.append(
                        f"QOS {name}: {field.option} names {resource}, which slurmdbd does not track; "
                        "name it in AccountingStorageTRES of slurm.conf"
                    )
            if was != will:
                kind = CHANGE if there else ADD
                tightens = risk(field, was, will) if there else _plan.SAFE
                before = plain(field, was) if there else None
                plan.add(
                    AccountingChange(
                        kind, f"qos {name}", field.option, before, plain(field, will), tightens, key, was, will
                    )
                )
    if problems:
        raise Refused(problems)
    return plan


def plan_removal(state: QosState, names: t.Collection[str], max_removals: int) -> Plan:
    """Slurm strips a QOS that goes from every list, even as default, and says nothing: refused while it is used."""
    going = sorted(set(names) & set(state.qos))
    problems = []
    for name in going:
        users = state.used.get(name, []) + [
            f"preempted by QOS {other}"
            for other, given in sorted(state.qos.items())
            if name in given["preempt"] and other not in going
        ]
        if users:
            more = f" and {len(users) - _SHOWN} more" if len(users) > _SHOWN else ""
            problems.append(f"QOS {name} is in use: {', '.join(users[:_SHOWN])}{more}; take it away from these first")
    if len(going) > max_removals:
        problems.append(
            f"state absent would remove {len(going)} QOS, more than max_removals ({max_removals}): {', '.join(going)}; "
            "raise max_removals"
        )
    if problems:
        raise Refused(problems)
    return Plan([AccountingChange(REMOVE, f"qos {name}", risk=_plan.DESTRUCTIVE, key=(name, "", "")) for name in going])


def compile_plan(state: QosState, plan: Plan) -> list[Command]:
    """New ones first and without preempt lists, which may name each other."""
    changes = t.cast("list[AccountingChange]", plan.changes)
    gone = tuple(change.key for change in changes if change.kind == REMOVE)
    if gone:
        return [Command("delete", "qos", "", gone)]
    added = {change.key for change in changes if not change.field}
    new: dict[Key, list[str]] = {key: [] for key in sorted(added)}
    later: dict[Key, list[str]] = {}
    for change in changes:
        if not change.field:
            continue
        field = fields.QOS_BY_OPTION[change.field]
        now = change.key in added and field.type not in (fields.QOS_LIST, fields.TEXT)
        target = new[change.key] if now else later.setdefault(change.key, [])
        target.append(values.set_word(field, change.was, change.will))
    return _grouped("add", new) + _grouped("modify", later)


def apply_changes(state: QosState, plan: Plan) -> QosState:
    found = {name: dict(given) for name, given in state.qos.items()}
    for change in t.cast("list[AccountingChange]", plan.changes):
        name = change.key[0]
        found.setdefault(name, {field.option: field.unset for field in fields.QOS_FIELDS})
        if change.field:
            found[name][change.field] = change.will
    return dataclasses.replace(state, qos=found)


def _grouped(action: str, rows: t.Mapping[Key, list[str]]) -> list[Command]:
    groups: dict[tuple[str, ...], list[Key]] = {}
    for key, words in rows.items():
        groups.setdefault(tuple(words), []).append(key)
    return [Command(action, "qos", "", tuple(items), words) for words, items in groups.items()]
