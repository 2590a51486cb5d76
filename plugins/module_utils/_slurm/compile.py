# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A plan to few commands of sacctmgr. Pure; private to the gpuops.tenancy collection.

Order: accounts from above, reparenting from above, associations, default accounts, changed fields, coordinators, then
removals from below. No moment leaves a user without a default account, or a row with a default QOS outside its list.
"""

from __future__ import annotations

import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils._plan import ADD, CHANGE, REMOVE
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import fields, inherit, place, qos, values
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.changes import (
    COORDINATORS,
    DEFAULT_ACCOUNT,
    PARENT,
    AccountingChange,
    AccountingPlan,
)
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.command import Command
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.model import Key, State, depths

_NOTHING: tuple[frozenset[str], str | None] = (frozenset(), None)
_QOS_OPTIONS = ("qos", "default_qos")

# {option: change} of one row
RowChanges = dict[str, AccountingChange]


def compile_plan(state: State, plan: AccountingPlan) -> list[Command]:
    return _Compiler(state, plan).run()


def parents_to_name(
    version: fields.Version, parents: t.Mapping[str, str], items: t.Iterable[Key], words: t.Iterable[str]
) -> tuple[str, ...]:
    """22.05's sacctmgr takes a new default QOS back if any row with the account's name does not list it, also rows of
    users with a list and a default of their own, blocked ones among them. Only an account has a parent.
    """
    if version >= inherit.SINCE or not any(word.startswith("DefaultQOS=") for word in words):
        return ()
    return tuple(sorted({parents[account] for account, user, _partition in items if not user}))


class _Compiler:
    def __init__(self, state: State, plan: AccountingPlan) -> None:
        self.state = state
        self.cluster = state.cluster
        self.added = {change.key for change in plan.whole(ADD)}
        self.removed = [change.key for change in plan.whole(REMOVE)]
        self.gone = frozenset(self.removed)
        self.parents = state.parents()
        self.defaults: dict[str, str] = {}
        self.records: list[AccountingChange] = []
        self.coordinators: list[AccountingChange] = []
        self.fields: dict[Key, RowChanges] = {}
        for change in plan.fields():
            self.sort(t.cast(AccountingChange, change))
        self.default_after = {**{name: user.default_account for name, user in state.users.items()}, **self.defaults}
        self.will = {key: {option: change.will for option, change in row.items()} for key, row in self.fields.items()}
        self.depth = depths(self.parents)
        self.rows = set(state.associations) | self.added
        self.with_partitions = {(key[0], key[1]) for key in self.rows if key[2]}
        self.tree = qos.Tree(
            self.parents,
            {
                key: (row.values.get("qos", frozenset()), row.values.get("default_qos"))
                for key, row in state.associations.items()
            },
            {
                key: row.effective_qos
                for key, row in state.associations.items()
                if any(name[0] in "+-" for name in row.values.get("qos", ()))
            },
        )

    def sort(self, change: AccountingChange) -> None:
        account, user, _partition = change.key
        if change.field == PARENT:
            self.parents[account] = change.will
        elif change.field == DEFAULT_ACCOUNT:
            self.defaults[user] = change.will
        elif change.field == COORDINATORS:
            self.coordinators.append(change)
        elif fields.BY_OPTION[change.field] in fields.USER:
            self.records.append(change)
        else:
            self.fields.setdefault(change.key, {})[change.field] = change

    def run(self) -> list[Command]:
        commands = self.place_accounts()
        commands += self.add_users()
        commands += self.part_with_default_rows()
        commands += self.set_defaults()
        commands += self.set_records()
        tell = self.untold()
        commands += self.modify()
        commands += tell
        commands += self.set_coordinators()
        return commands + self.remove()

    # Adding

    def place_accounts(self) -> list[Command]:
        commands = []
        for step in place.steps(self.state.parents(), self.parents, self.state.version >= inherit.SINCE):
            commands += self.add_accounts(step.add)
            commands += self.moves(step.move)
        return commands

    def add_accounts(self, names: t.Sequence[str]) -> list[Command]:
        """Each "add account" has slurmdbd read the whole tree, a second on a large one; changing a text costs nothing
        next to it. Texts that differ therefore come later, and the accounts by one command.
        """
        groups: dict[tuple[str, ...], list[Key]] = {}
        differ = len({tuple(self.texts((name, "", "")).items()) for name in names}) > 1
        for name in names:
            key = (name, "", "")
            words = self.words_of_new(key, self.texts(key) if differ else ())
            groups.setdefault((f"parent={self.parents[name]}", *words), []).append(key)
        return [Command("add", "account", self.cluster, tuple(items), words) for words, items in groups.items()]

    def texts(self, key: Key) -> dict[str, t.Any]:
        given = self.fields.get(key, {})
        texts = {field.option for field in fields.RECORD if field.type == fields.TEXT}
        return {option: change.will for option, change in given.items() if option in texts}

    def moves(self, pairs: t.Iterable[tuple[str, str]]) -> list[Command]:
        """Before 23.11 one at a time: 22.05 goes by numbers that the first move of a command has changed, and slurmdbd
        runs in circles for ever where one of the accounts is below another.
        """
        together = self.state.version >= inherit.SINCE
        groups: dict[tuple[str, str], list[Key]] = {}
        for name, parent in pairs:
            groups.setdefault((parent, "" if together else name), []).append((name, "", ""))
        return [
            Command("modify", "account", self.cluster, tuple(items), (f"parent={parent}",))
            for (parent, _name), items in groups.items()
        ]

    def add_users(self) -> list[Command]:
        """The association with the user's new default account first: it brings the default about."""
        first: dict[tuple[Key, tuple[str, ...]], list[Key]] = {}
        later: dict[tuple[Key, tuple[str, ...]], list[Key]] = {}
        for key in sorted(key for key in self.added if key[1]):
            account, user, partition = key
            default = self.default_word(key)
            groups = first if default and self.defaults.get(user) == account else later
            words = [*default, *self.words_of_new(key)]
            groups.setdefault(((account, "", partition), tuple(words)), []).append(key)
        for user in {key[1] for items in first.values() for key in items}:
            del self.defaults[user]
        return [
            Command("add", "user", self.cluster, tuple(items), words, target[2] or None)
            for groups in (first, later)
            for (target, words), items in groups.items()
        ]

    def default_word(self, key: Key) -> list[str]:
        """Slurm wants a default account with "add user", and takes it over.

        Not with a second row of the default account, though: both would be marked as default, and 24.11 would never
        part with either of them. Nor with a partition's row of another account: Slurm would add the same partition to
        the default account as well.
        """
        account, user, partition = key
        there = self.state.users.get(user)
        default = self.defaults.get(user, "")
        if there and there.default_account and self.holder(default, user) not in self.added:
            default = there.default_account
        if key != self.holder(default, user) and (partition or account == default):
            return []
        return [f"DefaultAccount={default}"]

    def holder(self, account: str, user: str) -> Key | None:
        """The row that makes an account the user's default: the plain one, where there is one."""
        if (account, user) not in self.with_partitions:
            return (account, user, "") if (account, user, "") in self.rows else None
        return min(key for key in self.rows if key[:2] == (account, user))

    def words_of_new(self, key: Key, later: t.Iterable[str] = ()) -> list[str]:
        """Set words of a new row. What Slurm would not take at this moment stays for ``modify``, and so does ``later``."""
        given = self.fields.get(key, {})
        qos_values = (
            given["qos"].will if "qos" in given else frozenset(),
            given["default_qos"].will if "default_qos" in given else None,
        )
        self.tree.rows[key] = qos_values
        self.tree.members.setdefault(key[0], []).append(key)
        put_off = set(later)
        if not self.tree.fits(key):
            self.tree.rows[key] = _NOTHING
            put_off |= set(_QOS_OPTIONS)
        for option, change in given.items():
            # The account's record is there already and "add" leaves it alone; an empty text 22.05 refuses on "add".
            if fields.BY_OPTION[option] in fields.RECORD and (change.kind == CHANGE or not change.will):
                put_off.add(option)
        words = [_word(option, change) for option, change in given.items() if option not in put_off]
        left = {option: change for option, change in given.items() if option in put_off}
        if left:
            self.fields[key] = left
        else:
            self.fields.pop(key, None)
        return words

    # Changing

    def part_with_default_rows(self) -> list[Command]:
        """One of several rows that a user has in her default account goes.

        "modify" marks all of them as default, and 24.11 does not remove a row that is marked: it has to go before the
        default comes, or while the default is elsewhere for a moment.
        """
        away: dict[str, str] = {}
        going: dict[Key, None] = {}
        for key in self.removed:
            account, user, _partition = key
            if not user or not self.is_default(key) or self.goes_whole(key):
                continue
            there = self.state.users.get(user)
            before = there.default_account if there else ""
            others = sorted({row[0] for row in self.rows if row[1] == user and row[0] != account})
            if account == before and self.state.version >= inherit.SINCE and others:
                away[user] = others[0]
                self.defaults[user] = account
            going[key] = None
        self.removed = [key for key in self.removed if key not in going]
        return self.commands_of_defaults(away) + self.delete_users(going, False)

    def set_defaults(self) -> list[Command]:
        return self.commands_of_defaults(self.defaults)

    def commands_of_defaults(self, defaults: t.Mapping[str, str]) -> list[Command]:
        groups: dict[str, list[Key]] = {}
        for user, account in sorted(defaults.items()):
            groups.setdefault(account, []).append(("", user, ""))
        return [
            Command("modify", "default", self.cluster, tuple(items), (f"DefaultAccount={account}",))
            for account, items in groups.items()
        ]

    def set_records(self) -> list[Command]:
        """A user has to have a WCKey before it can be the default."""
        keys: dict[str, list[Key]] = {}
        groups: dict[str, list[Key]] = {}
        for change in self.records:
            user = change.key[1]
            there = self.state.users.get(user)
            if change.field == "default_wckey" and not (there and change.will in there.wckeys):
                keys.setdefault(change.will, []).append((change.will, user, ""))
            groups.setdefault(_word(change.field, change), []).append(change.key)
        commands = [Command("add", "wckey", self.cluster, tuple(items)) for items in keys.values()]
        return commands + [
            Command("modify", "default", self.cluster, tuple(items), (word,)) for word, items in groups.items()
        ]

    def modify(self) -> list[Command]:
        lists = {
            key: {option: change.will for option, change in row.items() if option in _QOS_OPTIONS}
            for key, row in self.fields.items()
        }
        lists = {key: change for key, change in lists.items() if change}
        commands: list[Command] = []
        for step in qos.order(self.tree, lists) if lists else []:
            commands += self.modify_rows([(key, self.with_others(key, change)) for key, change in step])
        rest = [(key, [_word(option, change) for option, change in row.items()]) for key, row in self.left()]
        return commands + self.modify_rows(rest)

    def untold(self) -> list[Command]:
        """From above: what a row is told is what the one above it has at that moment."""
        levels: dict[tuple[int, bool], list[tuple[Key, list[str]]]] = {}
        for key, words, back in inherit.untold(self.state, self.parents, self.will, self.added, self.gone):
            level = 10**6 if key[1] else self.depth.get(key[0], 0)
            levels.setdefault((level, False), []).append((key, words))
            if back:
                levels.setdefault((level, True), []).append((key, back))
        return [command for level in sorted(levels) for command in self.modify_rows(levels[level])]

    def with_others(self, key: Key, change: qos.Values) -> list[str]:
        """The first command for a row takes its other fields along."""
        row = self.fields[key]
        others = [option for option in row if option not in _QOS_OPTIONS]
        words = [_word(option, row[option]) for option in others]
        self.fields[key] = {option: row[option] for option in row if option in _QOS_OPTIONS}
        return words + [values.set_word(fields.BY_OPTION[option], None, value) for option, value in change.items()]

    def left(self) -> list[tuple[Key, RowChanges]]:
        return [
            (key, row) for key, row in sorted(self.fields.items()) if any(option not in _QOS_OPTIONS for option in row)
        ]

    def modify_rows(self, rows: t.Sequence[tuple[Key, list[str]]]) -> list[Command]:
        groups: dict[tuple[bool, str | None, tuple[str, ...]], list[Key]] = {}
        for key, words in rows:
            partition = self.partition(key) if key[1] else None
            groups.setdefault((bool(key[1]), partition, tuple(words)), []).append(key)
        commands = []
        for (is_user, partition, words), items in sorted(groups.items(), key=lambda item: item[0][0]):
            for part in self.exact(items) if is_user else [items]:
                entity = "user" if is_user else "account"
                parents = parents_to_name(self.state.version, self.parents, part, words)
                commands.append(Command("modify", entity, self.cluster, tuple(part), words, partition, parents))
        return commands

    def partition(self, key: Key) -> str | None:
        """No condition where the account has only the plain row of the user."""
        account, user, partition = key
        alone = partition == "" and (account, user) not in self.with_partitions
        return None if alone else partition

    def exact(self, items: list[Key]) -> list[list[Key]]:
        """name=a,b account=x,y means every pair: one command only where every pair that exists is meant."""
        names = {key[1] for key in items}
        accounts = {key[0] for key in items}
        pairs = {(key[0], key[1]) for key in items}
        touched = {(key[0], key[1]) for key in self.rows if key[1] in names and key[0] in accounts}
        if touched <= pairs:
            return [items]
        split: dict[str, list[Key]] = {}
        for key in items:
            split.setdefault(key[0], []).append(key)
        return list(split.values())

    def set_coordinators(self) -> list[Command]:
        commands = []
        for change in self.coordinators:
            was, will = change.was or frozenset(), change.will
            for action, names in (("add", will - was), ("delete", was - will)):
                items = tuple((change.key[0], name, "") for name in sorted(names))
                if items:
                    commands.append(Command(action, "coordinator", self.cluster, items))
        return commands

    # Removing

    def remove(self) -> list[Command]:
        whole: list[Key] = []
        parts: list[Key] = []
        last: list[Key] = []
        for key in self.removed:
            if key[1] and not self.goes_whole(key) or key[1] and self.one_by_one(key):
                parts.append(key)
            elif key[1]:
                # Slurm 24.11 does not part with the default account while the user has others.
                (last if self.is_default(key) else whole).append(key)
        commands = self.delete_users(whole, True) + self.delete_users(parts, False) + self.delete_users(last, True)
        return commands + self.remove_accounts()

    def one_by_one(self, key: Key) -> bool:
        """22.05 refuses a command that removes a row that is marked as default beside one that is not, whosever; which
        rows of a default account are marked cannot be read.
        """
        old = self.state.version < inherit.SINCE
        return old and self.is_default(key) and (key[0], key[1]) in self.with_partitions

    def is_default(self, key: Key) -> bool:
        """Once the defaults are set."""
        return self.default_after.get(key[1]) == key[0]

    def goes_whole(self, key: Key) -> bool:
        """All rows that the user has in the account go."""
        if (key[0], key[1]) not in self.with_partitions:
            return True
        return {row for row in self.rows if row[:2] == key[:2]} <= self.gone

    def delete_users(self, keys: t.Iterable[Key], whole: bool) -> list[Command]:
        groups: dict[tuple[str, str | None, str], list[Key]] = {}
        for account, user, partition in keys:
            alone = user if self.one_by_one((account, user, partition)) else ""
            target = groups.setdefault((account, None if whole else partition, alone), [])
            item = (account, user, "" if whole else partition)
            if item not in target[-1:]:
                target.append(item)
        return [
            Command("delete", "user", self.cluster, tuple(items), (), partition)
            for (_account, partition, _alone), items in groups.items()
        ]

    def remove_accounts(self) -> list[Command]:
        levels: dict[int, list[Key]] = {}
        for key in self.removed:
            if not key[1]:
                levels.setdefault(self.depth[key[0]], []).append(key)
        return [
            Command("delete", "account", self.cluster, tuple(levels[level])) for level in sorted(levels, reverse=True)
        ]


def _word(option: str, change: AccountingChange) -> str:
    return values.set_word(fields.BY_OPTION[option], change.was, change.will)
