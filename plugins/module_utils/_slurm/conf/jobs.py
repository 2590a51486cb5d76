# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What surrounds a job on its node: prolog and epilog, and a private /tmp. Private to the gpuops.tenancy collection."""

from __future__ import annotations

import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.conf import lines
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.conf.version import ConfigError, Version, show

FILE = "job_container.conf"
# What releases without a choice make private.
DIRECTORIES = ("/tmp", "/dev/shm")
_CHOICE: Version = (23, 2)
# From here on the plugin is called namespace/tmpfs, under another key; its file keeps name and keys. Known from Slurm's change
# log and manual; rendered here, not run.
_RENAMED: Version = (25, 11)
# slurmd ends a prolog that takes longer, and then the node is drained: our own limit has to come first.
_MARGIN = 60


def keys(spec: t.Mapping[str, t.Any], version: Version) -> dict[str, t.Any]:
    """Keys of slurm.conf."""
    directory = str(spec.get("hooks_dir") or "") if spec.get("hooks") else ""
    flags = ["Contain"]
    if version >= (24, 11):
        # A job that its owner marked as not to be repeated is not lost to a node that its prolog found broken.
        flags.append("ForceRequeueOnFail")
    private = bool(spec.get("private_tmp"))
    return {
        "PrologFlags": flags,
        "Prolog": f"{directory}/prolog" if directory else None,
        "Epilog": f"{directory}/epilog" if directory else None,
        "PrologEpilogTimeout": int(spec.get("hooks_timeout") or 0) + _MARGIN if directory else None,
        "JobContainerType": "job_container/tmpfs" if private and version < _RENAMED else None,
        "NamespaceType": "namespace/tmpfs" if private and version >= _RENAMED else None,
    }


def container(spec: t.Mapping[str, t.Any], version: Version) -> str:
    """job_container.conf, or nothing."""
    if not spec.get("private_tmp"):
        return ""
    base = str(spec.get("private_tmp_dir") or "").rstrip("/")
    directories = [str(name).rstrip("/") for name in spec.get("private_tmp_dirs") or DIRECTORIES]
    if not base.startswith("/"):
        raise ConfigError(f"slurm_config_private_tmp_dir must be an absolute path on a local disk, not {base!r}")
    for name in directories:
        if not name.startswith("/"):
            raise ConfigError(f"slurm_config_private_tmp_dirs: {name!r} is no absolute path")
        if f"{base}/".startswith(f"{name}/"):
            raise ConfigError(
                f"slurm_config_private_tmp_dir {base} lies in {name}, which is private to each job: slurmd would not start; "
                "choose a directory outside"
            )
    if version < _CHOICE and set(directories) != set(DIRECTORIES):
        raise ConfigError(
            f"Slurm {show(version)} makes {' and '.join(DIRECTORIES)} private and knows no other choice; "
            "leave slurm_config_private_tmp_dirs alone"
        )
    pairs: dict[str, t.Any] = {"AutoBasePath": True, "BasePath": base}
    if version >= _CHOICE:
        pairs["Dirs"] = directories
    for key, value in (spec.get("private_tmp_options") or {}).items():
        pairs[str(key)] = value
    text = {key: lines.value(FILE, key, value) for key, value in pairs.items()}
    return lines.HEADER + lines.text({key: value for key, value in text.items() if value is not None})
