# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import fnmatch
import re
import types

import pytest
from ansible_collections.gpuops.tenancy.plugins.module_utils import _command, _systemd
from ansible_collections.gpuops.tenancy.plugins.module_utils._host import device_policy, drop_ins, gpu_containers
from ansible_collections.gpuops.tenancy.plugins.modules import systemd_drop_in
from hypothesis import given
from hypothesis import strategies as st

# /proc/devices of a node with GPUs, and what such nodes need besides.
DRIVERS = [
    *("mem", "pts", "tty", "misc", "nvme", "nvme-generic", "network_latency", "ndctl", "drm", "ipmidev"),
    *("infiniband_verbs", "infiniband_mad", "fuse", "watchdog", "rtc", "sg", "st", "cuse", "n", "nv"),
]
GPU_DRIVERS = [
    "nvidia",
    "nvidia-frontend",
    "nvidia-uvm",
    "nvidia-caps",
    "nvidia-caps-imex-channels",
    "nvidia-nvswitch",
    "nvidia-modeset",
]

words = st.text(alphabet="abdinrvm-_19", min_size=1, max_size=8)


def matches(patterns: list[str], name: str) -> bool:
    # systemd uses fnmatch(3), in which [!x] means the same.
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def test_everything_but_the_gpus():
    found = device_policy.patterns(["nvi"])
    assert [name for name in DRIVERS if not matches(found, name)] == []
    assert [name for name in GPU_DRIVERS if matches(found, name)] == []
    # The default: graphics devices as well, and nothing else.
    both = device_policy.patterns(["nvi", "drm"])
    assert [name for name in DRIVERS if not matches(both, name)] == ["drm"]
    assert [name for name in GPU_DRIVERS if matches(both, name)] == []


@given(st.lists(words, min_size=1, max_size=4), words)
def test_a_name_matches_exactly_when_it_begins_with_none_of_them(prefixes, name):
    expected = not any(name.startswith(prefix) for prefix in prefixes)
    assert matches(device_policy.patterns(prefixes), name) is expected


@pytest.mark.parametrize("prefix", ["", "nv*", "a b", "]", "NV"])
def test_a_driver_that_cannot_be_one_is_refused(prefix):
    with pytest.raises(device_policy.PolicyError, match="driver"):
        device_policy.patterns([prefix])


def test_no_drivers_means_no_limits():
    assert device_policy.patterns([]) == ["*"]


def test_the_drop_ins():
    texts = device_policy.wanted(["cron", "ssh@"], ["slurmd.service"], [0], ["nvi"], ["char-nvidia-caps r"])
    assert set(texts) == {
        "/etc/systemd/system/user-.slice.d/50-tenancy-gpu.conf",
        "/etc/systemd/system/cron.service.d/50-tenancy-gpu.conf",
        "/etc/systemd/system/ssh@.service.d/50-tenancy-gpu.conf",
        "/etc/systemd/system/slurmd.service.d/50-tenancy-gpu.conf",
        "/etc/systemd/system/user-0.slice.d/50-tenancy-gpu.conf",
    }
    session = texts["/etc/systemd/system/user-.slice.d/50-tenancy-gpu.conf"]
    assert "[Slice]\nDevicePolicy=closed\nDeviceAllow=\n" in session
    assert "DeviceAllow=char-nvidia-caps r\n" in session
    assert "DevicePolicy=auto\nDeviceAllow=\n" in texts["/etc/systemd/system/slurmd.service.d/50-tenancy-gpu.conf"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((["cron"], ["cron.service"], [], ["nvi"], []), "cron.service runs users' code and is exempt"),
        ((["cr on"], [], [], ["nvi"], []), "no name of a service"),
        ((["../x"], [], [], ["nvi"], []), "no name of a service"),
        ((["cron"], [], [], ["nvi"], ["nvidia0"]), "no device that can be allowed"),
        ((["cron"], [], [], ["nvi"], ["/dev/a\nDeviceAllow=/dev/b"]), "no device that can be allowed"),
    ],
)
def test_what_is_refused(arguments, says):
    with pytest.raises(device_policy.PolicyError, match=re.escape(says)):
        device_policy.wanted(*arguments)


def test_what_systemd_goes_by_is_compared():
    text = device_policy.denying("Service", ["nvi"])
    allow = "".join(
        f"DeviceAllow={line.split('=', 1)[1]}\n"
        for line in text.splitlines()
        if line.startswith("DeviceAllow=c") or "block" in line
    )
    good = f"DevicePolicy=closed\n{allow}DropInPaths=/etc/systemd/system/cron.service.d/50-tenancy-gpu.conf\nLoadState=loaded\n"
    assert device_policy.overruled(device_policy.parse("cron.service", good), text) == ""
    more = device_policy.parse("cron.service", f"{good}DeviceAllow=/dev/nvidia0 rwm\n")
    assert "also allows /dev/nvidia0" in device_policy.overruled(more, text)
    other = good.replace("closed", "auto").replace(
        "DropInPaths=", "DropInPaths=/etc/systemd/system/cron.service.d/90-local.conf "
    )
    assert device_policy.overruled(device_policy.parse("cron.service", other), text) == (
        "cron.service has DevicePolicy=auto in spite of its drop-in 50-tenancy-gpu.conf; look at /etc/systemd/system/cron.service.d/90-local.conf"
    )
    absent = device_policy.parse("crond.service", "DevicePolicy=auto\nLoadState=not-found\n")
    assert device_policy.overruled(absent, text) == ""
    less = device_policy.parse("cron.service", good.replace("DeviceAllow=block-* rwm\n", ""))
    assert "does not allow block-*" in device_policy.overruled(less, text)


def test_a_unit_that_systemd_can_be_asked_about():
    assert device_policy.concrete("user-.slice") == "user-4294967294.slice"
    assert device_policy.concrete("user@.service") == "user@4294967294.service"
    assert device_policy.concrete("cron.service") == "cron.service"


def test_the_plan_of_drop_ins():
    plan = drop_ins.plan(
        {"/a/x.d/b": "old", "/a/y.d/b": "gone", "/a/z.d/b": "same"},
        {"/a/x.d/b": "new", "/a/z.d/b": "same", "/a/0.d/b": "made"},
    )
    assert [(change.kind, change.object) for change in plan] == [
        ("add", "/a/0.d/b"),
        ("change", "/a/x.d/b"),
        ("remove", "/a/y.d/b"),
    ]
    difference = drop_ins.difference(plan)
    assert "[/a/y.d/b]\ngone" in difference["before"]
    assert "[/a/0.d/b]\nmade" in difference["after"]
    assert not drop_ins.plan({"/a": "x", "/b": None}, {"/a": "x"}).changed


@pytest.mark.parametrize(
    ("unit", "name"),
    [("ssh", "a.conf"), ("../x.service", "a.conf"), ("ssh.service", "a"), ("ssh.service", "../a.conf")],
)
def test_a_drop_in_has_a_sound_name(unit, name):
    with pytest.raises(drop_ins.DropInError):
        drop_ins.path(unit, name)


def test_writing_and_removing(tmp_path):
    path, other = tmp_path / "a.d" / "x.conf", tmp_path / "b.d" / "x.conf"
    other.parent.mkdir()
    other.write_text("old")
    plan = drop_ins.plan({str(path): None, str(other): "old"}, {str(path): "new\n"})
    result = {"applied": [], "remaining": [change.object for change in plan]}
    drop_ins.apply(plan, result)
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("new\n", 0o644)
    assert not other.parent.exists()
    assert result == {"applied": [str(path), str(other)], "remaining": []}


@pytest.mark.parametrize(
    ("there", "shown", "unread", "owed"),
    [
        (True, "LoadState=loaded\nDropInPaths=/x/a.conf {file}\n", False, False),
        (True, "LoadState=loaded\nDropInPaths=/x/a.conf {file}\n", True, True),
        (True, "LoadState=loaded\nDropInPaths=/x/a.conf\n", False, True),
        (False, "LoadState=loaded\nDropInPaths=\n", False, False),
        (False, "LoadState=loaded\nDropInPaths={file}\n", False, True),
        # No such unit: it has no drop-ins, and gets them when it is there.
        (True, "LoadState=not-found\nDropInPaths=\n", False, False),
    ],
)
def test_whether_systemd_goes_by_a_drop_in(tmp_path, monkeypatch, there, shown, unread, owed):
    file = tmp_path / "50-a.conf"
    if there:
        file.touch()
    done = types.SimpleNamespace(stdout=shown.format(file=file))
    monkeypatch.setattr(_command, "run", lambda argv, **kwargs: done)
    monkeypatch.setattr(_systemd, "unread", lambda paths: list(paths) if unread else [])
    assert drop_ins.owed("x.service", str(file)) is owed


class Systemd:
    """A unit that goes by what was on disk at the last reload."""

    def __init__(self, monkeypatch, tmp_path, busy: bool = False, deaf: bool = False):
        self.read: str | None = None
        self.reloads = 0
        self.warned: list[str] = []
        self.busy, self.deaf = busy, deaf
        self.file = tmp_path / "x.service.d" / "a.conf"
        monkeypatch.setattr(_systemd, "FOLDER", str(tmp_path))
        monkeypatch.setattr(drop_ins, "owed", lambda unit, path: drop_ins.read(path) != self.read)
        monkeypatch.setattr(gpu_containers, "refuse_reload", self.look)
        monkeypatch.setattr(_command, "run", self.reload)

    def look(self) -> None:
        if self.busy:
            raise gpu_containers.Busy(["docker-a.scope"])

    def reload(self, argv, **kwargs) -> None:
        assert argv == gpu_containers.RELOAD
        self.reloads += 1
        if not self.deaf:
            self.read = drop_ins.read(str(self.file))

    def run(self, content: str, busy: str = "fail", check_mode: bool = False) -> dict:
        params = {"unit": "x.service", "name": "a.conf", "content": content, "busy": busy}
        module = types.SimpleNamespace(params=params, check_mode=check_mode, warn=self.warned.append)
        result = {"changed": False, "skipped_for": [], "applied": [], "remaining": []}
        systemd_drop_in.run(module, result)
        return result


def test_a_drop_in_and_systemd_going_by_it(tmp_path, monkeypatch):
    systemd = Systemd(monkeypatch, tmp_path)
    assert systemd.run("[Service]", check_mode=True)["changed"]
    assert not systemd.file.exists()
    assert systemd.run("[Service]")["applied"] == [str(systemd.file)]
    assert systemd.file.read_text() == "[Service]\n"
    assert not systemd.run("[Service]")["changed"]
    # A run that was killed before the reload.
    systemd.read = None
    assert systemd.run("[Service]")["changed"]
    assert systemd.reloads == 2
    assert systemd.run("")["changed"]
    assert (systemd.file.exists(), systemd.reloads) == (False, 3)
    systemd.deaf = True
    with pytest.raises(drop_ins.DropInError, match=r"does not go by .*a\.conf"):
        systemd.run("[Service]")


def test_a_drop_in_waits_for_containers(tmp_path, monkeypatch):
    systemd = Systemd(monkeypatch, tmp_path, busy=True)
    for check_mode in (True, False):
        with pytest.raises(gpu_containers.Busy):
            systemd.run("[Service]", check_mode=check_mode)
        result = systemd.run("[Service]", busy="skip", check_mode=check_mode)
        assert (result["changed"], result["skipped_for"]) == (False, ["docker-a.scope"])
    assert len(systemd.warned) == 2
    assert not systemd.file.exists()
    systemd.busy = False
    assert systemd.run("[Service]", busy="skip")["changed"]
    # With nothing to do nobody is in the way.
    systemd.busy = True
    assert not systemd.run("[Service]")["changed"]
    assert systemd.reloads == 1
