# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""nft, the files and the timer on a host. Private to the gpuops.tenancy collection.

Rules that nobody has confirmed yet are in the kernel only: a reboot goes back as the timer does.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils import _command, _files
from ansible_collections.gpuops.tenancy.plugins.module_utils._firewall import rules, runtime

CONFIGURATION = "/etc/gpuops-tenancy"
STATE = "/var/lib/gpuops-tenancy/firewall"
MAIN = f"{CONFIGURATION}/firewall.nft"  # loaded at boot: what was confirmed last
RUNTIME = f"{CONFIGURATION}/firewall-runtime.nft"  # the second table without what it holds
SAVED = f"{STATE}/runtime.nft"  # and what it held last
PENDING = f"{STATE}/pending.nft"
WAY_BACK = f"{STATE}/rollback.nft"
WAITING = f"{STATE}/pending.json"
UNIT = "tenancy-firewall"
UNIT_FILE = f"/etc/systemd/system/{UNIT}.service"
DROP_IN = "/etc/systemd/system/nftables.service.d/50-tenancy.conf"
TIMER = "tenancy-firewall-rollback"

UNIT_TEXT = """\
# Managed by Ansible (gpuops.tenancy): a change made here is undone by the next run.
[Unit]
Description=Firewall of gpuops.tenancy
DefaultDependencies=no
Wants=network-pre.target
Before=network-pre.target shutdown.target
Conflicts=shutdown.target
RequiresMountsFor=/etc /var/lib
# Its own files flush all tables; ours come back behind it.
After=nftables.service
PartOf=nftables.service
ReloadPropagatedFrom=nftables.service
ConditionPathExists={main}

[Service]
Type=oneshot
RemainAfterExit=yes
# What was blocked comes first, and a file of it that cannot be read must not keep the rest away.
ExecStart=-{nft} -f {saved}
ExecStart={nft} -f {runtime}
ExecStart={nft} -f {main}
ExecReload=-{nft} -f {saved}
ExecReload={nft} -f {runtime}
ExecReload={nft} -f {main}
# Sets may have been filled by hand.
ExecStop=-/bin/sh -c 'umask 077; {nft} -s list table inet {table} >{saved}.new && mv {saved}.new {saved}'

[Install]
WantedBy=sysinit.target
"""

# A restart and a reload of nftables reach our unit, a start does not.
DROP_IN_TEXT = """\
# Managed by Ansible (gpuops.tenancy): a change made here is undone by the next run.
[Service]
ExecStartPost=-{nft} -f {saved}
ExecStartPost=-{nft} -f {runtime}
ExecStartPost=-{nft} -f {main}
"""


class Host:
    def __init__(self, search_path: t.Sequence[str], fds: t.Sequence[int] = ()) -> None:
        self.fds = fds
        self.nft = _command.located("nft", search_path)
        self.unshare = _command.located("unshare", search_path)

    def run(self, *argv: str, ok: t.Sequence[int] | None = (0,), stdin: str | None = None) -> _command.Completed:
        return _command.run(argv, timeout=60, pass_fds=self.fds, ok=ok, stdin=stdin)

    # --- nft ----------------------------------------------------------------------------------------------------------

    def listing(self, table: str) -> str | None:
        """The table as nft shows it, without counts; None when there is none."""
        tables = self.run(self.nft, "list", "tables").stdout.split("\n")
        if f"table inet {table}" not in tables:
            return None
        return self.run(self.nft, "-s", "list", "table", "inet", table).stdout

    def shown(self, text: str, table: str) -> str:
        """How nft would show the text once loaded: loaded in an empty network of its own, which nobody notices."""
        script = f'"{self.nft}" -f - && exec "{self.nft}" -s list table inet {table}'
        return self.run(self.unshare, "--net", "/bin/sh", "-c", script, stdin=text).stdout

    def check(self, path: str) -> None:
        self.run(self.nft, "-c", "-f", path)

    def load(self, path: str) -> None:
        self.run(self.nft, "-f", path)

    # --- the second table ---------------------------------------------------------------------------------------------

    def save_runtime(self) -> None:
        listing = self.listing(runtime.TABLE)
        if listing is not None and read(SAVED) != listing:
            _files.write(SAVED, listing)

    # --- the way back -------------------------------------------------------------------------------------------------

    def timers(self) -> list[str]:
        """Timers and rollbacks of ours that have not ended."""
        argv = ["systemctl", "list-units", "--all", "--no-legend", "--plain", "--full", f"{TIMER}-*"]
        rows = [line.split() for line in self.run(*argv).stdout.splitlines()]
        return [row[0] for row in rows if len(row) > 3 and row[2] in ("active", "activating", "reloading")]

    def armed(self) -> bool:
        """Whether a timer runs, or the rules are going back just now."""
        return bool(self.timers())

    def arm(self, running: str | None, seconds: int, kept: str | None = None) -> None:
        """From now on the rules that ran, or those kept, come back by themselves, whatever becomes of us."""
        empty = f"table inet {rules.TABLE}\ndelete table inet {rules.TABLE}\n"
        _files.write(WAY_BACK, kept or empty + (running or ""))
        # A way back that does not work is worse than none: then nothing is loaded.
        self.check(WAY_BACK)
        before = self.timers()
        self.run(
            "systemd-run",
            f"--unit={TIMER}-{time.time_ns()}",
            "--collect",
            "--description=Takes back firewall rules that nobody confirmed",
            f"--on-active={seconds}",
            "--timer-property=AccuracySec=100ms",
            self.nft,
            "-f",
            WAY_BACK,
        )
        # Only now: at no moment nothing would bring them back.
        self.disarm(before)

    def disarm(self, units: t.Sequence[str] | None = None) -> None:
        found = [one for one in (self.timers() if units is None else units) if one.endswith(".timer")]
        if found:
            self.run("systemctl", "stop", *found)

    def await_confirmation(self, seconds: float, timer: bool) -> None:
        _files.write(WAITING, json.dumps({"loaded": time.time(), "seconds": seconds, "timer": timer}))

    def waiting(self) -> dict[str, t.Any] | None:
        text = read(WAITING)
        try:
            return None if text is None else dict(json.loads(text))
        except ValueError:
            # Cut off by a crash: nothing was confirmed.
            return {"loaded": time.time(), "seconds": 0, "timer": False}

    # --- boot ---------------------------------------------------------------------------------------------------------

    def units(self) -> dict[str, str]:
        """File -> text."""
        names = {"nft": self.nft, "main": MAIN, "runtime": RUNTIME, "saved": SAVED, "table": runtime.TABLE}
        return {UNIT_FILE: UNIT_TEXT.format(**names), DROP_IN: DROP_IN_TEXT.format(**names)}

    def enabled(self) -> bool:
        return self.run("systemctl", "is-enabled", UNIT, ok=None).stdout.strip() == "enabled"

    def started(self) -> bool:
        return self.run("systemctl", "is-active", UNIT, ok=None).stdout.strip() == "active"


def make_directories() -> None:
    for path in (CONFIGURATION, os.path.dirname(STATE), STATE, os.path.dirname(DROP_IN)):
        if not os.path.isdir(path):
            # The parent may belong to others of the collection.
            os.makedirs(path, mode=0o700 if path == STATE else 0o755)


def read(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as handle:
            return handle.read()
    except FileNotFoundError:
        return None


def remove(*paths: str) -> None:
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
