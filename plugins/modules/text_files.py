#!/usr/bin/python
# Copyright: (c) 2026, gpuops.tenancy contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: text_files
short_description: Small files of text that root writes and everybody reads, several at once
description:
  - Writes files that differ, owned by root with mode 0644, and reads them back. Directories that lack are made.
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
  files:
    description:
      - The files. Others are left alone.
    type: list
    elements: dict
    required: true
    suboptions:
      path:
        description:
          - Where the file is.
        type: path
        required: true
      content:
        description:
          - Its text, which ends with a line feed in any case.
        type: str
        required: true
"""

EXAMPLES = r"""
- name: Have nobody but root use cron and at
  gpuops.tenancy.text_files:
    files:
      - {path: /etc/cron.allow, content: "root\n"}
      - {path: /etc/at.allow, content: "root\n"}
"""

RETURN = r"""
changed:
  description: Whether a file was written, or would be.
  returned: always
  type: bool
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
  description: Always empty; no command is run.
  returned: always
  type: list
  elements: str
applied:
  description: Paths that had been written before the failure.
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
import typing as t

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpuops.tenancy.plugins.module_utils import _files
from ansible_collections.gpuops.tenancy.plugins.module_utils._host import drop_ins
from ansible_collections.gpuops.tenancy.plugins.module_utils._lock import Lock, LockError
from ansible_collections.gpuops.tenancy.plugins.module_utils._plan import CHANGE, Change, Plan

OWNER = (0, 0, 0o644)


class NotWritten(Exception):
    """A file does not hold what was written."""


def argument_spec() -> dict[str, t.Any]:
    return {
        "files": {
            "type": "list",
            "elements": "dict",
            "required": True,
            "options": {
                "path": {"type": "path", "required": True},
                "content": {"type": "str", "required": True},
            },
        },
        "lock_timeout": {"type": "int", "default": 300},
    }


def owner(path: str) -> tuple[int, int, int] | None:
    """Owner, group and mode; None where there is no such file."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    return status.st_uid, status.st_gid, status.st_mode & 0o7777


def shown(found: tuple[int, int, int]) -> str:
    return f"{found[0]}:{found[1]} {found[2]:04o}"


def make_plan(
    texts: t.Mapping[str, str],
    current: t.Mapping[str, str | None],
    owners: t.Mapping[str, tuple[int, int, int] | None],
    wanted: tuple[int, int, int] = OWNER,
) -> tuple[Plan, Plan]:
    """What differs in content, and what differs in owner and mode only. Pure."""
    contents, modes = drop_ins.plan(current, texts), Plan()
    for path, found in owners.items():
        if found is not None and found != wanted and path not in {change.object for change in contents}:
            modes.add(Change(CHANGE, path, "mode", shown(found), shown(wanted)))
    return contents, modes


def read_and_plan(texts: t.Mapping[str, str]) -> tuple[Plan, Plan]:
    return make_plan(texts, {path: drop_ins.read(path) for path in texts}, {path: owner(path) for path in texts})


def run(module: AnsibleModule, result: dict[str, t.Any]) -> None:
    texts = {item["path"]: item["content"].rstrip("\n") + "\n" for item in module.params["files"]}
    contents, modes = read_and_plan(texts)
    plan = Plan([*contents, *modes])
    difference, other = drop_ins.difference(contents), modes.diff("files", "files")
    result.update(
        changed=plan.changed,
        plan=plan.as_list(),
        diff={key: difference[key] + other[key] for key in ("before", "after")},
        remaining=[change.object for change in plan],
    )
    if module.check_mode or not plan.changed:
        return
    for path in list(result["remaining"]):
        os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
        _files.write(path, texts[path], 0o644)
        result["applied"].append(path)
        result["remaining"].remove(path)
    left = [change.object for part in read_and_plan(texts) for change in part]
    if left:
        raise NotWritten(f"{', '.join(left)} does not hold what was written")


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    result: dict[str, t.Any] = {
        "changed": False, "plan": [], "diff": {}, "commands": [], "applied": [], "remaining": [],
    }  # fmt: skip
    try:
        if module.check_mode:
            run(module, result)
        else:
            with Lock("text-files", "text_files", module.params["lock_timeout"]):
                run(module, result)
    except (NotWritten, LockError, OSError) as exc:
        result["changed"] = bool(result["applied"])
        module.fail_json(msg=str(exc), **result)
    del result["applied"], result["remaining"]
    module.exit_json(**result)


if __name__ == "__main__":
    main()
