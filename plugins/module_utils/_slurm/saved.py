# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What accounting looked like before something was removed: two files on the host that writes it.

``NAME.json`` holds everything in the words of the modules, QOS included, for restore_accounting.yml. ``NAME.dump`` is
Slurm's own format, for people: it has no QOS definitions, and ``load`` misreads typed TRES before 26.05. Private to the
gpuops.tenancy collection.
"""

from __future__ import annotations

import collections
import contextlib
import json
import os
import re
import time
import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils import _files
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import info
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.client import Client, SlurmError

DIRECTORY = "/var/lib/gpuops-tenancy/saved"
# Of each cluster; the oldest go.
KEPT = 100
SCHEMA = 1
_TIMEOUT = 600.0
_ROW = re.compile(r"^(Account|User) - '([^']*)'", re.MULTILINE)
_SHOWN = 10


class NotSaved(SlurmError):
    """Nothing is removed without a way back."""


def keep(client: Client, directory: str = DIRECTORY) -> list[str]:
    """Write the state as it is now; returns the names of the files.

    :raises NotSaved: where a file cannot be written, or is not whole.
    """
    # What belongs to the whole database (QOS) has no cluster.
    prefix = (client.cluster or "qos") + "-"
    now = time.time()
    name = prefix + time.strftime("%Y%m%dT%H%M%S", time.gmtime(now)) + f".{int(now % 1 * 1000):03d}Z"
    try:
        os.makedirs(directory, mode=0o700, exist_ok=True)
        content = state(client, now)
        files = [os.path.join(directory, f"{name}.json")]
        _files.write(files[0], json.dumps(content, indent=1) + "\n")
        if client.cluster:
            files.append(_dump(client, directory, f"{name}.dump", _rows(content)))
        _forget(directory, prefix)
    except OSError as exc:
        raise NotSaved(
            f"the state before a removal cannot be saved in {directory} ({exc.strerror}), so nothing is removed; "
            "make room, or run as root"
        ) from exc
    return files


def state(client: Client, now: float) -> dict[str, t.Any]:
    found = info.gather({"view": info.TENANTS}, client)
    return {
        "schema": SCHEMA,
        "cluster": client.cluster,
        "saved_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now)),
        **{
            key: found[key]
            for key in ("slurm_version", "qos", "tenants", "cluster_limits", "orphans", "outdated", "differences")
        },
    }


def _rows(content: t.Mapping[str, t.Any]) -> collections.Counter[str]:
    """Accounts, and users as often as they have an association; less those whose path is out of date, see lineage.py,
    which Slurm leaves out of a dump.
    """
    found: collections.Counter[str] = collections.Counter()
    for tenant in content["tenants"].values():
        found.update(f"account {account['name']}" for account in tenant["accounts"])
        for user in tenant["users"]:
            found[f"user {user['name']}"] += len(user["associations"])
    found.subtract(" ".join(name.split()[:2]) for name in content["outdated"])
    return +found


def dump(client: Client, path: str) -> int:
    return client.run([client.program("sacctmgr"), "-i", "dump", client.cluster, f"file={path}"], _TIMEOUT).rc


def _dump(client: Client, directory: str, name: str, rows: collections.Counter[str]) -> str:
    """The exit status of sacctmgr proves nothing: looked at before it counts."""
    path = os.path.join(directory, name)
    with _files.replacing(path) as temporary:
        rc = dump(client, temporary)
        with open(temporary, encoding="utf-8", errors="surrogateescape") as handle:
            text = handle.read()
        missing = rows - collections.Counter(f"{kind.lower()} {name}" for kind, name in _ROW.findall(text))
        if rc != 0 or missing:
            names = ", ".join(sorted(missing)[:_SHOWN])
            raise NotSaved(
                f"sacctmgr dump ended with status {rc} and without {sum(missing.values())} of {sum(rows.values())} rows ({names}), "
                "so nothing is removed; look at the log of slurmdbd"
            )
    return path


def _forget(directory: str, prefix: str) -> None:
    """By name, which begins with the time."""
    mine = re.compile(re.escape(prefix) + r"\d{8}T\d{6}\.\d{3}Z\.(json|dump)$")
    stems = sorted({name.rsplit(".", 1)[0] for name in os.listdir(directory) if mine.match(name)})
    for stem in stems[:-KEPT]:
        for kind in ("json", "dump"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(directory, f"{stem}.{kind}"))
