# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import time
import types

import pytest
from ansible_collections.gpuops.tenancy.plugins.module_utils import _command, _systemd
from ansible_collections.gpuops.tenancy.plugins.module_utils._host import gpu_containers
from ansible_collections.gpuops.tenancy.plugins.modules import daemon

SHOW = (
    "LoadState=loaded\nActiveState=active\nSubState=running\nResult=success\nMainPID=42\nNRestarts=3\nId=x.service\n"
    "FragmentPath=/lib/systemd/system/x.service\n"
    "DropInPaths=/etc/systemd/system/x.service.d/a.conf /run/systemd/generator/x.service.d/b.conf\n"
)


def unit(**changes):
    values = {
        "loaded": True, "active": "active", "result": "success", "pid": 42, "restarts": 0, "started": 1000.0, **changes,
    }  # fmt: skip
    return _systemd.Unit(**values)


STOPPED = {"active": "inactive", "pid": 0, "started": None}


def test_parse():
    found = _systemd.parse(SHOW, lambda pid: pid * 1.0)
    # What a generator makes is new after every reload, and says nothing.
    assert found == unit(
        restarts=3,
        started=42.0,
        files=("/lib/systemd/system/x.service", "/etc/systemd/system/x.service.d/a.conf"),
        folders=("/etc/systemd/system/x.service.d", "/etc/systemd/system/service.d"),
    )
    assert found.running
    gone = _systemd.parse("LoadState=not-found\nActiveState=inactive\nMainPID=0\n", lambda pid: 1.0)
    assert (gone.loaded, gone.running, gone.started) == (False, False, None)


def test_process_start_is_on_the_clock_of_the_file_system(tmp_path):
    mine = _systemd.process_start(os.getpid())
    (tmp_path / "a").touch()
    assert mine < time.time()
    assert _systemd.newer({"a": _systemd.changed_at(str(tmp_path / "a"))}, mine) == ["a"]
    assert _systemd.newer({"/proc": 1.0}, mine) == []
    assert _systemd.process_start(2**22 + 1) is None


def test_a_rename_counts_as_a_change(tmp_path):
    (tmp_path / "new").touch()
    before = _systemd.changed_at(str(tmp_path / "new"))
    time.sleep(0.02)
    os.rename(tmp_path / "new", tmp_path / "conf")
    assert _systemd.changed_at(str(tmp_path / "conf")) > before
    assert _systemd.changed_at(str(tmp_path / "absent")) is None


@pytest.mark.parametrize(
    ("now", "changes", "state", "matches", "pending", "expected"),
    [
        (unit(), {"a": 999.0, "b": None}, "started", True, False, []),
        (unit(), {"a": 1001.0}, "started", True, False, ["a is newer than the running process"]),
        (unit(), {"a": 999.95}, "started", None, False, ["a is newer than the running process"]),
        (unit(), {"a": 1.0}, "started", False, False, ["the running configuration differs from the file"]),
        (unit(), {"a": 1.0}, "started", None, True, ["its files would change"]),
        (unit(), {"a": 1001.0}, "started", None, True, ["a is newer than the running process"]),
        (unit(**STOPPED), {}, "started", None, False, ["it is inactive"]),
        (unit(active="activating", pid=0), {}, "started", None, False, ["it is activating"]),
        (unit(loaded=False, **STOPPED), {}, "started", None, False, ["it is not installed"]),
        (unit(), {"a": 1001.0}, "stopped", None, False, ["it is active"]),
        (unit(**STOPPED), {"a": 1001.0}, "stopped", None, True, []),
    ],
)
def test_why(now, changes, state, matches, pending, expected):
    assert daemon.reasons(now, changes, state, matches, pending) == expected


@pytest.mark.parametrize(
    ("now", "on_disk", "why", "state", "enabled", "expected"),
    [
        (unit(), "enabled", [], "started", True, []),
        (unit(), "static", [], "started", True, []),
        (unit(), "disabled", [], "started", True, [["systemctl", "enable", "--no-reload", "x"]]),
        (unit(), "enabled", ["r"], "started", True, [["systemctl", "restart", "x"]]),
        (unit(**STOPPED), "enabled", ["r"], "started", True, [["systemctl", "start", "x"]]),
        (unit(active="activating", pid=0), "enabled", ["r"], "started", True, [["systemctl", "restart", "x"]]),
        (
            unit(active="failed", pid=0, result="start-limit-hit"),
            "enabled",
            ["r"],
            "started",
            True,
            [["systemctl", "reset-failed", "x"], ["systemctl", "start", "x"]],
        ),
        (
            unit(),
            "enabled",
            ["r"],
            "stopped",
            False,
            [["systemctl", "disable", "--no-reload", "x"], ["systemctl", "stop", "x"]],
        ),
    ],
)
def test_commands(now, on_disk, why, state, enabled, expected):
    plan = daemon.make_plan("x", now, on_disk, why, state, enabled)
    assert daemon.compile_commands("x", now, plan) == expected
    assert plan.changed is bool(expected)


def test_the_reason_is_in_the_diff():
    plan = daemon.make_plan(
        "slurmd", unit(), "enabled", ["/etc/slurm/slurm.conf is newer than the running process"], "started", True
    )
    assert "restarted: /etc/slurm/slurm.conf is newer" in plan.diff("a", "b")["after"]
    assert [change.risk for change in plan] == ["disruptive"]


class Clock:
    def __init__(self):
        self.now = 0.0

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


def service(monkeypatch, units, answers, **params):
    clock = Clock()
    monkeypatch.setattr(daemon.time, "monotonic", clock.monotonic)
    monkeypatch.setattr(daemon.time, "sleep", clock.sleep)
    monkeypatch.setattr(daemon._systemd, "read", lambda name: units[min(int(clock.now / daemon.POLL), len(units) - 1)])
    monkeypatch.setattr(daemon._systemd, "journal", lambda name: "fatal: no munge")
    found = daemon.Service({"name": "x", "files": [], "timeout": 10, "settled": 0, "search_path": [], **params})
    monkeypatch.setattr(found, "ready", lambda: answers[min(int(clock.now / daemon.POLL), len(answers) - 1)])
    return found


@pytest.mark.parametrize(
    ("started", "seconds", "expected"),
    [(1000.0, 0, True), (None, 0, True), (1000.0, 3, True), (1002.0, 3, False), (None, 3, False)],
)
def test_a_service_that_tells_nobody_has_to_run_for_a_while(started, seconds, expected):
    assert daemon.settled(unit(started=started), seconds, 1003.0) is expected


def test_one_that_ends_and_begins_again_is_not_ready(monkeypatch):
    units = [unit(started=time.time()), unit(started=time.time()), unit(started=time.time() - 60)]
    waited = service(monkeypatch, units, [(True, "")] * 3)
    waited.params["settled"] = 30
    waited.wait()
    with pytest.raises(daemon.NotReady, match="it has not yet run for 30 s"):
        late = service(monkeypatch, [unit(started=time.time())], [(True, "")])
        late.params["settled"] = 30
        late.wait()


def test_waits_until_it_is_ready(monkeypatch):
    service(monkeypatch, [unit(**STOPPED), unit(), unit()], [(False, "not yet"), (False, "not yet"), (True, "")]).wait()


def test_tells_the_journal_when_it_never_is(monkeypatch):
    with pytest.raises(daemon.NotReady, match=r"x did not come up: not yet; its journal ends with: fatal: no munge"):
        service(monkeypatch, [unit()], [(False, "not yet")]).wait()


def test_does_not_wait_for_what_has_failed(monkeypatch):
    with pytest.raises(daemon.NotReady, match=r"it is failed \(exit-code\)"):
        service(monkeypatch, [unit(active="failed", pid=0, result="exit-code")], [(True, "")], timeout=10**9).wait()


@pytest.mark.parametrize(
    ("argv", "pattern", "good"),
    [
        (["echo", "HASH_VAL = Match"], r"^HASH_VAL\s*=\s*Match", True),
        (["echo", "HASH_VAL = Different"], r"^HASH_VAL\s*=\s*Match", False),
        (["false"], "", False),
        (["no-such-program"], "", False),
        (["true"], "", True),
    ],
)
def test_what_a_command_says(argv, pattern, good):
    found, said = daemon.Service({"name": "x", "files": [], "search_path": []}).says(argv, pattern)
    assert found is good
    assert bool(said) is not good


@pytest.mark.parametrize(
    ("argv", "expected"), [([], None), (["false"], None), (["echo", "a"], True), (["echo", "b"], False)]
)
def test_read_back(argv, expected):
    assert (
        daemon.Service(
            {"name": "x", "files": [], "search_path": [], "readback": argv, "readback_pattern": "a"}
        ).matches()
        is expected
    )


def test_a_port_that_nobody_listens_on():
    import socket

    with socket.socket() as listener:
        listener.bind(("localhost", 0))
        port = listener.getsockname()[1]
        params = {"name": "x", "search_path": [], "ready_port": port, "ready": [], "readback": []}
        assert daemon.Service(params).ready()[0] is False
        listener.listen()
        assert daemon.Service(params).ready() == (True, "")


@pytest.mark.parametrize(
    ("now", "why", "verb"),
    [
        (unit(), ["/etc/slurm/slurm.conf is newer than the running process"], "reload"),
        (unit(), ["the running configuration differs from the file"], "reload"),
        (unit(), ["/etc/systemd/system/x.service.d/y.conf is newer than the running process"], "restart"),
        (unit(**STOPPED), ["it is inactive"], "start"),
        (unit(active="activating", pid=0), ["it is activating"], "restart"),
    ],
)
def test_a_reload_is_enough_for_files_and_never_for_the_unit(now, why, verb):
    plan = daemon.make_plan("x", now, "enabled", why, "started", True, reload=True)
    assert daemon.compile_commands("x", now, plan)[-1] == ["systemctl", verb, "x"]


def test_what_systemd_has_not_read(tmp_path, monkeypatch):
    loaded, old, new, folder = (tmp_path / name for name in ("loaded", "old", "new", "x.service.d"))
    old.touch()
    time.sleep(0.02)
    loaded.touch()
    monkeypatch.setattr(_systemd, "LOADED", str(loaded))
    assert _systemd.unread([str(old), str(tmp_path / "absent")]) == []
    assert not _systemd.stale(unit(files=(str(old),), folders=(str(folder),)))
    time.sleep(0.02)
    new.touch()
    assert _systemd.unread([str(old), str(new)]) == [str(new)]
    # A first drop-in, and one that is gone.
    folder.mkdir()
    assert _systemd.stale(unit(files=(str(old),), folders=(str(folder),)))
    assert _systemd.stale(unit(files=(str(old), str(tmp_path / "absent"))))
    # Where systemd does not say when it read them: what is younger than it.
    monkeypatch.setattr(_systemd, "LOADED", str(tmp_path / "absent"))
    monkeypatch.setattr(_systemd, "process_start", lambda pid: {1: os.stat(new).st_ctime - 0.01}[pid])
    assert _systemd.unread([str(old), str(new)]) == [str(new)]


@pytest.mark.parametrize(
    ("name", "folders"),
    [
        ("ssh@1.service", ["ssh@1.service.d", "ssh@.service.d", "service.d"]),
        ("user-1.slice", ["user-1.slice.d", "slice.d"]),
        ("", []),
    ],
)
def test_where_drop_ins_may_lie(name, folders):
    assert _systemd.drop_in_folders(name) == tuple(f"/etc/systemd/system/{folder}" for folder in folders)


class Ran:
    """daemon.run with nothing real: what it did, in this order."""

    def __init__(self, monkeypatch, stale: bool, busy: bool = False, check_mode: bool = False):
        self.did: list[str] = []
        self.busy = busy
        self.now = unit(**STOPPED)
        monkeypatch.setattr(_systemd, "read", lambda name: self.now)
        monkeypatch.setattr(_systemd, "stale", lambda now: stale)
        monkeypatch.setattr(_systemd, "enabled", lambda name: "disabled")
        monkeypatch.setattr(gpu_containers, "refuse_reload", self.look)
        monkeypatch.setattr(_command, "run", lambda argv, **kwargs: self.did.append(" ".join(argv)))
        monkeypatch.setattr(daemon.Service, "wait", lambda it: self.did.append("wait"))
        params = {name: option.get("default") for name, option in daemon.argument_spec().items()}
        module = types.SimpleNamespace(params={**params, "name": "x"}, check_mode=check_mode)
        self.result = {"applied": [], "remaining": [], "commands": []}
        self.run = lambda: daemon.run(module, self.result)

    def look(self) -> None:
        self.did.append("look for containers")
        if self.busy:
            raise gpu_containers.Busy(["docker-a.scope"])


def test_units_are_read_anew_only_where_they_changed_and_no_container_loses_by_it(monkeypatch):
    started = ["systemctl enable --no-reload x", "systemctl start x", "wait"]
    same = Ran(monkeypatch, stale=False, busy=True)
    same.run()
    assert same.did == started
    changed = Ran(monkeypatch, stale=True)
    changed.run()
    assert changed.did == ["look for containers", "systemctl daemon-reload", *started]


@pytest.mark.parametrize("check_mode", [False, True])
def test_nothing_is_done_where_a_container_would_lose_its_gpus(monkeypatch, check_mode):
    ran = Ran(monkeypatch, stale=True, busy=True, check_mode=check_mode)
    with pytest.raises(gpu_containers.Busy, match=r"docker-a\.scope"):
        ran.run()
    assert ran.did == ["look for containers"]
