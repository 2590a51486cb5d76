# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Values that are often published and wrong, each with the reason. Private to the gpuops.tenancy collection.

Every rule was seen to fail (or to do harm) on a real daemon. They hold for the ``*_options_extra`` variables too.
"""

from __future__ import annotations

import re
import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.conf.version import ConfigError

ENFORCE = ("associations", "limits", "qos", "safe")
PRIVATE = ("accounts", "events", "jobs", "reservations", "usage", "users")


def check(file: str, key: str, value: str) -> None:
    """Raise ConfigError where this value of this key must not be written."""
    rule = _RULES.get((file, key.lower()))
    reason = rule(value) if rule is not None else None
    if reason:
        raise ConfigError(f"{file}: {key}={value} is refused: {reason}")


def _words(value: str) -> set[str]:
    return {word.strip().lower() for word in value.split(",") if word.strip()}


def _enforce(value: str) -> str | None:
    words = _words(value)
    if "none" in words:
        return "'none' is no value of this key, slurmctld and every client stop on it; leave the variable alone"
    if "all" in words:
        return f"'all' also turns on wckeys, and jobs without one are refused; write {','.join(ENFORCE)}"
    missing = [word for word in ENFORCE if word not in words]
    if missing:
        return f"without {','.join(missing)} the limits of tenants are not enforced; write {','.join(ENFORCE)}"
    return None


def _task_plugin_param(value: str) -> str | None:
    words = _words(value)
    exclusive = sorted(words & {"none", "sockets", "cores", "threads"})
    if "ram" in words:
        return "there is no 'RAM', slurmctld does not start with it; memory is constrained in cgroup.conf"
    if len(exclusive) > 1:
        return f"{', '.join(exclusive)} exclude each other and slurmctld does not start; keep one, or none"
    return None


def _requeue_exit(value: str) -> str | None:
    for word in _words(value):
        match = re.match(r"^(\d+)(?:-(\d+))?$", word)
        if match and int(match.group(1)) == 0:
            return "a job that succeeds (exit code 0) would be requeued for ever; name error codes only"
    return None


def _preempt_exempt_time(value: str) -> str | None:
    if value.isdigit() and value != "0":
        return "a bare number means minutes here (seconds in GraceTime); write HH:MM:SS, 00:05:00 for five minutes"
    return None


def _private_data(value: str) -> str | None:
    words = _words(value)
    if "nodes" in words:
        return "with 'nodes' ordinary users may not run sinfo any more; leave it out"
    missing = [word for word in PRIVATE if word not in words]
    if missing:
        return f"without {','.join(missing)} tenants see each other; write {','.join(PRIVATE)}"
    return None


def _scheduler_parameters(value: str) -> str | None:
    if re.search(r"\bbf_continue\s*=", value):
        return "bf_continue takes no value ('=false' would switch it on as well); write bf_continue, or leave it out"
    return None


def _always_on(value: str) -> str | None:
    if value.strip().lower() not in ("yes", "true", "1"):
        return "without it a job uses what was not allocated to it; leave it at yes"
    return None


def _kmem(value: str) -> str | None:
    del value
    return "kernel memory limits were removed in Slurm 23.11 and the daemons die on the key; leave it out"


def _preempt_mode(value: str) -> str | None:
    if _words(value) == {"suspend"}:
        return "suspended jobs keep their GPUs, so nothing is freed; write REQUEUE or CANCEL"
    return None


_RULES: dict[tuple[str, str], t.Callable[[str], str | None]] = {
    ("slurm.conf", "accountingstorageenforce"): _enforce,
    ("slurm.conf", "taskpluginparam"): _task_plugin_param,
    ("slurm.conf", "requeueexit"): _requeue_exit,
    ("slurm.conf", "preemptexempttime"): _preempt_exempt_time,
    ("slurm.conf", "preemptmode"): _preempt_mode,
    ("slurm.conf", "privatedata"): _private_data,
    ("slurm.conf", "schedulerparameters"): _scheduler_parameters,
    ("slurmdbd.conf", "privatedata"): _private_data,
    ("cgroup.conf", "constraincores"): _always_on,
    ("cgroup.conf", "constraindevices"): _always_on,
    ("cgroup.conf", "constrainramspace"): _always_on,
    ("cgroup.conf", "allowedkmemspace"): _kmem,
    ("cgroup.conf", "constrainkmemspace"): _kmem,
    ("cgroup.conf", "maxkmempercent"): _kmem,
    ("cgroup.conf", "minkmemspace"): _kmem,
}
