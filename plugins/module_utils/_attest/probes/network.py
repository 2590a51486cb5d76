# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a job or a login reaches on the network, and the sockets of daemons."""

from __future__ import annotations

import concurrent.futures
import os
import socket

from ..api import NotProven, failed, name, opened, passed, probe, skipped

FIREWALL = "firewall: port matrix, default drop on compute nodes"
EGRESS = "firewall: egress policy of jobs (node group or uid range)"
TIMEOUT = 2.0


def connect(target: str) -> str:
    """Errno of connecting to ADDRESS:PORT, "" when it was accepted."""
    address, _colon, port = target.rpartition(":")
    try:
        with socket.create_connection((address.strip("[]"), int(port)), TIMEOUT):
            return ""
    except socket.timeout:
        return "no answer"
    except OSError as error:
        return name(error.errno or 0)


def unreached(targets: list[str], what: str):
    if not targets:
        return skipped(f"no {what} is known")
    # A firewall that drops lets each wait for its time limit.
    with concurrent.futures.ThreadPoolExecutor(64) as pool:
        answers = dict(zip(targets, pool.map(connect, targets)))
    reached = [target for target, said in answers.items() if said == ""]
    if reached:
        return failed(f"connected to {', '.join(reached)} ({len(targets) - len(reached)} others refused)")
    return passed(", ".join(f"{target} {said}" for target, said in answers.items()))


@probe("net-management", "reaches no management port from a job", EGRESS, ("job", "ssh-job"))
def net_management(world):
    """Connect to the management ports (ssh, and those that the site adds) of every host's management address, and to BMCs."""
    return unreached(world.targets("management"), "management address")


@probe("net-outside", "reaches no address outside of the cluster but the exceptions", EGRESS, ("job", "ssh-job"))
def net_outside(world):
    """Connect to addresses outside of the cluster of which the site knows that somebody listens, and which root of some host reached."""
    targets, there = world.targets("outside"), world.targets("outside_there")
    if not targets:
        return skipped("attest_outside_targets names no address that listens")
    silent = [target for target in targets if target not in there]
    if silent:
        raise NotProven(f"no host of this run reaches {', '.join(silent)} as root: name addresses that listen")
    return unreached(targets, "outside address")


@probe("net-node-ssh", "reaches no other node's sshd from a job", FIREWALL, ("job",))
def net_node_ssh(world):
    """Connect to port 22 of the other compute nodes."""
    return unreached(world.targets("nodes"), "other compute node")


@probe(
    "net-database",
    "reaches no database",
    "firewall: MariaDB for slurmdbd's hosts alone; slurm_database: bind address",
    ("login", "job"),
)
def net_database(world):
    """Connect to MariaDB's port of the database hosts."""
    return unreached(world.targets("database"), "database host")


def listening(world) -> list[str]:
    """Ports of another tenant's jobs on other hosts."""
    mine = {one["host"] for one in world.here}
    return [f"{one['address']}:{one['port']}" for one in world.victims if one["job"] and one["host"] not in mine]


@probe("net-victim", "reaches no listening port of another tenant's job from outside of jobs", FIREWALL, ("login",))
def net_victim(world):
    """Connect to a port on which another tenant's job listens on all addresses of its node."""
    targets = listening(world)
    if not targets:
        raise NotProven("no job of the other tenant listens")
    return unreached(targets, "listening job")


@probe(
    "net-victim-job",
    "reaches no listening port of another tenant's job on another node from a job",
    "isolation private_nodes: the node's firewall group",
    ("job",),
    accepted="shared nodes talk to each other (MPI, NCCL), and addresses do not tell whose job it is; programs have to authenticate their peers",
)
def net_victim_job(world):
    """The same, from a job on another node."""
    targets = listening(world)
    if not targets:
        return skipped("the only job of the other tenant is on this node: see net-loopback")
    return unreached(targets, "listening job")


@probe(
    "net-loopback",
    "reaches no listening port of another tenant's job on the same node",
    "isolation exclusive or private_nodes",
    ("job",),
    neighbour=True,
    accepted="jobs of a shared node share its loopback and its abstract sockets; programs have to authenticate their peers",
)
def net_loopback(world):
    """Connect to the port, and to the abstract socket, of another tenant's job by way of loopback."""
    if not world.here:
        raise NotProven("no victim runs on this host")
    victim = world.here[0]
    answers = {f"127.0.0.1:{victim['port']}": connect(f"127.0.0.1:{victim['port']}")}
    answers[f"@{victim['abstract']}"] = unix("\0" + victim["abstract"])
    evidence = ", ".join(f"{target} {said or 'connected'}" for target, said in answers.items())
    return failed(evidence) if "" in answers.values() else passed(evidence)


def unix(path: str) -> str:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.settimeout(TIMEOUT)
        try:
            client.connect(path)
        except OSError as error:
            return name(error.errno or 0)
    return ""


@probe(
    "net-slurmrestd",
    "gets nothing from slurmrestd without a token",
    "slurmrestd: rest_auth/jwt alone",
    ("login", "job"),
    actors=("a", "none"),
)
def net_slurmrestd(world):
    """Ask slurmrestd, over HTTP and without a token, for what it can do (/openapi/v3): it says so only to whom it trusts."""
    answers = {}
    for target in world.targets("slurmrestd"):
        said = connect(target)
        if said:
            continue
        address, _colon, port = target.rpartition(":")
        with socket.create_connection((address.strip("[]"), int(port)), TIMEOUT) as client:
            client.sendall(b"GET /openapi/v3 HTTP/1.1\r\nHost: attest\r\nConnection: close\r\n\r\n")
            first = client.recv(200).split(b"\r\n")[0].decode(errors="replace")
        answers[target] = first
    if not answers:
        return skipped("slurmrestd listens nowhere")
    evidence = ", ".join(f"{target}: {said}" for target, said in answers.items())
    refused = all(" 401" in said or " 403" in said or not said for said in answers.values())
    return passed(evidence) if refused else failed(evidence)


@probe(
    "container-socket",
    "reaches no container engine's socket",
    "container engines: sockets are root's; nobody in group docker",
    ("login", "job", "cron"),
    actors=("a", "none"),
)
def container_socket(world):
    """Connect to the sockets of docker, podman, containerd and CRI-O."""
    paths = (
        "/run/docker.sock",
        "/run/podman/podman.sock",
        "/run/containerd/containerd.sock",
        "/run/crio/crio.sock",
        "/run/enroot.sock",
    )
    answers = {path: unix(path) for path in paths}
    # Behind a socket that refuses nobody listens.
    answers = {path: said for path, said in answers.items() if said not in ("ENOENT", "ENOTDIR", "ECONNREFUSED")}
    if not answers:
        return skipped("no container engine has a socket here")
    evidence = ", ".join(f"{path} {said or 'connected'}" for path, said in answers.items())
    return failed(evidence) if "" in answers.values() else passed(evidence)


@probe(
    "munge-uid",
    "makes no munge credential for another uid",
    "kernel: it tells munged the peer's uid",
    ("login", "job"),
    actors=("a", "none"),
)
def munge_uid(world):
    """Have munged make a credential and look whose it is; decode one that another tenant made for herself alone."""
    code, credential, err = world.run(["munge", "-n"])
    if code:
        raise NotProven(f"munge ended with {code}: {err.strip()[:200]}")
    code, out, err = world.run(["unmunge"], stdin=credential)
    uid = next((line.split("(")[-1].rstrip(")") for line in out.splitlines() if line.startswith("UID:")), "")
    if code or not uid:
        raise NotProven(f"unmunge ended with {code}: {err.strip()[:200]}")
    if uid != str(os.getuid()):
        return failed(f"a credential of uid {os.getuid()} says {uid}")
    # A credential lives on without who made it.
    sealed = next((one["credential"] for one in world.facts["victims"] if one.get("credential")), "")
    if not sealed:
        raise NotProven("the other tenant made no credential")
    code, out, err = world.run(["unmunge"], stdin=sealed)
    if code == 0:
        return failed("decoded a credential that was for another uid alone")
    answer = " ".join((err or out).split())[:120]
    if "unauthorized" not in answer.lower():
        raise NotProven(f"unmunge of another's credential ended for another reason: {answer}")
    return passed(f"own credential: uid {uid}; another's: {answer}")


@probe("munge-socket", "cannot take munged's place", "munge: modes of /run/munge", ("login", "job"))
def munge_socket(world):
    """Make a file in the directory of munged's socket: who can, can also put another socket in its place."""
    folder = "/run/munge"
    if not os.path.isdir(folder):
        return skipped(f"there is no {folder}")
    said = opened(f"{folder}/attest", os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    if said == "":
        os.unlink(f"{folder}/attest")
        return failed("made a file beside munged's socket")
    return passed(f"make a file: {said}")
