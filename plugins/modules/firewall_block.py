#!/usr/bin/python
# Copyright: (c) 2026, gpuops.tenancy contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: firewall_block
short_description: Block addresses, or put a host into quarantine, until somebody ends it
description:
  - Works on the table C(inet tenancy_runtime) that the role P(gpuops.tenancy.firewall#role) makes. What is blocked stops at
    once, connections that exist included, and stays through reloads, other runs of the role and reboots.
  - In quarantine a host talks to operators only (those of C(firewall_management)).
  - An address that operators come from is never blocked.
author:
  - gpuops.tenancy contributors (@gpuops)
requirements:
  - nftables 1.0.6 or newer
extends_documentation_fragment:
  - gpuops.tenancy.attributes
  - gpuops.tenancy.host.lock
  - gpuops.tenancy.host.programs
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  idempotent:
    support: full
options:
  addresses:
    description:
      - Addresses and networks, IPv4 and IPv6. A part of a network that is blocked may be let go alone.
    type: list
    elements: str
    default: []
  state:
    description:
      - Whether O(addresses) are blocked.
    type: str
    choices: [present, absent]
    default: present
  quarantine:
    description:
      - Whether the host is in quarantine. Without it that stays as it is.
    type: bool
"""

EXAMPLES = r"""
- name: Keep an attacker away from all hosts
  gpuops.tenancy.firewall_block:
    addresses: [198.51.100.7, "2001:db8:bad::/48"]

- name: Cut this host off from everybody but the operators
  gpuops.tenancy.firewall_block:
    quarantine: true
"""

RETURN = r"""
blocked:
  description: What is blocked now, or would be.
  returned: success
  type: list
  elements: str
quarantined:
  description: Whether the host is in quarantine now, or would be.
  returned: success
  type: bool
plan:
  description: The changes.
  returned: success
  type: list
  elements: dict
diff:
  description: State before and after.
  returned: success
  type: dict
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpuops.tenancy.plugins.module_utils import _command
from ansible_collections.gpuops.tenancy.plugins.module_utils._firewall import host, runtime, values
from ansible_collections.gpuops.tenancy.plugins.module_utils._lock import Lock, LockError
from ansible_collections.gpuops.tenancy.plugins.module_utils._plan import CHANGE, DISRUPTIVE, Change, Plan


def argument_spec() -> dict[str, t.Any]:
    return {
        "addresses": {"type": "list", "elements": "str", "default": []},
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "quarantine": {"type": "bool"},
        "search_path": {"type": "list", "elements": "path", "default": _command.SEARCH_PATH},
        "lock_timeout": {"type": "int", "default": 300},
    }


def make_plan(
    before: t.Sequence[values.Network], after: t.Sequence[values.Network], was: bool, quarantine: bool
) -> Plan:
    """Pure."""
    plan = Plan()
    if list(before) != list(after):
        old, new = ([values.shown(one) for one in side] for side in (before, after))
        plan.add(Change(CHANGE, f"table inet {runtime.TABLE}", "blocked", old, new, DISRUPTIVE))
    if was != quarantine:
        plan.add(Change(CHANGE, f"table inet {runtime.TABLE}", "quarantine", was, quarantine, DISRUPTIVE))
    return plan


def act(module: AnsibleModule, machine: host.Host) -> dict[str, t.Any]:
    params = module.params
    listing = machine.listing(runtime.TABLE)
    if listing is None:
        raise values.FirewallError("this host has no firewall of gpuops.tenancy; run the role firewall on it first")
    given = [values.network("addresses", one) for one in params["addresses"]]
    before, was = values.collapsed(runtime.networks(listing, "blocked")), runtime.quarantined(listing)
    add, gone = (given, []) if params["state"] == "present" else ([], given)
    admins = runtime.networks(listing, "admins")
    runtime.refuse_operators(add, admins)
    quarantine = was if params["quarantine"] is None else params["quarantine"]
    if quarantine and not was and not admins:
        raise values.FirewallError("no operators are known on this host, so a quarantine would shut everybody out")
    after = runtime.blocked(before, add, gone)
    plan = make_plan(before, after, was, quarantine)
    if plan.changed and not module.check_mode:
        machine.run(
            machine.nft, "-f", "-", stdin=runtime.change(before, after, quarantine if quarantine != was else None)
        )
    if not module.check_mode:
        # Also when nothing changed: a run that was killed may have left the file behind.
        host.make_directories()
        machine.save_runtime()
        listing = machine.listing(runtime.TABLE) or ""
        if (values.collapsed(runtime.networks(listing, "blocked")), runtime.quarantined(listing)) != (
            after,
            quarantine,
        ):
            raise values.FirewallError("nft does not show what was changed; somebody else changes the same table")
    return {
        "changed": plan.changed,
        "plan": plan.as_list(),
        "diff": plan.diff("blocked on the host", "blocked on the host"),
        "blocked": [values.shown(one) for one in after],
        "quarantined": quarantine,
    }


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    params = module.params
    try:
        if module.check_mode:
            result = act(module, host.Host(params["search_path"]))
        else:
            with Lock("firewall", purpose="firewall_block", timeout=params["lock_timeout"]) as lock:
                result = act(module, host.Host(params["search_path"], lock.fds))
    except (values.FirewallError, _command.CommandError, LockError, OSError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(**result)


if __name__ == "__main__":
    main()
