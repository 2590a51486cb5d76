# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The project's own ansible-lint rules find what they are for."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LINT = pathlib.Path(sys.executable).parent / "ansible-lint"

GOOD = """---
- name: Manage
  ansible.builtin.copy:
    content: x
    dest: /x
    mode: "0600"
  vars:
    tenancy_area: a
    tenancy_object: b
- name: Read
  ansible.builtin.stat:
    path: /x
- name: Look
  ansible.builtin.command: /bin/true
  changed_when: false
"""


def findings(tmp_path, tasks: str) -> str:
    folder = tmp_path / "roles" / "sample" / "tasks"
    folder.mkdir(parents=True)
    (folder / "main.yml").write_text(tasks)
    argv = [
        str(LINT),
        "--offline",
        "-q",
        "-p",
        "--nocolor",
        "-r",
        str(ROOT / "tests" / "lint_rules"),
        "-c",
        "/dev/null",
        "roles/sample",
    ]
    return subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=False).stdout


def test_tasks_as_they_should_be(tmp_path):
    assert findings(tmp_path, GOOD) == ""


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        ("    tenancy_area: a\n", "", "tenancy-area"),
        ("  changed_when: false\n", "  changed_when: true\n", "tenancy-area"),
        ("  vars:\n", "  no_log: true\n  vars:\n", "tenancy-no-log"),
    ],
)
def test_what_they_are_for(tmp_path, old, new, rule):
    assert old in GOOD
    assert rule in findings(tmp_path, GOOD.replace(old, new))
