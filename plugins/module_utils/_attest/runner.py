# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program that attacks: ``python3 attest.pyz SPEC``. It runs on nodes as the canary user, never as root.

A specification (JSON) names the probes; each answer is one line of JSON in the file that it names. Each probe is a
process of its own with a deadline, so that none can take the others along.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import re
import select
import signal
import subprocess
import sys
import time
import traceback
import typing as t

from . import api

PROBE_TIMEOUT = 45
NEW_CONTAINER = 0x10000000 | 0x00020000 | 0x08000000  # user, mount and IPC namespace
ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C", "TZ": "UTC"}


class World:
    """What a probe is told: who and where it is, and what there is to attack."""

    def __init__(self, spec: t.Mapping[str, t.Any], context: str) -> None:
        self.context = context
        self.actor: str = spec["actor"]
        self.facts: dict[str, t.Any] = spec["facts"]
        # Whoever the probe asked for: hosts of victims, and WAITING. Their end makes an error of a pass.
        self.used: set[str] = set()
        # How many GPUs the user has here.
        self.gpus: int = spec.get("gpus", 0) if context in api.IN_JOB else 0
        self._devices: list[list[str]] | api.NotProven | None = None
        if self.gpus and self.facts.get("gpu_files"):
            # Here and now: in a container there may be no way to ask.
            try:
                self._devices = self._given(self.facts["gpu_files"])
            except api.NotProven as reason:
                self._devices = reason

    def _need(self, found: list[dict[str, t.Any]]) -> list[dict[str, t.Any]]:
        self.used |= {one["host"] for one in found}
        return found

    @property
    def victims(self) -> list[dict[str, t.Any]]:
        return self._need(self.facts["victims"])

    @property
    def here(self) -> list[dict[str, t.Any]]:
        """Victims on this host."""
        return self._need([one for one in self.facts["victims"] if one["host"] == self.facts["host"]])

    @property
    def waiting_job(self) -> str:
        """The other tenant's job that waits, "" if there is none."""
        self.used |= {api.WAITING} if self.facts.get("pending_job") else set()
        return self.facts.get("pending_job") or ""

    @property
    def devices(self) -> list[list[str]] | None:
        """The files that the job was given, as each reading of gres.conf has it; None where it does not say which."""
        if isinstance(self._devices, api.NotProven):
            raise self._devices
        return self._devices

    def _given(self, readings: t.Sequence[t.Sequence[t.Sequence[str]]]) -> list[list[str]]:
        job = os.environ.get("SLURM_JOB_ID", "")
        code, out, err = self.run(["scontrol", "-d", "-o", "show", "job", job])
        numbers = [number for part in re.findall(r"\bgpu\b[^()\s]*\(IDX:([\d,-]+)\)", out) for number in indexes(part)]
        if code or len(numbers) != self.gpus:
            answer = " ".join((err or out).split())[:200]
            raise api.NotProven(f"scontrol -d show job {job} names {len(numbers)} GPUs of {self.gpus}: {answer}")
        if any(number >= len(files) for files in readings for number in numbers):
            raise api.NotProven(f"gres.conf has no device of number {max(numbers)}, which scontrol says the job has")
        return [[path for number in numbers for path in files[number]] for files in readings]

    def run(self, argv: t.Sequence[str], stdin: str = "", timeout: float = 20) -> tuple[int, str, str]:
        """Exit status, stdout, stderr of a program of the site's search path."""
        environment = {**ENVIRONMENT, "PATH": self.facts.get("path") or ENVIRONMENT["PATH"]}
        try:
            done = subprocess.run(
                list(argv),
                input=stdin,
                capture_output=True,
                text=True,
                timeout=timeout,
                env=environment,
                errors="replace",
                check=False,
            )
        except FileNotFoundError as error:
            raise api.NotProven(f"there is no {argv[0]} on this host") from error
        except subprocess.TimeoutExpired as error:
            raise api.NotProven(f"{' '.join(argv)} did not end within {timeout:g} s") from error
        return done.returncode, done.stdout, done.stderr

    def foreign(self, text: str) -> list[str]:
        """What of the victim stands in a text: its names, its secret."""
        names = [self.facts["users"]["b"], self.facts["accounts"]["b"], self.facts.get("foreign_reservation") or ""]
        names = [name for name in names if name]
        seen = [name for name in names if re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w.-])", text)]
        secrets = [one["secret"] for one in self.facts["victims"] if one["secret"] in text]
        return seen + (["the other tenant's secret"] if secrets else [])

    def targets(self, kind: str) -> list[str]:
        """ADDRESS:PORT of other hosts."""
        return list(self.facts["targets"].get(kind, []))

    def placed(self) -> list[str]:
        """Options that put a job where it costs nobody anything."""
        return list(self.facts.get("placement", []))


def indexes(text: str) -> list[int]:
    """Pure: "0-1,3" is 0, 1, 3."""
    found = []
    for part in text.split(","):
        first, _dash, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


class Writer:
    """Answers, one line each; appended, so that what is written stays written."""

    def __init__(self, path: str) -> None:
        # A second start of the same specification (cron fires every minute) ends here.
        self.stream = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)

    def __call__(self, **line: t.Any) -> None:
        os.write(self.stream, (json.dumps(line) + "\n").encode())


def attempt(found: api.Probe, world: World) -> api.Outcome:
    """Run one probe in a process of its own."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        os.setsid()
        outcome = judged(found, world)
        os.write(writing, json.dumps({**outcome.__dict__, "needs": sorted(world.used)}).encode())
        os._exit(0)
    os.close(writing)
    data, complete, until = b"", False, time.monotonic() + PROBE_TIMEOUT
    while not complete and time.monotonic() < until:
        if select.select([reading], [], [], max(0.0, until - time.monotonic()))[0]:
            part = os.read(reading, 65536)
            data, complete = data + part, not part
    os.close(reading)
    if not complete:
        os.killpg(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    if not complete or not data:
        why = f"ended with status {status}" if complete else f"no answer within {PROBE_TIMEOUT} s"
        return api.Outcome(api.ERROR, why)
    return api.Outcome(**json.loads(data))


def judged(found: api.Probe, world: World) -> api.Outcome:
    """The probe's own answer; whatever else happens is an error, never a pass."""
    try:
        outcome = found.function(world) if found.function else None
        if not isinstance(outcome, api.Outcome):
            raise TypeError("the probe returned no outcome; use passed(), failed() or skipped()")
    except api.NotProven as error:
        return api.Outcome(api.ERROR, str(error))
    except BaseException as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        return api.Outcome(
            api.ERROR, f"{type(error).__name__}: {error} ({os.path.basename(where.filename)}:{where.lineno})"
        )
    return outcome


def in_container(ids: t.Sequence[str], world: World, write: Writer) -> None:
    """The same as a rootless container engine does: namespaces of our own, in which we are root."""
    uid, gid = os.getuid(), os.getgid()
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(NEW_CONTAINER) != 0:
        reason = f"users may not make user namespaces here: unshare {api.name(ctypes.get_errno())}"
        for id in ids:
            write(id=id, context="container", verdict=api.NOT_APPLICABLE, evidence=reason)
        os._exit(0)
    for file, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
        with open(f"/proc/self/{file}", "w") as stream:
            stream.write(text)
    run(ids, world, write)
    os._exit(0)


def run(ids: t.Sequence[str], world: World, write: Writer) -> None:
    for id in ids:
        write(started=id, context=world.context)
        outcome = attempt(api.REGISTRY[id], world)
        write(
            id=id,
            context=world.context,
            verdict=outcome.verdict,
            evidence=outcome.evidence[:2000],
            process=outcome.process,
            needs=outcome.needs,
        )


def load() -> None:
    """Fill the registry with all probes that came along."""
    from . import index  # made when the program is put together

    for name in index.MODULES:
        importlib.import_module(f"{__package__}.{name}")


def main(argv: t.Sequence[str]) -> int:
    if os.getuid() == 0:
        sys.stderr.write("attest: refused: probes are never run as root\n")
        return 1
    with open(argv[0]) as stream:
        spec = json.load(stream)
    if spec.get("victim"):
        from . import victim

        return victim.main(spec)
    try:
        write = Writer(spec["out"])
    except FileExistsError:
        return 0
    load()
    for part in spec["parts"]:
        world = World(spec, part["context"])
        if part["context"] == "container":
            in_container(part["probes"], world, write)
        else:
            run(part["probes"], world, write)
    write(done=True, job=os.environ.get("SLURM_JOB_ID", ""))
    until = time.monotonic() + spec.get("hold", 0)
    # The job stays until attest has been in it by ssh.
    while time.monotonic() < until and not os.path.exists(spec["out"] + ".release"):
        time.sleep(0.2)
    return 0
