# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each control switched off in turn, and whether attest fails on the probe that belongs to it, naming the control.

On the running demo (`make demo`) or the testbed in TENANCY_TESTBED; mutations.yml says what is switched off, and everything
is put back. Words on the command line choose among them.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import pathlib
import re
import shlex
import sys
import tempfile
import typing as t

import yaml

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "cluster"))
import listener
from converge import play
from recorded import playbook
from remote import on, said, wait_for

SAVED = "/root/attest-mutation"
EDIT = """
import re, sys
path, find, put = sys.argv[1:]
text = open(path).read()
changed, count = re.subn(find, put, text)
if not count:
    sys.exit(f"{path}: nothing matches {find}")
# Written into the file itself: owner and mode stay.
open(path, "w").write(changed)
"""


def mutations(words: list[str]) -> list[dict[str, t.Any]]:
    found = yaml.safe_load((HERE / "mutations.yml").read_text())["mutations"]
    return [one for one in found if not words or any(word.lower() in one["name"].lower() for word in words)]


def attest(probes: t.Iterable[str], variables: t.Mapping[str, t.Any] | None = None) -> list[dict[str, str]]:
    """Answers of a run of these probes alone."""
    with tempfile.TemporaryDirectory() as folder, listener.outside() as address:
        given = {"attest_outside_targets": [address], **(variables or {})}
        wanted = json.dumps({**given, "attest_only": sorted(probes), "attest_report_dir": folder})
        run = playbook("attest.yml", "-e", wanted).wait()
        file = pathlib.Path(folder) / "attest.json"
        if not file.exists():
            raise AssertionError(f"attest.yml made no report; it ended with {run.returncode}: {run.output[-3000:]}")
        return json.loads(file.read_text())["answers"]


def settle(one: dict[str, t.Any]) -> None:
    """Have the hosts go by their files, and wait until Slurm works."""
    for hosts, commands in one.get("apply", {}).items():
        for host in hosts.split():
            for argv in commands:
                said(host, *argv)
    wait_for(lambda: on("login", "scontrol", "ping").returncode == 0, what="slurmctld")
    wait_for(lambda: on("ctl", "sacctmgr", "-nP", "show", "cluster").returncode == 0, what="slurmdbd")
    wait_for(
        lambda: set(on("ctl", "sinfo", "-hN", "-o", "%t").stdout.split()) <= {"idle", "mix", "alloc", "resv"},
        what=lambda: on("ctl", "sinfo", "-hN").stdout,
    )


def taken(host: str, label: str, step: dict[str, t.Any]) -> list[str]:
    """Take one step on a host; returns what takes it back."""
    if "run" in step:
        said(host, *step["run"])
        return step["undo"]
    path = step["path"]
    if "mode" in step:
        before = said(host, "stat", "-c", "%a", path)
        said(host, "chmod", step["mode"], path)
        return ["chmod", before, path]
    saved = f"{SAVED}-{label}"
    said(host, "cp", "--archive", path, saved)
    if step.get("gone"):
        said(host, "rm", path)
        return ["sh", "-c", f"[ ! -e {saved} ] || mv {saved} {shlex.quote(path)}"]
    said(host, "python3", "-c", EDIT, path, step["find"], step["put"])
    # Into the file, so that owner and mode stay, and away with the copy.
    return ["sh", "-c", f"[ ! -e {saved} ] || {{ cat {saved} > {shlex.quote(path)} && rm {saved}; }}"]


@contextlib.contextmanager
def switched_off(one: dict[str, t.Any], part: str) -> t.Iterator[None]:
    """The steps of a part taken, and taken back whatever happens."""
    undo: list[tuple[str, list[str]]] = []
    try:
        for number, step in enumerate(one.get(part, [])):
            for host in step.get("hosts", one["hosts"]):
                undo.append((host, taken(host, f"{part}-{number}", step)))
        settle(one)
        yield
    finally:
        for host, argv in reversed(undo):
            # Each may be said twice: a connection that is lost is no reason to leave a control off.
            wait_for(lambda host=host, argv=argv: on(host, *argv).returncode == 0, what=f"{argv} on {host}")
        settle(one)


def judged(one: dict[str, t.Any], answers: list[dict[str, str]]) -> list[tuple[str, str, str, str]]:
    """(probe, context, verdict, what the report says) for each probe that must fail."""
    found = []
    for probe, context in one["fails"].items():
        mine = [row for row in answers if row["probe"] == probe and row["context"] == context]
        failing = [
            row for row in mine if row["verdict"] == "FAIL" and re.search(re.escape(one["control"]), row["control"])
        ]
        row = next(iter(failing or mine), {"verdict": "no answer", "evidence": "", "control": ""})
        verdict = "FAIL" if failing else f"MISSED ({row['verdict']}, names {row['control'] or 'nothing'})"
        found.append((probe, context, verdict, row["evidence"]))
    return found


def holding(one: dict[str, t.Any], answers: list[dict[str, str]]) -> list[str]:
    """Probes that fail although the control is on: switching it off would show nothing."""
    return [
        f"{row['probe']} in {row['context']}: {row['verdict']}"
        for row in answers
        if one["fails"].get(row["probe"]) == row["context"] and row["verdict"] in ("FAIL", "error")
    ]


def tried(one: dict[str, t.Any], before: list[dict[str, str]]) -> list[tuple[str, str, str, str]]:
    """Like judged()."""
    with switched_off(one, "without"):
        if own_start(one):
            before = attest(one["fails"], one.get("variables"))
        already = holding(one, before)
        if already:
            return [(", ".join(one["fails"]), "", "MISSED (not pass with the control on)", "; ".join(already))]
        with switched_off(one, "change"):
            return judged(one, attest(one["fails"], one.get("variables")))


def own_start(one: dict[str, t.Any]) -> bool:
    """Whether what holds with the control on has to be found out for this one alone."""
    return bool(one.get("without") or one.get("variables"))


def measure(chosen: list[dict[str, t.Any]]) -> t.Iterator[tuple[str, str, str, str, str]]:
    plain = {probe for one in chosen if not own_start(one) for probe in one["fails"]}
    before = attest(plain) if plain else []
    for one in chosen:
        for found in tried(one, before):
            yield one["name"], *found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("words", nargs="*", help="only controls whose names hold one of these words")
    chosen = mutations(parser.parse_args().words)
    play("molecule/shared/furnish.yml", quiet=True)
    print(f"Slurm {said('login', 'scontrol', '--version').split()[-1]}\n")
    print("| control off | probe | in | attest says | evidence |\n| --- | --- | --- | --- | --- |")
    missed = shown = 0
    for name, probe, context, verdict, evidence in measure(chosen):
        shown += 1
        missed += verdict != "FAIL"
        print(f"| {name} | {probe} | {context} | {verdict} | {' '.join(evidence.split())[:120]} |", flush=True)
    print(f"\n{len(chosen)} controls, {shown} probes, {missed} missed")
    return 1 if missed or not shown else 0


if __name__ == "__main__":
    sys.exit(main())
