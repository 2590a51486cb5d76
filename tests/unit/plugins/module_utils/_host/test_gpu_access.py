# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import pathlib
import stat
import subprocess
import sys
import tempfile

import pytest
from ansible_collections.gpuops.tenancy.plugins.module_utils._host import (
    cgroups,
    device_probe,
    gpu_containers,
    gpu_devices,
    gpu_holders,
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
        ("/dev/nvidia-modeset", "control"),
        ("/dev/nvidia-nvswitch0", "fabric"),
        ("/dev/nvidia-nvswitch11", "fabric"),
        ("/dev/nvidia-nvswitchctl", "fabric"),
        ("/dev/nvidia-nvlink", "fabric"),
        ("/dev/dri/renderD128", "display"),
        ("/dev/dri/card0", "display"),
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
        ("/dev/nvidia-caps-imex-channels/channel0", 0o600, [], ""),
        ("/dev/nvidia-vgpu7", 0o666, [], "say in gpu_access_known_devices why"),
        # The driver makes them so, and asks for a right of its own.
        ("/dev/nvidia-nvswitch0", 0o666, [], ""),
        ("/dev/nvidia-nvlink", 0o666, [], ""),
        ("/dev/dri/renderD128", 0o666, [], "have udev make it 0660"),
        ("/dev/dri/renderD128", 0o660, [], ""),
        ("/dev/dri/renderD128", 0o666, ["/dev/nvidia0", "/dev/dri/renderD128"], ""),
    ],
)
def test_what_would_open_in_every_job(path, mode, listed, says):
    found = gpu_devices.problems([gpu_devices.Node(path, mode)], listed)
    assert len(found) == bool(says)
    assert says in " ".join(found)


def test_what_everybody_may_open():
    nodes = [
        gpu_devices.Node(path)
        for path in ("/dev/nvidia0", "/dev/nvidia-vgpu7", "/dev/nvidia-vgpu8", "/dev/nvidia-caps/nvidia-cap1")
    ]
    left = gpu_devices.without(nodes, {"/dev/nvidia-vgpu*": "why", "/dev/nvidia-caps/*": "why"})
    # The right to change everybody's MIG instances cannot be among them.
    assert [node.path for node in left] == ["/dev/nvidia0", "/dev/nvidia-caps/nvidia-cap1"]


def test_reading_takes_character_devices_only(tmp_path):
    (tmp_path / "nvidia0").write_text("")
    assert gpu_devices.read([str(tmp_path), str(tmp_path / "absent")], str(tmp_path / "absent")) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="makes device nodes")
def test_reading_takes_all_in_folders_of_nvidias_own(tmp_path):
    os.mknod(tmp_path / "channel0", 0o666 | stat.S_IFCHR, os.makedev(507, 0))
    (found,) = gpu_devices.read([str(tmp_path)], str(tmp_path / "absent"))
    assert found.path == str(tmp_path / "channel0")


def test_graphics_devices_are_those_of_nvidias_cards(tmp_path, monkeypatch):
    for name, vendor in (("card0", "0x1a03"), ("card1", "0x10de"), ("renderD128", "0x10de")):
        (tmp_path / name / "device").mkdir(parents=True)
        (tmp_path / name / "device" / "vendor").write_text(f"{vendor}\n")
    (tmp_path / "card1-DP-1").mkdir()
    (tmp_path / "version").write_text("drm 1.1.0\n")
    looked = []

    def lstat(path):
        looked.append(path)
        raise FileNotFoundError(path)

    monkeypatch.setattr(gpu_devices.os, "lstat", lstat)
    assert gpu_devices.read([], str(tmp_path)) == []
    assert sorted(looked) == ["/dev/dri/card1", "/dev/dri/renderD128"]


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


# What runc tells systemd of a container without devices of its own, as systemctl shows it.
RUNC = """DevicePolicy=strict
DeviceAllow=block-* m
DeviceAllow=char-* m
DeviceAllow=/dev/char/1:3 rwm
DeviceAllow=/dev/char/1:5 rwm
DeviceAllow=/dev/char/1:7 rwm
DeviceAllow=/dev/char/1:8 rwm
DeviceAllow=/dev/char/1:9 rwm
DeviceAllow=/dev/char/5:0 rwm
DeviceAllow=/dev/char/5:2 rwm
DeviceAllow=/dev/char/10:200 rwm
DeviceAllow=char-136 rwm
"""
# With --device or CDI.
GIVEN = "DeviceAllow=/dev/char/195:0 rwm\nDeviceAllow=/dev/char/195:255 rw\nDeviceAllow=/dev/char/508:0 rwm\n"
DRIVERS = gpu_containers.parse_drivers(
    "Character devices:\n  1 mem\n  5 /dev/tty\n195 nvidia\n195 nvidiactl\n508 nvidia-uvm\n\nBlock devices:\n  8 sd\n"
)
GPU = {"/dev/nvidia0": (195, 0), "/dev/nvidiactl": (195, 255), "/dev/nvidia-uvm": (508, 0)}


@pytest.mark.parametrize(
    ("show", "devices", "lost"),
    [
        # NVIDIA's hook has added them.
        (RUNC, GPU, list(GPU)),
        (RUNC + GIVEN, GPU, []),
        (RUNC + GIVEN, {**GPU, "/dev/nvidia1": (195, 1)}, ["/dev/nvidia1"]),
        (RUNC, {}, []),
        (RUNC + "DeviceAllow=char-195 rwm\nDeviceAllow=char-nvidia-uvm rw\n", GPU, []),
        (RUNC + "DeviceAllow=char-nvidia* rw\n", GPU, []),
        (RUNC + "DeviceAllow=char-* rwm\n", GPU, []),
        (RUNC + "DeviceAllow=/dev/nvidia0 rw\n", GPU, ["/dev/nvidiactl", "/dev/nvidia-uvm"]),
        # Numbers that begin alike.
        (RUNC + "DeviceAllow=/dev/char/195:25 rwm\nDeviceAllow=char-50 rwm\n", GPU, list(GPU)),
        # --privileged: systemd was told to allow everything.
        ("DevicePolicy=auto\n", GPU, []),
        ("DevicePolicy=strict\n", GPU, list(GPU)),
    ],
)
def test_what_a_container_would_lose(show, devices, lost):
    policy, allow = gpu_containers.parse(show)
    container = gpu_containers.Container("docker-a.scope", policy, allow, devices)
    assert gpu_containers.refused(container, DRIVERS) == lost
    asked = []
    opens = [lambda it, paths: asked.append(paths) or True, lambda it, paths: False]
    assert gpu_containers.at_risk([container], DRIVERS, opens[0]) == (["docker-a.scope"] if lost else [])
    # What it cannot open now it cannot lose, and what systemd knows of need not be tried.
    assert asked == ([lost] if lost else [])
    assert gpu_containers.at_risk([container], DRIVERS, opens[1]) == []


def test_scopes_of_containers():
    assert DRIVERS[195] == {"nvidia", "nvidiactl"}
    assert 8 not in DRIVERS
    assert gpu_containers.SCOPE.match("docker-0f3a.scope")
    assert not gpu_containers.SCOPE.match("session-1.scope")


@pytest.mark.skipif(os.geteuid() != 0, reason="makes device nodes")
def test_the_devices_of_a_container(tmp_path):
    (tmp_path / "dev" / "nvidia-caps").mkdir(parents=True)
    for name, device in (("nvidia0", (195, 0)), ("nvidia-caps/nvidia-cap21", (508, 21)), ("null", (1, 3))):
        os.mknod(tmp_path / "dev" / name, 0o600 | stat.S_IFCHR, os.makedev(*device))
    # A container may put anything there.
    (tmp_path / "dev" / "nvidia1").write_text("")
    os.symlink("/dev/null", tmp_path / "dev" / "nvidia2")
    os.mknod(tmp_path / "dev" / "nvidia\n3", 0o600 | stat.S_IFCHR, os.makedev(195, 3))
    assert gpu_containers.devices(str(tmp_path)) == {
        "/dev/nvidia-caps/nvidia-cap21": (508, 21),
        "/dev/nvidia0": (195, 0),
    }


def test_what_to_do_where_containers_are_in_the_way(monkeypatch):
    said, ran = [], []

    def busy():
        raise gpu_containers.Busy(["docker-a.scope"])

    monkeypatch.setattr(gpu_containers._command, "run", lambda argv, **kwargs: ran.append(argv))
    monkeypatch.setattr(gpu_containers, "refuse_reload", busy)
    with pytest.raises(gpu_containers.Busy, match="drain the node"):
        gpu_containers.waits_for("fail", said.append)
    assert gpu_containers.waits_for("skip", said.append) == ["docker-a.scope"]
    assert len(said) == 1
    # Also where one was started meanwhile.
    with pytest.raises(gpu_containers.Busy):
        gpu_containers.reload()
    assert ran == []
    monkeypatch.setattr(gpu_containers, "refuse_reload", lambda: None)
    assert gpu_containers.waits_for("fail", said.append) == []
    gpu_containers.reload()
    assert ran == [["systemctl", "daemon-reload"]]


def process(proc, pid, uid, group, files=(), mapped=""):
    """One process as /proc shows it."""
    (proc / str(pid) / "fd").mkdir(parents=True)
    (proc / str(pid) / "status").write_text(f"Name:\tpython3\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\n")
    (proc / str(pid) / "maps").write_text(
        f"7f0-7f1 rw-s 0 00:06 431    {mapped}\n" if mapped else "7f0-7f1 rw-p 0 0:0 0\n"
    )
    for number, path in enumerate(files):
        os.symlink(path, proc / str(pid) / "fd" / str(number))
    return {pid: group}


def test_who_has_had_a_gpu_open_since_before_the_policy(tmp_path, monkeypatch):
    session, job = "/user.slice/user-1001.slice/session-3.scope", "/slurm_gpu1/uid_1001/job_7/step_0"
    groups = {
        **process(tmp_path, 10, 1001, session, ["/dev/null", "/dev/nvidia0", "/dev/nvidiactl"]),
        **process(tmp_path, 11, 1001, session, mapped="/dev/nvidia0"),
        **process(tmp_path, 12, 1001, session, ["/dev/nvidia0.log"]),
        **process(tmp_path, 13, 1001, job, ["/dev/nvidia0"]),
        **process(tmp_path, 14, 998, "/system.slice/dcgm.service", ["/dev/nvidia0"]),
        **process(tmp_path, 15, 1002, session, ["/dev/nvidia0"]),
        **process(tmp_path, 16, 61184, "/system.slice/dcgm-exporter.service", ["/dev/nvidia0"]),
        **process(tmp_path, 17, 1003, "/system.slice/docker-0a.scope", ["/dev/nvidia0"]),
        # A container of the user's own.
        **process(
            tmp_path, 18, 1003, "/user.slice/user-1003.slice/user@1003.service/libpod-0a.scope", ["/dev/nvidia0"]
        ),
        **process(tmp_path, 19, 1003, "/system.slice/cron.service", ["/dev/nvidia0"]),
    }
    (tmp_path / "self").mkdir()
    # It has just ended.
    (tmp_path / "20").mkdir()
    monkeypatch.setattr(cgroups.Hierarchy, "of_process", lambda self, pid: groups[pid])
    devices = ["/dev/nvidia0", "/dev/nvidiactl"]
    found = gpu_holders.read(
        cgroups.Hierarchy(1, "/d", "/u"), devices, exempt_uids=[0, 1002], spare={16}, proc=str(tmp_path)
    )
    assert {it.pid: it.devices for it in found} == {
        10: ("/dev/nvidia0", "/dev/nvidiactl"),
        11: ("/dev/nvidia0",),
        18: ("/dev/nvidia0",),
        19: ("/dev/nvidia0",),
    }
    assert gpu_access_info.held(found[0]) == (
        "process 10 (python3) of 1001, in no job, has /dev/nvidia0, /dev/nvidiactl open"
    )


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


def test_where_slurmd_has_its_configuration(tmp_path):
    path, link, cache = (str(tmp_path / name) for name in ("etc", "run", "cache"))
    for folder in (path, cache):
        os.mkdir(folder)
    assert slurm_gres_info.directory(path, [link, cache]) == path
    # What lies in /etc/slurm besides counts for nothing where slurmd fetches its files.
    pathlib.Path(path, "gres.conf").touch()
    pathlib.Path(cache, "slurm.conf").touch()
    assert slurm_gres_info.directory(path, [link, cache]) == cache
    os.symlink(cache, link)
    assert slurm_gres_info.directory(path, [link, cache]) == link
    pathlib.Path(path, "slurm.conf").touch()
    assert slurm_gres_info.directory(path, [link, cache]) == path
