# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.gpuops.tenancy.plugins.module_utils._host import kernel
from ansible_collections.gpuops.tenancy.plugins.modules import mount_options

MOUNTINFO = """20 1 0:19 / /proc rw,nosuid,nodev,noexec,relatime - proc proc rw
21 1 0:20 / /dev/shm rw,nosuid,nodev - tmpfs shm rw,size=65536k
22 1 0:21 / /proc rw,nosuid - proc proc rw,gid=900,hidepid=invisible
"""


def planned(path, *options):
    return [
        (change.field, change.before, change.after)
        for change in kernel.plan_mount(kernel.parse_mount(MOUNTINFO, path), options)
    ]


def test_the_topmost_mount_counts():
    assert planned("/proc", "hidepid=2", "gid=900") == []
    assert planned("/proc", "hidepid=noaccess", "gid=901") == [
        ("hidepid", "hidepid=invisible", "hidepid=noaccess"),
        ("gid", "gid=900", "gid=901"),
    ]
    with pytest.raises(kernel.KernelError, match="no mount point"):
        planned("/nothing", "gid=1")


def test_sizes_and_flags():
    assert planned("/dev/shm", "size=64m", "nosuid") == []
    assert planned("/dev/shm", "size=1g", "noexec") == [
        ("size", "size=65536k", "size=1048576k"),
        ("noexec", None, "noexec"),
    ]
    # The default is not shown by the kernel.
    assert planned("/dev/shm", "hidepid=0") == []


@pytest.mark.parametrize("option", ["size=50%", "rw", "size=1t"])
def test_what_cannot_be_read_back_is_refused(option):
    with pytest.raises(kernel.KernelError):
        kernel.normal(option)


@pytest.mark.parametrize("key", ["../x", "kernel/x", "", "a..b", "KERNEL.x"])
def test_a_setting_has_a_sound_name(key):
    with pytest.raises(kernel.KernelError):
        kernel.setting_path(key)


def test_settings():
    wanted = {"kernel.yama.ptrace_scope": "1", "net.ipv4.ip_local_port_range": "1 2", "kernel.absent": "1"}
    current = {"kernel.yama.ptrace_scope": "0", "net.ipv4.ip_local_port_range": "1 2", "kernel.absent": None}
    assert [(change.field, change.before, change.after) for change in kernel.plan_settings(wanted, current)] == [
        ("kernel.yama.ptrace_scope", "0", "1")
    ]
    assert kernel.text(wanted).endswith(
        "kernel.yama.ptrace_scope = 1\nnet.ipv4.ip_local_port_range = 1 2\nkernel.absent = 1\n"
    )
    assert kernel.text({}) == ""
    with pytest.raises(kernel.KernelError, match="more than one line"):
        kernel.text({"kernel.x": "1\nkernel.y = 2"})


def test_settings_are_read():
    assert kernel.read_setting("kernel.ostype") == "Linux"
    assert kernel.read_setting("kernel.no_such_setting") is None


def test_the_unit_of_a_mount():
    assert mount_options.unit_name("/dev/shm") == "tenancy-remount-dev-shm.service"
    assert "ExecStart=/bin/mount -o remount,gid=9 /proc\n" in mount_options.unit_text(
        "/proc", ["/bin/mount", "-o", "remount,gid=9", "/proc"]
    )
