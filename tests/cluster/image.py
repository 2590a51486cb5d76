# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Images of the cluster's hosts, made without a container registry and cached by the hash of what made them.

TENANCY_BASE_IMAGE=debian:12 takes a base from where the engine can pull it, instead of mmdebstrap.
"""

from __future__ import annotations

import hashlib
import os
import pathlib
import shutil
import subprocess

from engine import BUILD, BUILDER, ClusterError, Engine, phase, root, run

HERE = pathlib.Path(__file__).resolve().parent
PROVISION = HERE / "image" / "provision.sh"
REPOSITORY = "gpuops-tenancy/host"
# /sbin/init and python3 are all that provision.sh builds on.
INCLUDE = "systemd,systemd-sysv,python3,iproute2,procps,dbus,ca-certificates"


def tag(codename: str) -> str:
    """Name of the image for a Debian release: changes with everything that goes into it."""
    base = os.environ.get("TENANCY_BASE_IMAGE", f"mmdebstrap:{INCLUDE}")
    digest = hashlib.sha256(PROVISION.read_bytes() + base.encode()).hexdigest()[:12]
    return f"{REPOSITORY}:{codename}-{digest}"


def _import_base(engine: Engine, codename: str) -> str:
    chosen = os.environ.get("TENANCY_BASE_IMAGE")
    if chosen:
        return chosen
    name = f"gpuops-tenancy/base:{codename}-{hashlib.sha256(INCLUDE.encode()).hexdigest()[:12]}"
    if engine.ok("image", "inspect", name):
        return name
    if shutil.which("mmdebstrap") is None:
        raise ClusterError("no mmdebstrap: run `make deps` first")
    tar = BUILD / f"base-{codename}.tar"
    BUILD.mkdir(exist_ok=True)
    with phase(f"base file system of {codename}"):
        try:
            run(
                root(["mmdebstrap", "--quiet", "--variant=minbase", f"--include={INCLUDE}", codename, str(tar)]),
                timeout=1200,
            )
            engine("import", str(tar), name)
        finally:
            run(root(["rm", "-f", str(tar)]))
    return name


def build(engine: Engine, codename: str) -> str:
    """Image for a Debian release; made if it is not there yet."""
    name = tag(codename)
    if engine.ok("image", "inspect", name):
        return name
    base = _import_base(engine, codename)
    with phase(f"host image of {codename}"):
        # The build alone may use the machine's own network: where the bridge has no way out, packages still come.
        container = engine("create", "--network", "host", "--label", BUILDER, base, "/bin/sh", "/provision.sh")
        try:
            engine.put(container, {PROVISION: "/provision.sh"})
            done = subprocess.run(
                [*engine.prefix, "docker", "start", "--attach", container],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=1800,
                check=False,
            )
            if done.returncode != 0:
                raise ClusterError(f"provision.sh failed for {codename}: {(done.stdout + done.stderr)[-2000:]}")
            engine("commit", container, name)
        finally:
            engine("rm", "-f", container)
    for old in engine.lines("images", "--format", "{{.Repository}}:{{.Tag}}", REPOSITORY):
        if old.startswith(f"{REPOSITORY}:{codename}-") and old != name:
            engine.ok("rmi", old)
    return name
