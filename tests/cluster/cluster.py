# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A real Slurm cluster in containers: up, down, snapshot, restore.

What it consists of stands in cluster.yml; TENANCY_TESTBED names the one to work on (demo).
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import shutil
import sys
import time

import inventory
from converge import converged, keep
from definition import address, definition, gateway, shared, state
from engine import BUILDER, LABEL, REPO, ClusterError, Engine, phase, root, run
from image import build

SNAPSHOT = "gpuops-tenancy/snapshot"
# What systemd, Slurm and nftables need; --privileged is neither needed nor wanted.
CAPABILITIES = ["SYS_ADMIN", "NET_ADMIN", "SYS_PTRACE", "SYS_NICE", "DAC_READ_SEARCH", "IPC_LOCK", "AUDIT_CONTROL"]
# Majors that no driver has here, for the further device nodes that molecule/shared/devices.yml makes.
SPARE = ["234:1", "234:2", "234:33", "234:34", "235:0", "236:0", "237:0"]


# A host's systemd and D-Bus take five instances, all of them root's; the kernel's default of 128 ends at four clusters.
INOTIFY = pathlib.Path("/proc/sys/fs/inotify/max_user_instances")
INSTANCES = 1024


def devices(gpus: int) -> list[str]:
    """MAJOR:MINOR of what a host with GPUs may open: they themselves, nvidia-modeset, nvidiactl, and the spare ones."""
    return [f"195:{number}" for number in [*range(gpus), 254, 255]] + SPARE if gpus else []


def raise_inotify_limit() -> None:
    """Without it the systemd of the next host hangs and says nothing."""
    there = int(INOTIFY.read_text())
    if there < INSTANCES:
        print(
            f"cluster: fs.inotify.max_user_instances raised from {there} to {INSTANCES} until reboot", file=sys.stderr
        )
        run(root(["tee", str(INOTIFY)]), stdin=str(INSTANCES))


# Slurm before 23.11 leaves Nagle's algorithm on: each message to slurmdbd waits 40 ms for the acknowledgement of the one
# before, a sacctmgr half a second. Acknowledged at once, the tests on Debian 12 take a fraction of the time.
QUICKACK = (
    "for table in local main; do ip route show table $table | grep -E '^(local|[0-9])' | while read -r route; do"
    " ip route change $route table $table quickack 1; done; done"
)

# Linux 6.18 numbers namespaces out of blocks of 4096, one block for each CPU, and lets a mount namespace be bound only
# where its number is higher than one's own: which CPU runs slurmd then decides whether job_container/tmpfs works. Hosts
# begin with blocks that are younger than themselves.
NEWUTS = 0x04000000
YOUNGER_NAMESPACES = (
    'python3 -c "import ctypes, os; unshare = ctypes.CDLL(None).unshare;'
    f" [(os.sched_setaffinity(0, [cpu]), [unshare({NEWUTS}) for _ in range(4096)])"
    ' for cpu in os.sched_getaffinity(0)]"'
)


class Cluster:
    """The containers of cluster.yml and the files that lead to them."""

    def __init__(self, spec: dict, engine: Engine, patience: float = 1):
        self.spec = spec
        self.engine = engine
        self.state = state(spec["testbed"])
        self.mark = f"{LABEL}={spec['testbed']}"
        self.patience = patience  # factor on time limits, for emulated machines

    def container(self, host: str) -> str:
        return f"{self.spec['name']}-{host}"

    def network(self, name: str) -> str:
        # The engine publishes ports through the first network by name that is not internal.
        return f"{self.spec['name']}-{name}"

    def running(self) -> dict | None:
        """Release and clone of the cluster that exists on this machine in this testbed, or None."""
        found = self.engine.lines(
            "ps", "-a", "--filter", f"label={self.mark}", "--format", '{{.Label "' + LABEL + '.made"}}'
        )
        return json.loads(found[0]) if found else None

    def refuse_second(self) -> None:
        """One cluster at a time in a testbed: its addresses and ports are fixed."""
        there = self.running()
        if there:
            raise ClusterError(
                f"a {self.spec['testbed']} cluster (Debian {there['release']}, from {there['clone']}) is already up: `make down` there first"
            )

    def _claim(self) -> None:
        """Create the networks. The engine gives a name and a subnet once: of two `up` at a time one ends here."""
        for network in self.engine.lines("network", "ls", "-q", "--filter", f"label={self.mark}"):
            maker = self.engine("network", "inspect", "--format", '{{index .Labels "' + LABEL + '.pid"}}', network)
            if pathlib.Path(f"/proc/{maker}").exists():
                raise ClusterError(f"process {maker} is bringing a {self.spec['testbed']} cluster up")
            self.engine("network", "rm", network)
        for name, net in self.spec["networks"].items():
            self.engine(
                "network",
                "create",
                "--label",
                self.mark,
                "--label",
                f"{LABEL}.pid={os.getpid()}",
                *(["--internal"] if net["internal"] else []),
                "--ipv6",
                "--subnet",
                net["ipv4"],
                "--subnet",
                net["ipv6"],
                self.network(name),
            )

    def up(self, release: str, images: dict[str, str] | None = None) -> None:
        """Create networks and hosts and wait until each is reachable by ssh.

        images: host -> image, for a restore; else every host starts from the release's image.
        """
        self.refuse_second()
        rel = self.spec["releases"][release]
        image = None if images else build(self.engine, rel["codename"])
        with phase(f"cluster of {len(self.spec['hosts'])} hosts on Debian {release}"):
            self._claim()
            raise_inotify_limit()
            try:
                inventory.write_keys(self.spec, self.state, [*self.engine.prefix, "docker"])
                for host in self.spec["hosts"]:
                    self._create(host, release, images[host] if images else image)
                for host in self.spec["hosts"]:
                    # One after another: systemd in many containers at once fails now and then at its cgroups.
                    self.engine("start", self.container(host))
                inventory.write(self.spec, self.state)
                for host in self.spec["hosts"]:
                    self._await(host)
            except BaseException:
                self.down()
                raise

    def _create(self, host: str, release: str, image: str) -> None:
        spec = self.spec["hosts"][host]
        name = self.container(host)
        made = json.dumps({"release": release, "clone": str(REPO)})
        # A cgroup namespace of its own, so that clusters do not meet; the engine mounts it read-only, on v1 each
        # controller apart.
        writable = (
            "while read -r _ place kind _; do case $kind in cgroup|cgroup2) mount -o remount,bind,rw $place;; esac;"
            " done </proc/mounts"
        )
        init = [
            "/bin/sh",
            "-c",
            f'{writable}; {QUICKACK}; {YOUNGER_NAMESPACES}; exec "$@"',
            "init",
            *self.spec["releases"][release]["init"],
        ]
        # A name means the address in the cluster network; the others are there for the way back (slurmctld looks up
        # whatever address a multi-homed host gives as its own).
        others = [
            f"--add-host={other}:{address(self.spec, other, network)}"
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
            self.mark,
            "--label",
            f"{LABEL}.made={made}",
            *[f"--cap-add={cap}" for cap in CAPABILITIES],
            "--security-opt",
            "seccomp=unconfined",
            "--security-opt",
            "apparmor=unconfined",
            "--cgroupns",
            "private",
            "--tmpfs",
            "/run:exec",
            "--tmpfs",
            "/run/lock",
            "--stop-signal",
            "SIGRTMIN+3",
            # One rule for each: on v1, a group below that denies 195:1 does not get past a rule for 195:*.
            *[f"--device-cgroup-rule=c {number} rwm" for number in devices(spec.get("gpus", 0))],
            *(["--publish", f"127.0.0.1:{spec['ssh_port']}:22"] if spec["published"] else []),
            *others,
            # The volume has no name: it goes with its host.
            *([f"--volume={shared(self.spec)[host]}"] if host in shared(self.spec) else []),
            *([f"--volumes-from={self.container(spec['shares']['of'])}"] if "shares" in spec else []),
            *self._attach(host, first),
            "--network",
            self.network(first),
            image,
            *init,
        )
        for network in rest:
            self.engine("network", "connect", *self._attach(host, network), self.network(network), name)
        self.engine.put(name, inventory.files_for(host, spec, self.state))

    def _attach(self, host: str, network: str) -> list[str]:
        return [
            "--ip",
            address(self.spec, host, network),
            "--ip6",
            address(self.spec, host, network, 6),
        ]

    def _await(self, host: str) -> None:
        """Wait for systemd and sshd; the source address that sshd sees must be management's gateway."""
        deadline = time.monotonic() + 120 * self.patience
        name = self.container(host)
        while True:
            state = run(
                [*self.engine.prefix, "docker", "exec", name, "systemctl", "is-system-running"], check=False
            ).stdout.strip()
            login = run(
                ["ssh", "-F", str(self.state / "ssh_config"), host, "echo $SSH_CONNECTION"], check=False, timeout=60
            )
            if state in ("running", "degraded") and login.returncode == 0:
                break
            if time.monotonic() > deadline:
                logs = run([*self.engine.prefix, "docker", "logs", "--tail", "20", name], check=False)
                raise ClusterError(
                    f"{host} is {state or 'down'} after 120 s; ssh says: {login.stderr.strip()}; {logs.stdout[-500:]}"
                )
            time.sleep(0.5)
        if self.spec["hosts"][host]["published"]:
            seen = login.stdout.split()[0]
            expected = gateway(self.spec, "management")
            if seen != expected:
                raise ClusterError(f"sshd on {host} sees {seen} instead of management's gateway {expected}")

    def refuse_foreign(self) -> None:
        """A cluster of another clone is that clone's to remove, as long as it exists."""
        there = self.running()
        if there and there["clone"] != str(REPO) and pathlib.Path(there["clone"]).exists():
            raise ClusterError(f"the {self.spec['testbed']} cluster is from {there['clone']}: `make down` there")

    def down(self) -> None:
        """Remove containers (and with them their cgroups), networks and our files."""
        containers = self.engine.lines("ps", "-aq", "--filter", f"label={self.mark}")
        if containers:
            self.engine("rm", "-f", "-v", *containers)
        for network in self.engine.lines("network", "ls", "-q", "--filter", f"label={self.mark}"):
            self.engine("network", "rm", network)
        shutil.rmtree(self.state, ignore_errors=True)
        inventory.path(self.spec["testbed"]).unlink(missing_ok=True)

    def _snapshot_image(self, name: str, host: str) -> str:
        return f"{SNAPSHOT}:{name}-{host}"

    def snapshot(self, name: str) -> None:
        """Keep the state of all hosts under a name; the cluster goes on."""
        there = self.running()
        if not there:
            raise ClusterError("no cluster is up: `make up` first")
        if shared(self.spec):
            raise ClusterError("what hosts share would not be in the snapshot")
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


def clean(engine: Engine) -> int:
    """Remove all there is of this clone, and the images; what cannot be removed is named, and does not stop the rest."""
    left = []
    for name in definition()["testbeds"]:
        cluster = Cluster(definition(name), engine)
        try:
            cluster.refuse_foreign()
            cluster.down()
        except ClusterError as error:
            left.append(str(error))
    for container in engine.lines("ps", "-aq", "--filter", f"label={BUILDER}"):
        engine.ok("rm", "-f", container)
    for image in engine.lines("images", "--format", "{{.Repository}}:{{.Tag}}", "gpuops-tenancy/*"):
        if not engine.ok("rmi", image):
            left.append(f"image {image} is in use")
    engine.stop()
    for what in left:
        print(f"cluster: not removed: {what}", file=sys.stderr)
    return 1 if left else 0


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
    down.add_argument("--keep-engine", action="store_true", help="leave a daemon running that we started")
    for name, text in (("snapshot", "keep the hosts' state"), ("restore", "go back to a kept state")):
        commands.add_parser(name, help=text).add_argument("name")
    commands.add_parser("forget", help="remove all snapshots")
    commands.add_parser("clean", help="all of this clone's clusters down, and remove snapshots and images too")
    args = parser.parse_args()

    engine = Engine()
    try:
        cluster = Cluster(definition(), engine)
        engine.start()
        if args.command == "up":
            cluster.up(args.release)
        elif args.command == "converged":
            converged(cluster, args.release)
        elif args.command == "keep":
            keep(cluster, args.release)
        elif args.command == "down":
            cluster.refuse_foreign()
            cluster.down()
            if not args.keep_engine:
                engine.stop()
        elif args.command == "build":
            print(build(engine, cluster.spec["releases"][args.release]["codename"]))
        elif args.command in ("snapshot", "restore"):
            getattr(cluster, args.command)(args.name)
        elif args.command == "forget":
            cluster.forget()
        elif args.command == "clean":
            return clean(engine)
    except ClusterError as error:
        print(f"cluster: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
