#!/usr/bin/python
# Copyright: (c) 2026, gpuops.tenancy contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: login_policy
short_description: Change who can log in, without locking anybody out for good
description:
  - Puts a file of sshd's configuration, and on compute nodes the PAM stack of sshd with pam_slurm_adopt in the one right
    place, as one change.
  - The old files are kept and a timer puts them back, unless a later call with O(state=confirmed) comes in by a login that
    began after the change. Killing the run does not stop the timer; a reboot puts the old files back too.
  - The whole of sshd's configuration is read by C(sshd -t) before anything is in place, and C(sshd -T) has to go by it.
    PAM's modules that the stack asks have to be there, and its order is read back.
author:
  - gpuops.tenancy contributors (@gpuops)
extends_documentation_fragment:
  - gpuops.tenancy.attributes
  - gpuops.tenancy.host.lock
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  idempotent:
    support: full
options:
  state:
    description:
      - V(present) changes the files and sets the timer. V(confirmed) makes the change final. V(rolled_back) puts the old
        files back at once.
    type: str
    choices: [present, confirmed, rolled_back]
    default: present
  sshd_path:
    description:
      - File in a folder that C(sshd_config) includes.
    type: path
    default: /etc/ssh/sshd_config.d/00-tenancy.conf
  sshd_text:
    description:
      - Its text. Required with O(state=present).
    type: str
  sshd_service:
    description:
      - The systemd unit of sshd.
    type: str
    default: ssh
  adopt:
    description:
      - Arguments of pam_slurm_adopt. Without any the PAM stack is left alone.
    type: list
    elements: str
    default: []
  pam_path:
    description:
      - The PAM stack of sshd. What it says besides stays.
    type: path
    default: /etc/pam.d/sshd
  mkhomedir:
    description:
      - Whether a login makes the home directory.
    type: bool
    default: false
  admin_group:
    description:
      - Local group whose members need no job.
    type: str
    default: tenancy-admins
  admins:
    description:
      - Local accounts that have to be members. Those who have no file in O(keys_dir) get what their own
        F(~/.ssh/authorized_keys) holds now, root excepted.
    type: list
    elements: str
    default: []
  keys_dir:
    description:
      - Where the keys of all users are. Nobody's are taken over where this is empty.
    type: path
    default: /etc/ssh/authorized_keys.d
  rollback_after:
    description:
      - Seconds until the old files come back by themselves.
    type: int
    default: 120
"""

EXAMPLES = r"""
- name: Let users in who have a job here
  gpuops.tenancy.login_policy:
    sshd_text: |
      UsePAM yes
      PasswordAuthentication no
    adopt: [action_no_jobs=deny, action_unknown=newest, action_adopt_failure=deny, action_generic_failure=deny]
    admins: [root, deploy]
  register: changed

- name: Prove by a new login that the way in is still there
  gpuops.tenancy.login_policy:
    state: confirmed
  vars:
    ansible_ssh_args: -o ControlMaster=no -o ControlPath=none
  when: changed.armed
"""

RETURN = r"""
changed:
  description: Whether a file was changed, put back or made final, or would be.
  returned: always
  type: bool
armed:
  description: Whether the old files come back unless the change is confirmed.
  returned: always
  type: bool
came_back:
  description: When an earlier change was undone because nobody confirmed it, in seconds since the epoch; 0 when none was.
  returned: always
  type: float
plan:
  description: The changes.
  returned: always
  type: list
  elements: dict
diff:
  description: The files before and after.
  returned: always
  type: dict
commands:
  description: The commands that ran, or would run in check mode.
  returned: always
  type: list
  elements: str
applied:
  description: Paths that had been changed before the failure. The timer puts them back.
  returned: failure
  type: list
  elements: str
remaining:
  description: Paths that had not.
  returned: failure
  type: list
  elements: str
"""

import os
import pwd
import shlex
import typing as t

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpuops.tenancy.plugins.module_utils import _command, _files, _systemd
from ansible_collections.gpuops.tenancy.plugins.module_utils._host import local_accounts, pam, rollback, sshd
from ansible_collections.gpuops.tenancy.plugins.module_utils._lock import Lock, LockError
from ansible_collections.gpuops.tenancy.plugins.module_utils._plan import ADD, CHANGE, DISRUPTIVE, Change, Plan

GUARD = "login"
ERRORS = (
    pam.PamError,
    sshd.SshdError,
    rollback.RollbackError,
    local_accounts.AccountError,
    _command.CommandError,
    LockError,
    OSError,
)


def argument_spec() -> dict[str, t.Any]:
    return {
        "state": {"type": "str", "choices": ["present", "confirmed", "rolled_back"], "default": "present"},
        "sshd_path": {"type": "path", "default": "/etc/ssh/sshd_config.d/00-tenancy.conf"},
        "sshd_text": {"type": "str"},
        "sshd_service": {"type": "str", "default": "ssh"},
        "adopt": {"type": "list", "elements": "str", "default": []},
        "pam_path": {"type": "path", "default": "/etc/pam.d/sshd"},
        "mkhomedir": {"type": "bool", "default": False},
        "admin_group": {"type": "str", "default": "tenancy-admins"},
        "admins": {"type": "list", "elements": "str", "default": []},
        "keys_dir": {"type": "path", "default": "/etc/ssh/authorized_keys.d", "no_log": False},
        "rollback_after": {"type": "int", "default": 120},
        "lock_timeout": {"type": "int", "default": 300},
    }


def read(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as handle:
            return handle.read()
    except FileNotFoundError:
        return None


def keys_of(admins: t.Iterable[str], folder: str) -> dict[str, str]:
    """Path -> keys of the administrators whose keys so far lie in their homes only."""
    found = {}
    for name in admins:
        path = os.path.join(folder, name)
        if name == "root" or os.path.exists(path):
            continue
        own = read(os.path.join(pwd.getpwnam(name).pw_dir, ".ssh", "authorized_keys"))
        if own:
            found[path] = own
    return found


def make_plan(current: t.Mapping[str, str | None], wanted: t.Mapping[str, str]) -> Plan:
    """Pure."""
    plan = Plan()
    for path, text in wanted.items():
        if current[path] != text:
            plan.add(Change(ADD if current[path] is None else CHANGE, path, "content", current[path], text, DISRUPTIVE))
    return plan


def difference(plan: Plan) -> dict[str, str]:
    before = "".join(f"[{change.object}]\n{change.before}" for change in plan if change.before is not None)
    after = "".join(f"[{change.object}]\n{change.after}" for change in plan)
    return {"before_header": "on disk", "after_header": "wanted", "before": before, "after": after}


def members_missing(admins: t.Iterable[str], group: local_accounts.Group | None) -> list[str]:
    """Pure."""
    return sorted(set(admins) - set(group.members if group else ()))


def activation(service: str) -> list[list[str]]:
    return [["systemctl", "try-reload-or-restart", f"{service}.service"]]


class Policy:
    def __init__(
        self,
        params: t.Mapping[str, t.Any],
        result: dict[str, t.Any],
        warn: t.Callable[[str], None],
        fds: t.Sequence[int] = (),
    ) -> None:
        self.params = params
        self.result = result
        self.warn = warn
        self.fds = fds
        self.pam = pam.Wanted(params["admin_group"], params["adopt"], params["mkhomedir"])
        self.guard = rollback.Guard(GUARD)

    def wanted(self) -> dict[str, str]:
        params = self.params
        texts = {params["sshd_path"]: params["sshd_text"]}
        if params["adopt"]:
            now = read(params["pam_path"])
            if now is None:
                raise pam.PamError(f"there is no {params['pam_path']}; correct pam_path")
            try:
                texts[params["pam_path"]] = pam.compute(now, self.pam)
            except pam.PamError as exc:
                raise pam.PamError(f"{params['pam_path']}: {exc}") from exc
        if params["keys_dir"]:
            texts.update(keys_of(params["admins"], params["keys_dir"]))
        return texts

    def plan(self) -> Plan:
        wanted = self.wanted()
        return make_plan({path: read(path) for path in wanted}, wanted)

    def present(self, check_mode: bool) -> None:
        result = self.result
        last = self.guard.came_back()
        result["came_back"] = last["at"] if last else 0.0
        self.refuse_missing_modules(check_mode)
        pending = self.guard.pending()
        plan = self.plan()
        if pending and plan.changed and not check_mode:
            # Somebody else's half of a change: go on from what was before it.
            self._log([self.guard.restore()])
            pending, plan = None, self.plan()
        result.update(plan=plan.as_list(), diff=difference(plan), changed=plan.changed or bool(pending))
        result["remaining"] = [change.object for change in plan]
        if not result["changed"]:
            self.read_back()
            self.guard_nothing(check_mode)
            return
        group = local_accounts.groups().get(self.params["admin_group"])
        missing = members_missing(self.params["admins"], group)
        if missing and not check_mode:
            raise local_accounts.AccountError(
                f"{', '.join(missing)} would be locked out: not in the local group {self.params['admin_group']}; add them first"
            )
        self._log(sshd.check(self.params["sshd_path"], self.params["sshd_text"]))
        if check_mode:
            return
        self.guard.forget()
        if not pending:
            self.guard.keep([change.object for change in plan], activation(self.params["sshd_service"]))
        self.guard.arm(self.params["rollback_after"])
        result["armed"] = True
        for change in plan:
            _files.write(change.object, change.after, 0o644)
            result["applied"].append(change.object)
            result["remaining"].remove(change.object)
        try:
            self.read_back()
        except pam.PamError:
            self._log([self.guard.restore()])
            raise
        for argv in activation(self.params["sshd_service"]):
            self._log([argv])
            _command.run(argv, pass_fds=self.fds, ok=(0,))
        self.guard.in_place()

    def refuse_missing_modules(self, check_mode: bool) -> None:
        """Administrators jump over these lines, so their login would prove nothing."""
        missing = pam.lacking(self.pam) if self.params["adopt"] else []
        if not missing:
            return
        message = (
            f"{', '.join(missing)} is not where PAM of this host looks for modules, so nobody with a job would get in: install the "
            "package for your release of Slurm (Debian: libpam-slurm-adopt), or have it installed (node_login_install: true)"
        )
        if not check_mode:
            raise pam.PamError(message)
        self.warn(message)

    def read_back(self) -> None:
        """:raises PamError: the files are not what was asked for, or would let the wrong people in."""
        wrong = [f"{change.object} does not hold what was written" for change in self.plan()]
        if self.params["adopt"]:
            path = self.params["pam_path"]
            wrong += [f"{path}: {problem}" for problem in pam.problems(read(path) or "")]
        if wrong:
            raise pam.PamError("; ".join(wrong))

    def guard_nothing(self, check_mode: bool) -> None:
        """What a confirmation that was killed may have left."""
        if not check_mode and os.path.exists(self.guard.boot_unit):
            self.guard.clear()

    def confirmed(self, check_mode: bool) -> None:
        pending = self.guard.pending()
        if pending is None:
            raise rollback.RollbackError(
                "there is no change to confirm: the old files are back, or it was confirmed before"
            )
        login = rollback.login_of(os.getpid(), rollback.parent_of)
        if login is None:
            raise rollback.RollbackError("this run did not come in by ssh, so it cannot prove that ssh works")
        began = _systemd.process_start(login)
        if pending["changed_at"] is None or began is None or began < pending["changed_at"]:
            raise rollback.RollbackError(
                "this login began before the change, so it proves nothing: confirm by a connection of its own (ControlPath=none; "
                "ansible_ssh_args given with -e would outrank it)"
            )
        self.result["changed"] = True
        if not check_mode:
            self.guard.confirm()

    def rolled_back(self, check_mode: bool) -> None:
        self.result["changed"] = self.guard.pending() is not None
        if self.result["changed"] and not check_mode:
            self._log([self.guard.restore()])

    def _log(self, commands: t.Iterable[t.Sequence[str]]) -> None:
        self.result["commands"] += [shlex.join(argv) for argv in commands]


def main() -> None:
    module = AnsibleModule(
        argument_spec=argument_spec(),
        required_if=[("state", "present", ["sshd_text"])],
        supports_check_mode=True,
    )
    result: dict[str, t.Any] = {
        "changed": False, "armed": False, "came_back": 0.0, "plan": [], "diff": {}, "commands": [], "applied": [], "remaining": [],
    }  # fmt: skip
    try:
        if module.check_mode:
            getattr(Policy(module.params, result, module.warn), module.params["state"])(True)
        else:
            with Lock("login-policy", "login_policy", module.params["lock_timeout"]) as lock:
                getattr(Policy(module.params, result, module.warn, lock.fds), module.params["state"])(False)
    except ERRORS as exc:
        result["changed"] = bool(result["applied"])
        module.fail_json(msg=str(exc), **result)
    del result["applied"], result["remaining"]
    module.exit_json(**result)


if __name__ == "__main__":
    main()
