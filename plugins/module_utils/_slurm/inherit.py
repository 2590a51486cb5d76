# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rows of which slurmctld must be told that what they inherit has changed. Pure; private to the collection.

Since 23.11 slurmdbd tells slurmctld of a change of an account only for the rows right below it, and of an account that
moves not even for itself: until slurmctld starts anew a user of a team goes by the old limits and the old QOS of the
tenant (seen on 24.11 with jobs; the database is right all the time). Setting again what a row has makes slurmdbd tell,
but not of TRES: there it tells only of a row that had one of its own. Such a row gets for a moment what it inherits.
"""

from __future__ import annotations

import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import fields, values
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.model import Key, State, chain

SINCE = (23, 11)
INHERITED = tuple(
    field
    for field in fields.ASSOCIATION
    if field.option.startswith("max_") or field.option in ("priority", "qos", "default_qos")
)

Own = t.Callable[[Key, str], t.Any]


def untold(
    state: State,
    parents: t.Mapping[str, str],
    changes: t.Mapping[Key, t.Mapping[str, t.Any]],
    added: t.AbstractSet[Key] = frozenset(),
    removed: t.Iterable[Key] = (),
) -> list[tuple[Key, list[str], list[str]]]:
    """(row, set words, set words that take away what the first have added). In all they change nothing.

    :param parents: as they will be; ``changes``: row -> option -> normal form that it will have.
    """
    moved = {name for name, parent in state.parents().items() if parents.get(name, parent) != parent}
    options = {option for key, given in changes.items() if not key[1] and key not in added for option in given}
    table = [field for field in INHERITED if moved or field.option in options]
    if state.version < SINCE or not table:
        return []
    gone = set(removed)
    old = _Values(state, state.parents(), {}, added)
    # A row that is added comes after the moves and before the changes.
    start = _Values(state, parents, {key: given for key, given in changes.items() if key in added}, added)
    new = _Values(state, parents, changes, added)
    found = []
    for key in sorted((set(state.associations) | set(added)) - gone):
        path = chain(key[0], parents)
        below_a_move = bool(moved.intersection(path))
        words: list[str] = []
        back: list[str] = []
        for field in table:
            was = (start if key in added else old).effective(key, field)
            will = new.effective(key, field)
            if was == will or field.option in changes.get(key, {}):
                continue
            above = (key[0], "", "") if key[1] else (parents.get(key[0], ""), "", "")
            if below_a_move or field.option not in changes.get(above, {}):
                words += _again(field, new.own(key, field), was, will)
                if field.type == fields.TRES:
                    back += [values.set_word(field, dict.fromkeys(_differing(was, will)), {})]
        if words:
            found.append((key, words, back))
    return found


class _Values:
    def __init__(
        self,
        state: State,
        parents: t.Mapping[str, str],
        changes: t.Mapping[Key, t.Mapping[str, t.Any]],
        added: t.AbstractSet[Key],
    ) -> None:
        self.state = state
        self.parents = parents
        self.changes = changes
        self.added = added
        self.known: dict[tuple[str, str], t.Any] = {}

    def own(self, key: Key, field: fields.Field) -> t.Any:
        given = self.changes.get(key, {})
        if field.option in given:
            return given[field.option]
        row = self.state.associations.get(key)
        return row.values.get(field.option, field.unset) if row else field.unset

    def effective(self, key: Key, field: fields.Field) -> t.Any:
        if key[1]:
            return _join(field, self.own(key, field), self.of_account(key[0], field))
        return self.of_account(key[0], field)

    def of_account(self, name: str, field: fields.Field) -> t.Any:
        place = (name, field.option)
        if place not in self.known:
            value = field.unset
            for account in reversed(chain(name, self.parents)):
                value = _join(field, self.own((account, "", ""), field), value)
            self.known[place] = value
        return self.known[place]


def _join(field: fields.Field, own: t.Any, above: t.Any) -> t.Any:
    if field.type == fields.TRES:
        return {**(above or {}), **(own or {})}
    if field.type == fields.QOS_LIST and any(name[0] in "+-" for name in own or ()):
        return frozenset(own) | {f"={name}" for name in above}
    return above if own == field.unset else own


def _again(field: fields.Field, own: t.Any, was: t.Any, will: t.Any) -> list[str]:
    if field.type == fields.TRES:
        # What is inherited no longer has no value that could be set: the old one does as well, it goes at once.
        return [values.set_word(field, {}, {name: will.get(name, was.get(name)) for name in _differing(was, will)})]
    if field.type == fields.QOS_LIST and own:
        return values.difference_words(field, own)
    return [f"{field.set_name}={field.clear}"]


def _differing(was: t.Mapping[str, t.Any], will: t.Mapping[str, t.Any]) -> list[str]:
    return [name for name in sorted({**was, **will}) if was.get(name) != will.get(name)]
