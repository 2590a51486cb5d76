#!/usr/bin/python
# Copyright: (c) 2026, gpuops.tenancy contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: gpu_access_info
short_description: Try every way to a GPU besides the scheduler
description:
  - Opens every NVIDIA device as an ordinary user from a new session, from C(systemd-run --user), from inside each service
    that runs users' code and from inside every session that is there now, and says what the kernel answered.
    What systemd or a file says about a policy is not asked.
  - Tries that the exempt services do reach the devices.
  - Looks for users' processes outside of jobs that have had a device open since before the policy, and keep it.
  - Compares the device nodes with those that the scheduler keeps apart. A node that it does not know opens in every job.
  - The graphics devices in F(/dev/dri) of NVIDIA's cards count as device nodes of theirs.
  - A way that could not be tried counts as failed. One that does not exist here is C(absent).
author:
  - gpuops.tenancy contributors (@gpuops)
extends_documentation_fragment:
  - gpuops.tenancy.attributes
  - gpuops.tenancy.attributes.info_module
options:
  services:
    description:
      - Services that run users' code. In those that run a process joins the service's cgroup for a moment.
    type: list
    elements: str
    default: []
  exempt_services:
    description:
      - Services that must reach the devices.
    type: list
    elements: str
    default: []
  exempt_users:
    description:
      - Local accounts whose own sessions may reach the devices.
    type: list
    elements: str
    default: []
  user:
    description:
      - The account that tries. It needs no rights and no home.
    type: str
    default: nobody
  listed:
    description:
      - Device files that the scheduler hands out. Without it no device node is called unknown.
    type: list
    elements: path
  known_devices:
    description:
      - Device files that everybody may open, in jobs and outside, with the reason. A path, or a shell pattern. They are not
        tried, and never called unknown. The rights to make and watch MIG instances cannot be among them.
    type: dict
    default: {}
seealso:
  - module: gpuops.tenancy.gpu_device_policy
"""

EXAMPLES = r"""
- name: Try it
  gpuops.tenancy.gpu_access_info:
    services: [cron, atd, ssh]
    exempt_services: [slurmd]
    exempt_users: [root]
    listed: [/dev/nvidia0, /dev/nvidia1]
  register: tried
  failed_when: tried.failures | length > 0
"""

RETURN = r"""
devices:
  description: The NVIDIA device nodes of this host. Where there are none nothing was tried.
  returned: success
  type: list
  elements: dict
  sample: [{path: /dev/nvidia0, kind: gpu, mode: "0666", known: false}]
attempts:
  description: What was tried. C(verdict) is C(pass), C(fail) or C(absent).
  returned: success
  type: list
  elements: dict
  sample:
    - way: service cron.service
      expected: denied
      verdict: pass
      answers: {/dev/nvidia0: EPERM}
      why: ""
failures:
  description: One sentence for each way that is open and should not be, or the other way round.
  returned: success
  type: list
  elements: str
live:
  description: >-
    Sessions from before the policy that still reach devices, and processes outside of jobs that have one open, one
    sentence each. On cgroup v1 a slice may keep the rules it was made with until the user has logged out of all sessions.
  returned: success
  type: list
  elements: str
unlisted:
  description: Device nodes that would open in every job, or give a job rights over everybody's GPUs.
  returned: success
  type: list
  elements: str
"""

import pwd
import typing as t

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpuops.tenancy.plugins.module_utils import _command
from ansible_collections.gpuops.tenancy.plugins.module_utils._host import (
    cgroups,
    device_policy,
    gpu_access,
    gpu_devices,
    gpu_holders,
    local_accounts,
)
from ansible_collections.gpuops.tenancy.plugins.module_utils._host.device_probe import Attempt

ERRORS = (
    cgroups.NoHierarchy,
    device_policy.PolicyError,
    local_accounts.AccountError,
    _command.CommandError,
    OSError,
)


def argument_spec() -> dict[str, t.Any]:
    return {
        "services": {"type": "list", "elements": "str", "default": []},
        "exempt_services": {"type": "list", "elements": "str", "default": []},
        "exempt_users": {"type": "list", "elements": "str", "default": []},
        "user": {"type": "str", "default": "nobody"},
        "listed": {"type": "list", "elements": "path"},
        "known_devices": {"type": "dict", "default": {}},
    }


def sentence(attempt: Attempt) -> str:
    """Pure."""
    result = attempt.result
    if result is None or not result.answers:
        return f"{attempt.way} could not be tried: {result.problem if result else attempt.why}"
    if attempt.expected:
        return f"{attempt.way} opens {', '.join(result.open)}"
    refused = sorted(path for path, answer in result.answers.items() if answer == "EPERM")
    return f"{attempt.way} is kept from {', '.join(refused)}, which it needs"


def held(holder: gpu_holders.Holder) -> str:
    """Pure."""
    user = gpu_access.user_name(holder.uid)
    return f"process {holder.pid} ({holder.name}) of {user}, in no job, has {', '.join(holder.devices)} open"


def survey(
    params: t.Mapping[str, t.Any], devices: t.Sequence[str]
) -> tuple[list[Attempt], list[Attempt], list[gpu_holders.Holder]]:
    """What may be started and runs, what people who are logged in can open, and what has been open for long."""
    try:
        account = pwd.getpwnam(params["user"])
    except KeyError as exc:
        raise local_accounts.AccountError(
            f"this host has no user {params['user']}; name another one to try as"
        ) from exc
    if account.pw_uid == 0:
        raise local_accounts.AccountError("root may open anything: name an ordinary user to try as")
    exempt = local_accounts.uids(params["exempt_users"])
    ways = gpu_access.Survey(devices, account.pw_uid, account.pw_gid, exempt)
    attempts = [ways.new_session(), ways.new_manager()]
    attempts += ways.services(params["services"], True) + ways.services(params["exempt_services"], False)
    return attempts, ways.live_sessions(), ways.holders(params["exempt_services"])


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    params = module.params
    silent = sorted(path for path, why in params["known_devices"].items() if not str(why or "").strip())
    if silent:
        module.fail_json(msg=f"say in known_devices why everybody may open {', '.join(silent)}")
    try:
        nodes = gpu_devices.read()
        tried = gpu_devices.without(nodes, params["known_devices"])
        attempts, live, holders = survey(params, [node.path for node in tried]) if tried else ([], [], [])
    except ERRORS as exc:
        module.fail_json(msg=str(exc))
    module.exit_json(
        changed=False,
        devices=[
            {"path": node.path, "kind": node.kind, "mode": f"{node.mode:04o}", "known": node not in tried}
            for node in nodes
        ],
        attempts=[attempt.as_dict() for attempt in attempts + live],
        failures=[sentence(attempt) for attempt in attempts if attempt.verdict == "fail"],
        live=[sentence(attempt) for attempt in live if attempt.verdict == "fail"] + [held(it) for it in holders],
        unlisted=[] if params["listed"] is None else gpu_devices.problems(tried, params["listed"]),
    )


if __name__ == "__main__":
    main()
