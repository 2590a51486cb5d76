#!/usr/bin/python
# Copyright: (c) 2026, gpuops.tenancy contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: slurm_database_restore
short_description: Bring a backup of the accounting database back, step by step
description:
  - Each step looks at the server first, and does only what is still to do. A run that was killed is taken up by the next.
  - Nothing is lost. The tables that were in force are kept in a database of their own.
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
  diff_mode:
    support: full
  idempotent:
    support: partial
    details:
      - Until V(finished), a step that is done is not done again. After that the same backup can be restored once more.
options:
  path:
    description:
      - The dump, made by M(gpuops.tenancy.slurm_database_backup), with its manifest beside it.
    type: path
    required: true
  state:
    description:
      - V(loaded) checks the backup, loads it beside the database in force and counts its rows. Nobody notices.
      - V(swapped) puts the loaded tables in force and keeps those that were, all at once. No slurmdbd may be connected.
      - V(finished) removes what the steps needed.
    type: str
    choices: [loaded, swapped, finished]
    required: true
  confirm:
    description:
      - The name of the database, for V(swapped).
    type: str
    default: ""
"""

EXAMPLES = r"""
- name: Load the backup while everybody works on
  gpuops.tenancy.slurm_database_restore:
    path: /var/backups/slurm/slurm_acct_db-20261130T003000Z.sql.gz
    state: loaded
"""

RETURN = r"""
changed:
  description: Whether something was done, or would be.
  returned: always
  type: bool
step:
  description: How far the restore of this backup was before. V(nothing), V(loaded) or V(swapped).
  returned: success
  type: str
kept:
  description: Database with the tables that were in force, from V(swapped) on. Empty where there were none.
  returned: success
  type: str
plan:
  description: The changes.
  returned: always
  type: list
  elements: dict
commands:
  description: The SQL statements.
  returned: always
  type: list
  elements: str
diff:
  description: What changes.
  returned: always
  type: dict
"""

import datetime
import typing as t

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpuops.tenancy.plugins.module_utils import _command
from ansible_collections.gpuops.tenancy.plugins.module_utils._lock import Lock, LockError
from ansible_collections.gpuops.tenancy.plugins.module_utils._plan import (
    ADD,
    CHANGE,
    DISRUPTIVE,
    REMOVE,
    SAFE,
    Change,
    Plan,
)
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.database import dump, restore, server


def argument_spec() -> dict[str, t.Any]:
    return {
        "path": {"type": "path", "required": True},
        "state": {"type": "str", "choices": ["loaded", "swapped", "finished"], "required": True},
        "confirm": {"type": "str", "default": ""},
        **server.argument_spec(),
    }


def read(place: server.Server, name: str) -> restore.Current:
    there = {row[0] for row in place.execute("SELECT schema_name FROM information_schema.schemata;")}
    beside = restore.scratch(name)
    live = place.tables(name) if name in there else None
    loaded = place.tables(beside) if beside in there else None
    found: t.Sequence[str] = ()
    if loaded and restore.MARK in loaded:
        rows = place.execute(f"SELECT sha256, moment FROM `{beside}`.`{restore.MARK}`;")  # noqa: S608
        found = rows[0] if rows else ()
    return restore.current(live, loaded, found)


def stamp() -> str:
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")


def load(place: server.Server, path: str, name: str, want: dump.Manifest) -> None:
    place.execute(restore.empty(name))
    place.load_dump(path, restore.scratch(name))
    rows = place.rows(restore.scratch(name))
    wrong = dump.differences(want.rows, rows, rows)
    if wrong:
        raise dump.BackupError(f"what was loaded is not what {path} holds: {'; '.join(wrong)}; nothing was changed")
    place.execute(restore.mark(name, want.sha256, stamp()))


def refuse_guests(place: server.Server, name: str) -> None:
    # Where slurmdbd writes on, what it writes would be in neither database as a whole.
    rows = place.execute(
        f"SELECT DISTINCT user, host FROM information_schema.processlist WHERE db = '{name}';"  # noqa: S608
    )
    if rows:
        who = ", ".join("@".join(row) for row in rows)
        raise dump.BackupError(f"somebody is connected to {name} ({who}); stop every slurmdbd first")


def steps(state: str, path: str, name: str, now: restore.Current, sha256: str) -> Plan:
    """Pure."""
    step, plan = now.step(sha256), Plan()
    if state == "loaded" and step == restore.NOTHING:
        plan.add(Change(ADD, f"database {restore.scratch(name)}"))
        plan.add(Change(ADD, f"database {restore.scratch(name)}", "from", None, path, SAFE))
    elif state == "swapped" and step == restore.LOADED:
        plan.add(Change(CHANGE, f"database {name}", "tables", f"{len(now.live or ())} in force", path, DISRUPTIVE))
        if now.live:
            plan.add(Change(ADD, f"database {restore.kept(name, now.when)}"))
            plan.add(Change(ADD, f"database {restore.kept(name, now.when)}", "from", None, "what was in force"))
    elif state == "finished" and now.loaded is not None:
        plan.add(Change(REMOVE, f"database {restore.scratch(name)}"))
    return plan


def foreseen(state: str, now: restore.Current, want: dump.Manifest) -> restore.Current:
    """What a step finds when those before it have been done. Pure."""
    if state == "loaded" or (state == "swapped" and now.step(want.sha256) != restore.NOTHING):
        return now
    loaded = tuple(sorted(want.rows)) if state == "swapped" else ()
    return restore.Current(now.live, loaded, want.sha256, now.when or stamp())


def run(module: AnsibleModule, result: dict[str, t.Any], fds: t.Sequence[int] = ()) -> None:
    params, write = module.params, not module.check_mode
    name, path, state = dump.database(params["database"]), params["path"], params["state"]
    place = server.Server(params, fds)
    # Whole each time: what was right an hour ago may be damaged now.
    want = server.verified(path) if state == "loaded" else server.beside(path)
    if want.database != name:
        raise dump.BackupError(f"{path} is of the database {want.database}, not of {name}; name the one that you mean")
    now = read(place, name)
    if not write:
        now = foreseen(state, now, want)
    step = now.step(want.sha256)
    plan = steps(state, path, name, now, want.sha256)
    result.update(
        changed=plan.changed, plan=plan.as_list(), diff=plan.diff("on the server", "wanted"), step=step,
        kept=restore.kept(name, now.when) if step != restore.NOTHING and (now.live or step == restore.SWAPPED) else "",
    )  # fmt: skip
    if state == "finished" and step == restore.LOADED:
        raise dump.BackupError(f"{path} was loaded and is not in force: swap first")
    if state == "swapped" and step == restore.NOTHING:
        raise dump.BackupError(f"{path} has not been loaded: load first")
    if not plan.changed:
        return
    if state == "swapped":
        if params["confirm"] != name:
            raise dump.BackupError(f"this puts {path} in the place of {name}: say confirm={name}")
        result["commands"] = restore.swap(name, now)
    elif state == "finished":
        result["commands"] = [restore.finish(name)]
    if not write:
        return
    result["changed"] = False
    if state == "loaded":
        load(place, path, name, want)
    elif state == "swapped":
        refuse_guests(place, name)
        place.execute("\n".join(result["commands"]))
        if read(place, name).step(want.sha256) != restore.SWAPPED:
            raise dump.BackupError(
                "MariaDB took the statements and the tables are not in their place; look at the server"
            )
    else:
        place.execute(restore.finish(name))
    result["changed"] = True


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    result: dict[str, t.Any] = {"changed": False, "plan": [], "commands": [], "diff": {}}
    try:
        if module.check_mode:
            run(module, result)
        else:
            with Lock("slurm-database", "slurm_database_restore", module.params["lock_timeout"]) as lock:
                run(module, result, lock.fds)
    except (dump.BackupError, _command.CommandError, LockError, OSError) as exc:
        module.fail_json(msg=str(exc), **result)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
