# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Playbooks on the test cluster, and the converged state as a snapshot."""

from __future__ import annotations

import hashlib
import os
import pathlib
import re
import subprocess
import sys

from definition import inventory_folder, shared
from engine import BUILD, REPO, ClusterError, phase
from image import tag

# What the converged state depends on; a change in any of it makes a new snapshot.
SOURCES = ("roles", "playbooks", "plugins", "inventories/demo/inventory/group_vars", "tests/cluster")
RECAP = re.compile(r"^(\S+)\s+: ok=(\d+)\s+changed=(\d+)\s+unreachable=(\d+)\s+failed=(\d+)", re.MULTILINE)


def play(playbook: str, *args: str, quiet: bool = False, check: bool = True, env: dict | None = None):
    """Run a playbook on the testbed's inventory.

    Returns the finished process with `changed`, the sum over all hosts, and `recap`, host -> counts, added to it.
    """
    environment = {
        **os.environ,
        "ANSIBLE_CONFIG": str(REPO / "ansible.cfg"),
        "ANSIBLE_COLLECTIONS_PATH": str(BUILD),
        **(env or {}),
    }
    program = pathlib.Path(sys.executable).parent / "ansible-playbook"
    argv = [str(program), "-i", str(inventory_folder()), playbook, *args]
    process = subprocess.Popen(
        argv,
        cwd=REPO,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    lines = []
    for line in process.stdout:
        lines.append(line)
        if not quiet:
            sys.stdout.write(line)
            sys.stdout.flush()
    process.wait()
    output = "".join(lines)
    done = subprocess.CompletedProcess(argv, process.returncode, output)
    done.recap = {
        host: {"ok": int(ok), "changed": int(changed), "unreachable": int(lost), "failed": int(failed)}
        for host, ok, changed, lost, failed in RECAP.findall(output)
    }
    done.changed = sum(counts["changed"] for counts in done.recap.values())
    if check and done.returncode != 0:
        raise ClusterError(f"{playbook} ended with {done.returncode}" + (f":\n{output[-4000:]}" if quiet else ""))
    return done


def fingerprint(codename: str, testbed: str) -> str:
    """Changes with everything that the converged state is made from."""
    digest = hashlib.sha256(tag(codename).encode())
    # The hosts have the key that lies beside the inventory, until a test rotates it.
    for path in sorted((inventory_folder(testbed).parent / "secrets").glob("*")):
        digest.update(path.read_bytes())
    for source in SOURCES:
        for path in sorted((REPO / source).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                digest.update(str(path.relative_to(REPO)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]


def _name(cluster, release: str) -> tuple[str, str]:
    """Name of the current snapshot, and what the names of its predecessors begin with."""
    prefix = f"converged-{cluster.spec['testbed']}-{release}-"
    return prefix + fingerprint(cluster.spec["releases"][release]["codename"], cluster.spec["testbed"]), prefix


def keep(cluster, release: str) -> None:
    """Keep the running cluster as the converged state; older ones of the testbed go."""
    name, prefix = _name(cluster, release)
    cluster.forget(prefix, keep=name)
    cluster.snapshot(name)


def converged(cluster, release: str) -> None:
    """A cluster on which site.yml has run: from a snapshot where one is current, else from bare hosts."""
    cluster.refuse_second()
    name, _prefix = _name(cluster, release)
    whole = not shared(cluster.spec)
    if whole and cluster.has_snapshot(name):
        cluster.restore(name)
        return
    cluster.up(release)
    with phase("site.yml on bare hosts"):
        play("playbooks/site.yml", quiet=True)
    if whole:
        keep(cluster, release)
