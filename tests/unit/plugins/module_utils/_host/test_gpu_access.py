# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import tempfile

import pytest
from ansible_collections.gpuops.tenancy.plugins.module_utils._host import (
    cgroups,
    device_probe,
    gpu_containers,
    gpu_devices,
    local_accounts,
)
from ansible_collections.gpuops.tenancy.plugins.module_utils._host.device_probe import Attempt, Result
from ansible_collections.gpuops.tenancy.plugins.modules import gpu_access_info, slurm_gres_info

V1 = """30 29 0:26 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd
31 29 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
32 29 0:28 / /sys/fs/cgroup/devices rw,nosuid - cgroup cgroup rw,devices
"""
V2 = "30 29 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"


def test_where_device_rules_are():
    assert cgroups.parse(V1) == cgroups.Hierarchy(1, "/sys/fs/cgroup/devices", "/sys/fs/cgroup/systemd")
    assert cgroups.parse(V2) == cgroups.Hierarchy(2, "/sys/fs/cgroup", "/sys/fs/cgroup")
    with pytest.raises(cgroups.NoHierarchy):
        cgroups.parse("1 1 0:1 / /proc rw - proc proc rw\n")


def test_where_a_process_is():
    text = "5:devices:/system.slice/cron.service\n1:name=systemd:/x\n0::/user.slice\n"
    assert cgroups.membership(text, 1) == "/system.slice/cron.service"
    assert cgroups.membership(text, 2) == "/user.slice"
    assert cgroups.membership("1:name=systemd:/x\n", 1) is None


def test_the_cgroup_that_decides_is_that_of_the_processes(tmp_path, monkeypatch):
    (tmp_path / "user.slice" / "user-7.slice" / "session-1.scope").mkdir(parents=True)
    (tmp_path / "user.slice" / "user-7.slice" / "cgroup.procs").write_text("")
    (tmp_path / "user.slice" / "user-7.slice" / "session-1.scope" / "cgroup.procs").write_text("13\n14\n15\n")
    hierarchy = cgroups.Hierarchy(1, "/devices", str(tmp_path))
    assert hierarchy.unit_pids("/user.slice/user-7.slice") == [13, 14, 15]
    # 13 has been there since before the policy; 15 has just ended.
    groups = {13: "/user.slice", 14: "/user.slice/user-7.slice", 15: None}
    monkeypatch.setattr(cgroups.Hierarchy, "of_process", lambda self, pid: groups[pid])
    assert hierarchy.deciding("/user.slice/user-7.slice") == ["/user.slice", "/user.slice/user-7.slice"]
    assert hierarchy.deciding("/nothing") == []
    assert hierarchy.folder("/user.slice") == "/devices/user.slice"


@pytest.mark.parametrize(
    ("group", "job"),
    [
        ("/slurm_gpu1/uid_10000/job_7/step_extern/task_0", True),
        ("/slurm/uid_0/job_12", True),
        ("/system.slice/gpu1_slurmstepd.scope/job_3/step_0/user/task_0", True),
        ("/system.slice/slurmstepd.scope/job_3", True),
        ("/system.slice/slurmd.service", False),
        # What a user can make in his own tree.
        ("/user.slice/user-7.slice/user@7.service/slurm/uid_0/job_1", False),
        ("/slurm/uid_0", False),
    ],
)
def test_a_job_is_not_the_service_that_started_it(group, job, monkeypatch):
    assert bool(cgroups.JOB.match(group)) is job
    monkeypatch.setattr(cgroups.Hierarchy, "unit_pids", lambda self, path: [1])
    monkeypatch.setattr(cgroups.Hierarchy, "of_process", lambda self, pid: group)
    assert cgroups.Hierarchy(1, "/d", "/u").deciding("/x") == ([] if job else [group])


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/dev/nvidia0", "gpu"),
        ("/dev/nvidia17", "gpu"),
        ("/dev/nvidiactl", "control"),
        ("/dev/nvidia-uvm-tools", "control"),
        ("/dev/nvidia-caps/nvidia-cap1", "admin"),
        ("/dev/nvidia-caps/nvidia-cap2", "admin"),
        ("/dev/nvidia-caps/nvidia-cap21", "instance"),
        ("/dev/nvidia-caps-imex-channels/channel0", "other"),
        ("/dev/nvidia-vgpu7", "other"),
    ],
)
def test_kinds_of_nodes(path, kind):
    assert gpu_devices.Node(path).kind == kind


@pytest.mark.parametrize(
    ("path", "mode", "listed", "says"),
    [
        ("/dev/nvidia4", 0o666, ["/dev/nvidia0"], "/dev/nvidia4 is not in gres.conf"),
        ("/dev/nvidia4", 0o600, [], "/dev/nvidia4 is not in gres.conf"),
        ("/dev/nvidia0", 0o666, ["/dev/nvidia0"], ""),
        ("/dev/nvidiactl", 0o666, [], ""),
        ("/dev/nvidia-caps/nvidia-cap21", 0o444, [], "nvidia-cap21 is not in gres.conf"),
        ("/dev/nvidia-caps/nvidia-cap21", 0o400, [], ""),
        ("/dev/nvidia-caps/nvidia-cap1", 0o400, [], ""),
        ("/dev/nvidia-caps/nvidia-cap1", 0o444, [], "everybody's MIG instances; make it 0400"),
        ("/dev/nvidia-caps/nvidia-cap1", 0o400, ["/dev/nvidia-caps/nvidia-cap1"], "given to jobs"),
        ("/dev/nvidia-caps-imex-channels/channel0", 0o666, [], "channel0 is not in gres.conf"),
    ],
)
def test_what_would_open_in_every_job(path, mode, listed, says):
    found = gpu_devices.problems([gpu_devices.Node(path, mode)], listed)
    assert len(found) == bool(says)
    assert says in " ".join(found)


def test_reading_takes_character_devices_only(tmp_path):
    (tmp_path / "nvidia0").write_text("")
    assert gpu_devices.read([str(tmp_path), str(tmp_path / "absent")]) == []


@pytest.mark.parametrize(
    ("attempt", "verdict"),
    [
        (Attempt("a", True, Result({"/dev/nvidia0": "EPERM", "/dev/nvidia1": "EACCES"})), "pass"),
        (Attempt("a", True, Result({"/dev/nvidia0": "EPERM", "/dev/nvidia1": "ENXIO"})), "fail"),
        (Attempt("a", True, Result({"/dev/nvidia0": "opened"})), "fail"),
        # What could not be tried is no pass.
        (Attempt("a", True, Result({}, "no cgroup")), "fail"),
        (Attempt("a", True, Result({})), "fail"),
        (Attempt("a", True, None, "it does not run"), "absent"),
        (Attempt("a", False, Result({"/dev/nvidia0": "ENXIO"})), "pass"),
        (Attempt("a", False, Result({"/dev/nvidia0": "opened", "/dev/nvidia1": "EPERM"})), "fail"),
        (Attempt("a", False, Result({"/dev/nvidia-caps/nvidia-cap9": "EIO"})), "pass"),
    ],
)
def test_verdicts(attempt, verdict):
    assert attempt.verdict == verdict
    if verdict == "fail":
        assert attempt.way in gpu_access_info.sentence(attempt)


def opened(*paths) -> dict[str, str]:
    argv = [sys.executable, "-I", "-c", device_probe.CODE, *map(str, paths)]
    return device_probe.parse(subprocess.run(argv, capture_output=True, text=True, check=True).stdout)


def test_opening_says_what_the_kernel_said(tmp_path):
    (tmp_path / "a b").write_text("")
    assert opened(tmp_path / "a b", tmp_path / "absent") == {
        f"{tmp_path}/a b": "opened",
        f"{tmp_path}/absent": "ENOENT",
    }


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
def test_a_child_becomes_the_user(tmp_path):
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        place = pathlib.Path(folder)
        for name, mode in (("cgroup.procs", 0o600), ("secret", 0o600), ("capability", 0o444)):
            (place / name).write_text("")
            (place / name).chmod(mode)
        found = device_probe.in_cgroup(folder, [f"{folder}/secret", f"{folder}/capability"], 65534, 65534)
        # A file that may only be read is open all the same.
        assert found.answers == {f"{folder}/secret": "EACCES", f"{folder}/capability": "opened"}
        assert int((place / "cgroup.procs").read_text()) > 0
        lost = device_probe.in_cgroup(f"{folder}/absent", [f"{folder}/secret"], 65534, 65534)
    assert not lost.answers
    assert "absent" in lost.problem


def test_containers_at_risk():
    has = ("/dev/nvidia0", "/dev/nvidiactl")
    containers = [
        gpu_containers.Container("docker-a.scope", has, ("/dev/null",)),
        gpu_containers.Container("docker-b.scope", (), ()),
        gpu_containers.Container("libpod-c.scope", has, ("/dev/nvidia0", "/dev/nvidiactl")),
        gpu_containers.Container("docker-d.scope", has, ("/dev/char/195:0",)),
    ]
    assert gpu_containers.at_risk(containers) == ["docker-a.scope"]
    assert gpu_containers.SCOPE.match("docker-0f3a.scope")
    assert not gpu_containers.SCOPE.match("session-1.scope")


def test_local_accounts(tmp_path):
    passwd, group = tmp_path / "passwd", tmp_path / "group"
    passwd.write_text(
        "root:x:0:0:root:/root:/bin/bash\n+::::::\ndeploy:x:998:997::/home/deploy:/bin/sh\nbroken:x:a:b::/:/\n"
    )
    group.write_text("tenancy-admins:x:900:root,deploy\nempty:x:901:\n")
    assert local_accounts.uids(["deploy", "root"], str(passwd)) == [0, 998]
    with pytest.raises(local_accounts.AccountError, match="eve is not in"):
        local_accounts.uids(["eve"], str(passwd))
    found = local_accounts.groups(str(group))
    assert (found["tenancy-admins"].members, found["empty"].members) == (("root", "deploy"), ())


def test_what_slurmd_finds():
    said = "slurmd: Gres Name=gpu Type=h100 Count=1 File=/dev/nvidia0 (null)\nGres Name=gpu Count=2 File=/dev/nvidia[1-2]\nGres Name=x\n"
    assert slurm_gres_info.detected(said) == ["/dev/nvidia0", "/dev/nvidia1", "/dev/nvidia2"]
    assert slurm_gres_info.detects("AutoDetect=nvml\n")
    assert slurm_gres_info.detects("NodeName=a AutoDetect=nvidia\n")
    assert not slurm_gres_info.detects("AutoDetect=off\n# AutoDetect=nvml\n")
