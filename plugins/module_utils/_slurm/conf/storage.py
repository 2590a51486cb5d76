# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which database a slurmdbd.conf means. Private to the gpuops.tenancy collection."""

from __future__ import annotations

from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.conf import read

# What slurmdbd takes where nothing is written.
_PORT, _NAME, _TYPE = "3306", "slurm_acct_db", "mysql"
_HERE = ("127.0.0.1", "::1", "localhost.localdomain", "")


def database(slurmdbd_conf: str) -> str:
    """host:port/name, for comparison and for people; the type before it where it is not MySQL's or MariaDB's. Pure."""
    host = (read.option(slurmdbd_conf, "StorageHost") or "").lower()
    port = read.option(slurmdbd_conf, "StoragePort") or "0"
    name = read.option(slurmdbd_conf, "StorageLoc") or _NAME
    kind = (read.option(slurmdbd_conf, "StorageType") or _TYPE).lower().removeprefix("accounting_storage/")
    where = f"{'localhost' if host in _HERE else host}:{_PORT if port == '0' else port}/{name}"
    return where if kind == _TYPE else f"{kind}:{where}"
