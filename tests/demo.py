# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""`make demo`: a cluster, two tenants on it, and a look at what one of their users can do."""

from __future__ import annotations

import argparse
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "cluster"))
from cluster import Cluster
from converge import play
from definition import definition
from engine import REPO, ClusterError, Engine, phase
from remote import gpus_seen, on, said

PLAYS = (
    ("site.yml", []),
    ("onboard.yml", ["-e", "tenant=tenant-foo"]),
    ("onboard.yml", ["-e", "tenant=tenant-bar"]),
)


def heading(text: str) -> None:
    print(f"\n\033[1m{text}\033[0m" if sys.stdout.isatty() else f"\n{text}", flush=True)


def build(cluster: Cluster, release: str) -> None:
    """Hosts, then each playbook twice: the second run has nothing to do."""
    there = cluster.running()
    if there and (there["clone"], there["release"]) == (str(REPO), release):
        print(f"the Debian {release} cluster of this clone is up already: going on with it", file=sys.stderr)
    else:
        cluster.up(release)
    for playbook, args in PLAYS:
        with phase(f"{playbook} {' '.join(args)}"):
            play(f"playbooks/{playbook}", *args)
    for playbook, args in PLAYS:
        with phase(f"again: {playbook} {' '.join(args)}"):
            again = play(f"playbooks/{playbook}", *args, quiet=True)
        print(f"    changed={again.changed}", file=sys.stderr)
        if again.changed:
            raise ClusterError(f"the second run of {playbook} changed something:\n{again.stdout[-4000:]}")


def show() -> None:
    """What was built, as seen from the login host."""
    heading("The account tree, with limits")
    print(
        said(
            "ctl",
            "sacctmgr",
            "-n",
            "show",
            "assoc",
            "tree",
            "format=account%-22,user%-8,share%6,grptres%24,grpjobs%8,maxjobs%8,maxsubmit%10,qos%16,defaultqos%8",
        )
    )

    heading("alice runs a job:  srun --gres=gpu:1 -n1 hostname")
    print(said("login", "srun", "--gres=gpu:1", "-n1", "hostname", user="alice"))

    heading("What she can open of the node's four GPUs (ENXIO: allowed, there is no driver here; EPERM: denied)")
    for device, answer in gpus_seen("login", "srun", "--gres=gpu:1", "-n1", user="alice").items():
        print(f"  /dev/{device}  {answer}")

    heading("Her tenant may have 4 GPUs at once; she asks for two nodes of 4")
    job = said(
        "login",
        "sbatch",
        "--parsable",
        "-N2",
        "--gres=gpu:4",
        "--time=1",
        "--output=/dev/null",
        "--wrap=sleep 5",
        "--chdir=/",
        user="alice",
    )
    for _attempt in range(20):
        state = said("login", "squeue", "-h", "-j", job, "-o", "job %i: %T, reason %r", user="alice")
        if "AssocGrpGRES" in state:
            break
        time.sleep(0.5)
    print(state)
    said("login", "scancel", job, user="alice")

    heading("What bob of the other tenant sees of it:  squeue; sacct -a; sacctmgr show user alice")
    for argv in (["squeue", "-h"], ["sacct", "-nXa", "-S", "now-1hour"], ["sacctmgr", "-n", "show", "user", "alice"]):
        done = on("login", *argv, user="bob")
        print(f"  {' '.join(argv)}: {(done.stdout + done.stderr).strip() or '(nothing)'}")

    heading("Two commands to try next")
    print("  change a limit in inventories/demo/tenants/tenant-foo.yml, then see what a run would do:")
    print("    .build/venv/bin/ansible-playbook playbooks/onboard.yml -e tenant=tenant-foo --check --diff")
    print("  be root on the controller:")
    print("    ssh -F .build/cluster/demo/ssh_config ctl")
    print("\n`make down` removes everything again.")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--release", default="12", choices=sorted(definition()["releases"]))
    release = parser.parse_args().release
    engine = Engine()
    try:
        engine.start()
        with phase("the demo"):
            build(Cluster(definition(), engine), release)
            show()
    except (ClusterError, AssertionError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
