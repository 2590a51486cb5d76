#!/usr/bin/python
# Copyright: (c) 2026, gpuops.tenancy contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: login_access
short_description: Let a tenant's users log in from their own networks only
description:
  - Keeps one file of sshd for a tenant, with a C(Match) block that denies exactly the users named, and only when they come
    from elsewhere. It binds nobody else, so an operator cannot be locked out by it.
  - The file is read by sshd itself before it reaches its place, and sshd is asked afterwards what it makes of it; where
    that is not what was meant, the file of before comes back.
  - sshd has to be restarted or reloaded to notice; M(gpuops.tenancy.daemon) does that.
author:
  - gpuops.tenancy contributors (@gpuops)
requirements:
  - OpenSSH 8.2 or newer, with C(Include) of O(directory) in its configuration
extends_documentation_fragment:
  - gpuops.tenancy.attributes
  - gpuops.tenancy.host.lock
  - gpuops.tenancy.host.programs
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
    details:
      - Networks are not shown, since a document may have them from a vault.
  idempotent:
    support: full
options:
  tenant:
    description:
      - Name of the tenant.
    type: str
    required: true
  users:
    description:
      - All its users.
    type: list
    elements: str
    required: true
  allow_from:
    description:
      - Networks they may come from. Empty for anywhere; the file goes then.
    type: list
    elements: str
    required: true
  protected:
    description:
      - Names that must not be bound, as those of operators and the account that Ansible uses. Naming one is an error.
    type: list
    elements: str
    default: [root]
  directory:
    description:
      - Where the file is put.
    type: path
    default: /etc/ssh/sshd_config.d
"""

EXAMPLES = r"""
- name: Users of tenant-foo come from two networks
  gpuops.tenancy.login_access:
    tenant: tenant-foo
    users: [alice, carol]
    allow_from: [203.0.113.0/24, "2001:db8:f00::/48"]
"""

RETURN = r"""
path:
  description: The file.
  returned: success
  type: str
plan:
  description: The changes.
  returned: success
  type: list
  elements: dict
diff:
  description: The file before and after.
  returned: success
  type: dict
"""

import os
import typing as t

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpuops.tenancy.plugins.module_utils import _command, _files
from ansible_collections.gpuops.tenancy.plugins.module_utils._host import login_access
from ansible_collections.gpuops.tenancy.plugins.module_utils._lock import Lock, LockError
from ansible_collections.gpuops.tenancy.plugins.module_utils._plan import ADD, CHANGE, REMOVE, Change, Plan


def argument_spec() -> dict[str, t.Any]:
    return {
        "tenant": {"type": "str", "required": True},
        "users": {"type": "list", "elements": "str", "required": True},
        "allow_from": {"type": "list", "elements": "str", "required": True, "no_log": True},
        "protected": {"type": "list", "elements": "str", "default": ["root"]},
        "directory": {"type": "path", "default": login_access.DIRECTORY},
        "search_path": {"type": "list", "elements": "path", "default": _command.SEARCH_PATH},
        "lock_timeout": {"type": "int", "default": 300},
    }


def make_plan(path: str, before: str | None, after: str, users: int, networks: int) -> Plan:
    """Pure."""
    plan = Plan()
    if (before or "") != after:
        kind = ADD if before is None else CHANGE if after else REMOVE
        plan.add(Change(kind, path))
        if after:
            said = f"{users} users from {networks} networks only"
            plan.add(Change(CHANGE, path, "content", None if before is None else "another one", said))
    return plan


def read(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as handle:
            return handle.read()
    except FileNotFoundError:
        return None


class Sshd:
    def __init__(self, search_path: t.Sequence[str], fds: t.Sequence[int]) -> None:
        self.path = _command.located("sshd", search_path)
        self.fds = fds

    def check(self, file: str | None = None) -> None:
        argv = [self.path, "-t", *(["-f", file] if file else [])]
        _command.run(argv, pass_fds=self.fds, ok=(0,))

    def settings(self, user: str, address: str, file: str | None = None) -> str:
        where = f"user={user},host={address},addr={address}"
        argv = [self.path, "-T", "-C", where, *(["-f", file] if file else [])]
        return _command.run(argv, pass_fds=self.fds, ok=(0,)).stdout

    def verify(self, params: t.Mapping[str, t.Any], file: str | None = None) -> None:
        """:raises AccessError: sshd makes something else of it."""
        elsewhere = login_access.outside(params["allow_from"])
        # Names are plain words, so the first and the last stand for all.
        for user in sorted({params["users"][0], params["users"][-1]}):
            for address in elsewhere:
                if not login_access.denied(self.settings(user, address, file), user):
                    raise login_access.AccessError(
                        f"sshd would let {user} in from {address}: its configuration does not include "
                        f"{params['directory']}/*.conf before other Match blocks, or overrides it"
                    )
        for network in login_access.networks(params["allow_from"]):
            user, address = params["users"][0], str(network[0])
            if login_access.denied(self.settings(user, address, file), user):
                raise login_access.AccessError(f"sshd would deny {user} from the tenant's own networks as well")
        for user in params["protected"]:
            for address in elsewhere:
                if file and login_access.denied(self.settings(user, address, file), user):
                    raise login_access.AccessError(f"sshd would deny {user}, who is an operator")


def act(module: AnsibleModule, result: dict[str, t.Any], fds: t.Sequence[int] = ()) -> None:
    params = module.params
    path = login_access.path(params["tenant"], params["directory"])
    text = login_access.text(params["tenant"], params["users"], params["allow_from"], params["protected"])
    before = read(path)
    plan = make_plan(path, before, text, len(params["users"]), len(params["allow_from"]))
    result.update(changed=plan.changed, path=path, plan=plan.as_list(), diff=plan.diff("on the host", "wanted"))
    if not text:
        if before is not None and not module.check_mode:
            os.unlink(path)
            _files.sync(params["directory"])
        return
    if not plan.changed and module.check_mode:
        return
    sshd = Sshd(params["search_path"], fds)
    if plan.changed:
        staged = os.path.join(module.tmpdir, "login_access.conf")
        _files.write(staged, text)
        sshd.check(staged)
        sshd.verify(params, staged)
    if module.check_mode:
        return
    if plan.changed:
        _files.write(path, text, 0o644)
    try:
        sshd.check()
        sshd.verify(params)
    except (login_access.AccessError, _command.CommandError):
        if plan.changed:
            if before is None:
                os.unlink(path)
            else:
                _files.write(path, before, 0o644)
        raise


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    params = module.params
    result: dict[str, t.Any] = {"changed": False}
    try:
        if module.check_mode:
            act(module, result)
        else:
            with Lock("sshd", purpose="login_access", timeout=params["lock_timeout"]) as lock:
                act(module, result, lock.fds)
    except (login_access.AccessError, _command.CommandError, LockError, OSError) as error:
        module.fail_json(msg=str(error), **{**result, "changed": False})
    module.exit_json(**result)


if __name__ == "__main__":
    main()
