#!/usr/bin/python
# Copyright: (c) 2026, gpuops.tenancy contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: mariadb_account
short_description: A database and the account that owns it on the local MariaDB
description:
  - Creates a database, an account, its password and its privileges on that database, over the local socket as root.
  - Only a hash of the password is given to the server, through standard input, so that it is in no process list and in
    no query log.
author:
  - gpuops.tenancy contributors (@gpuops)
extends_documentation_fragment:
  - gpuops.tenancy.attributes
  - gpuops.tenancy.host.lock
  - gpuops.tenancy.host.programs
attributes:
  check_mode:
    support: full
    details:
      - Where MariaDB is not installed or does not run yet, everything is reported as to be made, with a warning.
  diff_mode:
    support: full
  idempotent:
    support: full
options:
  database:
    description:
      - Name of the database.
    type: str
    required: true
  user:
    description:
      - Name of the account.
    type: str
    required: true
  host:
    description:
      - Host from which the account connects.
    type: str
    default: localhost
  password:
    description:
      - Password of the account.
    type: str
    required: true
  socket:
    description:
      - Path of the server's socket; the client's default when empty.
    type: path
"""

EXAMPLES = r"""
- name: Make the accounting database
  gpuops.tenancy.mariadb_account:
    database: slurm_acct_db
    user: slurm
    password: "{{ vault_database_password }}"
"""

RETURN = r"""
changed:
  description: Whether something was changed, or would be.
  returned: always
  type: bool
commands:
  description: The SQL statements, the password's hash hidden.
  returned: always
  type: list
  elements: str
diff:
  description: What changes.
  returned: always
  type: dict
plan:
  description: The changes.
  returned: always
  type: list
  elements: dict
applied:
  description: Statements that had been run before the failure.
  returned: failure
  type: list
  elements: str
remaining:
  description: Statements that had not.
  returned: failure
  type: list
  elements: str
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpuops.tenancy.plugins.module_utils import _command, _mariadb
from ansible_collections.gpuops.tenancy.plugins.module_utils._lock import Lock, LockError


def argument_spec() -> dict[str, t.Any]:
    return {
        "database": {"type": "str", "required": True},
        "user": {"type": "str", "required": True},
        "host": {"type": "str", "default": "localhost"},
        "password": {"type": "str", "required": True, "no_log": True},
        "socket": {"type": "path"},
        "search_path": {"type": "list", "elements": "path", "default": _command.SEARCH_PATH},
        "lock_timeout": {"type": "int", "default": 300},
    }


class Server:
    def __init__(self, params: t.Mapping[str, t.Any], fds: t.Sequence[int]) -> None:
        self.params = params
        self.fds = fds

    def execute(self, sql: str) -> str:
        path, socket = self.params["search_path"], self.params["socket"]
        program = _command.find("mariadb", path) or _command.find("mysql", path) or _command.located("mariadb", path)
        argv = [program, "--batch", "--skip-column-names", "--user=root", *([f"--socket={socket}"] if socket else [])]
        return _command.run(argv, timeout=120, stdin=sql, pass_fds=self.fds, ok=(0,)).stdout

    def read(self, want: _mariadb.Wanted) -> _mariadb.Current:
        return _mariadb.parse(self.execute(_mariadb.query(want)))


def run(module: AnsibleModule, result: dict[str, t.Any], fds: t.Sequence[int] = ()) -> None:
    params = module.params
    server = Server(params, fds)
    want = _mariadb.wanted(params["database"], params["user"], params["host"], params["password"])
    try:
        now = server.read(want)
    except _command.CommandError as exc:
        if not module.check_mode:
            raise
        module.warn(f"MariaDB cannot be asked yet: {exc}")
        now = _mariadb.Current()
    plan = _mariadb.plan(want, now)
    todo = _mariadb.statements(want, plan)
    result.update(
        changed=plan.changed,
        plan=plan.as_list(),
        diff=plan.diff("on the server", "wanted"),
        commands=[_mariadb.printable(statement) for statement in todo],
        remaining=[_mariadb.printable(statement) for statement in todo],
    )
    if not plan.changed or module.check_mode:
        return
    for statement in todo:
        server.execute(statement)
        result["applied"].append(result["remaining"].pop(0))
    left = _mariadb.plan(want, server.read(want))
    if left.changed:
        raise ValueError(f"MariaDB accepted the statements but still differs: {left.as_list()}")


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    result: dict[str, t.Any] = {
        "changed": False,
        "commands": [],
        "diff": {},
        "plan": [],
        "applied": [],
        "remaining": [],
    }
    try:
        if module.check_mode:
            run(module, result)
        else:
            with Lock("mariadb", purpose="mariadb_account", timeout=module.params["lock_timeout"]) as lock:
                run(module, result, lock.fds)
    except (_command.CommandError, LockError, ValueError) as exc:
        result["changed"] = bool(result["applied"])
        module.fail_json(msg=str(exc), **result)
    del result["applied"], result["remaining"]
    module.exit_json(**result)


if __name__ == "__main__":
    main()
