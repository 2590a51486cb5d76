# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether slurmd can find GPUs by itself. Private to the gpuops.tenancy collection.

``AutoDetect=nvml`` needs a plugin that many packages of slurmd lack. slurmd then finds nothing, and registers the node
without the GPUs that slurm.conf promises: it is drained, and its jobs are requeued.
"""

from __future__ import annotations

import glob
import os
import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils import _command
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.conf import read

_PLACES = ("/usr/lib/*/slurm-wlm", "/usr/lib/*/slurm", "/usr/lib64/slurm", "/usr/lib/slurm")
_BESIDE = ("lib/slurm", "lib64/slurm", "lib/*/slurm")
_PACKAGES = {"nvml": " (Debian: slurm-wlm-nvml-plugin from 24.11 on; elsewhere a build with NVML)"}


def methods(gres_conf: str, node: str) -> list[str]:
    """How this node's devices are to be found, besides what is listed. Pure."""
    everywhere = (read.option(gres_conf, "AutoDetect") or "off").lower()
    found = [record.get("autodetect", everywhere).lower() for record in read.device_lines(gres_conf, node)]
    return sorted({method for method in found or [everywhere] if method not in ("", "off")})


def directories(slurm_conf: str, search_path: t.Sequence[str]) -> list[str]:
    """Where slurmd looks for plugins, as far as that can be known."""
    named = read.option(slurm_conf, "PluginDir")
    if named:
        return [path for path in named.split(":") if os.path.isdir(path)]
    patterns = list(_PLACES)
    program = _command.find("slurmd", search_path)
    if program is not None:
        prefix = os.path.dirname(os.path.dirname(os.path.realpath(program)))
        patterns = [os.path.join(prefix, place) for place in _BESIDE] + patterns
    found = (path for pattern in patterns for path in sorted(glob.glob(pattern)))
    return [path for path in dict.fromkeys(found) if glob.glob(os.path.join(path, "gres_gpu.so"))]


def missing(wanted: t.Iterable[str], places: t.Sequence[str]) -> str:
    """What is wrong, or nothing."""
    for method in wanted:
        if not any(os.path.exists(os.path.join(place, f"gpu_{method}.so")) for place in places):
            where = ", ".join(places) or "any of the usual directories"
            return (
                f"gres.conf says AutoDetect={method}, and slurmd here has no gpu_{method}.so in {where}: it would find no GPU. "
                f"Install the plugin{_PACKAGES.get(method, '')}, or list the devices (file) and leave autodetect out"
            )
    return ""
