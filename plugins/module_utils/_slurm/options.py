# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options of the accounting modules, with their documentation: argument spec and doc fragments are made from these.

Pure; private to the gpuops.tenancy collection. An option is an entry of an argument spec with ``description`` added.
"""

from __future__ import annotations

import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import fields

Options = dict[str, dict[str, t.Any]]


def text(*description: str, **more: t.Any) -> dict[str, t.Any]:
    return {"description": list(description), "type": "str", **more}


def names(*description: str) -> dict[str, t.Any]:
    return {"description": list(description), "type": "list", "elements": "str"}


def objects(options: Options, *description: str, **more: t.Any) -> dict[str, t.Any]:
    return {"description": list(description), "type": "list", "elements": "dict", **more, "options": options}


def of_table(table: t.Iterable[fields.Field]) -> Options:
    found = {}
    for field in table:
        about = list(field.about)
        if field.since > (22, 5):
            about.append(f"Needs Slurm {fields.shown(field.since)} or newer.")
        if field.choices and field.type == fields.FLAGS:
            about.append(f"Known are {', '.join(f'V({name})' for name in field.choices)}.")
        found[field.option] = {"description": about, **field.spec()}
    return found


ACCOUNT_FIELDS: Options = {
    "coordinators": names(
        "Coordinators of the account, exactly these. They may add users and raise limits below the account."
    ),
    **of_table(fields.RECORD),
    **of_table(fields.ASSOCIATION),
}
ASSOCIATION: Options = {
    "account": text("The account.", required=True),
    "partition": text("The association is for this partition only."),
    **of_table(fields.ASSOCIATION),
}
_ACCOUNT_NAME = text("Name of the account, unique in the cluster.", required=True)
_USER_NAME = text("Name of the user.", required=True)
_DEFAULT_ACCOUNT = text(
    "Account of a job that names none. Required where several would do. By default the present one stays as long as "
    "the user is associated with it."
)

# slurm_accounting: everything at once.
TREE_ACCOUNT: Options = {
    "name": _ACCOUNT_NAME,
    "parent": text("The account above. By default the account that encloses this entry, at the top V(root)."),
    "accounts": {
        "description": ["Accounts below this one, with the same options, to any depth."],
        "type": "list",
        "elements": "dict",
    },
    **ACCOUNT_FIELDS,
}
TREE_USER: Options = {
    "name": _USER_NAME,
    "default_account": _DEFAULT_ACCOUNT,
    **of_table(fields.USER),
    "associations": objects(ASSOCIATION, "At least one.", required=True),
}
TREE: Options = {
    "accounts": objects(TREE_ACCOUNT, "Accounts, nested or flat.", default=[]),
    "users": objects(
        TREE_USER,
        "Users with all the associations that they have within O(scope). One that is not listed is removed, so that a "
        "move from team to team is a move. Associations outside the scope stay.",
        default=[],
    ),
}

# The modules for one kind of object: one by O(name), or a list.
ONE_ACCOUNT: Options = {
    "parent": text("The account above. By default it stays where it is; a new one is put below V(root)."),
    **ACCOUNT_FIELDS,
}
ONE_USER: Options = {
    "default_account": _DEFAULT_ACCOUNT,
    **of_table(fields.USER),
    "associations": objects(
        ASSOCIATION,
        "Accounts that the user is associated with. A new user needs one.",
        "With O(scope) these are all within it, and one that is not listed is removed. Without, others stay.",
    ),
    "coordinator_of": names(
        "Accounts that the user coordinates. With O(scope) these are all within it. Without, others stay."
    ),
}
ONE_QOS: Options = of_table(fields.QOS_FIELDS)


def one_or_list(kind: str, plural: str, name: str, one: Options) -> Options:
    """``name`` with the options of the object beside it, or the same for several in a list."""
    return {
        "name": text(f"Name of the {kind}. Either this, or O({plural})."),
        plural: objects(
            {"name": text(name, required=True), **one}, f"Several at once, with the same options as one {kind}."
        ),
        **one,
    }


ACCOUNT: Options = one_or_list("account", "accounts", "Name of the account, unique in the cluster.", ONE_ACCOUNT)
USER: Options = one_or_list("user", "users", "Name of the user.", ONE_USER)
QOS: Options = one_or_list("QOS", "qos", "Name of the QOS.", ONE_QOS)

# Doc fragment gpuops.tenancy.slurm_fields_NAME -> options.
FRAGMENTS: dict[str, Options] = {"tree": TREE, "account": ACCOUNT, "user": USER, "qos": QOS}


def spec(options: Options) -> Options:
    """The argument spec."""
    found = {}
    for name, option in options.items():
        found[name] = {key: value for key, value in option.items() if key != "description"}
        if "options" in option:
            found[name]["options"] = spec(option["options"])
    return found


def exclusive(options: Options, plural: str) -> list[tuple[str, str]]:
    """What cannot be given beside the list."""
    return [(plural, name) for name in options if name != plural]
