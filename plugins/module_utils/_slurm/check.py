# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Has Slurm's own programs read staged files. Private to the gpuops.tenancy collection.

What reads which file without a running daemon and without leaving anything behind (22.05 and 24.11):

* slurm.conf: any client, here ``scontrol show hostnames``; it also checks values that exclude each other.
* cgroup.conf and gres.conf: ``slurmd -G``. It would write a topology file into SlurmdSpoolDir, so it gets a copy of
  slurm.conf with another one; and it waits 20 s for every device that is missing, so those are looked for before.
* all of them as slurmctld sees them: a trial start, see trial.py.
* slurmdbd.conf: ``slurmdbd -V`` reads it before it prints the version.
"""

from __future__ import annotations

import dataclasses
import os
import re
import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils import _command
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import autodetect, trial
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.conf import include, read

TIMEOUT = 60.0
# A name that no file of a site has in the stage.
TRIAL = ".trial"
TRIAL_OF_SLURMDBD = ".trial-slurmdbd"
# A node of this name is added where the host is no compute node: slurmd reads its files for some node only.
STAND_IN = "tenancy-check"
# slurmd -G says these, drops the GPUs in question and ends with 0.
_DROPPED = re.compile(r"(Invalid GRES configured on node|Ignoring extra GRES|Ignoring file-less GPU)", re.IGNORECASE)


class CheckFailed(Exception):
    """A program refused a file; the message holds its words."""


@dataclasses.dataclass
class Report:
    commands: list[list[str]] = dataclasses.field(default_factory=list)
    # Programs that would have been needed and are not there.
    missing: list[str] = dataclasses.field(default_factory=list)
    unchecked: list[str] = dataclasses.field(default_factory=list)
    doubts: list[str] = dataclasses.field(default_factory=list)


def validate(
    stage: str,
    names: t.Container[str],
    node: str,
    search_path: t.Sequence[str],
    controller: bool = False,
    coming: t.Container[str] = (),
) -> Report:
    """Check the staged files; raises CheckFailed at the first that is refused.

    :param stage: directory that holds all of them.
    :param names: the files that are ours; others are only there to be included.
    :param node: this host's NodeName, or nothing.
    :param controller: whether slurmctld runs here.
    :param coming: directories that are made together with the files.
    """
    report = Report()
    if "slurm.conf" in names:
        _client(stage, search_path, report)
    if "slurmdbd.conf" in names:
        _slurmdbd(stage, coming, search_path, report)
    if os.path.exists(os.path.join(stage, "slurm.conf")) and ("cgroup.conf" in names or "gres.conf" in names):
        _slurmd(stage, node, search_path, report)
    if "slurm.conf" in names and controller:
        _controller(stage, search_path, report)
    return report


def _controller(stage: str, search_path: t.Sequence[str], report: Report) -> None:
    program = _command.find("slurmctld", search_path)
    if program is None:
        report.missing.append("slurmctld")
        return
    verdict = trial.start(stage, program, _read(stage, "slurm.conf"))
    report.commands.append(list(verdict.command))
    if verdict.accepted is False:
        raise CheckFailed(f"slurmctld would not start with these files: {verdict.words}")
    if verdict.accepted is None:
        report.doubts.append(f"a trial start of slurmctld said nothing about the files: {verdict.words}")


def _client(stage: str, search_path: t.Sequence[str], report: Report) -> None:
    _run(stage, ["scontrol", "show", "hostnames", "x"], "slurm.conf", search_path, report)


def _slurmdbd(stage: str, coming: t.Container[str], search_path: t.Sequence[str], report: Report) -> None:
    text = _read(stage, "slurmdbd.conf") if coming else ""
    if text and read.option(text, "ArchiveDir") in coming:
        # It insists on a directory that is there, and this one is made only if the file is good.
        status = os.stat(os.path.join(stage, "slurmdbd.conf"))
        stage = os.path.join(stage, TRIAL_OF_SLURMDBD)
        os.mkdir(stage, 0o700)
        text = re.sub(r"^\s*ArchiveDir\s*=.*$", f"ArchiveDir={stage}", text, flags=re.IGNORECASE | re.MULTILINE)
        # It holds a password: as narrow as the file itself.
        descriptor = os.open(os.path.join(stage, "slurmdbd.conf"), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="surrogateescape") as handle:
            os.fchown(descriptor, status.st_uid, status.st_gid)
            handle.write(text)
    _run(stage, ["slurmdbd", "-V"], "slurmdbd.conf", search_path, report)


def _slurmd(stage: str, node: str, search_path: t.Sequence[str], report: Report) -> None:
    if node:
        _devices(stage, node, search_path)
    elif _command.find("slurmd", search_path) is None:
        # Not needed on such a host; what would read the files is not here either.
        report.unchecked += ["cgroup.conf", "gres.conf"]
        return
    trial = os.path.join(stage, TRIAL)
    os.mkdir(trial, 0o700)
    for entry in os.listdir(stage):
        if entry not in (TRIAL, "slurm.conf"):
            os.symlink(os.path.join(stage, entry), os.path.join(trial, entry))
    text = for_trial(_read(stage, "slurm.conf"), trial, node)
    with open(os.path.join(trial, "slurm.conf"), "w", encoding="utf-8", errors="surrogateescape") as handle:
        handle.write(text)
    argv = ["slurmd", "-f", os.path.join(trial, "slurm.conf"), "-G", "-N", node or STAND_IN]
    said = _run(trial, argv, "cgroup.conf or gres.conf", search_path, report)
    dropped = [line.strip() for line in said.splitlines() if _DROPPED.search(line)]
    if dropped:
        raise CheckFailed(
            f"slurm.conf and gres.conf do not agree on the devices of {node or 'a node'}: {' / '.join(dropped)}"
        )


def for_trial(slurm_conf: str, spool: str, node: str) -> str:
    """slurm.conf for ``slurmd -G``: nothing is written outside the stage."""
    text = re.sub(r"^\s*SlurmdSpoolDir\s*=.*$", "", slurm_conf, flags=re.IGNORECASE | re.MULTILINE)
    text = f"{text}\nSlurmdSpoolDir={spool}\n"
    return text if node else f"{text}NodeName={STAND_IN} CPUs=1\n"


def _devices(stage: str, node: str, search_path: t.Sequence[str]) -> None:
    if not os.path.exists(os.path.join(stage, "gres.conf")):
        return
    text = _read(stage, "gres.conf")
    wanted = autodetect.methods(text, node)
    if wanted and _command.find("slurmd", search_path) is not None:
        blind = autodetect.missing(wanted, autodetect.directories(_read(stage, "slurm.conf"), search_path))
        if blind:
            raise CheckFailed(blind)
    files = read.device_files(text, node)
    missing = [file for file in files if not os.path.exists(file)]
    if missing:
        raise CheckFailed(
            f"gres.conf names {', '.join(missing)} for node {node}, which this host does not have: slurmd would not start; "
            "load the driver, or correct the gres of the node in the inventory"
        )


def _read(stage: str, name: str) -> str:
    """A trial must know, and change, what stands in an included file too."""
    try:
        return include.expand(os.path.join(stage, name))
    except include.IncludeError as exc:
        raise CheckFailed(str(exc).replace(stage + os.sep, "")) from exc


def _run(stage: str, argv: t.Sequence[str], file: str, search_path: t.Sequence[str], report: Report) -> str:
    program = _command.find(argv[0], search_path)
    if program is None:
        report.missing.append(argv[0])
        report.unchecked.append(file)
        return ""
    command = [program, *argv[1:]]
    report.commands.append(command)
    done = _command.run(command, timeout=TIMEOUT, env={"SLURM_CONF": os.path.join(stage, "slurm.conf")})
    said = f"{done.stderr}\n{done.stdout}"
    if done.rc != 0:
        words = " / ".join(line.strip() for line in said.splitlines() if line.strip()) or f"exit status {done.rc}"
        raise CheckFailed(f"{argv[0]} refuses {file}: {words.replace(stage + os.sep, '')}")
    return said
