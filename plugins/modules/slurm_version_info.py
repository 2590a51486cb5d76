#!/usr/bin/python
# Copyright: (c) 2026, gpuops.tenancy contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: slurm_version_info
short_description: Which release of Slurm a host has, or would get
description:
  - Asks the installed programs. Where there are none yet, asks the package manager which version it would install, so that
    check mode on a fresh host can show the configuration that a real run will write.
author:
  - gpuops.tenancy contributors (@gpuops)
extends_documentation_fragment:
  - gpuops.tenancy.attributes
  - gpuops.tenancy.attributes.actiongroup_slurm
  - gpuops.tenancy.host.programs
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
  idempotent:
    support: full
options:
  packages:
    description:
      - Packages that carry Slurm's version, tried in this order.
    type: list
    elements: str
    default: [slurm-client, slurm]
"""

EXAMPLES = r"""
- name: Find out the release of Slurm
  gpuops.tenancy.slurm_version_info:
  register: slurm
"""

RETURN = r"""
installed:
  description: Whether one of Slurm's programs is there.
  returned: always
  type: bool
version:
  description: The release, empty where it is neither installed nor to be had.
  returned: always
  type: str
  sample: "24.11"
"""

import contextlib
import re
import tempfile
import typing as t

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpuops.tenancy.plugins.module_utils import _command
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.conf import version

# slurmctld and slurmd only print their version. The others read their configuration first, and fail, or wait for a
# minute, when it is bad: scontrol gets one of ours, or a bad slurm.conf on a login node could not be replaced.
PROGRAMS = ("slurmctld", "slurmd", "scontrol", "slurmdbd")
FLAG = "-V"
CONFIGURATION = "ClusterName=none\nSlurmctldHost=localhost\n"


def argument_spec() -> dict[str, t.Any]:
    return {
        "packages": {"type": "list", "elements": "str", "default": ["slurm-client", "slurm"]},
        "search_path": {"type": "list", "elements": "path", "default": _command.SEARCH_PATH},
    }


def release(text: str) -> str:
    """The release in what a program or a package manager says; empty where there is none. Pure."""
    match = re.search(r"(?<![\d.])\d{2}\.\d{2}\.\d+", text)
    return version.show(version.parse(match.group(0))) if match else ""


def candidate(text: str) -> str:
    """What ``apt-cache policy`` would install. Pure."""
    match = re.search(r"^\s*Candidate:\s*(\S+)", text, re.MULTILINE)
    return release(match.group(1)) if match else ""


def installed(search_path: t.Sequence[str]) -> str:
    with tempfile.NamedTemporaryFile("w", suffix=".conf") as conf:
        conf.write(CONFIGURATION)
        conf.flush()
        for name in PROGRAMS:
            program = _command.find(name, search_path)
            if program is None:
                continue
            env = {"SLURM_CONF": conf.name} if name == "scontrol" else None
            with contextlib.suppress(_command.CommandTimeout):
                found = release(_command.run([program, FLAG], timeout=20, env=env).stdout)
                if found:
                    return found
    return ""


def offered(packages: t.Sequence[str]) -> str:
    for package in packages:
        for argv, parse in (
            (["apt-cache", "policy", package], candidate),
            (["dnf", "--quiet", "repoquery", "--latest-limit=1", "--queryformat=%{version}\n", package], release),
        ):
            try:
                found = parse(_command.run(argv, timeout=120).stdout)
            except _command.CommandMissing:
                continue
            if found:
                return found
    return ""


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    try:
        here = installed(module.params["search_path"])
        module.exit_json(changed=False, installed=bool(here), version=here or offered(module.params["packages"]))
    except (_command.CommandError, version.ConfigError) as exc:
        module.fail_json(msg=str(exc))


if __name__ == "__main__":
    main()
