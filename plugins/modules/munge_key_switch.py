#!/usr/bin/python
# Copyright: (c) 2026, gpuops.tenancy contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: munge_key_switch
short_description: Let munged change to a key that waits beside its own, at a moment that all hosts share
description:
  - When the file O(staged) exists, a timer of systemd is set that renames it to O(path) and restarts the service at O(at).
    So the hosts of a large cluster switch together, however long Ansible takes to reach the last of them.
  - A file that is equal to O(path) is removed instead; the service is not touched.
  - It knows nothing of the key but whether the two files are equal. Put the staged key in place by
    M(gpuops.tenancy.secret_file), and keep the service with M(gpuops.tenancy.daemon) afterwards.
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
      - A key that an earlier task would have staged is not there in check mode; O(pending) tells the module about it.
  diff_mode:
    support: full
  idempotent:
    support: full
options:
  path:
    description:
      - The key of the running service.
    type: path
    default: /etc/munge/munge.key
  staged:
    description:
      - The key that waits, in the same directory.
    type: path
    default: /etc/munge/munge.key.next
  service:
    description:
      - The systemd unit.
    type: str
    default: munge
  at:
    description:
      - The moment, in seconds since the epoch, by the clock of the machine that runs Ansible. One that is past means at once.
    type: float
    required: true
  now:
    description:
      - What that clock says when the task begins. Where the host's own differs by more than the task can have taken,
        the switch comes O(at) minus O(now) seconds after the module begins.
    type: float
    required: true
  paused:
    description:
      - Units of systemd that are stopped three seconds before the switch and started three seconds after it; only those
        that run now. While hosts have two keys, slurmctld would take the messages of others for forged and answer so,
        and a job that ends at that moment would run on for it. One that is not there is asked again.
    type: list
    elements: str
    default: []
  pending:
    description:
      - Whether an earlier task of this run stages a key. Only looked at in check mode.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Switch together, ten seconds after a moment that was kept
  gpuops.tenancy.munge_key_switch:
    at: "{{ began | int + 10 }}"
    now: "{{ '%s' | ansible.builtin.strftime | int }}"
"""

RETURN = r"""
changed:
  description: Whether a switch was arranged, or would be.
  returned: always
  type: bool
plan:
  description: The changes, without the key.
  returned: always
  type: list
  elements: dict
commands:
  description: The command that arranges it.
  returned: always
  type: list
  elements: str
diff:
  description: That the key changes.
  returned: always
  type: dict
"""

import filecmp
import os
import time
import typing as t

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpuops.tenancy.plugins.module_utils import _command
from ansible_collections.gpuops.tenancy.plugins.module_utils._lock import Lock, LockError, lock_name
from ansible_collections.gpuops.tenancy.plugins.module_utils._plan import CHANGE, DISRUPTIVE, Change, Plan

UNIT = "tenancy-munge-key"
# A process that is as young as its key is taken for older than it, and would be restarted once more.
_SETTLE = "0.3"
# Seconds from before the first host switches until after the last.
_PAUSE = 3
# Stopping a daemon of a large cluster takes its time.
_PATIENCE = 600
# Seconds that a clock may be slow, and that a task may take to reach its host.
_SKEW = 2.0
_TRANSIT = 15.0


def argument_spec() -> dict[str, t.Any]:
    return {
        "path": {"type": "path", "default": "/etc/munge/munge.key"},
        "staged": {"type": "path", "default": "/etc/munge/munge.key.next"},
        "service": {"type": "str", "default": "munge"},
        "at": {"type": "float", "required": True},
        "now": {"type": "float", "required": True},
        "paused": {"type": "list", "elements": "str", "default": []},
        "pending": {"type": "bool", "default": False},
        "search_path": {"type": "list", "elements": "path", "default": _command.SEARCH_PATH},
        "lock_timeout": {"type": "int", "default": 300},
    }


def delay(at: float, now: float, clock: float) -> float:
    """Seconds until the switch, by this host's clock where it can be right. Pure."""
    return at - clock if -_SKEW <= clock - now <= _TRANSIT else at - now


def compile_command(
    params: t.Mapping[str, t.Any], seconds: float, find: t.Callable[[str], str], paused: t.Sequence[str] = ()
) -> list[str]:
    """Rename and restart in one unit, which goes on whatever becomes of the run. Pure but for find."""
    for name in ("path", "staged"):
        # systemd splits these at blanks, and replaces what follows % and $.
        if any(char in params[name] for char in " \t\n\"'\\%$;"):
            raise ValueError(f"{name} {params[name]!r} holds a character that systemd would not leave alone; rename it")
    control, sleep = find("systemctl"), find("sleep")
    before: list[str] = []
    after: list[str] = []
    if paused:
        seconds -= _PAUSE
        units = " ".join(paused)
        before = [
            f"--property=TimeoutStartSec={_PATIENCE}",
            f"--property=ExecStartPre={control} stop {units}",
            f"--property=ExecStartPre={sleep} {_PAUSE}",
        ]
        # Of the two that follow the end, the second comes whatever has failed.
        after = [f"--property=ExecStopPost={sleep} {_PAUSE}", f"--property=ExecStopPost={control} start {units}"]
    when = [f"--on-active={seconds:.1f}s", "--timer-property=AccuracySec=50ms"] if seconds > 0 else []
    return [
        find("systemd-run"), f"--unit={UNIT}", "--collect", *when, *before,
        f"--property=ExecStartPre={find('mv')} -fT {params['staged']} {params['path']}",
        f"--property=ExecStartPre={sleep} {_SETTLE}", *after,
        control, "restart", params["service"],
    ]  # fmt: skip


def settled(fds: t.Sequence[int]) -> None:
    """Wait for a switch that is under way: it takes some seconds, and cannot be arranged anew meanwhile."""
    deadline = time.monotonic() + _PATIENCE
    while True:
        state = _command.run(
            ["systemctl", "show", "-p", "ActiveState", "--value", f"{UNIT}.service"], pass_fds=fds
        ).stdout
        if state.strip() in ("", "inactive", "failed"):
            return
        if time.monotonic() > deadline:
            raise ValueError(f"{UNIT}.service does not end; look at systemctl status {UNIT}.service, then run again")
        time.sleep(0.2)


def waiting(params: t.Mapping[str, t.Any], check_mode: bool) -> str:
    """What waits beside the key: nothing, the same key, or another one."""
    if not os.path.exists(params["staged"]):
        return "another" if check_mode and params["pending"] else ""
    try:
        return "same" if filecmp.cmp(params["staged"], params["path"], shallow=False) else "another"
    except FileNotFoundError:
        return "another"


def run(module: AnsibleModule, result: dict[str, t.Any], fds: t.Sequence[int] = ()) -> None:
    params = module.params
    if os.path.dirname(params["path"]) != os.path.dirname(params["staged"]):
        raise ValueError(f"{params['staged']} must lie beside {params['path']}: only there a rename is one step")
    if not module.check_mode:
        # What an earlier run arranged would come at its own time.
        _command.run(["systemctl", "stop", f"{UNIT}.timer"], pass_fds=fds)
        settled(fds)
    found = waiting(params, module.check_mode)
    plan = Plan()
    if found == "same" and not module.check_mode:
        os.unlink(params["staged"])
    if found == "another":
        plan.add(Change(CHANGE, params["path"], "secret", "another", "the staged one", DISRUPTIVE))
    result.update(changed=plan.changed, plan=plan.as_list(), diff=plan.diff("running", "wanted"))
    if not plan.changed:
        return
    seconds = delay(params["at"], params["now"], time.time())
    paused = [unit for unit in params["paused"] if _command.run(["systemctl", "is-active", "-q", unit]).rc == 0]
    command = compile_command(params, seconds, lambda name: _command.located(name, params["search_path"]), paused)
    result["commands"] = [" ".join(command)]
    if not module.check_mode:
        result["changed"] = False
        _command.run(["systemctl", "reset-failed", f"{UNIT}.service"], pass_fds=fds)
        _command.run(command, pass_fds=fds, ok=(0,))
        result["changed"] = True


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    result: dict[str, t.Any] = {"changed": False, "commands": [], "plan": [], "diff": {}}
    try:
        if module.check_mode:
            run(module, result)
        else:
            # That of secret_file: nobody writes the key while its switch is arranged.
            name = lock_name("secret", module.params["staged"])
            with Lock(name, f"munge_key_switch {module.params['path']}", module.params["lock_timeout"]) as lock:
                run(module, result, lock.fds)
    except (_command.CommandError, LockError, OSError, ValueError) as exc:
        module.fail_json(msg=str(exc), **result)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
