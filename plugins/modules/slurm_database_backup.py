#!/usr/bin/python
# Copyright: (c) 2026, gpuops.tenancy contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: slurm_database_backup
short_description: Back the accounting database up, and prove it
description:
  - Takes a consistent dump while slurmdbd works on, compresses it, and reads it back from the disk. Its rows, table by table,
    must be those that the server held while it was taken. Then it gets its dated name.
  - Beside it lies a manifest with checksum and rows, from which M(gpuops.tenancy.slurm_database_restore) works.
  - Older backups beyond O(keep) go, after the new one has been verified.
author:
  - gpuops.tenancy contributors (@gpuops)
extends_documentation_fragment:
  - gpuops.tenancy.attributes
  - gpuops.tenancy.attributes.actiongroup_slurm
  - gpuops.tenancy.host.lock
  - gpuops.tenancy.host.programs
  - gpuops.tenancy.host.mariadb
attributes:
  check_mode:
    support: full
    details:
      - Asks the server for the rows, takes no dump.
  diff_mode:
    support: full
  idempotent:
    support: none
    details:
      - Every run takes another backup.
options:
  directory:
    description:
      - Where the backups are; made with mode 0700. Copy them elsewhere from there, both files of each.
    type: path
    default: /var/backups/slurm
  keep:
    description:
      - How many backups stay.
    type: int
    default: 14
"""

EXAMPLES = r"""
- name: Back the accounting database up
  gpuops.tenancy.slurm_database_backup:
    keep: 30
"""

RETURN = r"""
changed:
  description: Always true; there is a backup more.
  returned: success
  type: bool
path:
  description: The dump. In check mode the name that it would get now.
  returned: success
  type: str
  sample: /var/backups/slurm/slurm_acct_db-20261130T003000Z.sql.gz
rows:
  description: Rows by table.
  returned: success
  type: dict
bytes:
  description: Size of the dump, 0 in check mode.
  returned: success
  type: int
removed:
  description: Older backups that went, or would go.
  returned: success
  type: list
  elements: str
plan:
  description: The changes.
  returned: success
  type: list
  elements: dict
commands:
  description: The program that makes the dump.
  returned: success
  type: list
  elements: str
diff:
  description: Which files come and go.
  returned: success
  type: dict
"""

import contextlib
import datetime
import os
import stat
import tempfile
import typing as t

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpuops.tenancy.plugins.module_utils import _command
from ansible_collections.gpuops.tenancy.plugins.module_utils._lock import Lock, LockError
from ansible_collections.gpuops.tenancy.plugins.module_utils._plan import ADD, DESTRUCTIVE, REMOVE, Change, Plan
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.database import dump, server


def argument_spec() -> dict[str, t.Any]:
    return {
        "directory": {"type": "path", "default": "/var/backups/slurm"},
        "keep": {"type": "int", "default": 14},
        **server.argument_spec(),
    }


def space(params: t.Mapping[str, t.Any], needed: int) -> None:
    """A dump that fills the disk may end the database that it saves."""
    place = params["directory"]
    while not os.path.isdir(place):
        place = os.path.dirname(place)
    free = os.statvfs(place)
    if free.f_bavail * free.f_frsize < needed // 4:
        raise dump.BackupError(
            f"{params['directory']} has {free.f_bavail * free.f_frsize >> 20} MiB left, and the database has "
            f"{needed >> 20} MiB; make room, or name another directory"
        )


def prepare(directory: str) -> None:
    os.makedirs(directory, mode=0o700, exist_ok=True)
    status = os.stat(directory)
    if status.st_uid != os.geteuid() or stat.S_IMODE(status.st_mode) & 0o077:
        raise dump.BackupError(
            f"others may enter {directory}, and a dump holds what every user did; chmod 0700, chown root"
        )
    for entry in os.scandir(directory):
        # What a killed run left.
        if entry.name.startswith(dump.STAGE):
            os.unlink(entry.path)


def take(source: server.Server, params: t.Mapping[str, t.Any], path: str, slurm: str, when: str) -> dump.Manifest:
    name = params["database"]
    before = source.rows(name)
    descriptor, staged = tempfile.mkstemp(dir=params["directory"], prefix=dump.STAGE)
    try:
        with os.fdopen(descriptor, "wb") as handle:
            streamed = source.write_dump(name, handle)
            handle.flush()
            os.fsync(handle.fileno())
        written = server.rows_of(staged)
        wrong = dump.differences(written.tables, before, source.rows(name))
        if wrong or written.tables != streamed.tables:
            raise dump.BackupError(f"the dump is not what the server holds ({'; '.join(wrong)}); run again")
        made = dump.Manifest(name, when, server.checksum(staged), os.path.getsize(staged), written.tables, slurm)
        beside = staged + ".json"
        with open(beside, "w", encoding="utf-8") as handle:
            os.fchmod(handle.fileno(), 0o600)
            handle.write(made.text())
            handle.flush()
            os.fsync(handle.fileno())
        os.rename(beside, dump.manifest_path(path))
        os.rename(staged, path)
        return made
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(staged)


def run(module: AnsibleModule, result: dict[str, t.Any], fds: t.Sequence[int] = ()) -> None:
    params = module.params
    name, directory = dump.database(params["database"]), params["directory"]
    if params["keep"] < 1:
        raise dump.BackupError(f"keep is {params['keep']}: at least the new backup has to stay")
    source = server.Server(params, fds)
    rows = source.rows(name)
    if not rows:
        raise dump.BackupError(f"there is no database {name} on this server, or it is empty; correct the name")
    space(params, source.size(name))
    when = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
    path = os.path.join(directory, dump.file_name(name, when))
    there = os.listdir(directory) if os.path.isdir(directory) else []
    old = dump.outdated([*there, os.path.basename(path)], name, params["keep"])
    plan = Plan([Change(ADD, path), *(Change(REMOVE, os.path.join(directory, item), risk=DESTRUCTIVE) for item in old)])
    result.update(
        changed=True, path=path, rows=rows, bytes=0, plan=plan.as_list(), diff=plan.diff("before", "after"),
        removed=[os.path.join(directory, item) for item in old], commands=[source.dump_argv(name)[0]],
    )  # fmt: skip
    if module.check_mode:
        return
    result["changed"] = False
    prepare(directory)
    made = take(source, params, path, server.slurm_release(params), when)
    result.update(changed=True, rows=made.rows, bytes=made.bytes)
    for item in result["removed"]:
        for file in (item, dump.manifest_path(item)):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(file)


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    result: dict[str, t.Any] = {"changed": False}
    try:
        if module.check_mode:
            run(module, result)
        else:
            with Lock("slurm-database", "slurm_database_backup", module.params["lock_timeout"]) as lock:
                run(module, result, lock.fds)
    except (dump.BackupError, _command.CommandError, LockError, OSError) as exc:
        module.fail_json(msg=str(exc), **result)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
