# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A trial start of slurmctld with staged files. Private to the gpuops.tenancy collection.

Much of what keeps slurmctld from starting is found by slurmctld alone: a bad cgroup.conf or topology.conf, a partition
with a node that does not exist, a plugin that is missing. So it is started, cut off from everything: in a network
namespace of its own (no node and no database hears of it), with an empty directory of state, without programs that it
would run; and killed a second after it says that it is the primary controller. That
touches nothing but a directory of ours and the socket of munge (system calls traced on 22.05 and 24.11).
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.conf import read

TIMEOUT = 30.0
# 22.05 loads some plugins only after it has said that it runs.
GRACE = 1.0
RUNNING = "Running as primary controller"
_CANNOT_ISOLATE = 97
# Where it keeps things, whom it talks to, what it would run.
_DROPPED = (
    r"AccountingStorage\w*", r"JobComp\w*", r"SlurmctldHost", r"SlurmctldPort", r"SlurmctldPidFile", r"SlurmctldLogFile",
    r"SlurmctldDebug", r"SlurmctldSyslogDebug", r"DebugFlags", r"SlurmSchedLog\w*", r"StateSaveLocation",
    r"SlurmctldPrimaryOn\w*", r"SlurmctldPrimaryOff\w*", r"PrologSlurmctld", r"EpilogSlurmctld", r"Suspend\w*",
    r"Resume\w*", r"RebootProgram", r"HealthCheck\w*", r"BurstBuffer\w*", r"MailProg",
)  # fmt: skip
# Said because of what was taken away, or because this host is not ready: no verdict on the files.
_NOT_THE_FILES = re.compile(
    r"_open_ports|getaddrinfo|munge|auth(entication)? plugin|slurmdbd is required|user id", re.IGNORECASE
)

# Runs before slurmctld, in its process: no network but a loopback device. The second address is there because without
# one that is not 127.0.0.1 the resolver refuses even 0.0.0.0.
_ISOLATE = f"""
import ctypes, fcntl, os, socket, struct, sys
if ctypes.CDLL(None).unshare(0x40000000) != 0:
    os._exit({_CANNOT_ISOLATE})
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
fcntl.ioctl(s, 0x8914, struct.pack("16sh14s", b"lo", 0x41, b""))
fcntl.ioctl(s, 0x8916, struct.pack("16sH2s4s8s", b"lo:1", socket.AF_INET, b"", socket.inet_aton("192.0.2.1"), b""))
s.close()
os.execv(sys.argv[1], sys.argv[1:])
"""


@dataclasses.dataclass(frozen=True)
class Verdict:
    """``accepted`` is None when the trial could say nothing; ``words`` are slurmctld's own."""

    accepted: bool | None
    words: str
    command: tuple[str, ...] = ()


def for_trial(slurm_conf: str, state: str, host: str) -> str:
    """slurm.conf with nothing left that reaches out of the trial. Pure."""
    text = re.sub(rf"^[ \t]*(?:{'|'.join(_DROPPED)})[ \t]*=.*$", "", slurm_conf, flags=re.IGNORECASE | re.MULTILINE)
    # Weights name TRES that only the database knows.
    text = re.sub(r"(?<=\s)TRESBillingWeights=\S+", "", text, flags=re.IGNORECASE)
    return (
        f"{text}\nSlurmctldHost={host}(127.0.0.1)\nStateSaveLocation={state}\nSlurmctldPidFile={state}/pid\n"
        "SlurmctldDebug=info\nSlurmctldSyslogDebug=quiet\n"
    )


def judge(lines: t.Sequence[str], rc: int | None, running: bool) -> Verdict:
    """From what slurmctld said and how it ended. Pure."""
    if running and rc == -signal.SIGKILL:
        return Verdict(True, "")
    if rc == _CANNOT_ISOLATE:
        return Verdict(None, "this host allows no network namespace")
    fatal = [index for index, line in enumerate(lines) if "fatal:" in line]
    if not fatal:
        return Verdict(None, lines[-1] if lines else "slurmctld said nothing")
    # The error that explains a fatal one stands right before it.
    near = [line for line in lines[max(fatal[0] - 2, 0) : fatal[0] + 1] if "error:" in line or "fatal:" in line]
    words = " / ".join(near)
    return Verdict(None if _NOT_THE_FILES.search(lines[fatal[0]]) else False, words)


def start(stage: str, program: str, text: str) -> Verdict:
    """Start slurmctld with the files of ``stage`` and this slurm.conf; needs root."""
    base = "/run" if os.access("/run", os.W_OK) else None
    directory = tempfile.mkdtemp(prefix="tenancy-trial-", dir=base)
    try:
        config = _prepare(stage, directory, text)
        # slurmctld starts as root or, where it may not, gives up root by itself; either way it has to get in here.
        argv = [sys.executable, "-I", "-c", _ISOLATE, program, "-D", "-c", "-f", config]
        lines, rc, running = _watch(argv, config)
        verdict = judge([line.replace(directory + os.sep, "") for line in lines], rc, running)
        return dataclasses.replace(verdict, command=(program, "-D", "-c", "-f", config))
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _prepare(stage: str, directory: str, text: str) -> str:
    os.chmod(directory, 0o755)
    state = os.path.join(directory, "state")
    os.mkdir(state, 0o700)
    for entry in os.listdir(stage):
        path = os.path.join(stage, entry)
        if os.path.isfile(path) and entry not in ("slurm.conf", "slurmdbd.conf"):
            shutil.copyfile(path, os.path.join(directory, entry))
    user = read.option(text, "SlurmUser") or "root"
    with contextlib.suppress(LookupError):
        shutil.chown(state, user)
    config = os.path.join(directory, "slurm.conf")
    with open(config, "w", encoding="utf-8", errors="surrogateescape") as handle:
        handle.write(for_trial(text, state, socket.gethostname().split(".")[0]))
    return config


def _watch(argv: t.Sequence[str], config: str) -> tuple[list[str], int | None, bool]:
    environment = {**os.environ, "SLURM_CONF": config, "LC_ALL": "C"}
    lines: list[str] = []
    running = False
    with subprocess.Popen(
        list(argv),
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="backslashreplace",
        start_new_session=True,
    ) as process:
        deadline = threading.Timer(TIMEOUT, _kill, (process.pid,))
        deadline.start()
        try:
            for line in process.stdout or ():
                lines.append(line.strip())
                if RUNNING in line:
                    running = True
                    deadline.cancel()
                    deadline = threading.Timer(GRACE, _kill, (process.pid,))
                    deadline.start()
        finally:
            deadline.cancel()
            _kill(process.pid)
            process.wait()
        return lines, process.returncode, running


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
