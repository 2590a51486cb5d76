#!/usr/bin/python
# Copyright: (c) 2026, gpuops.tenancy contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: slurm_gres_info
short_description: The device files that Slurm hands out on a node
description:
  - Reads the C(gres.conf) that slurmd on this node goes by, included files too. A node that fetches its configuration from
    the controller keeps it in a directory of its own (O(caches)). Where it says C(AutoDetect), slurmd is asked what it finds, with a
    copy of the configuration that keeps it from writing anything.
author:
  - gpuops.tenancy contributors (@gpuops)
extends_documentation_fragment:
  - gpuops.tenancy.attributes
  - gpuops.tenancy.attributes.info_module
  - gpuops.tenancy.attributes.actiongroup_slurm
  - gpuops.tenancy.host.programs
options:
  path:
    description:
      - Directory of the configuration.
    type: path
    default: /etc/slurm
  caches:
    description:
      - Where slurmd keeps what it has fetched from the controller. Looked at, in this order, when there is no C(slurm.conf)
        in O(path).
    type: list
    elements: path
    default: [/run/slurm/conf, /var/spool/slurmd/conf-cache]
  node:
    description:
      - NodeName of this host.
    type: str
    required: true
"""

EXAMPLES = r"""
- name: Find out which device files Slurm keeps apart
  gpuops.tenancy.slurm_gres_info:
    node: gpu1
  register: gres
"""

RETURN = r"""
files:
  description: The device files, each once.
  returned: success
  type: list
  elements: str
  sample: [/dev/nvidia0, /dev/nvidia1]
known:
  description: Whether there is a C(gres.conf). Without one nothing is known, which is not the same as no devices.
  returned: success
  type: bool
path:
  description: The C(gres.conf) that was looked for, or read.
  returned: success
  type: str
  sample: /etc/slurm/gres.conf
"""

import os
import re
import tempfile
import typing as t

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpuops.tenancy.plugins.module_utils import _command
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import check, hostlist
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.conf import include, read

ERRORS = (check.CheckFailed, include.IncludeError, hostlist.HostlistError, _command.CommandError, OSError)


def argument_spec() -> dict[str, t.Any]:
    return {
        "path": {"type": "path", "default": "/etc/slurm"},
        "caches": {"type": "list", "elements": "path", "default": ["/run/slurm/conf", "/var/spool/slurmd/conf-cache"]},
        "node": {"type": "str", "required": True},
        "search_path": {"type": "list", "elements": "path", "default": _command.SEARCH_PATH},
    }


def detects(text: str) -> bool:
    """Whether slurmd looks for devices by itself. Pure."""
    found = re.findall(r"^[^#\n]*\bAutoDetect\s*=\s*(\S+)", text, re.IGNORECASE | re.MULTILINE)
    return any(value.lower() != "off" for value in found)


def detected(said: str) -> list[str]:
    """The files in what ``slurmd -G`` prints. Pure."""
    words = re.findall(r"\bFile=(\S+)", said)
    return sorted({path for word in words for path in hostlist.expand(word)})


def directory(path: str, caches: t.Sequence[str]) -> str:
    """The one that slurmd goes by: the site's own, or that of a slurmd which fetches its configuration."""
    return next((it for it in (path, *caches) if os.path.exists(os.path.join(it, "slurm.conf"))), path)


def ask_slurmd(path: str, node: str, search_path: t.Sequence[str]) -> list[str]:
    with tempfile.TemporaryDirectory() as trial:
        for name in os.listdir(path):
            if name != "slurm.conf":
                os.symlink(os.path.join(path, name), os.path.join(trial, name))
        own = os.path.join(trial, "slurm.conf")
        with open(own, "w", encoding="utf-8", errors="surrogateescape") as handle:
            handle.write(check.for_trial(include.expand(os.path.join(path, "slurm.conf")), trial, node))
        argv = [_command.located("slurmd", search_path), "-f", own, "-G", "-N", node]
        done = _command.run(argv, timeout=120, env={"SLURM_CONF": own}, ok=(0,))
        return detected(f"{done.stderr}\n{done.stdout}")


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    params = module.params
    files: set[str] = set()
    folder = directory(params["path"], params["caches"])
    path = os.path.join(folder, "gres.conf")
    known = os.path.exists(path)
    try:
        if known:
            text = include.expand(path)
            files = set(read.device_files(text, params["node"]))
            if detects(text):
                files |= set(ask_slurmd(folder, params["node"], params["search_path"]))
    except ERRORS as exc:
        module.fail_json(msg=str(exc))
    module.exit_json(changed=False, known=known, path=path, files=sorted(files, key=hostlist.natural))


if __name__ == "__main__":
    main()
