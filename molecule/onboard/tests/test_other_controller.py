# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The other end of the supported ansible-core finds the same work done."""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "cluster"))
from definition import inventory_folder


@pytest.mark.parametrize("playbook", [["playbooks/site.yml"], ["playbooks/onboard.yml", "-e", "tenant=tenant-foo"]])
def test_it_changes_nothing(playbook):
    argv = [
        sys.executable,
        str(ROOT / "tests/tools/other_controller.py"),
        "ansible-playbook",
        "-i",
        str(inventory_folder()),
        *playbook,
    ]
    done = subprocess.run(argv, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    counts = re.findall(r"changed=(\d+)", done.stdout)
    assert counts
    assert set(counts) == {"0"}, done.stdout
