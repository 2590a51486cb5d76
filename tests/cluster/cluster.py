# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A real Slurm cluster in containers: up, down, snapshot, restore.

What it consists of stands in cluster.yml. One cluster at a time runs on a machine.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import shutil
import sys
import time

import inventory
import yaml
from converge import converged, keep
from engine import BUILD, LABEL, REPO, ClusterError, Engine, phase, root, run
from image import build

HERE = pathlib.Path(__file__).resolve().parent
STATE = BUILD / "cluster"
SNAPSHOT = "gpuops-tenancy/snapshot"
PURPOSES = ("demo", "test")
# What systemd, Slurm and nftables need; --privileged is neither needed nor wanted.
CAPABILITIES = ["SYS_ADMIN", "NET_ADMIN", "SYS_PTRACE", "SYS_NICE", "DAC_READ_SEARCH", "IPC_LOCK", "AUDIT_CONTROL"]


def definition() -> dict:
    """cluster.yml as a dict."""
    return yaml.safe_load((HERE / "cluster.yml").read_text())


class Cluster:
    """The containers of cluster.yml and the files that lead to them."""

    def __init__(self, spec: dict, engine: Engine, purpose: str = "demo", patience: float = 1):
        self.spec = spec
        self.engine = engine
        self.purpose = purpose
        self.patience = patience  # factor on time limits, for emulated machines

    def container(self, host: str) -> str:
        return f"{self.spec['name']}-{host}"

    def network(self, name: str) -> str:
        # The engine publishes ports through the first network by name that is not internal.
        return f"{self.spec['name']}-{name}"

    def running(self) -> dict | None:
        """Release, clone and purpose of the cluster that exists on this machine, or None."""
        found = self.engine.lines("ps", "-a", "--filter", f"label={LABEL}", "--format", '{{.Label "' + LABEL + '"}}')
        return json.loads(found[0]) if found else None

    def refuse_second(self) -> None:
        """One cluster at a time: addresses, ports and Slurm's cgroups are fixed."""
        there = self.running()
        if there:
            raise ClusterError(
                f"a {there['purpose']} cluster (Debian {there['release']}, from {there['clone']}) is already up: `make down` there first"
            )

    def up(self, release: str, images: dict[str, str] | None = None) -> None:
        """Create networks and hosts and wait until each is reachable by ssh.

        images: host -> image, for a restore; else every host starts from the release's image.
        """
        self.refuse_second()
        rel = self.spec["releases"][release]
        image = None if images else build(self.engine, rel["codename"])
        with phase(f"cluster of {len(self.spec['hosts'])} hosts on Debian {release}"):
            try:
                inventory.write_keys(self.spec, STATE, [*self.engine.prefix, "docker"])
                for name, net in self.spec["networks"].items():
                    self.engine(
                        "network",
                        "create",
                        "--label",
                        LABEL,
                        *(["--internal"] if net["internal"] else []),
                        "--ipv6",
                        "--subnet",
                        net["ipv4"],
                        "--subnet",
                        net["ipv6"],
                        self.network(name),
                    )
                for host in self.spec["hosts"]:
                    self._create(host, release, images[host] if images else image)
                for host in self.spec["hosts"]:
                    # One after another: systemd in many containers at once fails now and then at its cgroups.
                    self.engine("start", self.container(host))
                inventory.write(self.spec, STATE, REPO)
                for host in self.spec["hosts"]:
                    self._await(host)
            except BaseException:
                self.down()
                raise

    def _create(self, host: str, release: str, image: str) -> None:
        spec = self.spec["hosts"][host]
        name = self.container(host)
        label = json.dumps({"release": release, "clone": str(REPO), "purpose": self.purpose})
        init = list(self.spec["releases"][release]["init"])
        if self.engine("info", "--format", "{{.CgroupVersion}}") == "2":
            # A namespace of its own, made writable by us: the engine would mount it read-only.
            groups = ["--cgroupns", "private"]
            init = ["/bin/sh", "-c", 'mount -o remount,rw /sys/fs/cgroup; exec "$@"', "init", *init]
        else:
            groups = ["--cgroupns", "host", "--volume", "/sys/fs/cgroup:/sys/fs/cgroup:rw"]
        # A name means the address in the cluster network; the others are there for the way back (slurmctld looks up
        # whatever address a multi-homed host gives as its own).
        others = [
            f"--add-host={other}:{inventory.address(self.spec, other, network)}"
            for other, it in self.spec["hosts"].items()
            if "cluster" in it["networks"] and "cluster" in spec["networks"] and other != host
            for network in sorted(it["networks"], key=lambda name: name != "cluster")
        ]
        first, *rest = spec["networks"]
        self.engine(
            "create",
            "--name",
            name,
            "--hostname",
            host,
            "--label",
            f"{LABEL}={label}",
            *[f"--cap-add={cap}" for cap in CAPABILITIES],
            "--security-opt",
            "seccomp=unconfined",
            "--security-opt",
            "apparmor=unconfined",
            *groups,
            "--tmpfs",
            "/run:exec",
            "--tmpfs",
            "/run/lock",
            "--stop-signal",
            "SIGRTMIN+3",
            *(["--device-cgroup-rule", "c 195:* rwm"] if spec.get("gpus") else []),
            *(["--publish", f"127.0.0.1:{spec['ssh_port']}:22"] if "ssh_port" in spec else []),
            *others,
            *self._attach(host, first),
            "--network",
            self.network(first),
            image,
            *init,
        )
        for network in rest:
            self.engine("network", "connect", *self._attach(host, network), self.network(network), name)
        for source, target in inventory.files_for(host, spec, STATE).items():
            self.engine("cp", str(source), f"{name}:{target}")

    def _attach(self, host: str, network: str) -> list[str]:
        return [
            "--ip",
            inventory.address(self.spec, host, network),
            "--ip6",
            inventory.address(self.spec, host, network, 6),
        ]

    def _await(self, host: str) -> None:
        """Wait for systemd and sshd; the source address that sshd sees must be management's gateway."""
        deadline = time.monotonic() + 120 * self.patience
        name = self.container(host)
        while True:
            state = run(
                [*self.engine.prefix, "docker", "exec", name, "systemctl", "is-system-running"], check=False
            ).stdout.strip()
            login = run(["ssh", "-F", str(STATE / "ssh_config"), host, "echo $SSH_CONNECTION"], check=False, timeout=60)
            if state in ("running", "degraded") and login.returncode == 0:
                break
            if time.monotonic() > deadline:
                logs = run([*self.engine.prefix, "docker", "logs", "--tail", "20", name], check=False)
                raise ClusterError(
                    f"{host} is {state or 'down'} after 120 s; ssh says: {login.stderr.strip()}; {logs.stdout[-500:]}"
                )
            time.sleep(0.5)
        if "ssh_port" in self.spec["hosts"][host]:
            seen = login.stdout.split()[0]
            gateway = inventory.gateway(self.spec, "management")
            if seen != gateway:
                raise ClusterError(f"sshd on {host} sees {seen} instead of management's gateway {gateway}")

    def down(self) -> None:
        """Remove containers, networks, the hosts' cgroups and our files."""
        containers = self.engine.lines("ps", "-aq", "--filter", f"label={LABEL}")
        if containers:
            self.engine("rm", "-f", "-v", *containers)
        for network in self.engine.lines("network", "ls", "-q", "--filter", f"label={LABEL}"):
            self.engine("network", "rm", network)
        # Slurm's job groups lie at the root on v1 and outlive the container.
        for host in self.spec["hosts"]:
            for group in sorted(pathlib.Path("/sys/fs/cgroup").glob(f"*/slurm_{host}"), reverse=True):
                run(root(["find", str(group), "-depth", "-type", "d", "-exec", "rmdir", "{}", ";"]), check=False)
        shutil.rmtree(STATE, ignore_errors=True)
        inventory.path(REPO).unlink(missing_ok=True)

    def _snapshot_image(self, name: str, host: str) -> str:
        return f"{SNAPSHOT}:{name}-{host}"

    def snapshot(self, name: str) -> None:
        """Keep the state of all hosts under a name; the cluster goes on."""
        there = self.running()
        if not there:
            raise ClusterError("no cluster is up: `make up` first")
        with phase(f"snapshot {name}"):
            for host in self.spec["hosts"]:
                change = json.dumps({"release": there["release"]})
                self.engine(
                    "commit",
                    "--change",
                    f"LABEL gpuops.tenancy.snapshot={json.dumps(change)}",
                    self.container(host),
                    self._snapshot_image(name, host),
                )

    def has_snapshot(self, name: str) -> bool:
        return all(self.engine.ok("image", "inspect", self._snapshot_image(name, host)) for host in self.spec["hosts"])

    def restore(self, name: str) -> None:
        """Replace the running cluster, if any, by a snapshot."""
        if not self.has_snapshot(name):
            raise ClusterError(f"there is no snapshot {name!r}")
        label = self.engine(
            "image",
            "inspect",
            "--format",
            '{{index .Config.Labels "gpuops.tenancy.snapshot"}}',
            self._snapshot_image(name, next(iter(self.spec["hosts"]))),
        )
        self.down()
        self.up(json.loads(label)["release"], {host: self._snapshot_image(name, host) for host in self.spec["hosts"]})

    def forget(self, prefix: str = "", keep: str = "") -> None:
        """Remove the snapshots whose name starts with a prefix, all but one."""
        for image in self.engine.lines("images", "--format", "{{.Repository}}:{{.Tag}}", SNAPSHOT):
            if image.startswith(f"{SNAPSHOT}:{prefix}") and not (keep and image.startswith(f"{SNAPSHOT}:{keep}-")):
                self.engine.ok("rmi", image)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    for name, text in (
        ("up", "bring the hosts up (bare; site.yml makes a cluster of them)"),
        ("converged", "bring the hosts up with site.yml already run, from a snapshot if one is current"),
        ("build", "make the host image"),
    ):
        commands.add_parser(name, help=text).add_argument(
            "--release", default="12", choices=sorted(definition()["releases"])
        )
    commands.add_parser("keep", help="keep the hosts' state as what site.yml makes").add_argument(
        "--release", default="12"
    )
    down = commands.add_parser("down", help="remove containers, networks, cgroups and files")
    down.add_argument("--only", choices=PURPOSES, help="leave a cluster alone that is there for another purpose")
    down.add_argument("--keep-engine", action="store_true", help="leave a daemon running that we started")
    for name, text in (("snapshot", "keep the hosts' state"), ("restore", "go back to a kept state")):
        commands.add_parser(name, help=text).add_argument("name")
    commands.add_parser("forget", help="remove all snapshots")
    commands.add_parser("clean", help="down, and remove snapshots and images too")
    parser.add_argument("--purpose", choices=PURPOSES, default="demo", help="what a new cluster is for")
    args = parser.parse_args()

    engine = Engine()
    cluster = Cluster(definition(), engine, args.purpose)
    try:
        engine.start()
        if args.command == "up":
            cluster.up(args.release)
        elif args.command == "converged":
            converged(cluster, args.release)
        elif args.command == "keep":
            keep(cluster, args.release)
        elif args.command == "down":
            there = cluster.running()
            if not (args.only and there and (there["purpose"], there["clone"]) != (args.only, str(REPO))):
                cluster.down()
                if not args.keep_engine:
                    engine.stop()
        elif args.command == "build":
            print(build(engine, definition()["releases"][args.release]["codename"]))
        elif args.command in ("snapshot", "restore"):
            getattr(cluster, args.command)(args.name)
        elif args.command == "forget":
            cluster.forget()
        elif args.command == "clean":
            cluster.down()
            for image in engine.lines("images", "--format", "{{.Repository}}:{{.Tag}}", "gpuops-tenancy/*"):
                engine("rmi", image)
            engine.stop()
    except ClusterError as error:
        print(f"cluster: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
