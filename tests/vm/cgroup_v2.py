# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Show that the cluster comes up and isolates on a machine with cgroup v2 and a newer docker.

Runs tests/cluster, the playbooks and attest's probes of nodes against Debian 13's docker in a virtual machine. Slow
(software emulation), so no part of `make test`. Ends with 0 and says SKIPPED where qemu cannot run.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from vm import CannotEmulateError, Machine

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cluster"))
from cluster import Cluster
from converge import play
from definition import definition
from engine import ClusterError, Engine, phase
from image import build
from remote import gpus_seen, said

# One node of each partition.
HOSTS = ("ctl", "login", "gpu1", "gpu3")
# What the hierarchy has a say in.
PROBES = [
    "gpu-device", "gpu-control", "dri-device", "imex-channel", "mig-instance", "make-device", "memory",
    "process-left", "process-limit", "node-login", "run-user", "see-processes", "read-environment",
    "read-memory", "signal", "ptrace", "ptrace-own", "private-files", "job-tmp", "job-shm", "job-spool", "ipc",
]  # fmt: skip


def bring_image(codename: str) -> None:
    """The host image, made on this machine, goes into the virtual one: emulation would take minutes for it."""
    here = Engine()
    here.start()
    name = build(here, codename)
    with phase("host image into the virtual machine"):
        save = subprocess.Popen([*here.prefix, "docker", "save", name], stdout=subprocess.PIPE)
        subprocess.run(["docker", "-H", os.environ["TENANCY_VM_DOCKER"], "load", "-q"], stdin=save.stdout, check=True)
        if save.wait() != 0:
            raise ClusterError(f"cannot save {name}")


def attest() -> list[dict[str, str]]:
    """What attest says of the nodes; no claim may fail, and none go untried."""
    with tempfile.TemporaryDirectory() as folder:
        wanted = {"attest_report_dir": folder, "attest_only": PROBES, "attest_job_deadline": 600}
        done = play("playbooks/attest.yml", "-e", json.dumps(wanted), check=False)
        answers = json.loads((pathlib.Path(folder) / "attest.json").read_text())["answers"]
    print("attest:", dict(collections.Counter(row["verdict"] for row in answers)))
    wrong = [row for row in answers if row["verdict"] in ("FAIL", "error")]
    for row in wrong:
        print(f"{row['probe']} {row['host']}/{row['context']}: {row['verdict']}, {row['evidence']}")
    assert done.returncode == 0 and not wrong, f"attest.yml ended with {done.returncode}"
    return answers


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--release", default="13", choices=sorted(definition()["releases"]))
    release = parser.parse_args().release
    os.environ["TENANCY_TESTBED"] = "vm"
    spec = definition()
    spec["hosts"] = {host: spec["hosts"][host] for host in HOSTS}
    machine = Machine()
    try:
        machine.build()
        machine.start([spec["hosts"][host]["ssh_port"] for host in HOSTS])
        os.environ["TENANCY_VM_DOCKER"] = os.environ.pop("DOCKER_HOST")
        bring_image(spec["releases"][release]["codename"])
        os.environ["DOCKER_HOST"] = os.environ["TENANCY_VM_DOCKER"]
        engine = Engine()
        engine.start()
        cluster = Cluster(spec, engine, patience=10)
        cluster.up(release)
        try:
            with phase("site.yml"):
                play("playbooks/site.yml")
            with phase("onboard.yml"):
                play("playbooks/onboard.yml", "-e", "tenant=tenant-foo", "-e", "tenancy_smoke_deadline=300")
            print(
                "engine:",
                engine("version", "--format", "{{.Server.Version}}"),
                "cgroup",
                engine("info", "--format", "{{.CgroupVersion}}"),
            )
            print("Slurm:", said("gpu1", "slurmd", "-V"), "on", said("gpu1", "stat", "-fc", "%T", "/sys/fs/cgroup"))
            seen = gpus_seen("login", "srun", "--gres=gpu:1", "-n1", user="alice")
            print("alice, --gres=gpu:1:", seen)
            none = gpus_seen("login", "srun", "-n1", user="alice")
            print("alice, no gres:", none)
            assert sorted(seen.values()) == ["ENXIO", "EPERM", "EPERM", "EPERM"], seen
            assert set(none.values()) == {"EPERM"}, none
            print("cgroup v2: one device opened, three denied")
            with phase("sessions, cron, at, and isolate.yml again"):
                play("molecule/shared/devices.yml")
                play("molecule/shared/furnish.yml")
            with phase("attest.yml"):
                tried = {(row["probe"], row["context"]) for row in attest() if row["verdict"] == "pass"}
            assert {("gpu-device", "job"), ("gpu-device", "ssh-job"), ("memory", "job")} <= tried, tried
        finally:
            cluster.down()
    except CannotEmulateError as error:
        print(f"cgroup_v2: SKIPPED, nothing was tried: {error}", file=sys.stderr)
    except (ClusterError, AssertionError) as error:
        print(f"cgroup_v2: {error}", file=sys.stderr)
        return 1
    finally:
        machine.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
