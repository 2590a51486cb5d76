# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a canary gets into each context without a job. For attest_run, which is root and only opens the door.

What happens behind it is done by the program, as the user.
"""

from __future__ import annotations

import dataclasses
import glob
import os
import pwd
import re
import shlex
import subprocess
import sys
import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils._command import Completed, run

from . import place, sshd

# Where PAM's modules lie.
LIBRARIES = ("/lib*", "/lib/*", "/usr/lib*", "/usr/lib/*")
# Seconds until the program must have answered everything.
PATIENCE = {"cron": 100, "": 90}


@dataclasses.dataclass
class Entry:
    """A door that was opened. ``closed`` says why a user cannot even get there, ``broken`` why nothing is known."""

    context: str
    actor: str
    user: str
    probes: list[str]
    out: str = ""
    process: subprocess.Popen[bytes] | None = None
    closed: str = ""
    broken: str = ""
    log: str = ""
    key: sshd.Key | None = None
    # The service, in context service.
    unit: str = ""


def start(entry: Entry, spec: t.Mapping[str, t.Any], path: t.Sequence[str]) -> None:
    """Open the door."""
    account = place.account(entry.user)
    name = "-".join(filter(None, [entry.context, entry.actor, entry.unit]))
    file, entry.out = place.specify(
        account, name, {**spec, "parts": [{"context": entry.context, "probes": entry.probes}]}
    )
    entry.log = f"{place.FOLDER}/{name}.log"
    DOORS[entry.context](entry, account, [sys.executable, place.PROGRAM, file], path)


def spawn(entry: Entry, argv: t.Sequence[str]) -> None:
    """Start it, and do not wait: all doors are open at the same time."""
    with open(entry.log, "wb") as log:
        entry.process = subprocess.Popen(
            list(argv), stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )


def cron(entry: Entry, account: pwd.struct_passwd, command: list[str], path: t.Sequence[str]) -> None:
    if not place.installed("crontab", path):
        entry.closed = "cron is not installed"
    elif not any(run(["systemctl", "is-active", "--quiet", unit]).rc == 0 for unit in ("cron", "crond", "cronie")):
        entry.closed = "cron is installed, but does not run"
    else:
        done = place.as_user(entry.user, ["crontab", "-"], path, stdin=f"* * * * * {shlex.join(command)}\n")
        refused(entry, "cron", done)


def at(entry: Entry, account: pwd.struct_passwd, command: list[str], path: t.Sequence[str]) -> None:
    if not place.installed("at", path):
        entry.closed = "at is not installed"
    elif run(["systemctl", "is-active", "--quiet", "atd"]).rc:
        entry.closed = "at is installed, but atd does not run"
    else:
        done = place.as_user(entry.user, ["at", "now"], path, stdin=f"{shlex.join(command)}\n")
        refused(entry, "at", done)


def refused(entry: Entry, what: str, done: Completed) -> None:
    """crontab and at say so whom they refuse; all else is no refusal."""
    said = " ".join((done.stderr or done.stdout).split())[:200]
    if done.rc and re.search("not allowed|not have permission", said):
        entry.closed = f"the user may not use {what}: {said}"
    elif done.rc:
        entry.broken = f"{what} ended with {done.rc}: {said}"


def service(entry: Entry, account: pwd.struct_passwd, command: list[str], path: t.Sequence[str]) -> None:
    """Into the cgroup of a service that starts users' programs, as one of those."""
    if not entry.unit:
        entry.closed = "attest_services names no service that starts users' programs"
        return
    shown = run(["systemctl", "show", "--property=ControlGroup", "--value", entry.unit], timeout=30).stdout.strip()
    files = [
        f"{top}{shown}/cgroup.procs" for top in ("/sys/fs/cgroup", "/sys/fs/cgroup/devices", "/sys/fs/cgroup/systemd")
    ]
    files = [file for file in files if shown and os.path.exists(file)]
    if not files:
        entry.closed = f"{entry.unit} does not run here"
        return
    spawn(entry, [sys.executable, "-c", _ENTER, str(len(files)), *files, *place.user_argv(entry.user, command, path)])


# Moves itself into the groups, then becomes the program.
_ENTER = """import os, sys
count = int(sys.argv[1])
for file in sys.argv[2:2 + count]:
    with open(file, "w") as stream:
        stream.write(str(os.getpid()))
os.execvp(sys.argv[2 + count], sys.argv[2 + count:])
"""


def user_manager(entry: Entry, account: pwd.struct_passwd, command: list[str], path: t.Sequence[str]) -> None:
    """As any login that goes through logind has one."""
    unit = f"user@{account.pw_uid}.service"
    loaded = run(["systemctl", "show", "--property=LoadState", "--value", unit], timeout=30).stdout.strip()
    if loaded != "loaded":
        entry.closed = f"{unit} is {loaded}: no user has a systemd of her own here"
        return
    done = run(["systemctl", "start", unit], timeout=30)
    if done.rc:
        why = f"{unit} does not start: {' '.join(done.stderr.split())[:200]}"
        if not pam_systemd():
            entry.closed = f"no user has a systemd of her own where PAM does not call pam_systemd: {why}"
        else:
            entry.broken = why
        return
    variables = {"XDG_RUNTIME_DIR": f"/run/user/{account.pw_uid}"}
    argv = ["systemd-run", "--user", "--quiet", "--collect", "--wait", f"--unit={place.UNITS}-user", "--", *command]
    spawn(entry, place.user_argv(entry.user, argv, path, variables))


def pam_systemd() -> bool:
    """Whether any session goes through logind."""
    if not any(glob.glob(f"{folder}/security/pam_systemd.so") for folder in LIBRARIES):
        return False
    for file in glob.glob("/etc/pam.d/*"):
        with open(file, errors="replace") as stream:
            if any("pam_systemd.so" in line.split("#")[0] for line in stream):
                return True
    return False


def ssh(entry: Entry, account: pwd.struct_passwd, command: list[str], path: t.Sequence[str]) -> None:
    try:
        entry.key = sshd.Key(account)
    except sshd.NoWay as reason:
        entry.broken = str(reason)
        return
    spawn(entry, entry.key.argv(command))


DOORS = {
    "login": ssh,
    "ssh": ssh,
    "ssh-job": ssh,
    "cron": cron,
    "at": at,
    "service": service,
    "user-manager": user_manager,
}


def finish(entry: Entry, path: t.Sequence[str]) -> None:
    """Close the door behind it."""
    if entry.process is not None and entry.process.poll() is None:
        entry.process.terminate()
        try:
            entry.process.wait(5)
        except subprocess.TimeoutExpired:
            entry.process.kill()
            entry.process.wait()
    if entry.key is not None:
        entry.key.remove()
    if entry.context == "cron" and not entry.closed:
        run(["crontab", "-r", "-u", entry.user])
    if entry.context == "user-manager" and not entry.closed:
        run(["systemctl", "stop", f"user@{place.account(entry.user).pw_uid}.service"], timeout=60)


def said(entry: Entry) -> str:
    """What the door itself said."""
    if not entry.log or not os.path.exists(entry.log):
        return ""
    return place.read(entry.log, 65536)


def late(entry: Entry, seconds: float) -> bool:
    return seconds > PATIENCE.get(entry.context, PATIENCE[""])
