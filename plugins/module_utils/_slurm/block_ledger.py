# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who is blocked by whom, and what the rows held before: one file on the host that writes accounting.

Beside the database and not in it: Slurm 22.05 has no field for it, and a tenant could read one. Written before the
first change, replaced in one step, so that a run may be killed anywhere. Private to the gpuops.tenancy collection.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
import stat
import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils import _files
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.client import SlurmError
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.model import Key

DIRECTORY = "/var/lib/gpuops-tenancy"
USER = "user"
ACCOUNT = "account"
_SCHEMA = 1


@dataclasses.dataclass(frozen=True)
class Block:
    """A user, or an account with everything below it, blocked by one owner."""

    kind: str
    name: str
    owner: str
    reason: str = ""
    since: str = ""

    @property
    def id(self) -> str:
        return f"{self.kind} {self.name} by {self.owner}"


@dataclasses.dataclass(frozen=True)
class Saved:
    """What a row held itself before it was blocked. ``by``: ids of the blocks that have covered it."""

    qos: frozenset[str] = frozenset()
    default_qos: str | None = None
    by: frozenset[str] = frozenset()


@dataclasses.dataclass
class Ledger:
    blocks: dict[str, Block] = dataclasses.field(default_factory=dict)
    rows: dict[Key, Saved] = dataclasses.field(default_factory=dict)
    # Jobs that wait because we hold them -> (account, user).
    held: dict[str, tuple[str, str]] = dataclasses.field(default_factory=dict)

    def copy(self) -> Ledger:
        return Ledger(dict(self.blocks), dict(self.rows), dict(self.held))

    def names(self, kind: str) -> frozenset[str]:
        return frozenset(block.name for block in self.blocks.values() if block.kind == kind)


class LedgerError(SlurmError):
    """The record of blocks is there and cannot be used: nothing may be planned without it."""


def path(cluster: str) -> str:
    return os.path.join(DIRECTORY, f"blocks-{re.sub(r'[^a-z0-9._-]', '-', cluster.lower())}.json")


def read(cluster: str) -> Ledger:
    """An absent file is an empty ledger; anything else that cannot be read is an error."""
    name = path(cluster)
    try:
        fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return Ledger()
    except OSError as exc:
        raise LedgerError(f"cannot open the record of blocks {name}: {exc.strerror}; run as root") from exc
    with os.fdopen(fd, encoding="utf-8") as handle:
        status = os.fstat(handle.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o022:
            raise LedgerError(
                f"the record of blocks {name} is not a file that uid {os.geteuid()} alone can write to; look who changed it"
            )
        try:
            return decode(json.load(handle))
        except (ValueError, TypeError, KeyError, AttributeError) as exc:
            raise LedgerError(
                f"the record of blocks {name} cannot be read ({exc}): nothing is planned without it; restore it from a backup, "
                "or move it away and unblock with force"
            ) from exc


def write(cluster: str, ledger: Ledger) -> None:
    name = path(cluster)
    try:
        with contextlib.suppress(FileExistsError):
            os.mkdir(DIRECTORY, 0o700)
        _files.write(name, json.dumps(encode(ledger), indent=1, sort_keys=True) + "\n")
    except OSError as exc:
        raise LedgerError(f"cannot write the record of blocks {name}: {exc.strerror}; nothing was changed") from exc


def encode(ledger: Ledger) -> dict[str, t.Any]:
    return {
        "schema": _SCHEMA,
        "blocks": [dataclasses.asdict(ledger.blocks[name]) for name in sorted(ledger.blocks)],
        "rows": [
            {
                "account": key[0],
                "user": key[1],
                "partition": key[2],
                "qos": sorted(saved.qos),
                "default_qos": saved.default_qos,
                "by": sorted(saved.by),
            }
            for key, saved in sorted(ledger.rows.items())
        ],
        "held": [{"job": job, "account": where[0], "user": where[1]} for job, where in sorted(ledger.held.items())],
    }


def decode(data: t.Any) -> Ledger:
    if data["schema"] != _SCHEMA:
        raise ValueError(f"schema {data['schema']} is not {_SCHEMA}: it was written by another version")
    blocks = [Block(**item) for item in data["blocks"]]
    rows = {
        (row["account"], row["user"], row["partition"]): Saved(
            frozenset(row["qos"]), row["default_qos"], frozenset(row["by"])
        )
        for row in data["rows"]
    }
    held = {item["job"]: (item["account"], item["user"]) for item in data["held"]}
    return Ledger({block.id: block for block in blocks}, rows, held)
