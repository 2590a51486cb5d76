# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who reaches whom, tried; and the firewall of a host as it is."""

from __future__ import annotations

import ipaddress
import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tests" / "cluster"))
from definition import address, definition, inventory_folder, state
from engine import REPO, Engine
from recorded import Started, module, playbook
from remote import on, said, wait_for

SPEC = definition()
VARS = REPO / "molecule" / "firewall" / "vars" / "site.yml"
ROLE = "Load the rules, to be taken back unless a new connection comes through them"
# One word for each way: open, or the error's name. A closed port answers ECONNREFUSED: the packet got there.
PROBE = """
import errno, socket, sys
for way in sys.argv[1:]:
    address, port, source = way.split("|")
    one = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    one.settimeout(1.5)
    try:
        if source:
            one.bind((source, 0))
        one.connect((address, int(port)))
        said = "open"
    except socket.timeout:
        said = "timeout"
    except OSError as error:
        said = errno.errorcode[error.errno]
    one.close()
    print(said)
"""
REACHED = {"open", "ECONNREFUSED"}
# Dropped on the way, or refused by the own host's filter (which answers with prohibited).
DENIED = {"timeout", "EHOSTUNREACH", "EACCES"}


def gateway(network: str, version: int) -> str:
    """The address of this machine in a network of the cluster."""
    return str(ipaddress.ip_network(SPEC["networks"][network][f"ipv{version}"]).network_address + 1)


def at(host: str, network: str, version: int) -> str:
    """Address of a host; `machine` is the one that this runs on, `world` is somewhere outside."""
    if host == "machine":
        return gateway(network, version)
    if host == "world":
        return "203.0.113.7" if version == 4 else "2001:db8::7"
    return address(SPEC, host, network, version)


def tried(source: str, *ways: str) -> list[str]:
    """The answer to each way, ADDRESS|PORT|SOURCE. Source: a host, host as alice (login:alice), job:NODE, machine."""
    argv = ["python3", "-c", PROBE, *ways]
    if source == "machine":
        return subprocess.run(argv, capture_output=True, text=True, check=True, timeout=120).stdout.split()
    kind, _colon, user = source.partition(":")
    if kind == "job":
        return said("login", "srun", "-Q", "-p", "all", "-t", "1", "-w", user, *argv, user="alice").split()
    return said(kind, *argv, user=user or None).split()


def table(host: str, name: str = "tenancy") -> str:
    """The rules that run, without counts; empty without such a table."""
    done = on(host, "nft", "-s", "list", "table", "inet", name)
    return done.stdout if done.returncode == 0 else ""


def counter(host: str, name: str) -> int:
    shown = json.loads(said(host, "nft", "-j", "list", "counter", "inet", "tenancy", name))
    return next(one["counter"]["packets"] for one in shown["nftables"] if "counter" in one)


def role(*args: str, hosts: str = "", extra: dict | None = None, kill_at: str = "") -> Started:
    """Start the role with the scenario's variables."""
    limit = ["--limit", hosts] if hosts else []
    more = ["-e", json.dumps(extra)] if extra else []
    return playbook("../molecule/firewall/role.yml", "-e", f"@{VARS}", *limit, *more, *args, kill_at=kill_at)


def converge(hosts: str = "") -> None:
    """As the scenario left it."""
    run = role(hosts=hosts).wait()
    assert run.returncode == 0, run.output[-3000:]


def ssh(host: str, *options: str, timeout: float = 20) -> subprocess.CompletedProcess:
    """A new connection as an operator, over nothing that exists."""
    argv = ["ssh", "-F", str(state() / "ssh_config"), "-o", "ControlPath=none", "-o", "ConnectTimeout=4", *options]
    return subprocess.run([*argv, host, "true"], capture_output=True, text=True, check=False, timeout=timeout)


def over(host: str, version: int) -> list[str]:
    """Options of ssh that reach a host at its address in the operators' network."""
    return ["-o", f"HostName={at(host, 'management', version)}", "-o", "Port=22", "-o", f"HostKeyAlias={host}"]


def restart(host: str) -> None:
    """A reboot: the kernel forgets all tables of the host."""
    engine = Engine()
    began = ("sh", "-c", "cut -d' ' -f22 /proc/1/stat")
    before = said(host, *began)
    engine("restart", "-t", "60", f"{SPEC['name']}-{host}")
    wait_for(lambda: ssh(host).returncode == 0, 90, f"{host} to come back")
    assert said(host, *began) != before


__all__ = [
    "DENIED",
    "PROBE",
    "REACHED",
    "ROLE",
    "at",
    "converge",
    "counter",
    "inventory_folder",
    "module",
    "on",
    "over",
    "playbook",
    "restart",
    "role",
    "said",
    "ssh",
    "state",
    "table",
    "tried",
    "wait_for",
]
