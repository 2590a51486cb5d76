# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who may open a connection to whom: the port matrix. Private to the gpuops.tenancy collection.

The rules of every host and the table in docs/firewall.md are made from it.
"""

from __future__ import annotations

import dataclasses
import typing as t

# What a host is. Sources are also zones; `scheduler` is both kinds of servers.
ROLES = ("controller", "database", "login", "compute")
ALL = ROLES
SERVERS = ("controller", "database")
# Where a connection comes from. `peers` are the compute nodes of the same node group; `outside` is everybody who is no
# host of the cluster.
ZONES = ("management", "monitoring", "scheduler", "login", "compute", "peers", "storage", "outside")
# Of these the inventory does not know the hosts, only the networks.
NETWORK_ZONES = ("management", "monitoring", "storage")


@dataclasses.dataclass(frozen=True)
class Row:
    """Connections to hosts of the roles ``on`` that are let in from the zones ``sources``."""

    name: str
    on: tuple[str, ...]
    sources: tuple[str, ...]
    ports: tuple[str, ...]  # names of PORTS, or literal ports in a site's own rows
    why: str
    protocols: tuple[str, ...] = ("tcp",)
    usual: bool = True  # False: only where the site asks for it


# Name -> ports. What Slurm's daemons listen on is set in slurm.conf; srun's range is SrunPortRange.
PORTS: dict[str, tuple[str, ...]] = {
    "ssh": ("22",),
    "slurmd": ("6818",),
    "slurmctld": ("6817",),
    "slurmdbd": ("6819",),
    "mariadb": ("3306",),
    "srun": ("60001-63000",),
    "pmix": ("32768-60999",),
    "jobs": ("10000-60000",),
    "node_exporter": ("9100",),
    "dcgm_exporter": ("9400",),
    "storage": (),
}

ROWS = (
    Row("ssh_admin", ALL, ("management",), ("ssh",), "operators, and the controller of Ansible"),
    Row(
        "ssh_users",
        ("login",),
        ("outside", "login"),
        ("ssh",),
        "users; from which networks those of a tenant may come is for sshd (`allow_from`, role `login_access`)",
    ),
    Row(
        "ssh_jobs",
        ("compute",),
        ("login",),
        ("ssh",),
        "users into their own jobs, where sshd admits only them (pam_slurm_adopt)",
        usual=False,
    ),
    Row("slurmd", ("compute",), ("scheduler", "login"), ("slurmd",), "slurmctld; srun of a login node"),
    Row(
        "slurmd_fanout",
        ("compute",),
        ("compute",),
        ("slurmd",),
        "slurmd passes messages on from node to node (`TreeWidth`); srun inside a job",
    ),
    Row(
        "srun_login",
        ("login",),
        ("scheduler", "compute"),
        ("srun",),
        "slurmstepd and slurmctld back to srun and salloc (`SrunPortRange`)",
    ),
    Row("srun_compute", ("compute",), ("scheduler", "peers"), ("srun",), "the same for an srun inside a job"),
    Row(
        "pmix",
        ("compute",),
        ("peers",),
        ("pmix",),
        "PMIx between the nodes of a step: the kernel's own range on older releases, srun's on newer ones",
    ),
    Row(
        "jobs",
        ("compute",),
        ("peers",),
        ("jobs",),
        "what jobs open to each other: NCCL's bootstrap, torchrun, MPI over TCP",
        protocols=("tcp", "udp"),
    ),
    Row("slurmctld", ("controller",), ("scheduler", "login", "compute"), ("slurmctld",), "every command of Slurm"),
    Row(
        "slurmdbd",
        ("database",),
        ("scheduler", "login", "compute"),
        ("slurmdbd",),
        "slurmctld; sacct and sacctmgr, also in a job",
    ),
    Row("mariadb", ("database",), ("scheduler",), ("mariadb",), "a second slurmdbd"),
    Row("node_exporter", ALL, ("monitoring",), ("node_exporter",), "measurements of the host"),
    Row("dcgm_exporter", ("compute",), ("monitoring",), ("dcgm_exporter",), "measurements of the GPUs"),
    Row(
        "storage",
        ("login", "compute"),
        ("storage",),
        ("storage",),
        "file servers that call back (Lustre: 988); none unless you name ports",
        protocols=("tcp", "udp"),
    ),
)


def table() -> str:
    """The matrix as Markdown, for docs/firewall.md."""
    lines = ["| row | to | from | ports | for |", "| --- | --- | --- | --- | --- |"]
    for row in ROWS:
        on = "every host" if row.on == ALL else ", ".join(row.on)
        ports = ", ".join(_shown(name, row.protocols) for name in row.ports)
        name = f"`{row.name}`" + ("" if row.usual else " (off)")
        lines.append(f"| {name} | {on} | {', '.join(row.sources)} | {ports} | {row.why} |")
    return "\n".join(lines) + "\n"


def _shown(name: str, protocols: t.Sequence[str]) -> str:
    numbers = ", ".join(PORTS[name]) or "none"
    return f"`{name}`: {numbers} {'+'.join(protocols)}"
