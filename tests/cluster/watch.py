# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs on a host: notes what any user there could see of every process, and looks for secrets in it afterwards.

watch.py run       sample /proc/*/cmdline and /proc/*/environ until it is ended
watch.py search    one JSON object: how much was seen, and which secrets were in it
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
import pathlib
import re
import sys
import time

SEEN = pathlib.Path("/run/tenancy-watch/seen")
EVERY = 0.02
# What a process of the test carries, so that a search which finds nothing is known to work.
MARKERS = {"argument": b"marker-on-the-command-line", "environment": b"marker-in-the-environment"}


def forms(secret: bytes) -> list[bytes]:
    """The ways in which a secret may be written down."""
    plain = [max(secret.split(b"\0"), key=len)]
    coded = [base64.b64encode(secret).rstrip(b"="), secret.hex().encode(), secret.hex().upper().encode()]
    # How MariaDB keeps a password.
    stored = hashlib.sha1(hashlib.sha1(secret).digest()).hexdigest()
    return [*plain, *coded, stored.encode(), stored.upper().encode()]


def secrets() -> dict[str, bytes]:
    conf = pathlib.Path("/etc/slurm/slurmdbd.conf").read_bytes()
    return {
        "database password": re.findall(rb"^StoragePass=(\S+)$", conf, re.MULTILINE)[0],
        "munge key": pathlib.Path("/etc/munge/munge.key").read_bytes(),
    }


def found(text: bytes, wanted: dict[str, bytes]) -> list[str]:
    return [name for name, secret in wanted.items() if any(form in text for form in forms(secret))]


def run() -> None:
    SEEN.parent.mkdir(mode=0o700, exist_ok=True)
    known = set()
    with SEEN.open("ab", buffering=0) as seen:
        while True:
            for pid in filter(str.isdigit, os.listdir("/proc")):
                # It may end while it is looked at.
                with contextlib.suppress(OSError):
                    text = b"\n".join(
                        pathlib.Path(f"/proc/{pid}/{name}").read_bytes() for name in ("cmdline", "environ")
                    )
                    digest = hashlib.sha1(text).digest()
                    if digest not in known:
                        known.add(digest)
                        seen.write(text + b"\n\n")
            time.sleep(EVERY)


def search() -> None:
    text = SEEN.read_bytes()
    markers = [name for name, word in MARKERS.items() if word in text]
    print(json.dumps({"bytes": len(text), "markers": markers, "found": found(text, secrets())}))


if __name__ == "__main__":
    {"run": run, "search": search}[sys.argv[1]]()
