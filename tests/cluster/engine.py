# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The container engine, and what the cluster needs of the machine below it."""

from __future__ import annotations

import contextlib
import io
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import time

REPO = pathlib.Path(__file__).resolve().parents[2]
BUILD = REPO / ".build"
DOCKERD_PID = BUILD / "dockerd.pid"
LABEL = "gpuops.tenancy.cluster"
BUILDER = "gpuops.tenancy.builder"


class ClusterError(Exception):
    """One sentence for the person at the terminal."""


def root(argv: list[str]) -> list[str]:
    """The command as root: as it is for root, else through sudo."""
    return argv if os.geteuid() == 0 else ["sudo", *argv]


def run(
    argv: list[str], *, check: bool = True, stdin: str | None = None, quiet: bool = True, timeout: float | None = None
):
    """Run a program; its output goes into the error when it fails."""
    done = subprocess.run(
        argv,
        input=stdin,
        text=True,
        timeout=timeout,
        check=False,
        stdin=subprocess.DEVNULL if stdin is None else None,
        stdout=subprocess.PIPE if quiet else None,
        stderr=subprocess.PIPE if quiet else None,
    )
    if check and done.returncode != 0:
        said = ((done.stdout or "") + (done.stderr or "")).strip()[-2000:]
        raise ClusterError(f"{' '.join(argv[:6])} ended with {done.returncode}: {said}")
    return done


def _answers(prefix: list[str]) -> bool:
    with contextlib.suppress(FileNotFoundError, subprocess.TimeoutExpired):
        return (
            subprocess.run(
                [*prefix, "docker", "info"],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=30,
                check=False,
            ).returncode
            == 0
        )
    return False


class Engine:
    """`docker`, through sudo where the user may not talk to the daemon."""

    def __init__(self):
        self.prefix: list[str] = []

    def start(self) -> None:
        """Make the daemon answer: the system's service where there is one, else a daemon of our own."""
        if shutil.which("docker") is None:
            raise ClusterError("no docker command: run `make deps` first")
        if _answers([]):
            return
        if os.geteuid() != 0 and _answers(["sudo", "-n"]):
            self.prefix = ["sudo", "-n"]
            return
        if pathlib.Path("/run/systemd/system").is_dir():
            run(root(["systemctl", "start", "docker"]))
        else:
            if shutil.which("dockerd") is None:
                raise ClusterError("no container engine answers and there is no dockerd: run `make deps` first")
            BUILD.mkdir(exist_ok=True)
            log = open(BUILD / "dockerd.log", "ab")  # noqa: SIM115 - the daemon keeps it
            daemon = subprocess.Popen(
                root(["dockerd"]),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
            DOCKERD_PID.write_text(str(daemon.pid))
        for _attempt in range(60):
            for prefix in ([], ["sudo", "-n"]):
                if _answers(prefix):
                    self.prefix = [] if os.geteuid() == 0 else prefix
                    return
            time.sleep(1)
        raise ClusterError(
            "the container engine did not start within 60 s; see .build/dockerd.log or `journalctl -u docker`"
        )

    def stop(self) -> None:
        """Stop a daemon that we started and that no cluster needs; the system's own is left alone."""
        if not DOCKERD_PID.exists() or self.lines("ps", "-q", "--filter", f"label={LABEL}"):
            return
        pid = int(DOCKERD_PID.read_text())
        DOCKERD_PID.unlink()
        comm = pathlib.Path(f"/proc/{pid}/comm")
        if comm.exists() and comm.read_text().strip() in ("dockerd", "sudo"):
            run(root(["kill", str(pid)]), check=False)
            for _attempt in range(100):
                if not comm.exists() or pathlib.Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z":
                    break
                time.sleep(0.1)

    def __call__(self, *args: str, **kwargs) -> str:
        return (run([*self.prefix, "docker", *args], **kwargs).stdout or "").strip()

    def put(self, container: str, files: dict[pathlib.Path, str]) -> None:
        """Copy files into a container as root's, whoever they belong to here: sshd refuses anybody else's."""
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as archive:
            for source, target in files.items():
                entry = tarfile.TarInfo(target.lstrip("/"))
                entry.size, entry.mode = source.stat().st_size, source.stat().st_mode & 0o777
                with source.open("rb") as content:
                    archive.addfile(entry, content)
        argv = [*self.prefix, "docker", "cp", "-", f"{container}:/"]
        done = subprocess.run(argv, input=packed.getvalue(), capture_output=True, check=False)
        if done.returncode != 0:
            raise ClusterError(f"docker cp to {container} ended with {done.returncode}: {done.stderr.decode()[-2000:]}")

    def ok(self, *args: str) -> bool:
        """True if the command succeeds."""
        return run([*self.prefix, "docker", *args], check=False).returncode == 0

    def lines(self, *args: str) -> list[str]:
        """Output as a list of lines that are not empty."""
        return [line for line in self(*args).splitlines() if line]


@contextlib.contextmanager
def phase(name: str):
    """Print how long a phase took."""
    started = time.monotonic()
    print(f"--> {name} ...", file=sys.stderr, flush=True)
    yield
    print(f"<-- {name}: {time.monotonic() - started:.1f} s", file=sys.stderr, flush=True)
