# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Playbook runs whose results are recorded, and which can be killed at a chosen point."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

from definition import inventory_folder
from engine import BUILD, REPO

BIN = pathlib.Path(sys.executable).parent


@dataclasses.dataclass
class Run:
    """A finished run. ``results``: one dict per task and host; ``killed``: whether it was killed."""

    returncode: int
    output: str
    results: list[dict]

    @property
    def killed(self) -> bool:
        return self.returncode == -signal.SIGKILL

    @property
    def changed(self) -> list[dict]:
        return [result for result in self.results if result["changed"]]

    @property
    def errors(self) -> list[str]:
        return [str(result["msg"]) for result in self.results if result["status"] == "failed"]

    def of(self, action: str) -> list[dict]:
        """Results of a module, by its name without the collection."""
        return [result for result in self.results if result["action"].rsplit(".", 1)[-1] == action]


class Started:
    """A run in a process group of its own."""

    def __init__(self, argv: list[str], kill_after: int = 0, kill_at: str = ""):
        descriptor, name = tempfile.mkstemp(prefix="tenancy-", suffix=".jsonl")
        os.close(descriptor)
        self.record = pathlib.Path(name)
        environment = {
            **os.environ,
            "ANSIBLE_CONFIG": str(REPO / "ansible.cfg"),
            "ANSIBLE_COLLECTIONS_PATH": str(BUILD),
            "ANSIBLE_CALLBACK_PLUGINS": str(REPO / "tests" / "callbacks"),
            "ANSIBLE_CALLBACKS_ENABLED": "tenancy_recorder",
            "ANSIBLE_LOAD_CALLBACK_PLUGINS": "true",
            "TENANCY_RECORD": name,
            "TENANCY_KILL_AFTER": str(kill_after),
            "TENANCY_KILL_AT": kill_at,
        }
        self.process = subprocess.Popen(
            argv,
            cwd=REPO,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def kill(self) -> None:
        """As a terminal that vanishes does, only harder."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def wait(self, timeout: float = 900) -> Run:
        output, _none = self.process.communicate(timeout=timeout)
        lines = self.record.read_text().splitlines()
        self.record.unlink()
        return Run(self.process.returncode, output, [json.loads(line) for line in lines])


def playbook(name: str, *args: str, kill_after: int = 0, kill_at: str = "") -> Started:
    """Start one of the collection's playbooks on the testbed's inventory.

    :param kill_after: kill it after so many tasks that changed something; ``kill_at``: after the one of this name.
    """
    return Started(
        [str(BIN / "ansible-playbook"), "-i", str(inventory_folder()), str(REPO / "playbooks" / name), *args],
        kill_after,
        kill_at,
    )


def start_module(host: str, name: str, arguments: dict, *options: str) -> Started:
    """Start one module on one host."""
    return Started(
        [
            str(BIN / "ansible"),
            "-i",
            str(inventory_folder()),
            host,
            "-m",
            f"gpuops.tenancy.{name}",
            "-a",
            json.dumps(arguments),
            *options,
        ]
    )


def module(host: str, name: str, arguments: dict, *options: str) -> Run:
    """Run one module on one host."""
    return start_module(host, name, arguments, *options).wait()
