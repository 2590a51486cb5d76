# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs on the test cluster's hosts, by ssh, as the demo, the scenarios and the benchmarks run them."""

from __future__ import annotations

import shlex
import subprocess
import time

from definition import state

# Opens each GPU: ENXIO means that the device cgroup allowed it (no driver answers), EPERM that it did not.
OPEN_GPUS = """
import errno, os
for n in range(4):
    try:
        os.close(os.open(f"/dev/nvidia{n}", os.O_RDWR))
        said = "opened"
    except OSError as error:
        said = errno.errorcode[error.errno]
    print(f"nvidia{n} {said}")
"""


def ssh_argv(host: str, argv: list[str], user: str | None = None) -> list[str]:
    """The ssh command that runs a program on a host, as root or as another of its users."""
    command = argv if user is None else ["runuser", "-u", user, "--", *argv]
    return ["ssh", "-F", str(state() / "ssh_config"), host, shlex.join(command)]


def on(host: str, *argv: str, user: str | None = None, stdin: str | None = None, timeout: float = 120):
    """Run a program on a host. Returns the finished process; the caller looks at returncode and output."""
    return subprocess.run(
        ssh_argv(host, list(argv), user),
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def said(host: str, *argv: str, user: str | None = None, stdin: str | None = None, timeout: float = 120) -> str:
    """Output of a program that must succeed."""
    done = on(host, *argv, user=user, stdin=stdin, timeout=timeout)
    if done.returncode != 0:
        raise AssertionError(f"{shlex.join(argv)} on {host} ended with {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout.strip()


def wait_for(condition, seconds: float = 90, what="what was waited for"):
    """Ask until the answer is true, and return it. Else fail with ``what``: words, or a function that shows how it is."""
    deadline = time.monotonic() + seconds
    while not (answer := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"{what() if callable(what) else what} not within {seconds} s")
        time.sleep(0.2)
    return answer


def gpus_seen(host: str, *launcher: str, user: str | None = None) -> dict[str, str]:
    """Device -> what opening it answered, inside whatever the launcher starts (srun and its options, or nothing)."""
    output = said(host, *launcher, "python3", "-c", OPEN_GPUS, user=user)
    return dict(line.split() for line in output.splitlines())
