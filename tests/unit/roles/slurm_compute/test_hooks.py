# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The dispatcher: what each kind of script does to the node's fate."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

import hooks
import jobs
import pytest

SOURCES = pathlib.Path(hooks.__file__).parent


@pytest.fixture
def node(tmp_path):
    """The dispatcher as it is installed, with directories of its own."""
    here = tmp_path / "lib"
    shutil.copytree(SOURCES, here, ignore=shutil.ignore_patterns("__pycache__"))
    config = {
        "prolog_directory": str(tmp_path / "prolog.d"),
        "epilog_directory": str(tmp_path / "epilog.d"),
        "state": str(tmp_path / "state"),
        "timeout": 1,
        "total": 4,
    }
    (here / "hooks.json").write_text(json.dumps(config))

    class Node:
        state = tmp_path / "state"

        @staticmethod
        def script(context, name, text, mode=0o755):
            path = tmp_path / f"{context}.d" / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
            path.chmod(mode)
            return path

        @staticmethod
        def argv(context):
            return [sys.executable, "-I", "-B", str(here / "hooks.py"), context]

        @classmethod
        def run(cls, context, job="12", **env):
            given = {"SLURM_JOB_ID": job, "SLURM_JOB_UID": "10001", "SLURMD_NODENAME": "gpu1", **env}
            return subprocess.run(cls.argv(context), env=given, capture_output=True, text=True, timeout=60, check=False)

        @staticmethod
        def bugs():
            path = tmp_path / "state" / "bugs.json"
            return json.loads(path.read_text()) if path.exists() else {}

    return Node


def test_scripts_run_in_the_order_of_their_numbers_with_the_jobs_data(node, tmp_path):
    for name in ("90-last", "10-first", "50-middle"):
        node.script("prolog", name, f'#!/bin/sh\necho "{name} $SLURMD_NODENAME $TENANCY_CONTEXT" >> {tmp_path}/said\n')
    # What is beside them: an editor's copy, a package's new version, a file without a number.
    for name in ("10-first~", "50-middle.dpkg-new", "README"):
        node.script("prolog", name, f"#!/bin/sh\necho wrong >> {tmp_path}/said\n")
    assert node.run("prolog").returncode == 0
    assert (tmp_path / "said").read_text().splitlines() == [
        "10-first gpu1 prolog",
        "50-middle gpu1 prolog",
        "90-last gpu1 prolog",
    ]
    assert node.bugs() == {}


@pytest.mark.parametrize("context", ["prolog", "epilog"])
def test_a_node_is_condemned_by_status_and_words_together(node, context):
    node.script(context, "50-check", "#!/bin/sh\necho 'node: GPU 3 fell off the bus'\nexit 86\n")
    assert node.run(context).returncode == hooks.NODE
    assert node.bugs() == {}


BUGS = {
    "a syntax error in sh": ("#!/bin/sh\nif then fi\n", 0o755),
    "a syntax error in Python": (f"#!{sys.executable}\ndef (\n", 0o755),
    "a traceback": (f"#!{sys.executable}\nraise ValueError('x')\n", 0o755),
    "no x bit": ("#!/bin/sh\nexit 86\n", 0o644),
    "no interpreter": ("#!/no/such/interpreter\n", 0o755),
    "no shebang": ("\0\1garbage", 0o755),
    "a status that some program gave": ("#!/bin/sh\nexit 86\n", 0o755),
    "words without the status": ("#!/bin/sh\necho 'node: broken'\nexit 1\n", 0o755),
    "status and words, but no reason": ("#!/bin/sh\necho 'node:'\nexit 86\n", 0o755),
    "killed": ("#!/bin/sh\nkill -9 $$\n", 0o755),
    "it hangs": ("#!/bin/sh\nsleep 600\n", 0o755),
    "it hangs and ignores being told to stop": ("#!/bin/sh\ntrap '' TERM\nsleep 600 & sleep 600\nsleep 600\n", 0o755),
    "others may write it": ("#!/bin/sh\nexit 0\n", 0o777),
}


@pytest.mark.parametrize("context", ["prolog", "epilog"])
@pytest.mark.parametrize("kind", BUGS)
def test_a_mistake_in_a_script_is_counted_and_condemns_no_node(node, tmp_path, context, kind):
    text, mode = BUGS[kind]
    node.script(context, "50-mine", text, mode)
    node.script(context, "60-next", f"#!/bin/sh\ntouch {tmp_path}/next\n")
    done = node.run(context)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "next").exists(), "the scripts after it run all the same"
    assert node.bugs()[f"{context}/50-mine"]["count"] == 1
    node.run(context)
    assert node.bugs()[f"{context}/50-mine"]["count"] == 2


def test_what_a_hanging_script_started_ends_with_it(node, tmp_path):
    node.script("prolog", "50-hangs", f"#!/bin/sh\nsleep 6543 &\necho $! > {tmp_path}/pid\nwait\n")
    assert node.run("prolog").returncode == 0
    pid = int((tmp_path / "pid").read_text())
    state = pathlib.Path(f"/proc/{pid}/stat")
    assert not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z"


def test_a_script_that_leaves_a_process_behind_is_not_waited_for(node, tmp_path):
    node.script("prolog", "50-daemon", f"#!/bin/sh\nsleep 20 &\necho $! > {tmp_path}/pid\n")
    began = time.monotonic()
    assert node.run("prolog").returncode == 0
    assert time.monotonic() - began < 5
    assert node.bugs() == {}
    os.kill(int((tmp_path / "pid").read_text()), 9)


def test_all_scripts_together_have_a_limit(node):
    for number in range(10, 22, 2):
        node.script("prolog", f"{number}-slow", "#!/bin/sh\nsleep 600\n")
    began = time.monotonic()
    assert node.run("prolog").returncode == 0
    assert time.monotonic() - began < 20
    assert "not run" in node.bugs()["prolog/20-slow"]["last"]


def test_after_a_verdict_a_prolog_stops_and_an_epilog_goes_on_cleaning(node, tmp_path):
    for context in ("prolog", "epilog"):
        node.script(context, "50-check", "#!/bin/sh\necho 'node: broken'\nexit 86\n")
        node.script(context, "60-next", f"#!/bin/sh\ntouch {tmp_path}/{context}\n")
        assert node.run(context).returncode == hooks.NODE
    assert not (tmp_path / "prolog").exists()
    assert (tmp_path / "epilog").exists()


def test_nothing_of_a_users_environment_reaches_a_script(node, tmp_path):
    node.script("prolog", "50-env", f"#!/bin/sh\nenv > {tmp_path}/env\n")
    node.run("prolog", LD_PRELOAD="", BASH_ENV="/home/x", PYTHONPATH="/home/x", SPANK_X="y", PATH="/home/x")
    seen = dict(row.split("=", 1) for row in (tmp_path / "env").read_text().splitlines())
    assert not set(seen) & {"LD_PRELOAD", "BASH_ENV", "PYTHONPATH", "SPANK_X"}
    assert seen["PATH"] == hooks.PATH


def test_the_same_epilog_asked_for_twice_runs_once_at_a_time(node, tmp_path):
    node.script("epilog", "50-slow", f"#!/bin/sh\necho in >> {tmp_path}/said\nsleep 0.5\necho out >> {tmp_path}/said\n")
    given = {"SLURM_JOB_ID": "12", "SLURM_JOB_UID": "10001"}
    both = [subprocess.Popen(node.argv("epilog"), env=given) for _number in range(2)]
    assert [one.wait(timeout=30) for one in both] == [0, 0]
    assert (tmp_path / "said").read_text().split() == ["in", "out", "in", "out"]


def test_a_job_is_known_from_its_prolog_to_its_epilog(node):
    node.run("prolog", job="12")
    assert jobs.Registry(str(node.state)).read()[12]["uid"] == 10001
    node.run("epilog", job="12")
    assert jobs.Registry(str(node.state)).read() == {}
    assert [path.name for path in node.state.iterdir() if path.name.startswith("lock-")] == []


def test_a_prolog_waits_for_a_clean_up_of_the_same_user(node):
    given = {"SLURM_JOB_ID": "12", "SLURM_JOB_UID": "10001"}
    with jobs.Registry(str(node.state)).lock("user-10001", 1) as held:
        assert held
        process = subprocess.Popen(node.argv("prolog"), env=given)
        time.sleep(0.4)
        assert process.poll() is None
    assert process.wait(timeout=10) == 0


def test_waiting_for_another_one_counts_towards_the_limit(node, tmp_path):
    """slurmd drains the node of a prolog or epilog that takes longer than it allows: the limit of all and a minute."""
    node.script("epilog", "50-hangs", "#!/bin/sh\nsleep 600\n")
    node.script("epilog", "60-next", f"#!/bin/sh\ntouch {tmp_path}/next\n")
    began = time.monotonic()
    with jobs.Registry(str(node.state)).lock("epilog-12", 1) as held:
        assert held
        assert node.run("epilog").returncode == 0
    # 4 s in all, and what it takes to end a script.
    assert time.monotonic() - began < 4 + 3
    assert "took the 4 s that all have together" in node.bugs()["epilog/50-hangs"]["last"]
    assert not (tmp_path / "next").exists()


@pytest.mark.parametrize("context", ["prolog", "epilog"])
def test_where_there_is_no_room_scripts_run_all_the_same(node, tmp_path, context):
    # Nothing can be made below a file, as nothing can be made on a full disk.
    node.state.write_text("")
    node.script(context, "50-mine", f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    assert node.run(context).returncode == 0
    assert (tmp_path / "ran").exists()
    node.script(context, "60-check", "#!/bin/sh\necho 'node: broken'\nexit 86\n")
    assert node.run(context).returncode == hooks.NODE


def test_what_a_script_says_is_kept_where_users_cannot_fill_the_disk(node):
    node.script("prolog", "50-where", '#!/bin/sh\necho "node: $(readlink /proc/$$/fd/1)"\nexit 86\n')
    said = hooks.run(str(node.state.parent / "prolog.d" / "50-where"), {"PATH": hooks.PATH}, 5, str(node.state.parent))
    assert said.why.startswith(str(node.state.parent))


def test_a_log_line_is_one_line_whatever_a_script_prints():
    text = hooks.line("prolog", "12", hooks.Outcome("50-x", "bug", 'a\n"b"\x1b[31m' + "x" * 1000))
    assert "\n" not in text and "\x1b" not in text and len(text) < 600
