#!/usr/bin/python
# Copyright: (c) 2026, gpuops.tenancy contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: firewall
short_description: Load a host's packet filter, with a way back if it locks you out
description:
  - Keeps the nftables table C(inet tenancy) as given, replaced as a whole in one transaction. Other tables (of container
    engines, of fail2ban) are never touched.
  - Before new rules are loaded, a timer of systemd is started on the host that takes them back after O(timeout) seconds,
    whatever becomes of this module, of Ansible and of the connection. M(gpuops.tenancy.firewall_confirm) stops it, and
    only when it comes over a connection that was opened after the rules were loaded.
  - What runs is compared with the rules, not what was loaded last; a rule that somebody added to the table by hand is a
    difference.
  - The table C(inet tenancy_runtime) holds what was blocked while the host runs (M(gpuops.tenancy.firewall_block)). It is
    made here, and its contents stay through everything that this module does.
author:
  - gpuops.tenancy contributors (@gpuops)
requirements:
  - nftables 1.0.6 or newer, systemd
extends_documentation_fragment:
  - gpuops.tenancy.attributes
  - gpuops.tenancy.host.lock
  - gpuops.tenancy.host.programs
attributes:
  check_mode:
    support: full
    details:
      - The rules are also checked by the kernel.
  diff_mode:
    support: full
  idempotent:
    support: full
options:
  rules:
    description:
      - The rules, as P(gpuops.tenancy.firewall_rules#filter) makes them.
      - Required if O(state=present).
    type: str
  introduction:
    description:
      - Rules that deny nothing. They are loaded for O(settle) seconds where there is no table yet, so that connections
        which exist already are known to the kernel before anything is denied.
    type: str
    default: ""
  settle:
    description:
      - Seconds for O(introduction).
    type: int
    default: 5
  admins:
    description:
      - Networks that operators, and the controller of Ansible, come from. The module refuses to load rules over a
        connection that comes from elsewhere.
      - They stay admitted when the host is in quarantine.
    type: list
    elements: str
    default: []
  state:
    description:
      - With V(absent) both tables, the files and the unit are removed. That is refused while something is blocked.
    type: str
    choices: [present, absent]
    default: present
  timeout:
    description:
      - Seconds after which rules that nobody confirmed are taken back.
    type: int
    default: 60
"""

EXAMPLES = r"""
- name: Load the rules
  gpuops.tenancy.firewall:
    rules: "{{ spec | gpuops.tenancy.firewall_rules(inventory_hostname) }}"
    admins: [10.0.0.0/24]
  register: loaded

# In a file of its own that is included when loaded.confirm, since the next line takes no condition.
- name: Give up the connection
  ansible.builtin.meta: reset_connection

- name: Keep them
  gpuops.tenancy.firewall_confirm:
"""

RETURN = r"""
confirm:
  description: Whether M(gpuops.tenancy.firewall_confirm) has something to do.
  returned: success
  type: bool
seconds:
  description: Time that is left for it, from now.
  returned: success
  type: int
plan:
  description: The changes.
  returned: success
  type: list
  elements: dict
commands:
  description: The commands that changed something, or would.
  returned: success
  type: list
  elements: str
diff:
  description: The table before and after, as nft lists it, and what else differs.
  returned: always
  type: list
  elements: dict
"""

import os
import time
import typing as t

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpuops.tenancy.plugins.module_utils import _command, _files
from ansible_collections.gpuops.tenancy.plugins.module_utils._firewall import connection, host, plan, rules, runtime
from ansible_collections.gpuops.tenancy.plugins.module_utils._firewall.values import FirewallError
from ansible_collections.gpuops.tenancy.plugins.module_utils._lock import Lock, LockError
from ansible_collections.gpuops.tenancy.plugins.module_utils._plan import ADD, Change, Plan


def argument_spec() -> dict[str, t.Any]:
    return {
        "rules": {"type": "str"},
        "introduction": {"type": "str", "default": ""},
        "settle": {"type": "int", "default": 5},
        "admins": {"type": "list", "elements": "str", "default": []},
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "timeout": {"type": "int", "default": 60},
        "search_path": {"type": "list", "elements": "path", "default": _command.SEARCH_PATH},
        "lock_timeout": {"type": "int", "default": 300},
    }


def not_installed() -> dict[str, t.Any]:
    """What check mode says where an earlier task would install the package."""
    plan_ = Plan([Change(ADD, f"table inet {rules.TABLE}", "rules", None, "loaded, once nftables is installed")])
    return {"changed": True, "plan": plan_.as_list(), "diff": [plan_.diff("on the host", "wanted")]}


def look(machine: host.Host) -> plan.Seen:
    return plan.Seen(
        main=machine.listing(rules.TABLE),
        runtime=machine.listing(runtime.TABLE),
        saved=host.read(host.SAVED),
        boot=host.read(host.MAIN),
        runtime_file=host.read(host.RUNTIME),
        units={path: host.read(path) for path in (host.UNIT_FILE, host.DROP_IN)},
        enabled=machine.enabled(),
        started=machine.started(),
        waiting=host.read(host.WAITING) is not None,
    )


def apply(module: AnsibleModule, machine: host.Host, seen: plan.Seen, wanted: plan.Wanted, done: list[str]) -> None:
    host.make_directories()
    if seen.runtime is None and seen.saved is not None:
        machine.load(host.SAVED)
        done.append(f"nft -f {host.SAVED}")
    if seen.runtime_file != wanted.structure:
        _files.write(host.RUNTIME, wanted.structure)
    if seen.runtime is None or runtime.without_kept(seen.runtime) != wanted.runtime:
        machine.load(host.RUNTIME)
        done.append(f"nft -f {host.RUNTIME}")
    machine.save_runtime()
    for path, text in wanted.units.items():
        if seen.units.get(path) != text:
            _files.write(path, text, 0o644)
    if not seen.enabled:
        # Without a reload of systemd, which could take devices from containers that run.
        machine.run("systemctl", "enable", "--no-reload", host.UNIT)
        done.append(f"systemctl enable --no-reload {host.UNIT}")
    if not plan.unconfirmed(seen, wanted):
        return
    _files.write(host.PENDING, wanted.rules)
    # The rules of a run that nobody confirmed are no way back: keep the one from before them.
    kept = host.read(host.WAY_BACK) if seen.waiting and machine.armed() else None
    if seen.main == wanted.main:
        if kept is not None:
            # The timer of that run may end before this one comes to its confirmation: the time begins anew.
            machine.arm(seen.main, module.params["timeout"], kept)
        machine.await_confirmation(module.params["timeout"], timer=kept is not None)
        return
    machine.check(host.PENDING)
    machine.arm(seen.main, module.params["timeout"], kept)
    done.append(f"systemd-run --on-active={module.params['timeout']} nft -f {host.WAY_BACK}")
    machine.await_confirmation(module.params["timeout"], timer=True)
    if seen.main is None and module.params["introduction"]:
        introduction = f"{host.PENDING}.introduction"
        _files.write(introduction, module.params["introduction"])
        machine.load(introduction)
        time.sleep(min(module.params["settle"], module.params["timeout"] / 4))
        os.unlink(introduction)
    machine.load(host.PENDING)
    machine.await_confirmation(module.params["timeout"], timer=True)
    done.append(f"nft -f {host.PENDING}")
    if machine.listing(rules.TABLE) != wanted.main:
        raise FirewallError("nft shows other rules than those that were loaded; the old ones come back by themselves")


def present(module: AnsibleModule, machine: host.Host, result: dict[str, t.Any]) -> None:
    params = module.params
    plan.check_connection(connection.current(), params["admins"])
    structure = runtime.structure(params["admins"])
    wanted = plan.Wanted(
        params["rules"],
        machine.shown(params["rules"], rules.TABLE),
        structure,
        machine.shown(structure, runtime.TABLE),
        machine.units(),
    )
    seen = look(machine)
    changes = plan.make(seen, wanted)
    result.update(changed=changes.changed, plan=changes.as_list(), diff=[changes.diff("on the host", "wanted")])
    if seen.main != wanted.main:
        headers = {"before_header": f"table inet {rules.TABLE}", "after_header": "wanted rules"}
        result["diff"].append({**headers, "before": seen.main or "", "after": wanted.main})
        if seen.waiting and not machine.armed():
            module.warn(
                "the rules that were loaded last were taken back, because no new connection confirmed them in time"
            )
    if module.check_mode:
        return
    if changes.changed:
        apply(module, machine, seen, wanted, result["commands"])
    result["confirm"] = plan.unconfirmed(look(machine), wanted)


def absent(module: AnsibleModule, machine: host.Host, result: dict[str, t.Any]) -> None:
    changes = plan.removal(look(machine))
    result.update(changed=changes.changed, plan=changes.as_list(), diff=[changes.diff("on the host", "wanted")])
    if module.check_mode or not changes.changed:
        return
    machine.disarm()
    for table in (rules.TABLE, runtime.TABLE):
        if machine.listing(table) is not None:
            machine.run(machine.nft, "delete", "table", "inet", table)
            result["commands"].append(f"nft delete table inet {table}")
    if host.read(host.UNIT_FILE) is not None:
        machine.run("systemctl", "disable", "--now", "--no-reload", host.UNIT, ok=None)
        result["commands"].append(f"systemctl disable --now {host.UNIT}")
    host.remove(
        host.MAIN, host.RUNTIME, host.SAVED, host.PENDING, host.WAITING, host.WAY_BACK, host.UNIT_FILE, host.DROP_IN
    )


def main() -> None:
    module = AnsibleModule(
        argument_spec=argument_spec(), supports_check_mode=True, required_if=[("state", "present", ["rules"])]
    )
    params = module.params
    result: dict[str, t.Any] = {"changed": False, "plan": [], "diff": [], "commands": [], "confirm": False}
    result["seconds"] = params["timeout"]
    act = present if params["state"] == "present" else absent
    try:
        if _command.find("nft", params["search_path"]) is None:
            if params["state"] == "absent":
                # Never installed: nothing of ours can be there.
                module.exit_json(**result)
            if module.check_mode:
                module.exit_json(**{**result, **not_installed()})
        if module.check_mode:
            act(module, host.Host(params["search_path"]), result)
        else:
            with Lock("firewall", purpose="firewall", timeout=params["lock_timeout"]) as lock:
                act(module, host.Host(params["search_path"], lock.fds), result)
    except (FirewallError, _command.CommandError, LockError, OSError) as error:
        module.fail_json(msg=str(error), **result)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
