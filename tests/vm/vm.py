# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A small virtual machine with cgroup v2 and Debian 13's docker, by software emulation: no KVM is needed.

The image is made once and cached by the hash of what made it. The machine's ssh port and docker socket appear here.
TENANCY_VM_ACCEL=kvm is ten times faster, where KVM works; a /dev/kvm alone does not say so.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cluster"))
from engine import BUILD, ClusterError, phase, root, run

SUITE = "trixie"
PACKAGES = (
    "linux-image-cloud-amd64,systemd-sysv,udev,dbus,iproute2,kmod,procps,util-linux,e2fsprogs,python3,openssh-server,"
    "docker.io,docker-cli,iptables,ca-certificates"
)
DISK = "8G"
SSH_PORT = 22899
# Emulation is about ten times slower than the machine itself.
BOOT_TIMEOUT = 900
STATE = BUILD / "vm"

SETUP = """
set -eu
root=$1
printf 'vm\\n' > "$root/etc/hostname"
printf '127.0.0.1 localhost\\n127.0.1.1 vm\\n' > "$root/etc/hosts"
printf '/dev/vda / ext4 defaults 0 1\\n' > "$root/etc/fstab"
mkdir -p "$root/etc/systemd/network" "$root/root/.ssh"
chmod 700 "$root/root/.ssh"
printf '[Match]\\nName=e*\\n[Network]\\nDHCP=yes\\nIPv6AcceptRA=no\\n' > "$root/etc/systemd/network/10.network"
chroot "$root" systemctl enable systemd-networkd ssh docker
chroot "$root" systemctl disable systemd-networkd-wait-online
"""


def digest() -> str:
    """Changes with what the image is made from."""
    return hashlib.sha256(f"{SUITE} {PACKAGES} {DISK} {SETUP}".encode()).hexdigest()[:12]


class CannotEmulateError(ClusterError):
    """This machine cannot run qemu; says nothing about the collection."""


class Machine:
    """The running machine: `ssh` runs a program in it, `docker_host` is its engine."""

    def __init__(self):
        self.folder = STATE / digest()
        self.key = self.folder / "key"
        self.socket = self.folder / "docker.sock"
        self.processes: list[subprocess.Popen] = []

    def build(self) -> None:
        """Make kernel, initrd and disk; a finished image stays."""
        if (self.folder / "made").exists():
            return
        for program in ("qemu-system-x86_64", "qemu-img", "mmdebstrap"):
            if shutil.which(program) is None:
                raise CannotEmulateError(f"no {program}: apt-get install qemu-system-x86 qemu-utils mmdebstrap")
        run(root(["rm", "-rf", str(STATE)]))
        self.folder.mkdir(parents=True)
        files = self.folder / "root"
        with phase("image of the virtual machine"):
            run(
                root(["mmdebstrap", "--quiet", "--variant=minbase", f"--include={PACKAGES}", SUITE, str(files)]),
                timeout=1800,
            )
            run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.key)])
            run(root(["sh", "-c", SETUP, "setup", str(files)]))
            run(root(["cp", f"{self.key}.pub", str(files / "root/.ssh/authorized_keys")]))
            for name in ("vmlinuz", "initrd.img"):
                source = next((files / "boot").glob(f"{name}-*"))
                run(root(["install", "-m", "0644", str(source), str(self.folder / name)]))
            raw = self.folder / "disk.raw"
            run(["truncate", "-s", DISK, str(raw)])
            run(root(["mkfs.ext4", "-q", "-F", "-d", str(files), str(raw)]), timeout=600)
            run(root(["rm", "-rf", str(files)]))
        (self.folder / "made").touch()

    def ssh_argv(self, *argv: str) -> list[str]:
        return [
            "ssh",
            "-i",
            str(self.key),
            "-p",
            str(SSH_PORT),
            "-o",
            "StrictHostKeyChecking=no",
            "-o",
            "UserKnownHostsFile=/dev/null",
            "-o",
            "LogLevel=ERROR",
            "-o",
            "BatchMode=yes",
            "-o",
            "ConnectTimeout=30",
            *argv,
        ]

    def ssh(self, command: str, timeout: float = 600):
        return run(self.ssh_argv("root@127.0.0.1", command), timeout=timeout)

    def start(self, forwards: list[int]) -> None:
        """Boot, wait for ssh, and bring the engine's socket and some of its ports here."""
        overlay = self.folder / "overlay.qcow2"
        overlay.unlink(missing_ok=True)
        run(["qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b", str(self.folder / "disk.raw"), str(overlay)])
        with phase("boot of the virtual machine"):
            self.processes.append(
                subprocess.Popen(
                    [
                        "qemu-system-x86_64",
                        "-accel",
                        os.environ.get("TENANCY_VM_ACCEL", "tcg,thread=multi"),
                        "-cpu",
                        "max",
                        "-smp",
                        "2",
                        "-m",
                        "4096",
                        "-nodefaults",
                        "-display",
                        "none",
                        "-kernel",
                        str(self.folder / "vmlinuz"),
                        "-initrd",
                        str(self.folder / "initrd.img"),
                        "-append",
                        "root=/dev/vda rw console=ttyS0 net.ifnames=0 mitigations=off quiet",
                        "-drive",
                        f"file={overlay},if=virtio,format=qcow2,cache=unsafe",
                        "-netdev",
                        f"user,id=n0,hostfwd=tcp:127.0.0.1:{SSH_PORT}-:22",
                        "-device",
                        "virtio-net-pci,netdev=n0",
                        "-device",
                        "virtio-rng-pci",
                        "-serial",
                        f"file:{self.folder / 'serial.log'}",
                    ],
                    stdin=subprocess.DEVNULL,
                )
            )
            deadline = time.monotonic() + BOOT_TIMEOUT
            while True:
                done = run(
                    self.ssh_argv("root@127.0.0.1", "docker info --format {{.CgroupVersion}}"), check=False, timeout=120
                )
                if done.returncode == 0 and done.stdout.strip() == "2":
                    break
                if self.processes[0].poll() is not None:
                    raise CannotEmulateError(f"qemu ended with {self.processes[0].returncode}; it says why above")
                if time.monotonic() > deadline:
                    raise ClusterError(
                        f"the virtual machine did not come up; see {self.folder / 'serial.log'}: {done.stderr[-300:]}"
                    )
                time.sleep(5)
        # munge refuses credentials from another time.
        self.ssh(f"date -s @{int(time.time())}")
        self.socket.unlink(missing_ok=True)
        tunnels = [word for port in forwards for word in ("-L", f"127.0.0.1:{port}:127.0.0.1:{port}")]
        self.processes.append(
            subprocess.Popen(
                self.ssh_argv(
                    "-N",
                    "-o",
                    "ExitOnForwardFailure=yes",
                    "-L",
                    f"{self.socket}:/var/run/docker.sock",
                    *tunnels,
                    "root@127.0.0.1",
                ),
                stdin=subprocess.DEVNULL,
            )
        )
        for _attempt in range(60):
            if self.socket.exists():
                break
            time.sleep(1)
        os.environ["DOCKER_HOST"] = f"unix://{self.socket}"

    def stop(self) -> None:
        for process in reversed(self.processes):
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=20)
            if process.poll() is None:
                process.kill()
