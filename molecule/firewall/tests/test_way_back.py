# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules that lock the controller out come back, whoever was killed; reloads lose no connection."""

from __future__ import annotations

import pathlib
import subprocess
import sys
import threading
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from ways import ROLE, at, converge, module, on, over, restart, role, said, ssh, state, table, wait_for

# Nobody listens there: whoever is not connected yet stays outside.
LOCK_OUT = {"firewall_ports": {"ssh": [2222]}}
OTHER = {"firewall_rows_on": ["ssh_jobs"]}
SECONDS = 30  # firewall_confirm_seconds of the scenario


def settled(host: str) -> bool:
    return (
        on(host, "sh", "-c", "systemctl list-units --all --no-legend 'tenancy-firewall-rollback*' | grep .").returncode
        == 1
    )


@pytest.fixture(autouse=True)
def afterwards():
    yield
    converge("gpu1,gpu2")
    assert settled("gpu1")


@pytest.mark.parametrize("version", [4, 6])
def test_rules_that_lock_the_controller_out_come_back_by_themselves(version):
    before = table("gpu1")
    reach = {
        "ansible_host": at("gpu1", "management", version),
        "ansible_port": 22,
        "ansible_ssh_extra_args": "-o HostKeyAlias=gpu1",
    }
    started = role(hosts="gpu1", extra={**LOCK_OUT, **reach})
    # Locked out in fact, over both families, while ansible still waits for its own new connection.
    wait_for(lambda: ssh("gpu1", *over("gpu1", version)).returncode != 0, 60, "the rules that lock out")
    locked = time.monotonic()
    assert ssh("gpu1", *over("gpu1", 10 - version)).returncode != 0
    run = started.wait()
    assert run.returncode != 0
    assert any("come back there by themselves" in error for error in run.errors), run.output[-3000:]
    wait_for(lambda: ssh("gpu1", *over("gpu1", version)).returncode == 0, SECONDS + 10, "the way back")
    assert time.monotonic() - locked < SECONDS + 10
    assert ssh("gpu1", *over("gpu1", 10 - version)).returncode == 0
    assert table("gpu1") == before
    # The next run says so.
    check = role("--check", hosts="gpu1", extra=LOCK_OUT).wait()
    assert "were taken back" in " ".join(check.output.split())


def test_a_controller_that_the_rules_do_not_know_loads_none_of_them():
    before = said("gpu1", "nft", "-a", "-s", "list", "table", "inet", "tenancy")
    run = role(hosts="gpu1", extra={"firewall_management": ["192.0.2.0/24"]}).wait()
    assert run.returncode != 0
    assert "add the controller's address to firewall_management" in " ".join(" ".join(run.errors).split())
    assert said("gpu1", "nft", "-a", "-s", "list", "table", "inet", "tenancy") == before


def test_killed_in_the_middle_and_left_alone_the_old_rules_come_back():
    before = table("gpu1")
    run = role(hosts="gpu1", extra=OTHER, kill_at=ROLE).wait()
    assert run.killed
    assert "in_ssh_jobs" in table("gpu1")
    wait_for(lambda: table("gpu1") == before, SECONDS + 5, "the old rules")
    assert "in_ssh_jobs" not in said("gpu1", "cat", "/etc/gpuops-tenancy/firewall.nft")


def test_killed_in_the_middle_and_run_again_at_once_the_new_rules_stay():
    assert role(hosts="gpu1", extra=OTHER, kill_at=ROLE).wait().killed
    run = role(hosts="gpu1", extra=OTHER).wait()
    assert run.returncode == 0, run.output[-3000:]
    wait_for(lambda: settled("gpu1"), 5, "the timer to be gone")
    time.sleep(SECONDS + 2)
    assert "in_ssh_jobs" in table("gpu1")
    assert "in_ssh_jobs" in said("gpu1", "cat", "/etc/gpuops-tenancy/firewall.nft")


def test_killed_and_followed_by_other_rules_goes_back_to_what_was_confirmed_last():
    before = table("gpu1")
    assert role(hosts="gpu1", extra=LOCK_OUT, kill_at=ROLE).wait().killed
    # The connection that loaded them still works: the controller's own is kept for a minute.
    run = role(hosts="gpu1", extra={"firewall_ports": {"ssh": [2223]}}).wait()
    assert run.returncode != 0
    wait_for(lambda: table("gpu1") == before, 2 * SECONDS + 10, "the rules that were confirmed last")


def test_a_reboot_goes_back_as_the_timer_does():
    before = table("gpu2")
    extra = {**LOCK_OUT, "firewall_confirm_seconds": 600}
    assert role(hosts="gpu2", extra=extra, kill_at=ROLE).wait().killed
    assert ssh("gpu2").returncode != 0
    restart("gpu2")
    assert table("gpu2") == before
    wait_for(lambda: "idle" in said("ctl", "sinfo", "-h", "-n", "gpu2", "-o", "%T"), what="gpu2 to be idle")


def test_a_file_that_nft_refuses_is_never_loaded():
    before = said("gpu1", "nft", "-a", "-s", "list", "table", "inet", "tenancy")
    run = module("gpu1", "firewall", {"rules": "table inet tenancy { nonsense }", "admins": ["0.0.0.0/0"]})
    assert run.returncode != 0
    assert "nonsense" in run.output
    assert said("gpu1", "nft", "-a", "-s", "list", "table", "inet", "tenancy") == before
    assert settled("gpu1")


def test_an_old_connection_confirms_nothing():
    """Both modules over one connection: the second one refuses, and the rules go back."""
    before = table("gpu1")
    rules = said("gpu1", "cat", "/etc/gpuops-tenancy/firewall.nft") + "\n# other\n"
    rules = rules.replace("  chain input {", "  counter other { }\n  chain input {")
    admins = [at("machine", "management", 4), at("machine", "management", 6)]
    keep = ["-e", '{"ansible_ssh_args": "-o ControlMaster=auto -o ControlPersist=60"}']
    loaded = module("gpu1", "firewall", {"rules": rules, "admins": admins, "timeout": 12}, *keep)
    assert loaded.returncode == 0, loaded.output
    assert "counter other" in table("gpu1")
    confirmed = module("gpu1", "firewall_confirm", {"local": False}, *keep)
    assert confirmed.returncode != 0
    assert "opened before the rules were loaded" in " ".join(confirmed.output.split())
    wait_for(lambda: table("gpu1") == before, 20, "the old rules")
    # And too late is too late, also over a new one.
    late = module("gpu1", "firewall_confirm", {"local": False})
    assert late.returncode != 0
    assert "too late" in late.output


def test_a_hundred_reloads_lose_no_connection():
    lost: list[str] = []
    over_ = {version: over("gpu1", version) for version in (4, 6)}
    base = ["ssh", "-F", str(state() / "ssh_config"), "-o", "ControlPath=none"]
    # An operator who is at work, over each family, and one who fetches a lot.
    ticks = {
        version: subprocess.Popen(
            [*base, *over_[version], "gpu1", "while sleep 0.05; do date +%s.%N; done"],
            stdout=subprocess.PIPE,
            text=True,
        )
        for version in (4, 6)
    }
    bulk = subprocess.Popen([*base, *over_[4], "gpu1", "cat /dev/zero"], stdout=subprocess.PIPE)
    amount = [0]

    def drain() -> None:
        while chunk := bulk.stdout.read(1 << 16):
            amount[0] += len(chunk)

    def newcomers() -> None:
        while not done.is_set():
            for version in (4, 6):
                if ssh("gpu1", *over_[version]).returncode != 0:
                    lost.append(f"IPv{version}")

    done = threading.Event()
    threads = [threading.Thread(target=one, daemon=True) for one in (drain, newcomers)]
    for thread in threads:
        thread.start()
    try:
        wait_for(lambda: amount[0] > 0, 60, "the first bytes")
        script = "for n in $(seq 100); do systemctl reload tenancy-firewall || exit 1; sleep 0.05; done"
        started = amount[0]
        said("gpu1", "sh", "-c", script, timeout=400)
        middle = amount[0]
        assert middle > started
        # All of them are still there and go on.
        wait_for(lambda: amount[0] > middle, 20, "more bytes")
        assert [one.poll() for one in (*ticks.values(), bulk)] == [None, None, None]
        done.set()
        threads[1].join()
        assert lost == []
    finally:
        done.set()
        for one in (*ticks.values(), bulk):
            one.terminate()
    for version, one in ticks.items():
        moments = [float(line) for line in one.communicate()[0].split()]
        assert len(moments) > 50
        gaps = [after - before for before, after in zip(moments, moments[1:], strict=False)]
        # A lost packet would be sent again, after longer and longer pauses.
        assert max(gaps) < 5, f"IPv{version}"
