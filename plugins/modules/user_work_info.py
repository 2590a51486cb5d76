#!/usr/bin/python
# Copyright: (c) 2026, gpuops.tenancy contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: user_work_info
short_description: What users run on a host, or will run, outside of the scheduler's jobs
description:
  - Names users with a crontab, with jobs of at, with a service manager of their own that runs, or with one that comes back at
    boot (linger). Changes nothing.
author:
  - gpuops.tenancy contributors (@gpuops)
extends_documentation_fragment:
  - gpuops.tenancy.attributes
  - gpuops.tenancy.attributes.info_module
options:
  allowed:
    description:
      - Accounts that may. root always may.
    type: list
    elements: str
    default: []
  managers:
    description:
      - Whether everybody may have a service manager; then none is named.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Look for what users have outside of jobs
  gpuops.tenancy.user_work_info:
    allowed: [root]
  register: outside
"""

RETURN = r"""
found:
  description: What there is, one sentence for each user and kind.
  returned: success
  type: list
  elements: str
users:
  description: The users it belongs to.
  returned: success
  type: list
  elements: str
"""

import contextlib
import os
import pwd
import re
import stat
import typing as t

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpuops.tenancy.plugins.module_utils import _command

# Of Debian's cron, of others; of Debian's at, of others.
CRONTABS = ("/var/spool/cron/crontabs", "/var/spool/cron", "/var/spool/cron/tabs")
AT = ("/var/spool/cron/atjobs", "/var/spool/at", "/var/spool/atjobs")
LINGER = ("/var/lib/systemd/linger",)
MANAGERS = [
    "systemctl",
    "list-units",
    "user@*.service",
    "--plain",
    "--no-legend",
    "--full",
    "--state=active,activating",
]


def argument_spec() -> dict[str, t.Any]:
    return {
        "allowed": {"type": "list", "elements": "str", "default": []},
        "managers": {"type": "bool", "default": False},
    }


def files(folders: t.Iterable[str]) -> dict[str, int]:
    """Name -> owner's number of the files that lie directly in these folders."""
    found = {}
    for folder in folders:
        try:
            entries = list(os.scandir(folder))
        except FileNotFoundError:
            continue
        for entry in entries:
            # One that has just gone is none.
            with contextlib.suppress(FileNotFoundError):
                status = entry.stat(follow_symlinks=False)
                # crontab's copy while somebody edits, and at's counter.
                if stat.S_ISREG(status.st_mode) and not entry.name.startswith(("tmp.", ".")):
                    found[entry.name] = status.st_uid
    return found


def name_of(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def managers(listed: str) -> list[int]:
    """The users in what systemctl lists. Pure."""
    return [int(number) for number in re.findall(r"^\s*user@(\d+)\.service\s", listed, re.MULTILINE)]


def sentences(found: t.Mapping[str, t.Iterable[str]], allowed: t.Container[str]) -> tuple[list[str], list[str]]:
    """Sentences, and the users they name. Pure."""
    told, users = [], set()
    for what, names in found.items():
        others = sorted({name for name in names if name != "root" and name not in allowed})
        users.update(others)
        told += [f"{name} has {what}" for name in others]
    return told, sorted(users)


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    try:
        found = {
            "a crontab": list(files(CRONTABS)),
            "a job of at": [name_of(uid) for uid in files(AT).values()],
        }
        if not module.params["managers"]:
            listed = _command.run(MANAGERS, ok=(0,)).stdout
            found["a service manager that runs"] = [name_of(uid) for uid in managers(listed)]
            found["a service manager that comes back at boot (linger)"] = list(files(LINGER))
    except (_command.CommandError, OSError) as exc:
        module.fail_json(msg=str(exc))
    told, users = sentences(found, module.params["allowed"])
    module.exit_json(changed=False, found=told, users=users)


if __name__ == "__main__":
    main()
