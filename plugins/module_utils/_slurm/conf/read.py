# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads back what a configuration says about nodes. Private to the gpuops.tenancy collection."""

from __future__ import annotations

import re

from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import hostlist

_PAIR = re.compile(r"(?P<key>[A-Za-z][A-Za-z0-9_]*)\s*=\s*(?P<value>\"[^\"]*\"|\S+)")


def records(text: str, first: str) -> list[dict[str, str]]:
    """Lines that begin with ``first``= as mappings with lower-case keys; continued lines joined, comments dropped."""
    result: list[dict[str, str]] = []
    for raw in re.sub(r"\\\r?\n", " ", text).splitlines():
        line = raw.split("#", 1)[0].strip()
        pairs = {match.group("key").lower(): match.group("value").strip('"') for match in _PAIR.finditer(line)}
        if line.lower().startswith(first.lower()) and first.lower() in pairs:
            result.append(pairs)
    return result


def option(text: str, key: str) -> str | None:
    """The value of a key of its own line, the last one where it is given twice."""
    found = records(text, key)
    return found[-1][key.lower()] if found else None


def node_gres(slurm_conf: str) -> dict[str, str]:
    """Node name -> its Gres, with the parts in a fixed order; DEFAULT lines are applied to what follows."""
    result: dict[str, str] = {}
    default = ""
    for record in records(slurm_conf, "NodeName"):
        gres = ",".join(sorted(record.get("gres", default).lower().split(","))) if record.get("gres", default) else ""
        if record["nodename"].upper() == "DEFAULT":
            default = gres
            continue
        for name in hostlist.expand(record["nodename"]):
            result[name] = gres
    return result


def device_lines(gres_conf: str, node: str) -> list[dict[str, str]]:
    """The gres.conf lines that apply to a node, in a fixed order."""
    return sorted(_device_lines(gres_conf, node), key=lambda record: sorted(record.items()))


def _device_lines(gres_conf: str, node: str) -> list[dict[str, str]]:
    found: list[dict[str, str]] = []
    for record in records(gres_conf, "NodeName") + records(gres_conf, "Name"):
        if "name" not in record:
            continue
        if "nodename" in record and node not in hostlist.expand(record["nodename"]):
            continue
        found.append({key: value for key, value in record.items() if key != "nodename"})
    return found


def gpu_numbers(gres_conf: str, node: str) -> list[list[list[str]]]:
    """Number that slurmctld gives out -> device files of that GPU. Empty where the file does not say (AutoDetect).

    Slurm numbers devices in the order of the lines, or of the files where it knows their links: there may be two readings.
    """
    found: list[list[str]] = []
    for record in _device_lines(gres_conf, node):
        if record["name"].lower() != "gpu":
            continue
        if "multiplefiles" in record:
            found.append(hostlist.expand(record["multiplefiles"]))
        elif "file" in record:
            found += [[path] for path in hostlist.expand(record["file"])]
        else:
            return []
    ordered = sorted(found, key=lambda files: [hostlist.natural(path) for path in files])
    return [one for one in ([found] if found == ordered else [found, ordered]) if one]


def device_files(gres_conf: str, node: str) -> list[str]:
    """Every device file that slurmd on this node would wait for."""
    files: list[str] = []
    for record in device_lines(gres_conf, node):
        for key in ("file", "multiplefiles"):
            if key in record:
                files.extend(hostlist.expand(record[key]))
    return list(dict.fromkeys(files))
