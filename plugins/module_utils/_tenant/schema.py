# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""JSON Schema of the tenant document, the one place that lists its keys. Private to the collection gpuops.tenancy.

docs/tenant-document.md and docs/schema/tenant.schema.json are made from it by tests/tools/gen_tenant_docs.py.
Our own annotations: C(x-name) (user, account, tenant or qos) marks text that is a name, folded and checked by names.py;
C(x-vault) marks the values that may be vaulted, because they appear in no plan, diff or report.
"""

from __future__ import annotations

from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant import names, units
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.schema_limits import LIMITS

VERSION = 1
STATES = ("present", "suspended")
ISOLATION = ("shared", "exclusive", "private_nodes", "private_cluster")
SHARING = ("exclusive", "mig", "mps", "shard")

# Slurm prints these fields without escaping, folds their case and turns quotes into backticks.
_TEXT = r"^[^\u0000-\u001f\u007f|\"'`]*[^\u0000-\u0020\u007f|\"'`][^\u0000-\u001f\u007f|\"'`]*$"
_PERSON = r"^[^\u0000-\u001f\u007f:,\"'`]*[^\u0000-\u0020\u007f:,\"'`][^\u0000-\u001f\u007f:,\"'`]*$"
EMAIL = r"^[^@\u0000-\u0020\u007f<>,;\"']+@[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$"


def _name(kind: str, description: str, example: str) -> dict:
    return {
        "type": "string",
        "pattern": names.NAME,
        "minLength": 1,
        "maxLength": names.USER_LENGTH if kind == "user" else names.ACCOUNT_LENGTH,
        "x-name": kind,
        "description": description,
        "examples": [example],
    }


def _flag(description: str) -> dict:
    return {
        "type": "boolean",
        "default": False,
        "description": description + " Unit: true or false.",
        "examples": [True],
    }


def _text(description: str, example: str) -> dict:
    return {
        "type": "string",
        "pattern": _TEXT,
        "maxLength": 255,
        "description": description + " One line without quotes and '|'; folded to lower case, as Slurm does.",
        "examples": [example],
    }


def _list(items: dict, description: str, example: list) -> dict:
    return {
        "type": "array",
        "items": items,
        "uniqueItems": True,
        "description": description,
        "examples": [example],
    }


def _object(properties: dict, description: str, example: dict, required: tuple = ()) -> dict:
    result = {
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
        "description": description,
        "examples": [example],
    }
    if required:
        result["required"] = list(required)
    return result


def _slurm(below: str) -> dict:
    """Keys that tenant, team and user have alike."""
    return {
        "fairshare": {
            "type": "integer",
            "minimum": 0,
            "maximum": 2147483646,
            "default": 1,
            "description": "Share in the cluster among its siblings, as a weight. Unit: shares. Never `parent`: that "
            "gives everybody below the same factor, however much each has used.",
            "examples": [300],
        },
        "priority": {
            "type": "integer",
            "minimum": 0,
            "maximum": 2147483647,
            "description": "Priority that the association adds to its jobs, if the site weighs it. Unit: none.",
            "examples": [10],
        },
        "limits": {"$ref": "#/$defs/limits"},
        "qos": _list(
            _name("qos", "Name of a QOS that the site defines.", "normal"),
            "QOS that jobs may ask for. Without it the list of the level above holds, and it may only narrow that "
            "list, unless `qos_exception` says otherwise. QOS are defined once per site. Unit: names.",
            ["normal", "high"],
        ),
        "default_qos": _name(
            "qos", f"QOS of jobs that ask for none, out of the list that holds {below}. Unit: a name.", "normal"
        ),
    }


_ONE_FACTOR = _flag(
    "All users of this account have one fair-share factor, however much each has used (`Fairshare=parent` on each of "
    "them). Without it each user has shares of her own, and so a factor of her own."
)
_QOS_EXCEPTION = _flag(
    "`qos` here may name QOS that the level above does not have: a right that others beside it lack."
)

_USER = _object(
    {
        "name": _name(
            "user",
            "Login name. Refused are names of system accounts and operators, names without a letter, names of people "
            "who left, and users whose home is another tenant. Unit: at most 32 characters.",
            "alice",
        ),
        "partition": _name(
            "partition",
            "This entry holds for jobs in one partition only. The user may have an entry without a partition beside it; "
            "without one, jobs in other partitions are refused. Unit: a name.",
            "h100",
        ),
        **_slurm("here"),
        "qos_exception": _QOS_EXCEPTION,
        "default_account": _name(
            "account",
            "Account (team) of jobs that name none; needed for a user in several teams. Unit: a name.",
            "ml-team-foo",
        ),
        "home": _name(
            "tenant",
            "The tenant that this user belongs to, if it is another one. Its document must agree by `member_of`; only "
            "there are keys, mail address and default account set. Unit: a name.",
            "tenant-bar",
        ),
        "member_of": _list(
            _name("tenant", "Another tenant that may list this user.", "tenant-bar"),
            "Other tenants that may list this user with `home: <this tenant>`. Unit: names.",
            ["tenant-bar"],
        ),
        "full_name": {
            "type": "string",
            "pattern": _PERSON,
            "maxLength": 100,
            "x-vault": True,
            "description": "The person's name, for the passwd entry: one line without quotes, ':' and ','. Unit: text.",
            "examples": ["Alice Example"],
        },
        "email": {
            "type": "string",
            "pattern": EMAIL,
            "maxLength": 254,
            "x-vault": True,
            "description": "Mail address of the person. Unit: an address.",
            "examples": ["alice@foo.example"],
        },
        "ssh_keys": _list(
            {
                "type": "string",
                "maxLength": 16384,
                "x-vault": True,
                "description": "A public key, one line: type, key, comment; no options in front.",
                "examples": ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f alice"],
            },
            "Public keys that open a login. RSA needs 3072 bits; DSA is refused. Unit: one key per entry.",
            ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f alice"],
        ),
    },
    "A user. Members of several teams appear in each, with the limits they have there; what concerns the person is "
    "written once.",
    {"name": "alice", "limits": {"max_jobs": 20}},
    required=("name",),
)

_USERS = {
    "type": "array",
    "items": {"$ref": "#/$defs/user_entry"},
    "description": "Members: a bare name (a user with shares 1 and the limits that are inherited), or a mapping. "
    "Removing a line takes the association away; it is not offboarding. Unit: see below.",
    "examples": [["carol", {"name": "dave", "fairshare": 2}]],
}

_TEAM = _object(
    {
        "name": _name(
            "account",
            "Account of the team. Global in the cluster: no other tenant and no team of another tenant may have it. "
            "Unit: at most 64 characters.",
            "ml-team-foo",
        ),
        "description": _text("What the team is. Default: its name. Unit: text.", "machine learning"),
        "organization": _text("Organization in Slurm's account. Default: the tenant's. Unit: text.", "tenant-foo"),
        **_slurm("for the team"),
        "qos_exception": _QOS_EXCEPTION,
        "one_factor": _ONE_FACTOR,
        "users": _USERS,
    },
    "A team: an account below the tenant's.",
    {"name": "ml-team-foo", "users": ["alice"]},
    required=("name",),
)


def _quota(description: str, example: dict) -> dict:
    size = {"type": "string", "pattern": units.SIZE}
    unit = " Unit: B, kB, MB, GB, TB, PB (decimal) or KiB, MiB, GiB, TiB, PiB (binary)."
    return _object(
        {
            "hard": dict(size, description="No write goes beyond it." + unit, examples=["100GB"]),
            "soft": dict(size, description="Warned above it, enforced after the grace time." + unit, examples=["90GB"]),
        },
        description,
        example,
        required=("hard",),
    )


SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Tenant document of gpuops.tenancy",
    "type": "object",
    "required": ["schema", "name"],
    "additionalProperties": False,
    "description": "One tenant of a Slurm GPU cluster.",
    "examples": [{"schema": 1, "name": "tenant-foo", "users": ["alice"]}],
    "properties": {
        "schema": {
            "type": "integer",
            "const": VERSION,
            "description": "Version of this format. Unit: none.",
            "examples": [1],
        },
        "name": _name(
            "account",
            "Name of the tenant, of its account in Slurm and of the file (`<name>.yml`). Unit: at most 64 characters.",
            "tenant-foo",
        ),
        "state": {
            "enum": list(STATES),
            "default": "present",
            "description": "`suspended` is for a tenant that may not work for now. A departure is not a state: that is "
            "offboarding. Unit: one of the values.",
            "examples": ["present"],
        },
        "description": _text("What the tenant is. Default: its name. Unit: text.", "tenant foo"),
        "organization": _text("Organization in Slurm's account. Default: the tenant's name. Unit: text.", "tenant-foo"),
        "isolation": {
            "enum": list(ISOLATION),
            "default": "shared",
            "description": "`shared`: nodes are shared with other tenants; `exclusive`: one tenant on a node at a "
            "time; `private_nodes`: nodes of its own; `private_cluster`: a Slurm cluster of its own. Unit: one of the "
            "values.",
            "examples": ["shared"],
        },
        "contacts": _list(
            {
                "type": "string",
                "pattern": EMAIL,
                "maxLength": 254,
                "x-vault": True,
                "description": "A mail address.",
                "examples": ["ops@foo.example"],
            },
            "Whom to ask about this tenant. Unit: mail addresses.",
            ["ops@foo.example"],
        ),
        "slurm": _object(
            {**_slurm("for the tenant"), "one_factor": _ONE_FACTOR},
            "The tenant's own account in Slurm.",
            {"fairshare": 300, "qos": ["normal", "high"], "default_qos": "normal"},
        ),
        "teams": {
            "type": "array",
            "items": {"$ref": "#/$defs/team"},
            "description": "Teams. A tenant without teams is flat: its users are in the tenant's account. Unit: see "
            "below.",
            "examples": [[{"name": "ml-team-foo", "users": ["alice"]}]],
        },
        "users": dict(_USERS, description="Members of the tenant's own account. " + _USERS["description"]),
        "storage": _object(
            {
                "home": _quota("The home of each user.", {"hard": "100GB", "soft": "90GB"}),
                "scratch": _quota("The scratch space of the whole tenant.", {"hard": "50TB", "soft": "45TB"}),
            },
            "Quotas.",
            {"home": {"hard": "100GB", "soft": "90GB"}},
        ),
        "network": _object(
            {
                "allow_from": _list(
                    {
                        "type": "string",
                        "maxLength": 64,
                        "x-vault": True,
                        "description": "An IPv4 or IPv6 network.",
                        "examples": ["203.0.113.0/24"],
                    },
                    "Networks that the tenant's users log in from; without it from anywhere. Unit: networks with "
                    "prefix length.",
                    ["203.0.113.0/24", "2001:db8::/48"],
                ),
            },
            "Network access.",
            {"allow_from": ["203.0.113.0/24"]},
        ),
        "gpu": _object(
            {
                "sharing": {
                    "enum": list(SHARING),
                    "default": "exclusive",
                    "description": "How jobs share a GPU: `exclusive` (not at all), `mig` (hardware slices), `mps` or "
                    "`shard`. The last two only where a node belongs to one tenant, since one job's fault stops all "
                    "others on the GPU. Unit: one of the values.",
                    "examples": ["exclusive"],
                },
            },
            "GPUs.",
            {"sharing": "exclusive"},
        ),
        "retention_days": {
            "type": "integer",
            "minimum": 0,
            "maximum": 36500,
            "default": 30,
            "description": "How long data are kept after a departure, before they may be deleted. Unit: days.",
            "examples": [30],
        },
    },
    "$defs": {
        "limits": LIMITS,
        "team": _TEAM,
        "user": _USER,
        "user_entry": {
            "if": {"type": "object"},
            "then": {"$ref": "#/$defs/user"},
            "else": _name("user", "Login name of a user.", "carol"),
            "description": "A user, as a bare name or a mapping.",
            "examples": ["carol", {"name": "dave"}],
        },
    },
}


def resolve(part: dict) -> dict:
    """The definition behind a $ref."""
    while "$ref" in part:
        part = SCHEMA["$defs"][part["$ref"].rpartition("/")[2]]
    return part
