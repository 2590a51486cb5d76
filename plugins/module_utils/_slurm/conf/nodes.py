# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compute nodes: from the inventory to NodeName and gres.conf lines. Private to the gpuops.tenancy collection.

Only the inventory says which nodes there are. Facts would make a definition disappear with an unreachable or
limited-out host, and Slurm would then requeue jobs whose processes still run there.
"""

from __future__ import annotations

import dataclasses
import re
import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import hostlist
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.conf import lines
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.conf.version import ConfigError

ADDRESS = "tenancy_address_cluster"
NODE = "slurm_compute_node"
HOSTNAME = "tenancy_hostname"
OWNER_OF_HOST = "slurm_compute_owner"
# The feature by which Slurm knows whose node it is.
OWNER = "owner-"
_NAME = re.compile(r"^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$")
_GRES_NAME = re.compile(r"^[a-z][a-z0-9_]*$")
_TYPE = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
_CAPS = re.compile(r"nvidia-cap([\d\[\],-]+)")
_FIELDS = {
    "name", "hostname", "cpus", "boards", "sockets", "cores_per_socket", "threads_per_core", "real_memory", "tmp_disk",
    "mem_spec_limit", "core_spec_count", "gres", "features", "weight", "switch", "options",
}  # fmt: skip
_GRES_FIELDS = {"name", "type", "count", "file", "multiple_files", "cores", "flags", "autodetect"}


@dataclasses.dataclass(frozen=True)
class Gres:
    name: str
    type: str
    count: int
    file: str = ""
    multiple_files: str = ""
    cores: str = ""
    flags: str = ""
    autodetect: str = ""

    def in_slurm_conf(self) -> str:
        return ":".join(part for part in (self.name, self.type, str(self.count)) if part)

    def tres(self) -> list[str]:
        names = [f"gres/{self.name}"]
        return [*names, f"{names[0]}:{self.type}"] if self.type else names


@dataclasses.dataclass(frozen=True)
class Node:
    name: str
    address: str
    cpus: int
    real_memory: int
    switch: str
    gres: tuple[Gres, ...]
    line: str
    # The tenant whose node it is; empty for everybody's.
    owner: str = ""

    def tres(self) -> list[str]:
        return [name for gres in self.gres for name in gres.tres()]


def collect(hosts: t.Sequence[str], variables: t.Mapping[str, t.Mapping[str, t.Any]]) -> list[dict[str, t.Any]]:
    """The inventory variables of every compute host, as plain data; all hosts without them in one error."""
    missing: list[str] = []
    found: list[dict[str, t.Any]] = []
    for host in hosts:
        own = variables[host]
        node, address = own.get(NODE), own.get(ADDRESS)
        lacking = [name for name, value in ((NODE, node), (ADDRESS, address)) if not value]
        if lacking:
            missing.append(f"{host} ({', '.join(lacking)})")
            continue
        if not isinstance(node, t.Mapping):
            raise ConfigError(f"host {host}: {NODE} must be a mapping (cpus, real_memory, gres ...)")
        owner = str(own.get(OWNER_OF_HOST) or "")
        found.append({**node, "name": node.get("name") or host, "address": str(address), "owner": owner, "host": host})
    if missing:
        raise ConfigError(
            f"no node definition in the inventory for {'; '.join(missing)}: set the variables for the host, "
            "or take it out of the group; playbook gpuops.tenancy.propose_nodes prints a proposal"
        )
    return found


def servers(hosts: t.Sequence[str], variables: t.Mapping[str, t.Mapping[str, t.Any]]) -> list[dict[str, str]]:
    """Name (as the host calls itself) and address of the hosts that run a central daemon."""
    found: list[dict[str, str]] = []
    for host in hosts:
        if not variables[host].get(ADDRESS):
            raise ConfigError(f"host {host} has no {ADDRESS}; set the address at which the cluster reaches it")
        name = variables[host].get(HOSTNAME) or host.split(".")[0]
        found.append({"name": str(name), "address": str(variables[host][ADDRESS])})
    return found


def build(definitions: t.Iterable[t.Mapping[str, t.Any]]) -> list[Node]:
    """Nodes in natural order; names are unique."""
    nodes = sorted((_node(item) for item in definitions), key=lambda node: hostlist.natural(node.name))
    for first, second in zip(nodes, nodes[1:]):
        if first.name == second.name:
            raise ConfigError(f"node {first.name} is defined by two hosts; names must be unique")
    return nodes


def _node(item: t.Mapping[str, t.Any]) -> Node:
    name = str(item.get("name", ""))
    where = f"node {name}"
    if not _NAME.match(name):
        raise ConfigError(f"{name!r} is no node name; use letters, digits, '-' and '.'")
    unknown = sorted(set(item) - _FIELDS - {"address", "owner", "host"})
    if unknown:
        raise ConfigError(
            f"{where}: {NODE} has no field {', '.join(unknown)}; what Slurm knows besides goes into options"
        )
    gres = tuple(_gres(where, entry) for entry in item.get("gres") or [])
    if len({(entry.name, entry.type) for entry in gres}) != len(gres):
        raise ConfigError(f"{where}: two gres entries of one name and type; add their counts up")
    cpus = _positive(where, "cpus", item.get("cpus") or _cpus(item))
    memory = _positive(where, "real_memory", item.get("real_memory"))
    owner = str(item.get("owner") or "")
    # Whose it is stands in Slurm too: what is on the node is known before the file says something new.
    features = [str(name) for name in item.get("features") or []]
    if any(name.startswith(OWNER) for name in features):
        raise ConfigError(
            f"{where}: features that begin with {OWNER} say whose node it is; set {OWNER_OF_HOST} instead"
        )
    features += [f"{OWNER}{owner}"] if owner else []
    line = lines.pairs(
        where,
        [
            ("NodeName", name),
            ("NodeAddr", item.get("address")),
            ("NodeHostname", item.get("hostname")),
            ("CPUs", cpus),
            ("Boards", item.get("boards")),
            ("Sockets", item.get("sockets")),
            ("CoresPerSocket", item.get("cores_per_socket")),
            ("ThreadsPerCore", item.get("threads_per_core")),
            ("RealMemory", memory),
            ("MemSpecLimit", item.get("mem_spec_limit")),
            ("CoreSpecCount", item.get("core_spec_count")),
            ("TmpDisk", item.get("tmp_disk")),
            ("Gres", [entry.in_slurm_conf() for entry in gres]),
            ("Feature", features),
            ("Weight", item.get("weight")),
            *sorted((item.get("options") or {}).items()),
        ],
    )
    return Node(name, str(item.get("address", "")), cpus, memory, str(item.get("switch") or ""), gres, line, owner)


def _cpus(item: t.Mapping[str, t.Any]) -> int | None:
    if not item.get("sockets") or not item.get("cores_per_socket"):
        return None
    return int(item["sockets"]) * int(item["cores_per_socket"]) * int(item.get("threads_per_core") or 1)


def _gres(where: str, item: t.Mapping[str, t.Any]) -> Gres:
    unknown = sorted(set(item) - _GRES_FIELDS)
    if unknown:
        raise ConfigError(f"{where}: a gres entry has no field {', '.join(unknown)}")
    name, kind = str(item.get("name", "")), str(item.get("type") or "")
    if not _GRES_NAME.match(name):
        raise ConfigError(f"{where}: gres name {name!r} must be lower case, like gpu")
    if kind and not _TYPE.match(kind):
        raise ConfigError(f"{where}: gres type {kind!r} must be one word, like h100")
    if name == "gpu" and not kind:
        raise ConfigError(f"{where}: a gpu needs a type (h100, a100 ...): limits and billing are kept by type")
    file, files = str(item.get("file") or ""), str(item.get("multiple_files") or "")
    for text in (file, files):
        _refuse_caps(where, text)
    count = _positive(where, f"count of gres {name}", item.get("count"))
    autodetect = str(item.get("autodetect") or "")
    if file:
        listed = len(_expand(where, file))
        if listed != count:
            raise ConfigError(
                f"{where}: gres {name}:{kind or '-'} counts {count} but {file} names {listed} device files; "
                "make them equal"
            )
    elif name == "gpu" and not files and autodetect in ("", "off"):
        raise ConfigError(f"{where}: gres {name}:{kind} names no device: give file, multiple_files or autodetect: nvml")
    return Gres(name, kind, count, file, files, str(item.get("cores") or ""), str(item.get("flags") or ""), autodetect)


def _refuse_caps(where: str, text: str) -> None:
    for match in _CAPS.finditer(text):
        numbers = _expand(where, f"c{match.group(1).rstrip(',-')}")
        if {"c1", "c2"} & set(numbers):
            raise ConfigError(
                f"{where}: {text} hands out nvidia-cap1 or nvidia-cap2, the right to create, destroy and "
                "watch everybody's MIG instances; name the capabilities of the instance itself, or use autodetect: nvml"
            )


def _expand(where: str, text: str) -> list[str]:
    try:
        return hostlist.expand(text)
    except hostlist.HostlistError as exc:
        raise ConfigError(f"{where}: {exc}") from exc


def _positive(where: str, what: str, raw: t.Any) -> int:
    try:
        number = int(str(raw))
    except ValueError:
        number = 0
    if number <= 0:
        raise ConfigError(f"{where}: {what} must be a number above 0, not {raw!r}")
    return number


def gres_conf(nodes: t.Sequence[Node], autodetect: str) -> str:
    """gres.conf for the whole cluster: the same text on every host, nodes with equal devices on one line."""
    grouped: dict[str, list[str]] = {}
    for node in nodes:
        for gres in node.gres:
            line = lines.pairs(
                f"node {node.name}",
                [
                    ("Name", gres.name),
                    ("Type", gres.type),
                    ("File", gres.file),
                    ("MultipleFiles", gres.multiple_files),
                    ("Count", None if gres.file or gres.multiple_files else gres.count),
                    ("Cores", gres.cores),
                    ("Flags", gres.flags),
                    ("AutoDetect", gres.autodetect),
                ],
            )
            grouped.setdefault(line, []).append(node.name)
    body = "".join(f"NodeName={hostlist.fold(names)} {line}\n" for line, names in grouped.items())
    return f"{lines.HEADER}AutoDetect={autodetect}\n{body}"


def tres(nodes: t.Iterable[Node], extra: t.Iterable[str] = ()) -> list[str]:
    """What AccountingStorageTRES needs, so that every GRES type in use can be limited and billed."""
    return sorted({name for node in nodes for name in node.tres()} | {str(name) for name in extra})


def gres_types(nodes: t.Iterable[Node]) -> list[str]:
    return sorted({gres.name for node in nodes for gres in node.gres})
