# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""cluster.yml, made concrete for one testbed: its names, addresses and ports."""

from __future__ import annotations

import ipaddress
import os
import pathlib

import yaml
from engine import BUILD, REPO, ClusterError

HERE = pathlib.Path(__file__).resolve().parent


def testbed() -> str:
    """The testbed that this process works on."""
    return os.environ.get("TENANCY_TESTBED") or "demo"


def state(name: str | None = None) -> pathlib.Path:
    """Folder of a cluster's keys and ssh configuration; gone with the cluster."""
    return BUILD / "cluster" / (name or testbed())


def inventory_folder(name: str | None = None) -> pathlib.Path:
    """The Ansible inventory of a testbed: the demo's is the one in the source, the others' link to its variables."""
    name = name or testbed()
    return REPO / "inventories" / "demo" / "inventory" if name == "demo" else BUILD / "inventories" / name / "inventory"


def definition(name: str | None = None) -> dict:
    """cluster.yml as a dict, with `testbed`, and `ipv4`, `ipv6` in each network and `ssh_port` in each reachable host."""
    spec = yaml.safe_load((HERE / "cluster.yml").read_text())
    name = name or testbed()
    if name not in spec["testbeds"]:
        raise ClusterError(f"no testbed {name!r} in cluster.yml; there are: {', '.join(spec['testbeds'])}")
    optional = spec.pop("optional")
    for host in filter(None, os.environ.get("TENANCY_HOSTS", "").split(",")):
        if host not in optional:
            raise ClusterError(
                f"TENANCY_HOSTS: no optional host {host!r} in cluster.yml; there are: {', '.join(optional)}"
            )
        spec["hosts"][host] = optional[host]
    slot = spec["testbeds"][name]
    for network in spec["networks"].values():
        network["ipv4"] = f"172.29.{16 * slot + network['number']}.0/24"
        network["ipv6"] = f"fd29:{slot:x}:{network['number']}::/64"
    for host in spec["hosts"].values():
        host["ssh_port"] = 22900 + 100 * slot + host["number"]
        host["published"] = "management" in host["networks"]
    return {**spec, "testbed": name, "name": f"tenancy-{name}"}


def address(spec: dict, host: str, network: str, version: int = 4) -> str:
    """Fixed address of a host in a network."""
    subnet = ipaddress.ip_network(spec["networks"][network][f"ipv{version}"])
    # The number reads the same in both families: .21 and ::21.
    number = spec["hosts"][host]["number"]
    return str(subnet.network_address + (int(str(number), 16) if version == 6 else number))


def shared(spec: dict) -> dict[str, str]:
    """Host -> directory that others see as theirs."""
    return {it["shares"]["of"]: it["shares"]["path"] for it in spec["hosts"].values() if "shares" in it}


def gateway(spec: dict, network: str) -> str:
    """Address of the machine itself in a network (the engine takes the first)."""
    return str(ipaddress.ip_network(spec["networks"][network]["ipv4"]).network_address + 1)


if __name__ == "__main__":
    print(inventory_folder())
