# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Devices: the scheduler is the only path to a GPU."""

from __future__ import annotations

import ctypes
import glob
import os
import re
import stat
import tempfile

from ..api import EVERYWHERE, IN_JOB, NO_JOB, NotProven, failed, name, opened, passed, probe, skipped

CONSTRAIN = "slurm_compute: ConstrainDevices=yes in cgroup.conf"
NO_JOB_CONTROL = {
    "login": "gpu_access: device policy of user slices (user-.slice.d)",
    "ssh": "node_login: pam_slurm_adopt; gpu_access: device policies",
    "cron": "gpu_access: device policy of cron; node_hygiene: who may use cron",
    "at": "gpu_access: device policy of atd; node_hygiene: who may use at",
    "user-manager": "gpu_access: device policy of user slices; node_login: no user managers on compute nodes",
    "service": "gpu_access: device policy of the services in gpu_access_services_extra",
}
CONTROL = {
    **NO_JOB_CONTROL,
    "": CONSTRAIN,
    "ssh-job": f"node_login: pam_slurm_adopt in the right place, pam_systemd off; {CONSTRAIN}",
}
# The device cgroup says EPERM, a file mode EACCES. ENXIO is a device without a driver: it was let through.
DENIED = ("EPERM", "EACCES")


def attack(paths: list[str], allowed: int, what: str, given: list[list[str]] | None = None):
    """Open each; more than ``allowed`` of them must not open, and no other than those of one of ``given``, if it is known."""
    if not paths:
        return skipped(f"no {what} on this host")
    answers = {path: opened(path) or "opened" for path in paths}
    gone = [path for path, said in answers.items() if said == "ENOENT"]
    through = [path for path, said in answers.items() if said not in DENIED and path not in gone]
    evidence = ", ".join(f"{path} {said}" for path, said in sorted(answers.items()))
    if given is not None:
        evidence += f"; the job was given {' or '.join(' '.join(files) for files in given)}"
        return passed(evidence) if any(set(through) <= set(files) for files in given) else failed(evidence)
    return failed(evidence) if len(through) > allowed else passed(evidence)


@probe("gpu-device", "opens no GPU that the scheduler did not give", CONTROL, EVERYWHERE, actors=("a", "none"))
def gpu_device(world):
    """Open every /dev/nvidiaN and look at errno: EPERM is the device cgroup, EACCES a file mode, all else is access.

    In a job, those that open must be the ones that slurmctld says the job has (scontrol -d show job, gres.conf); where
    gres.conf leaves them to slurmd, they are only counted.
    """
    paths = sorted(path for path in glob.glob("/dev/nvidia*") if re.fullmatch(r"/dev/nvidia\d+", path))
    found = attack(paths, world.gpus, "/dev/nvidiaN", world.devices)
    if world.gpus and found.verdict == "pass" and paths:
        denied = sum(opened(path) in DENIED for path in paths)
        if len(paths) - denied < world.gpus:
            raise NotProven(f"the job's own GPU does not open either: {found.evidence}")
    return found


@probe("gpu-control", "opens none of NVIDIA's control devices without a job", NO_JOB_CONTROL, NO_JOB)
def gpu_control(world):
    """Open /dev/nvidiactl, /dev/nvidia-uvm, /dev/nvidia-uvm-tools, /dev/nvidia-modeset and /dev/nvidia-nvswitch*."""
    names = ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset", "nvidia-nvswitch*")
    return attack(sorted(path for item in names for path in glob.glob(f"/dev/{item}")), 0, "NVIDIA control device")


@probe(
    "mig-admin",
    "cannot make, destroy or monitor everybody's MIG instances",
    {
        **CONTROL,
        "": "driver: file modes of nvidia-cap1 and nvidia-cap2, which are root's; slurm_compute: gres.conf lists neither",
    },
    EVERYWHERE,
    actors=("a", "none"),
)
def mig_admin(world):
    """Open /dev/nvidia-caps/nvidia-cap1 and nvidia-cap2."""
    paths = [path for path in ("/dev/nvidia-caps/nvidia-cap1", "/dev/nvidia-caps/nvidia-cap2") if os.path.exists(path)]
    return attack(paths, 0, "nvidia-cap1 or nvidia-cap2")


@probe("mig-instance", "opens no MIG instance that the scheduler did not give", CONTROL, EVERYWHERE)
def mig_instance(world):
    """Open every other /dev/nvidia-caps/*. An instance has two: of the GPU instance and of the compute instance."""
    admin = ("nvidia-cap1", "nvidia-cap2")
    paths = [path for path in sorted(glob.glob("/dev/nvidia-caps/*")) if os.path.basename(path) not in admin]
    return attack(paths, 2 * world.gpus, "MIG instance", world.devices)


@probe("imex-channel", "opens no IMEX channel without a job, and not more than one in it", CONTROL, EVERYWHERE)
def imex_channel(world):
    """Open every /dev/nvidia-caps-imex-channels/*."""
    return attack(sorted(glob.glob("/dev/nvidia-caps-imex-channels/*")), 1 if world.gpus else 0, "IMEX channel")


@probe("dri-device", "opens no GPU by way of /dev/dri", CONTROL, EVERYWHERE)
def dri_device(world):
    """Open every /dev/dri/card* and /dev/dri/renderD*."""
    paths = [path for path in sorted(glob.glob("/dev/dri/*")) if stat.S_ISCHR(os.stat(path).st_mode)]
    return attack(paths, 2 * world.gpus, "/dev/dri device")


@probe(
    "make-device",
    "cannot make a device node of its own",
    "kernel: CAP_MKNOD belongs to the first user namespace, and users do not have it",
    ("login", *IN_JOB),
)
def make_device(world):
    """mknod of NVIDIA's major in a directory of its own, and in a container mount of devtmpfs."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "gpu")
        try:
            os.mknod(path, 0o600 | stat.S_IFCHR, os.makedev(195, 0))
        except OSError as error:
            said = [f"mknod {name(error.errno)}"]
        else:
            through = opened(path)
            os.unlink(path)
            # In a user namespace a node may be made that nobody can open.
            if through not in DENIED:
                return failed(f"mknod worked, opening it: {through or 'opened'}")
            said = [f"mknod worked, opening it {through}"]
        if world.context == "container":
            libc = ctypes.CDLL(None, use_errno=True)
            if libc.mount(b"devtmpfs", folder.encode(), b"devtmpfs", 0, None) == 0:
                libc.umount2(folder.encode(), 2)
                return failed("mount of devtmpfs worked")
            said.append(f"mount of devtmpfs {name(ctypes.get_errno())}")
    return passed(", ".join(said))
