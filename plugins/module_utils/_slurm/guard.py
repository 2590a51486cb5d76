# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keeps nodes with jobs from losing their definition or their GPUs. Private to the gpuops.tenancy collection.

A node that disappears from slurm.conf has its jobs requeued while their processes run on; GPUs that change under a
running job are renumbered, and a new job is given a device that the old one holds; a job that began without a /tmp of its
own gets no further step once the plugin for it is in force.
"""

from __future__ import annotations

import os
import socket
import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils import _command
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import hostlist, owners
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.conf import include, read

SHOW_NODE = ("scontrol", "show", "node")
SQUEUE = ("squeue", "--noheader", "--all", "--format=%A|%T|%N")
TIMEOUT = 60.0
DEFINING = ("slurm.conf", "gres.conf")
# Nodes that a refusal names.
SHOWN = 5


class Refused(Exception):
    """The change would hit running jobs, or it cannot be known whether it would."""


def expanded(path: str, texts: t.Mapping[str, str]) -> dict[str, str]:
    """The files that define nodes and devices, with what they include.

    :param path: the directory of the configuration.
    :param texts: name -> text of what lies directly in it; what is not here is read from the disk.
    """

    def reader(file: str) -> str:
        name = os.path.relpath(file, path)
        return texts[name] if name in texts else include.from_disk(file)

    try:
        return {name: include.expand(os.path.join(path, name), reader) for name in DEFINING if name in texts}
    except include.IncludeError as exc:
        raise Refused(f"it cannot be known which nodes and devices are defined: {exc}") from exc


def threatened(old: t.Mapping[str, str], new: t.Mapping[str, str]) -> dict[str, str]:
    """Node name -> what would happen to it. ``old`` and ``new`` map file names to expanded text. Pure."""
    before, after = read.node_gres(old.get("slurm.conf", "")), read.node_gres(new.get("slurm.conf", ""))
    result: dict[str, str] = {}
    for node, gres in before.items():
        if node not in after:
            result[node] = "would be removed"
        elif gres != after[node]:
            result[node] = f"would change its GRES from {gres or 'none'} to {after[node] or 'none'}"
        elif (
            "gres.conf" in old
            and "gres.conf" in new
            and read.device_lines(old["gres.conf"], node) != read.device_lines(new["gres.conf"], node)
        ):
            result[node] = "would change its devices in gres.conf"
    container, other = (_container(text.get("slurm.conf", "")) for text in (old, new))
    if container != other:
        for node in before:
            result.setdefault(
                node,
                f"would change what makes /tmp private from {container} to {other} (slurm_config_private_tmp), "
                "after which no job that runs starts another step,",
            )
    return result


def _container(slurm_conf: str) -> str:
    """The plugin; a key of its own from 25.11 on. Another name is another plugin: nobody has tried one on the other's jobs."""
    names = (read.option(slurm_conf, key) for key in ("JobContainerType", "NamespaceType"))
    return next(filter(None, names), "none")


def jobs(squeue: str) -> dict[str, list[str]]:
    """Node name -> ids of the jobs that hold it. Pure."""
    result: dict[str, list[str]] = {}
    for line in squeue.splitlines():
        fields = line.strip().split("|")
        if len(fields) != 3 or fields[1] == "PENDING" or fields[2] in ("", "(null)"):
            continue
        for node in hostlist.expand(fields[2]):
            result.setdefault(node, []).append(fields[0])
    return {node: list(dict.fromkeys(ids)) for node, ids in result.items()}


def refusal(danger: t.Mapping[str, str], busy: t.Mapping[str, t.Sequence[str]]) -> str:
    """The message, or nothing where no job is hit. Pure."""
    hit = [f"{node} {danger[node]} while jobs {', '.join(busy[node])} are on it" for node in danger if busy.get(node)]
    if not hit:
        return ""
    if len(hit) > SHOWN:
        hit = [*hit[:SHOWN], f"and {len(hit) - SHOWN} more nodes"]
    return (
        f"{'; '.join(hit)}: drain the nodes (scontrol update NodeName=... State=DRAIN Reason=...), wait, and run again"
    )


def enforce(old: t.Mapping[str, str], new: t.Mapping[str, str], search_path: t.Sequence[str]) -> list[list[str]]:
    """Raise Refused where jobs are in the way, or an owner's data; returns the commands that were run."""
    danger = threatened(old, new)
    handed = owners.handed_over(old.get("slurm.conf", ""), new.get("slurm.conf", ""))
    if not (danger or handed) or _never_started(old["slurm.conf"]):
        return []
    names = hostlist.fold([*danger, *handed])
    squeue, busy = _ask(SQUEUE, names, search_path)
    message = refusal(danger, jobs(busy))
    if message:
        raise Refused(message)
    if not handed:
        return [squeue]
    show, shown = _ask(SHOW_NODE, names, search_path)
    message = owners.refusal(handed, shown, jobs(busy))
    if message:
        raise Refused(message)
    return [squeue, show]


def _ask(command: t.Sequence[str], names: str, search_path: t.Sequence[str]) -> tuple[list[str], str]:
    program = _command.find(command[0], search_path)
    if program is None:
        raise Refused(
            f"nodes {names} would change, and without {command[0]} it cannot be known whether they have jobs; install it"
        )
    argv = [program, *command[1:]]
    try:
        done = _command.run(argv, timeout=TIMEOUT, ok=(0,))
    except _command.CommandError as exc:
        raise Refused(
            f"nodes {names} would be removed, change their GRES or change hands, and it cannot be known whether they have jobs "
            f"({exc}); bring slurmctld up and run again"
        ) from exc
    return argv, done.stdout


def _never_started(slurm_conf: str) -> bool:
    """True only on a controller whose directory of state can be read and was never written to by slurmctld."""
    directory = read.option(slurm_conf, "StateSaveLocation")
    controllers = [record["slurmctldhost"].split("(")[0] for record in read.records(slurm_conf, "SlurmctldHost")]
    # Elsewhere the directory may exist and be empty while the controller runs.
    if not directory or socket.gethostname().split(".")[0] not in controllers:
        return False
    try:
        # Its first act is to write down the name of the cluster.
        return "clustername" not in os.listdir(directory)
    except OSError:
        return False
