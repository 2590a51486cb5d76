# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Other users' processes, and what a process may use up. Signal 0 is the only one that is sent."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import subprocess
import sys
import time

from ..api import PENDING, NotProven, Outcome, answer, failed, name, opened, passed, probe, skipped
from .files import neighbour

WHERE = ("login", "cron", "at", "user-manager", "service", "job", "container", "ssh-job")
SEIZE, DETACH = 0x4206, 17


def others() -> list[int]:
    """Processes of other users that are visible here."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError):
                if os.stat(f"/proc/{entry}").st_uid != os.getuid():
                    found.append(int(entry))
    return found


def targets(world) -> list[int]:
    return sorted({*(pid for one in world.here for pid in one["pids"]), 1})


def worst(answers: dict) -> Outcome:
    evidence = ", ".join(f"{what} {said or 'worked'}" for what, said in answers.items())
    return failed(evidence) if "" in answers.values() else passed(evidence)


@probe(
    "see-processes",
    "sees no other user's processes",
    "node_hygiene: hidepid of /proc",
    ("login", "cron", "job", "ssh-job"),
)
def see_processes(world):
    """List /proc, and read the command line of another tenant's process by its number."""
    seen = others()
    read = [pid for one in world.here for pid in one["pids"] if opened(f"/proc/{pid}/cmdline", os.O_RDONLY) == ""]
    if seen or read:
        return failed(
            f"{len(seen)} processes of other users in /proc; command lines read of the other tenant: {read or 'none'}"
        )
    return passed("none in /proc")


@probe(
    "read-environment",
    "reads no other user's environment",
    "kernel: /proc/PID/environ; node_hygiene: hidepid of /proc",
    WHERE,
)
def read_environment(world):
    """Open /proc/PID/environ, maps and mem of another tenant's process and of process 1."""
    return worst(
        {
            f"/proc/{pid}/{file}": opened(f"/proc/{pid}/{file}", os.O_RDONLY)
            for pid in targets(world)
            for file in ("environ", "maps", "mem")
        }
    )


@probe("signal", "signals no other user's process", "kernel: uid of processes", WHERE)
def send_signal(world):
    """kill(pid, 0) for every process of another user that is visible, and for the other tenant's by number."""
    pids = sorted({*others(), *targets(world)})
    answers = {pid: answer(os.kill, pid, 0) for pid in pids}
    through = [pid for pid, said in answers.items() if said == ""]
    if through:
        return failed(f"signal 0 reached {', '.join(map(str, through[:10]))}")
    return passed(f"{len(pids)} processes, each {' or '.join(sorted(set(answers.values())))}")


@probe("ptrace", "traces no other user's process", "kernel: uid of processes", WHERE)
def ptrace(world):
    """PTRACE_SEIZE, which stops nothing, of another tenant's process and of process 1."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.restype = ctypes.c_long
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    answers = {}
    for pid in targets(world):
        if libc.ptrace(SEIZE, pid, None, None) == 0:
            libc.ptrace(DETACH, pid, None, None)
            answers[f"process {pid}"] = ""
        else:
            answers[f"process {pid}"] = name(ctypes.get_errno())
    return worst(answers)


@probe(
    "ptrace-own",
    "traces no other process of its own that it did not start",
    "node_hygiene: kernel.yama.ptrace_scope",
    ("login", "job"),
)
def ptrace_own(world):
    """PTRACE_SEIZE of a sibling: what one broken program of a user could do to her ssh agent."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.restype = ctypes.c_long
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    child = subprocess.Popen(["sleep", "20"])
    reading, writing = os.pipe()
    sibling = os.fork()
    if sibling == 0:
        done = libc.ptrace(SEIZE, child.pid, None, None)
        os.write(writing, (name(ctypes.get_errno()) if done else "traced").encode())
        os._exit(0)
    os.waitpid(sibling, 0)
    said = os.read(reading, 100).decode()
    child.terminate()
    child.wait()
    return failed("a sibling was traced") if said == "traced" else passed(f"a sibling: {said}")


@probe(
    "process-limit",
    "cannot start processes without end",
    {
        "": "node_login: TasksMax of user slices",
        "job": "slurm_compute: LimitNPROC of slurmd (slurm_config_max_processes)",
    },
    ("login", "user-manager", "job"),
)
def process_limit(world):
    """Read the limits that a fork bomb would meet (RLIMIT_NPROC, pids.max of the cgroups); none is started."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NPROC)
    found = [] if hard == resource.RLIM_INFINITY else [("RLIMIT_NPROC", hard)]
    with open("/proc/self/cgroup") as stream:
        for line in stream:
            _number, controllers, path = line.strip().split(":", 2)
            if controllers in ("", "pids"):
                top = f"/sys/fs/cgroup{'/pids' if controllers else ''}"
                while path and path != "/":
                    with contextlib.suppress(OSError, ValueError), open(f"{top}{path}/pids.max") as limit:
                        found.append((f"pids.max of {path}", int(limit.read())))
                    path = os.path.dirname(path)
    with open("/proc/sys/kernel/threads-max") as stream:
        most = int(stream.read()) // 4
    evidence = "; ".join(f"{what} {value}" for what, value in found) or "no limit"
    return (
        passed(evidence)
        if any(value <= most for _what, value in found)
        else failed(f"{evidence}; the host has room for {4 * most}")
    )


@probe(
    "run-user",
    "cannot fill /run/user",
    "node_hygiene: RuntimeDirectorySize of systemd-logind",
    ("login", "user-manager"),
)
def run_user(world):
    """Read size and inodes of the user's own file system below /run/user; it is not filled."""
    path = f"/run/user/{os.getuid()}"
    if not os.path.isdir(path):
        return skipped(f"there is no {path}")
    if os.stat(path).st_dev == os.stat("/run").st_dev:
        return failed(f"{path} lies in /run itself, which everybody needs")
    there = os.statvfs(path)
    size = there.f_blocks * there.f_frsize
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    evidence = f"{size >> 20} MiB of {memory >> 20} MiB memory, {there.f_files} inodes"
    return passed(evidence) if 0 < size <= memory // 5 and there.f_files else failed(evidence)


@probe(
    "process-left",
    "leaves no process behind after the job",
    "slurm_config: ProctrackType=proctrack/cgroup; slurm_compute: epilog",
    ("job", "ssh-job"),
)
def process_left(world):
    """Start a process of a session of its own, whose parents have ended; it is looked for after the job."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.setsid()
        if os.fork() == 0:
            null = os.open(os.devnull, os.O_RDWR)
            for number in (0, 1, 2):
                os.dup2(null, number)
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            os.write(writing, str(os.getpid()).encode())
            os.close(writing)
            # Ends by itself, should nobody end it.
            os.execv(sys.executable, [sys.executable, "-c", "import time; time.sleep(120)", "attest-left-behind"])
        os._exit(0)
    os.waitpid(child, 0)
    pid = int(os.read(reading, 20))
    with open(f"/proc/{pid}/stat") as stream:
        started = stream.read().rsplit(")", 1)[1].split()[19]
    return Outcome(PENDING, f"process {pid}", {"pid": pid, "start": started})


@probe(
    "memory",
    "uses no more memory than the job was given",
    "slurm_compute: ConstrainRAMSpace=yes in cgroup.conf",
    ("job",),
    disruptive=True,
)
def memory(world):
    """Fill one and a half times the job's memory, in a process, and then in a file in /dev/shm, if that has the room."""
    limit = world.facts["memory"] << 20
    size, said = limit * 3 // 2, []
    room = os.statvfs("/dev/shm").f_bavail * os.statvfs("/dev/shm").f_frsize
    for what, code in (
        ("process", f"b = bytearray({size})\nfor n in range(0, len(b), 4096): b[n] = 1\n"),
        ("/dev/shm", _FILL.format(size=size)),
    ):
        if what == "/dev/shm" and room < size:
            # It fills up before the job does.
            said.append(f"/dev/shm: has room for {room >> 20} MiB alone")
            continue
        child = subprocess.Popen([sys.executable, "-c", _FIRST + code], stderr=subprocess.PIPE, text=True)
        until = time.monotonic() + 20
        while child.poll() is None and time.monotonic() < until:
            time.sleep(0.1)
        if child.poll() is None:
            child.kill()
            child.wait()
            raise NotProven(f"{what}: not done after 20 s")
        if child.returncode == 0:
            return failed(f"{what}: {size >> 20} MiB used in a job of {limit >> 20} MiB")
        said.append(f"{what}: {stopped(child.returncode, child.stderr.read())}")
    return passed(f"{'; '.join(said)} (job of {limit >> 20} MiB)")


def stopped(status: int, stderr: str) -> str:
    """Pure: by what a program was stopped that wanted memory; whatever else may have ended it proves nothing."""
    last = (stderr.strip().splitlines() or [f"status {status}"])[-1]
    if status == -signal.SIGKILL:
        return "SIGKILL"
    if last.startswith("MemoryError"):
        return last
    raise NotProven(f"the program that was to fill memory ended for another reason: {last[:200]}")


# The kernel is to choose this process, not the one that reports.
_FIRST = "open('/proc/self/oom_score_adj', 'w').write('1000')\n"
_FILL = """import tempfile
with tempfile.TemporaryFile(dir='/dev/shm') as f:
    for n in range({size} >> 20): f.write(bytes(1 << 20)); f.flush()
"""


@probe(
    "read-memory",
    "reads no memory of another tenant's job on the node",
    "kernel: uid of processes",
    ("job",),
    neighbour=True,
)
def read_memory(world):
    """process_vm_readv of the memory of another tenant's job on the node."""
    libc = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(8)

    class Vector(ctypes.Structure):
        _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]

    local = Vector(ctypes.cast(buffer, ctypes.c_void_p), 8)
    remote = Vector(neighbour(world)["secret_at"], 8)
    answers = {}
    for pid in neighbour(world)["pids"]:
        count = libc.process_vm_readv(pid, ctypes.byref(local), 1, ctypes.byref(remote), 1, 0)
        answers[f"process {pid}"] = "" if count > 0 else name(ctypes.get_errno())
    return worst(answers)
