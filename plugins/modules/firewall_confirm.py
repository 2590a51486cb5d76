#!/usr/bin/python
# Copyright: (c) 2026, gpuops.tenancy contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: firewall_confirm
short_description: Keep the packet filter that was loaded, because a new connection came through it
description:
  - Ends the wait of M(gpuops.tenancy.firewall). The timer that would take the rules back is stopped, and from now on they
    are loaded at boot.
  - It refuses to do so over a connection that was opened before the rules were loaded, since such a connection proves
    nothing.
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
      - Nothing waits for confirmation in check mode.
  diff_mode:
    support: none
  idempotent:
    support: full
options:
  local:
    description:
      - Whether a connection that is not by ssh (a controller that is the host itself) may confirm. It proves nothing to
        those who come from elsewhere.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Keep the rules
  gpuops.tenancy.firewall_confirm:
"""

RETURN = r"""
commands:
  description: The commands that changed something.
  returned: always
  type: list
  elements: str
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpuops.tenancy.plugins.module_utils import _command, _files
from ansible_collections.gpuops.tenancy.plugins.module_utils._firewall import connection, host, rules
from ansible_collections.gpuops.tenancy.plugins.module_utils._firewall.values import FirewallError
from ansible_collections.gpuops.tenancy.plugins.module_utils._lock import Lock, LockError


def argument_spec() -> dict[str, t.Any]:
    return {
        "local": {"type": "bool", "default": False},
        "search_path": {"type": "list", "elements": "path", "default": _command.SEARCH_PATH},
        "lock_timeout": {"type": "int", "default": 300},
    }


def check_new(found: connection.Connection | None, loaded: float, local: bool) -> None:
    """:raises FirewallError: the connection proves nothing. Pure."""
    if found is None:
        if local:
            return
        raise FirewallError(
            "the host was not reached by ssh, so nothing shows that anybody can still reach it; the old rules come back by "
            "themselves. Set firewall_confirm_local if this host is the controller itself"
        )
    if found.since <= loaded:
        raise FirewallError(
            "this connection was opened before the rules were loaded and proves nothing; the old rules come back by "
            "themselves. Let Ansible make its own connections (no ControlMaster of your own in ssh_config)"
        )


def confirm(params: t.Mapping[str, t.Any], machine: host.Host, done: list[str]) -> None:
    waiting = machine.waiting()
    if waiting is not None:
        text = host.read(host.PENDING) or ""
        if waiting["timer"] and not machine.armed():
            raise FirewallError(
                f"too late: no new connection confirmed the rules within {waiting['seconds']:g} s, and the old ones are back. "
                "Run again; set firewall_confirm_seconds higher where connections take that long"
            )
        check_new(connection.current(), waiting["loaded"], params["local"])
        if machine.listing(rules.TABLE) != machine.shown(text, rules.TABLE):
            raise FirewallError("other rules are in force than those that wait for confirmation; run again")
        _files.write(host.MAIN, text)
        machine.disarm()
        done.append(f"systemctl stop {host.TIMER}-*.timer")
        # The timer may have gone off between the two.
        if machine.listing(rules.TABLE) != machine.shown(text, rules.TABLE):
            raise FirewallError("the old rules came back at the last moment; run again")
        host.remove(host.WAITING, host.PENDING, host.WAY_BACK)
    if host.read(host.MAIN) is not None and not machine.started():
        machine.run("systemctl", "start", host.UNIT)
        done.append(f"systemctl start {host.UNIT}")


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    params = module.params
    result: dict[str, t.Any] = {"changed": False, "commands": []}
    if module.check_mode:
        module.exit_json(**result)
    try:
        with Lock("firewall", purpose="firewall_confirm", timeout=params["lock_timeout"]) as lock:
            confirm(params, host.Host(params["search_path"], lock.fds), result["commands"])
    except (FirewallError, _command.CommandError, LockError, OSError) as error:
        module.fail_json(msg=str(error), **result)
    module.exit_json(**{**result, "changed": bool(result["commands"])})


if __name__ == "__main__":
    main()
