# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs the numbered scripts of a job's prolog or epilog on a compute node.

Started by the two files that slurm.conf names (Prolog, Epilog), as root, on every node of a job. Ends with NODE when a
script says that the node is broken, else with 0: a script with a mistake in it stands on every node alike, and must not
drain them all. Talks to no daemon of Slurm.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
import signal
import stat
import subprocess
import sys
import syslog
import tempfile
import time
import typing as t

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import jobs

# A script that ends with this AND says a line "node: why" condemns the node. Either alone is taken for a mistake: a
# status may come from any program that the script calls last.
NODE = 86
_VERDICT = re.compile(rb"^node: *(\S.*)$", re.MULTILINE)
NAME = re.compile(r"^[0-9]{2}-[A-Za-z0-9._-]+$")
_LEFTOVER = re.compile(r"(~|\.(bak|orig|rej|swp|tmp|dpkg-\w+|rpm\w+|ucf-\w+))$")
OUTPUT = 16384
SHOWN = 400
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclasses.dataclass(frozen=True)
class Outcome:
    """``result``: ok, node (the node is broken), bug (the script is)."""

    script: str
    result: str
    why: str
    seconds: float = 0.0


def scripts(directory: str) -> list[str]:
    """In the order of their numbers; what an editor or a package left beside them is no script."""
    try:
        names = os.listdir(directory)
    except FileNotFoundError:
        return []
    return sorted(name for name in names if NAME.match(name) and not _LEFTOVER.search(name))


def unfit(path: str) -> str:
    """Why this file is not run."""
    try:
        status = os.stat(path)
    except OSError as exc:
        return f"cannot be read: {exc.strerror}"
    if not stat.S_ISREG(status.st_mode):
        return "is no file"
    if status.st_uid != os.geteuid() or status.st_mode & 0o022:
        return "is not root's alone to write: chown root, chmod 0755"
    if not status.st_mode & 0o100:
        return "is not executable: chmod 0755"
    return ""


def environment(given: t.Mapping[str, str], context: str) -> dict[str, str]:
    """What slurmd says of the job, and nothing that a user could have put there to lead a program astray."""
    kept = {key: value for key, value in given.items() if re.match(r"^(SLURM|SLURMD)_[A-Z0-9_]+$", key)}
    if "CUDA_VISIBLE_DEVICES" in given:
        kept["CUDA_VISIBLE_DEVICES"] = given["CUDA_VISIBLE_DEVICES"]
    return {**kept, "PATH": PATH, "LC_ALL": "C", "HOME": "/root", "TENANCY_CONTEXT": context}


def judge(status: int | None, output: bytes, limit: float) -> tuple[str, str]:
    """Result and reason, from how a script ended (None: not in time). Pure."""
    last = output.decode("utf-8", errors="backslashreplace").strip().splitlines()[-1:] or [""]
    if status is None:
        return "bug", f"not done after {limit:g} s, ended; {last[0]}"
    if status == 0:
        return "ok", last[0]
    verdict = _VERDICT.search(output)
    if status == NODE and verdict:
        return "node", verdict.group(1).decode("utf-8", errors="backslashreplace").strip()
    if status == NODE:
        return "bug", f"ended with {NODE} but named no reason in a line 'node: ...'"
    how = f"ended with {status}" if status > 0 else f"was ended by signal {-status}"
    return "bug", f"{how}; {last[0]}"


def scratch(directory: str) -> t.IO[bytes]:
    """A file without a name, in a directory that users cannot fill; where even that is full, in memory."""
    try:
        return tempfile.TemporaryFile(dir=directory)
    except OSError:
        return open(os.memfd_create("said"), "w+b")


def run(path: str, env: t.Mapping[str, str], limit: float, directory: str) -> Outcome:
    """One script, in a process group of its own; whatever hangs is ended with all that it started."""
    name = os.path.basename(path)
    why = unfit(path)
    if why:
        return Outcome(name, "bug", why)
    began = time.monotonic()
    # A file and no pipe: a script that leaves a process behind does not keep us waiting for its end.
    with scratch(directory) as said:
        try:
            process = subprocess.Popen(
                [path],
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                env=dict(env),
                cwd="/",
                start_new_session=True,
            )
        except OSError as exc:
            return Outcome(name, "bug", f"cannot be run: {exc.strerror}")
        status: int | None = None
        try:
            status = process.wait(timeout=limit)
        except subprocess.TimeoutExpired:
            for number, patience in ((signal.SIGTERM, 2), (signal.SIGKILL, 5)):
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, number)
                # One that not even SIGKILL ends (a dead file system) is left alone.
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(timeout=patience)
                    break
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        size = said.seek(0, os.SEEK_END)
        said.seek(max(size - OUTPUT, 0))
        output = said.read(OUTPUT)
    result, why = judge(status, output, limit)
    return Outcome(name, result, why, time.monotonic() - began)


def line(context: str, job: str, outcome: Outcome) -> str:
    """One line for the log. Pure."""
    said = "".join(char if char.isprintable() else " " for char in outcome.why)[:SHOWN]
    return (
        f"{context} job={job} script={outcome.script} result={outcome.result} "
        f"seconds={outcome.seconds:.2f} said={json.dumps(said)}"
    )


def log(context: str, job: str, outcome: Outcome) -> None:
    level = {"ok": syslog.LOG_INFO, "bug": syslog.LOG_ERR, "node": syslog.LOG_CRIT}[outcome.result]
    with contextlib.suppress(OSError):
        syslog.syslog(level, line(context, job, outcome))


def run_all(context: str, job: str, config: t.Mapping[str, t.Any], env: t.Mapping[str, str], deadline: float) -> str:
    """All scripts; the reason why the node is broken, or nothing."""
    directory = config[f"{context}_directory"]
    verdict = ""
    for name in scripts(directory):
        left = deadline - time.monotonic()
        if left <= 0:
            why = f"not run: what came before it took the {config['total']} s that all have together"
            outcome = Outcome(name, "bug", why)
        else:
            outcome = run(os.path.join(directory, name), env, min(config["timeout"], left), config["state"])
        log(context, job, outcome)
        if outcome.result == "bug":
            with contextlib.suppress(OSError, ValueError):
                jobs.count(config["state"], f"{context}/{name}", outcome.why)
        if outcome.result == "node":
            verdict = verdict or f"{name}: {outcome.why}"
            if context == "prolog":
                # The job will not run here. After an epilog the rest is still to be cleaned.
                break
    return verdict


def main(argv: t.Sequence[str], given: t.Mapping[str, str]) -> int:
    began = time.monotonic()
    context = argv[1]
    os.umask(0o077)
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "hooks.json"), encoding="utf-8") as handle:
        config = json.load(handle)
    # Waiting for a lock counts: slurmd ends, and drains for it, whatever takes longer than it allows.
    deadline = began + config["total"]
    job, uid = given["SLURM_JOB_ID"], int(given["SLURM_JOB_UID"])
    syslog.openlog("slurm-hooks", 0, syslog.LOG_DAEMON)
    registry = jobs.Registry(config["state"])
    # slurmd that was restarted may ask for the same epilog again while the first one is at work.
    with registry.lock(f"{context}-{int(job)}", config["total"]):
        try:
            if context == "prolog":
                # Whoever cleans up behind an earlier job of this user finishes first.
                with registry.lock(f"user-{uid}", min(config["timeout"], deadline - time.monotonic())):
                    registry.begins(int(job), uid)
            else:
                registry.ends(int(job), uid)
        except OSError as exc:
            # Slurm's own traces still show the job as soon as it has a process.
            log(context, job, Outcome("-", "bug", f"cannot be noted: {exc}"))
        verdict = run_all(context, job, config, environment(given, context), deadline)
        if context == "epilog":
            registry.forget(int(job))
    return NODE if verdict else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv, os.environ))
