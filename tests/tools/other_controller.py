# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The other end of the supported controllers: the newest ansible-core if this machine's Python is old, else the oldest.

Runs a command in a container of the Debian release whose Python can have it, with this checkout and this machine's network.
"""

from __future__ import annotations

import hashlib
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cluster"))
from engine import BUILD, BUILDER, REPO, ClusterError, Engine, phase, run
from image import build

PACKAGES = "python3-venv openssh-client git make"


def image(engine: Engine, codename: str) -> str:
    """A controller on a Debian release: its Python, with requirements-dev.txt."""
    base = build(engine, codename)
    digest = hashlib.sha256(
        base.encode() + (REPO / "requirements-dev.txt").read_bytes() + PACKAGES.encode()
    ).hexdigest()[:12]
    name = f"gpuops-tenancy/controller:{codename}-{digest}"
    if engine.ok("image", "inspect", name):
        return name
    # The cluster's hosts look no name up outside; a controller has to find the package index.
    script = (
        "sed -i 's/^hosts:.*/hosts: files dns/' /etc/nsswitch.conf"
        f" && apt-get update -q && apt-get install -qy --no-install-recommends {PACKAGES} && python3 -m venv /opt/venv"
        " && /opt/venv/bin/pip install --quiet -r /requirements-dev.txt"
    )
    with phase(f"controller on {codename}"):
        # The machine's certificates: a package index behind a proxy is trusted here as it is there.
        certificates = "/etc/ssl/certs/ca-certificates.crt"
        trust = (
            ["-v", f"{certificates}:/host-ca.crt:ro", "-e", "PIP_CERT=/host-ca.crt"]
            if pathlib.Path(certificates).exists()
            else []
        )
        container = engine("create", "--network", "host", "--label", BUILDER, *trust, base, "/bin/sh", "-ec", script)
        try:
            engine("cp", str(REPO / "requirements-dev.txt"), f"{container}:/requirements-dev.txt")
            done = run([*engine.prefix, "docker", "start", "--attach", container], check=False, timeout=1800)
            if done.returncode != 0:
                raise ClusterError(f"cannot make a controller on {codename}: {(done.stdout + done.stderr)[-2000:]}")
            engine("commit", container, name)
        finally:
            engine("rm", "-f", container)
    return name


def main() -> int:
    if len(sys.argv) < 2:
        print("usage: other_controller.py COMMAND [ARGUMENT ...]", file=sys.stderr)
        return 2
    engine = Engine()
    try:
        engine.start()
        name = image(engine, "trixie" if sys.version_info < (3, 12) else "bookworm")
    except ClusterError as error:
        print(f"other_controller: {error}", file=sys.stderr)
        return 1
    environment = {
        "PATH": "/opt/venv/bin:/usr/bin:/bin",
        "HOME": "/tmp",
        "LC_ALL": "C.UTF-8",
        "ANSIBLE_CONFIG": f"{REPO}/ansible.cfg",
        "ANSIBLE_COLLECTIONS_PATH": str(BUILD),
        "ANSIBLE_HOME": "/tmp/ansible",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    options = [word for key, value in environment.items() for word in ("-e", f"{key}={value}")]
    # As whoever calls, so that what it leaves in the checkout is theirs; ssh wants to know the name.
    options += ["--user", f"{os.getuid()}:{os.getgid()}", "-v", "/etc/passwd:/etc/passwd:ro"]
    argv = ["run", "--rm", "--network", "host", "-v", f"{REPO}:{REPO}", "-w", str(REPO), *options, name, *sys.argv[1:]]
    return subprocess.run([*engine.prefix, "docker", *argv], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
