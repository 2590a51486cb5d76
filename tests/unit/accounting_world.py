# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A small cluster to plan against, and the short way to say what is wanted."""

from __future__ import annotations

from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import desired as wanted
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.changes import apply_changes, unset_values
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.client import row_columns
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.compile import compile_plan
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.model import Account, Association, State, User
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.plan import make_plan
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.qos import Tree

# What follows "account|user|" on a line of a row where nothing is set, as 24.11 prints it.
EMPTY = "|" * (len(row_columns((24, 11))) - 3)
QOS = frozenset({"normal", "high", "low", "blocked"})
TRES = frozenset({"cpu", "mem", "node", "gres/gpu", "gres/gpu:h100", "billing"})


def world(tree=None, users=None, version=(24, 11)):
    """tree: {account: (parent, {values})}; users: {user: (default, {account or (account, partition): {values}})}."""
    state = State("c1", version, qos=QOS, tres=TRES)
    rows = {"root": ("", {"qos": frozenset({"normal"})}), **(tree or {})}
    for name, (parent, given) in rows.items():
        given = dict(given)
        state.accounts[name] = Account(
            name,
            given.pop("description", name),
            given.pop("organization", name),
            frozenset(given.pop("coordinators", ())),
        )
        row = Association(name, parent=parent, values={**unset_values(), **given})
        state.associations[row.key] = row
    for user, (default, places) in {"root": ("root", {"root": {}}), **(users or {})}.items():
        state.users[user] = User(user, default)
        for place, given in places.items():
            account, partition = place if isinstance(place, tuple) else (place, "")
            row = Association(account, user, partition, values={**unset_values(), **given})
            state.associations[row.key] = row
    return settle(state)


def settle(state):
    """Fill in what slurmdbd would report as effective."""
    rows = {key: (row.values["qos"], row.values["default_qos"]) for key, row in state.associations.items()}
    tree = Tree(state.parents(), rows)
    for key, row in state.associations.items():
        row.effective_qos = tree.listed(key)
    return state


def want(scope, accounts=(), users=(), **options):
    return wanted.build({"scope": scope, "accounts": list(accounts), "users": list(users), **options})


def plan(state, *args, **options):
    return make_plan(state, want(*args, **options))


def commands(state, *args, **options):
    made = plan(state, *args, **options)
    return [" ".join(command.words()) for command in compile_plan(state, made)]


def applied(state, made):
    return settle(apply_changes(state, made))


def fields_of(made):
    """[(object, field, before, after)], whole objects with their kind."""
    return [(c.object, c.field or c.kind, c.before, c.after) for c in made.changes]


# root -> foo (tenant) -> ml, data; root -> bar (another tenant); alice and carol in ml, bob in bar
def example(version=(24, 11)):
    return world(
        {
            "foo": ("root", {"qos": frozenset({"normal", "high"}), "default_qos": "normal", "grp_jobs": 10}),
            "ml": ("foo", {"fairshare": 200}),
            "data": ("foo", {}),
            "bar": ("root", {}),
            "barteam": ("bar", {}),
        },
        {
            "alice": ("ml", {"ml": {"max_jobs": 5}}),
            "carol": ("ml", {"ml": {}, "bar": {}}),
            "bob": ("bar", {"bar": {"max_jobs": 1}}),
        },
        version,
    )


def account(name, parent=None, **given):
    return {"name": name, "parent": parent, **given}


def user(name, *accounts, default=None, **given):
    return {"name": name, "default_account": default, "associations": [{"account": item, **given} for item in accounts]}
