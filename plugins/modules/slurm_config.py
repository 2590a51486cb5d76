#!/usr/bin/python
# Copyright: (c) 2026, gpuops.tenancy contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: slurm_config
short_description: Put Slurm's configuration files in place, all of them or none
description:
  - Writes the files into a hidden directory beside their destination, has Slurm's own programs read them there, and
    renames them into place only when every one was accepted. A file that is refused never reaches its place, because a
    bad C(slurm.conf) breaks C(squeue) and C(srun) inside running jobs at the moment it appears.
  - C(slurm.conf) is read by C(scontrol), C(cgroup.conf) and C(gres.conf) by C(slurmd -G), C(slurmdbd.conf) by C(slurmdbd -V).
    None of these needs a running daemon or leaves anything behind. On the controller slurmctld itself is tried too.
  - The daemons are not touched. M(gpuops.tenancy.daemon) restarts them when they are older than their files.
author:
  - gpuops.tenancy contributors (@gpuops)
extends_documentation_fragment:
  - gpuops.tenancy.attributes
  - gpuops.tenancy.attributes.actiongroup_slurm
  - gpuops.tenancy.host.lock
  - gpuops.tenancy.host.programs
attributes:
  check_mode:
    support: full
    details:
      - Stages and checks the files as a real run does, then removes them. Where a program that has to read a file is not
        installed yet, it warns that the file was not validated.
  diff_mode:
    support: full
    details:
      - Values of keys with C(pass) in their name are hidden on both sides.
  idempotent:
    support: full
options:
  path:
    description:
      - Directory of the configuration.
    type: path
    default: /etc/slurm
  files:
    description:
      - The files that are deployed as one.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description:
          - Name below O(path), or an absolute path for a file elsewhere that belongs to the same change.
        type: str
        required: true
      content:
        description:
          - The text. A mark C(<<secret:NAME>>) is replaced by the value of NAME in O(secrets).
        type: str
        required: true
      owner:
        description:
          - User that owns the file.
        type: str
        default: root
      group:
        description:
          - Group of the file.
        type: str
        default: root
      mode:
        description:
          - Mode in octal digits.
        type: str
        default: "0644"
  directories:
    description:
      - Directories to create, or to correct, together with the files.
    type: list
    elements: dict
    default: []
    suboptions:
      path:
        description:
          - Absolute path.
        type: path
        required: true
      owner:
        description:
          - User that owns the directory.
        type: str
        default: root
      group:
        description:
          - Group of the directory.
        type: str
        default: root
      mode:
        description:
          - Mode in octal digits.
        type: str
        default: "0755"
  secrets:
    description:
      - Values for the marks in the files. They appear in no result, log or diff.
    type: dict
    default: {}
  node:
    description:
      - The NodeName of this host. With it the devices that C(gres.conf) names for the node must exist, and C(slurmd) must
        accept them.
    type: str
    default: ""
  controller:
    description:
      - Whether slurmctld runs on this host. With it slurmctld is started once with the staged files, cut off from the network
        and from its state, and killed when it is up; it finds much that nothing else does.
    type: bool
    default: false
  guard:
    description:
      - Refuse to remove a node, or to change its GRES, while it has jobs. When this cannot be read, the change is
        refused too, unless this host is the controller and slurmctld has never run.
    type: bool
    default: false
seealso:
  - module: gpuops.tenancy.daemon
"""

EXAMPLES = r"""
- name: Deploy Slurm's configuration
  gpuops.tenancy.slurm_config:
    files:
      - name: slurm.conf
        content: "{{ slurm_conf }}"
      - name: cgroup.conf
        content: "{{ cgroup_conf }}"
      - name: gres.conf
        content: "{{ gres_conf }}"
    node: "{{ inventory_hostname }}"
    guard: true

- name: Deploy the configuration of the accounting daemon
  gpuops.tenancy.slurm_config:
    files:
      - name: slurmdbd.conf
        content: |
          DbdHost=ctl
          StorageType=accounting_storage/mysql
          StoragePass=<<secret:storage_pass>>
        owner: slurm
        group: slurm
        mode: "0600"
    secrets:
      storage_pass: "{{ vault_database_password }}"
"""

RETURN = r"""
changed:
  description: Whether a file or directory was changed, or would be.
  returned: always
  type: bool
commands:
  description: The programs that read the staged files.
  returned: always
  type: list
  elements: str
  sample: ["/usr/bin/scontrol show hostnames x"]
diff:
  description: Every file that changes, before and after, secrets hidden.
  returned: always
  type: dict
plan:
  description: The changes.
  returned: always
  type: list
  elements: dict
unchecked:
  description: Files that no program on this host could read.
  returned: always
  type: list
  elements: str
applied:
  description: Paths that were put in place before the failure.
  returned: failure
  type: list
  elements: str
remaining:
  description: Paths that were not.
  returned: failure
  type: list
  elements: str
"""

import os
import shlex
import typing as t

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpuops.tenancy.plugins.module_utils._command import SEARCH_PATH, CommandError
from ansible_collections.gpuops.tenancy.plugins.module_utils._lock import Lock, LockError
from ansible_collections.gpuops.tenancy.plugins.module_utils._plan import Plan
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import check, deploy, guard

ERRORS = (deploy.DeployError, check.CheckFailed, guard.Refused, CommandError, LockError, OSError, KeyError)
# A client breaks on what it reads first, so this one comes last.
LAST = "slurm.conf"


def argument_spec() -> dict[str, t.Any]:
    owned = {
        "owner": {"type": "str", "default": "root"},
        "group": {"type": "str", "default": "root"},
    }
    return {
        "path": {"type": "path", "default": "/etc/slurm"},
        "files": {
            "type": "list",
            "elements": "dict",
            "required": True,
            "options": {
                "name": {"type": "str", "required": True},
                "content": {"type": "str", "required": True},
                **owned,
                "mode": {"type": "str", "default": "0644"},
            },
        },
        "directories": {
            "type": "list",
            "elements": "dict",
            "default": [],
            "options": {
                "path": {"type": "path", "required": True},
                **owned,
                "mode": {"type": "str", "default": "0755"},
            },
        },
        "secrets": {"type": "dict", "default": {}, "no_log": True},
        "node": {"type": "str", "default": ""},
        "controller": {"type": "bool", "default": False},
        "guard": {"type": "bool", "default": False},
        "search_path": {"type": "list", "elements": "path", "default": SEARCH_PATH},
        "lock_timeout": {"type": "int", "default": 300},
    }


def wanted(params: t.Mapping[str, t.Any]) -> list[deploy.Item]:
    """Directories, then files, C(slurm.conf) last."""
    items = [
        deploy.Item(item["path"].rstrip("/"), item["owner"], item["group"], _mode(item))
        for item in params["directories"]
    ]
    files = [
        deploy.Item(
            os.path.normpath(os.path.join(params["path"], item["name"])),
            item["owner"],
            item["group"],
            _mode(item),
            item["content"] if item["content"].endswith("\n") else f"{item['content']}\n",
        )
        for item in params["files"]
    ]
    items += sorted(files, key=lambda item: os.path.basename(item.path) == LAST)
    for path in {item.path for item in items if [other.path for other in items].count(item.path) > 1}:
        raise deploy.DeployError(f"{path} is named twice")
    return items


def _mode(item: t.Mapping[str, t.Any]) -> int:
    try:
        return int(item["mode"], 8)
    except ValueError as exc:
        raise deploy.DeployError(f"mode {item['mode']!r} is not octal; write it like 0644") from exc


def texts(path: str, contents: t.Mapping[str, str | None]) -> dict[str, str]:
    """File name -> text for what lies directly in the configuration directory."""
    return {
        os.path.basename(name): text
        for name, text in contents.items()
        if text is not None and os.path.dirname(name) == path
    }


def run(module: AnsibleModule, result: dict[str, t.Any]) -> None:
    params = module.params
    path = params["path"].rstrip("/")
    items = wanted({**params, "path": path})
    secrets = {name: str(value) for name, value in params["secrets"].items()}
    states = {item.path: deploy.read(item.path, item.content is None) for item in items}
    plan = Plan(deploy.plan(items, states, secrets))
    changed = list(dict.fromkeys(change.object for change in plan))
    result.update(
        changed=plan.changed,
        plan=plan.as_list(),
        diff=deploy.difference(items, states, plan, secrets),
        remaining=changed,
    )
    new = texts(path, {item.path: item.content for item in items})
    if params["guard"]:
        old = texts(path, {name: state.content for name, state in states.items()})
        found = guard.enforce(guard.expanded(path, old), guard.expanded(path, new), params["search_path"])
        _log(result, found)
    if not module.check_mode:
        # What a killed run left, secrets included, goes even when there is nothing to do.
        deploy.sweep(path, items)
    if not plan.changed:
        return
    with deploy.Stage(path) as stage:
        stage.write(items, secrets)
        coming = {item.path for item in items if item.content is None}
        report = check.validate(
            stage.directory, new, params["node"], params["search_path"], params["controller"], coming
        )
        _log(result, report.commands)
        result["unchecked"] = report.unchecked
        for doubt in report.doubts:
            module.warn(doubt)
        absent = deploy.missing_names(items)
        if module.check_mode:
            if report.missing:
                module.warn(
                    f"not validated, {', '.join(report.missing)} is not installed here: {', '.join(report.unchecked)}"
                )
            if absent:
                module.warn(f"this host has no {', '.join(absent)} yet")
            return
        if report.missing:
            raise deploy.DeployError(
                f"{', '.join(report.missing)} is not in {':'.join(params['search_path'])}, so {', '.join(report.unchecked)} "
                "cannot be checked: install Slurm (slurm_install: true), or correct the path"
            )
        if absent:
            raise deploy.DeployError(f"this host has no {', '.join(absent)}; create it first")
        result["applied"] = stage.install(items, changed, secrets)
        result["remaining"] = []


def _log(result: dict[str, t.Any], commands: t.Iterable[t.Sequence[str]]) -> None:
    result["commands"] += [" ".join(shlex.quote(word) for word in argv) for argv in commands]


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    result: dict[str, t.Any] = {
        "changed": False, "commands": [], "diff": {}, "plan": [], "unchecked": [], "applied": [], "remaining": [],
    }  # fmt: skip
    try:
        if module.check_mode:
            run(module, result)
        else:
            with Lock("slurm-config", purpose="slurm_config", timeout=module.params["lock_timeout"]):
                run(module, result)
    except ERRORS as exc:
        result["changed"] = bool(result["applied"])
        module.fail_json(msg=str(exc), **result)
    del result["applied"], result["remaining"]
    module.exit_json(**result)


if __name__ == "__main__":
    main()
