#!/usr/bin/python
# Copyright: (c) 2026, gpuops.tenancy contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: daemon
short_description: Keep a service running with what is on disk
description:
  - Compares what runs with what is on disk instead of relying on a notification. A service whose main process began before
    one of its O(files) changed is restarted, one that does not run is started, one whose O(readback) does not match is
    restarted.
  - A play that was killed between writing a file and restarting the service is therefore put right by the next run; a
    handler would be lost.
  - Where a file of the unit, or a drop-in, is newer than what systemd knows, systemd reads its units anew first. It is not
    told to, and the module fails, while there are containers that would lose their GPUs by that.
  - After a start it waits until O(ready) holds, and fails with the last lines of the service's journal when it does not.
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
      - Changes that earlier tasks only planned are not on disk in check mode; O(pending) tells the module about them.
  diff_mode:
    support: full
  idempotent:
    support: full
options:
  name:
    description:
      - The systemd unit.
    type: str
    required: true
  files:
    description:
      - Files that the service reads when it starts. Those that do not exist are ignored.
    type: list
    elements: path
    default: []
  state:
    description:
      - Whether the service runs.
    type: str
    choices: [started, stopped]
    default: started
  enabled:
    description:
      - Whether it starts at boot.
    type: bool
    default: true
  ready:
    description:
      - A command that ends with 0 when the service does its work. It is tried until O(timeout).
    type: list
    elements: str
    default: []
  ready_pattern:
    description:
      - Regular expression that the output of O(ready) must also match.
    type: str
    default: ""
  ready_port:
    description:
      - Local TCP port that must accept connections.
    type: int
  settled:
    description:
      - Seconds that the main process must have run, for a service that tells nobody when it is ready and ends when it cannot work.
    type: int
    default: 0
  readback:
    description:
      - A command whose output tells whether the service runs with what is on disk; asked before a decision, and again at the end.
    type: list
    elements: str
    default: []
  readback_pattern:
    description:
      - Regular expression that the output of O(readback) must match.
    type: str
    default: ""
  reload:
    description:
      - Whether a reload makes the service begin anew, in a new process and without closing its sockets, as Slurm's daemons do
        from 23.11 on. It is then reloaded instead of restarted when a file changed, but not when its unit did.
      - The process has to be younger than the files afterwards, as after a restart.
    type: bool
    default: false
  timeout:
    description:
      - Seconds until a started service must be ready.
    type: int
    default: 90
  pending:
    description:
      - Whether earlier tasks of this run change files of this service. Only looked at in check mode, where they have not
        done so; a real run looks at the files.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Keep slurmctld running with its configuration
  gpuops.tenancy.daemon:
    name: slurmctld
    files:
      - /etc/slurm/slurm.conf
      - /etc/slurm/cgroup.conf
    ready: [scontrol, ping]
    readback: [scontrol, show, config]
    readback_pattern: 'HASH_VAL\s*=\s*Match'
"""

RETURN = r"""
changed:
  description: Whether the service was started, restarted, stopped, enabled or disabled, or would be.
  returned: always
  type: bool
reasons:
  description: Why.
  returned: always
  type: list
  elements: str
  sample: ["/etc/slurm/slurm.conf is newer than the running process"]
commands:
  description: The commands that changed something.
  returned: always
  type: list
  elements: str
diff:
  description: State before and after.
  returned: always
  type: dict
plan:
  description: The changes.
  returned: always
  type: list
  elements: dict
applied:
  description: Commands that had been run before the failure.
  returned: failure
  type: list
  elements: str
remaining:
  description: Commands that had not.
  returned: failure
  type: list
  elements: str
"""

import re
import socket
import time
import typing as t

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpuops.tenancy.plugins.module_utils import _command, _systemd
from ansible_collections.gpuops.tenancy.plugins.module_utils._host import gpu_containers
from ansible_collections.gpuops.tenancy.plugins.module_utils._lock import Lock, LockError, lock_name
from ansible_collections.gpuops.tenancy.plugins.module_utils._plan import CHANGE, DISRUPTIVE, SAFE, Change, Plan

POLL = 0.5


class NotReady(Exception):
    """The service did not come up."""


def argument_spec() -> dict[str, t.Any]:
    return {
        "name": {"type": "str", "required": True},
        "files": {"type": "list", "elements": "path", "default": []},
        "state": {"type": "str", "choices": ["started", "stopped"], "default": "started"},
        "enabled": {"type": "bool", "default": True},
        "ready": {"type": "list", "elements": "str", "default": []},
        "ready_pattern": {"type": "str", "default": ""},
        "ready_port": {"type": "int"},
        "settled": {"type": "int", "default": 0},
        "readback": {"type": "list", "elements": "str", "default": []},
        "readback_pattern": {"type": "str", "default": ""},
        "reload": {"type": "bool", "default": False},
        "search_path": {"type": "list", "elements": "path", "default": _command.SEARCH_PATH},
        "timeout": {"type": "int", "default": 90},
        "pending": {"type": "bool", "default": False},
        "lock_timeout": {"type": "int", "default": 300},
    }


def reasons(
    unit: _systemd.Unit,
    changes: t.Mapping[str, float | None],
    state: str,
    matches: bool | None,
    pending: bool,
) -> list[str]:
    """Why the service has to be started, restarted or stopped; empty when all is well. Pure."""
    if state == "stopped":
        return [f"it is {unit.active}"] if unit.active not in ("inactive", "failed") else []
    if not unit.running:
        return [f"it is {unit.active}" if unit.loaded else "it is not installed"]
    found: list[str] = []
    if unit.started is not None:
        found = [f"{path} is newer than the running process" for path in _systemd.newer(changes, unit.started)]
    if matches is False:
        found.append("the running configuration differs from the file")
    if pending and not found:
        found.append("its files would change")
    return found


def settled(unit: _systemd.Unit, seconds: int, now: float) -> bool:
    """Whether the main process has run for so long. Pure."""
    return not seconds or (unit.started is not None and now - unit.started >= seconds)


def may_reload(unit: _systemd.Unit, why: t.Sequence[str]) -> bool:
    """Whether a reload is enough: what systemd itself reads (a drop-in's environment) takes a restart. Pure."""
    return unit.active == "active" and not any("/systemd/" in reason for reason in why)


def make_plan(
    name: str,
    unit: _systemd.Unit,
    on_disk: str,
    why: t.Sequence[str],
    state: str,
    enabled: bool,
    reload: bool = False,
) -> Plan:
    """Pure."""
    plan = Plan()
    is_enabled = on_disk in ("enabled", "enabled-runtime", "static", "indirect", "generated", "alias")
    if enabled != is_enabled:
        plan.add(Change(CHANGE, name, "enabled", is_enabled, enabled, SAFE))
    if why:
        after = "stopped" if state == "stopped" else "restarted" if unit.running else "started"
        if after == "restarted" and reload and may_reload(unit, why):
            after = "reloaded"
        risk = DISRUPTIVE if unit.running and after != "reloaded" else SAFE
        plan.add(Change(CHANGE, name, "state", unit.active, f"{after}: {'; '.join(why)}", risk))
    return plan


def compile_commands(name: str, unit: _systemd.Unit, plan: Plan) -> list[list[str]]:
    """Pure."""
    commands: list[list[str]] = []
    for change in plan:
        if change.field == "enabled":
            # For the next boot only. Without the reload of all units that would come with it.
            commands.append(["systemctl", "enable" if change.after else "disable", "--no-reload", name])
        else:
            if unit.active == "failed" or unit.result == "start-limit-hit":
                # After several failed starts systemd would refuse this one.
                commands.append(["systemctl", "reset-failed", name])
            after = str(change.after).partition(":")[0]
            # A service that keeps trying to come up must begin anew, with the files of now.
            begins = "start" if unit.active in ("inactive", "failed") else "restart"
            verb = {"stopped": "stop", "reloaded": "reload"}.get(after, begins)
            commands.append(["systemctl", verb, name])
    return commands


class Service:
    def __init__(self, params: t.Mapping[str, t.Any]) -> None:
        self.params = params
        self.name = params["name"]

    def located(self, argv: t.Sequence[str]) -> list[str]:
        return [_command.located(argv[0], self.params["search_path"]), *argv[1:]]

    def says(self, argv: t.Sequence[str], pattern: str) -> tuple[bool, str]:
        try:
            done = _command.run(self.located(argv), timeout=20)
        except _command.CommandError as exc:
            return False, str(exc)
        said = " ".join(f"{done.stderr} {done.stdout}".split())
        if done.rc != 0:
            return False, said or f"{argv[0]} ended with status {done.rc}"
        if pattern and not re.search(pattern, done.stdout, re.MULTILINE):
            return False, f"{' '.join(argv)} does not say {pattern}"
        return True, ""

    def matches(self) -> bool | None:
        """Whether the read-back agrees; None when it cannot be asked."""
        argv = self.params["readback"]
        if not argv:
            return None
        try:
            done = _command.run(self.located(argv), timeout=20, ok=(0,))
        except _command.CommandError:
            return None
        return re.search(self.params["readback_pattern"], done.stdout, re.MULTILINE) is not None

    def ready(self) -> tuple[bool, str]:
        if self.params["ready_port"]:
            try:
                socket.create_connection(("localhost", self.params["ready_port"]), timeout=5).close()
            except OSError as exc:
                return False, f"port {self.params['ready_port']}: {exc.strerror or exc}"
        if self.params["ready"]:
            good, said = self.says(self.params["ready"], self.params["ready_pattern"])
            if not good:
                return False, said
        if self.params["readback"]:
            return self.says(self.params["readback"], self.params["readback_pattern"])
        return True, ""

    def older(self, unit: _systemd.Unit) -> bool:
        changes = {path: _systemd.changed_at(path) for path in self.params["files"]}
        return unit.started is not None and bool(_systemd.newer(changes, unit.started + 2 * _systemd.MARGIN))

    def wait(self) -> None:
        deadline = time.monotonic() + self.params["timeout"]
        while True:
            unit = _systemd.read(self.name)
            good, said = False, f"it is {unit.active} ({unit.result})"
            if unit.active == "failed":
                break
            if unit.running:
                good, said = self.ready()
                if good and not settled(unit, self.params["settled"], time.time()):
                    good, said = False, f"it has not yet run for {self.params['settled']} s"
                # After a reload the old process may answer for a moment, or for good if it refused the files.
                if good and self.older(unit):
                    good, said = False, "it still runs with the files of before"
            if good:
                return
            if time.monotonic() >= deadline:
                break
            time.sleep(POLL)
        last = _systemd.journal(self.name)
        raise NotReady(f"{self.name} did not come up: {said}" + (f"; its journal ends with: {last}" if last else ""))


def run(module: AnsibleModule, result: dict[str, t.Any], fds: t.Sequence[int] = ()) -> None:
    params = module.params
    service = Service(params)
    unit = _systemd.read(params["name"])
    if _systemd.stale(unit):
        # A unit file or drop-in is newer than systemd's copy.
        if module.check_mode:
            gpu_containers.refuse_reload()
        else:
            gpu_containers.reload(fds)
            unit = _systemd.read(params["name"])
    if not unit.loaded and params["state"] == "stopped":
        return
    if not unit.loaded and not module.check_mode:
        raise NotReady(f"there is no service {params['name']} on this host; install its package, or correct the name")
    changes = {path: _systemd.changed_at(path) for path in params["files"]}
    matches = service.matches() if unit.running and params["state"] == "started" else None
    why = reasons(unit, changes, params["state"], matches, params["pending"] and module.check_mode)
    on_disk = _systemd.enabled(params["name"])
    plan = make_plan(params["name"], unit, on_disk, why, params["state"], params["enabled"], params["reload"])
    commands = compile_commands(params["name"], unit, plan)
    result.update(
        changed=plan.changed,
        reasons=why,
        plan=plan.as_list(),
        diff=plan.diff("running", "wanted"),
        commands=[" ".join(argv) for argv in commands],
        remaining=[" ".join(argv) for argv in commands],
    )
    if module.check_mode:
        return
    for argv in commands:
        _command.run(argv, timeout=params["timeout"] + 60, pass_fds=fds, ok=(0,))
        result["applied"].append(result["remaining"].pop(0))
    if params["state"] == "started":
        # Also when nothing had to be done: a run that was killed while it waited left a service that may never have come up.
        service.wait()


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    result: dict[str, t.Any] = {
        "changed": False, "reasons": [], "commands": [], "diff": {}, "plan": [], "applied": [], "remaining": [],
    }  # fmt: skip
    try:
        if module.check_mode:
            run(module, result)
        else:
            # Also while it waits: another run must not restart what this one waits for.
            name = lock_name("daemon", module.params["name"])
            with Lock(name, purpose=f"daemon {module.params['name']}", timeout=module.params["lock_timeout"]) as lock:
                run(module, result, lock.fds)
    except (NotReady, gpu_containers.Busy, _command.CommandError, LockError, OSError) as exc:
        result["changed"] = bool(result["applied"])
        message = str(exc)
        if isinstance(exc, _command.CommandError) and result["commands"]:
            last = _systemd.journal(module.params["name"])
            message += f"; its journal ends with: {last}" if last else ""
        module.fail_json(msg=message, **result)
    del result["applied"], result["remaining"]
    module.exit_json(**result)


if __name__ == "__main__":
    main()
