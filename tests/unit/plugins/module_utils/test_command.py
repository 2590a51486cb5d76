# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import signal
import sys
import time

import pytest
from ansible_collections.gpuops.tenancy.plugins.module_utils import _command
from ansible_collections.gpuops.tenancy.plugins.module_utils._command import (
    CommandFailed,
    CommandMissing,
    CommandTimeout,
    run,
)


def python(code, *args):
    return [sys.executable, "-c", code, *args]


def test_arguments_reach_the_program_untouched_by_any_shell():
    words = ["a b", "$HOME", "; rm -rf x", "'\"", "*", "\n"]
    done = run(python("import sys, json; print(json.dumps(sys.argv[1:]))", *words), ok={0})
    import json

    assert json.loads(done.stdout) == words


def test_status_and_both_streams_are_returned():
    done = run(python("import sys; print('o'); print('e', file=sys.stderr); sys.exit(3)"))
    assert (done.rc, done.stdout, done.stderr) == (3, "o\n", "e\n")


def test_standard_input_is_at_end_of_file_unless_text_is_given():
    code = "import sys; print(repr(sys.stdin.read()))"
    assert run(python(code)).stdout == "''\n"
    assert run(python(code), stdin="yes").stdout == "'yes'\n"


def test_the_locale_is_c_and_the_time_zone_utc(monkeypatch):
    monkeypatch.setenv("LC_TIME", "de_DE.UTF-8")
    monkeypatch.setenv("LANGUAGE", "de")
    code = "import os; print([os.environ.get(n) for n in ('LC_ALL', 'LC_TIME', 'LANGUAGE', 'TZ', 'X')])"
    assert run(python(code), env={"X": "1"}).stdout == "['C', None, None, 'UTC', '1']\n"


def test_an_unaccepted_status_raises_with_the_tools_own_words():
    with pytest.raises(CommandFailed, match="ended with status 4: no such account") as caught:
        run(python("import sys; print('no such account', file=sys.stderr); sys.exit(4)"), ok={0, 1})
    assert caught.value.rc == 4
    assert caught.value.as_result()["stderr"] == "no such account\n"
    assert caught.value.argv[0] == sys.executable


def test_a_complaint_on_standard_output_is_shown_too():
    with pytest.raises(CommandFailed, match="Nothing new added"):
        run(python("import sys; print(' Nothing new added.'); sys.exit(1)"), ok={0})


@pytest.mark.parametrize("program", ["/nonexistent/sacctmgr", "/etc/passwd", "/etc/passwd/x"])
def test_a_program_that_cannot_run_is_named(program):
    with pytest.raises(CommandMissing, match=program):
        run([program])


def test_the_deadline_ends_the_program_and_its_children(tmp_path):
    mark = tmp_path / "mark"
    code = (
        "import subprocess, sys, time\n"
        "print('started', flush=True)\n"
        "subprocess.Popen([sys.executable, '-c', 'import sys, time; time.sleep(6); open(sys.argv[1], \"w\")', sys.argv[1]])\n"
        "time.sleep(60)\n"
    )
    with pytest.raises(CommandTimeout, match="did not finish within 4 s") as caught:
        # Long enough for an interpreter to start on a busy machine.
        run(python(code, str(mark)), timeout=4)
    assert caught.value.stdout == "started\n"
    time.sleep(3)
    assert not mark.exists()


def test_a_program_that_ignores_the_polite_signal_is_killed(monkeypatch):
    monkeypatch.setattr(_command, "GRACE", 0.3)
    code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"
    started = time.monotonic()
    with pytest.raises(CommandTimeout):
        run(python(code), timeout=0.5)
    assert time.monotonic() - started < 5


def test_bytes_that_are_no_utf8_do_not_break_the_reader():
    done = run(python("import sys; sys.stdout.buffer.write(bytes([97, 255]))"))
    assert done.stdout == "a\\xff"


def test_a_descriptor_is_inherited_only_when_named(tmp_path):
    fd = os.open(tmp_path / "f", os.O_CREAT | os.O_RDWR)
    code = "import os, sys; os.write(int(sys.argv[1]), b'x')"
    try:
        assert run(python(code, str(fd))).rc != 0
        assert run(python(code, str(fd)), pass_fds=[fd]).rc == 0
        assert os.pread(fd, 1, 0) == b"x"
    finally:
        os.close(fd)


@pytest.mark.parametrize(
    ("argv", "error"),
    [("ls -l", TypeError), ([], ValueError), ([""], ValueError), (["a\0b"], ValueError), (["ls", 1], TypeError)],
)
def test_a_malformed_argument_list_is_refused_before_anything_runs(argv, error):
    with pytest.raises(error):
        run(argv)


def _interrupt(*_args):
    raise KeyboardInterrupt


def test_an_interrupt_ends_the_program():
    code = "import time; time.sleep(60)"
    previous = signal.signal(signal.SIGALRM, _interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    started = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            run(python(code))
    finally:
        signal.signal(signal.SIGALRM, previous)
    assert time.monotonic() - started < 5


def test_a_program_is_the_first_one_of_the_search_path(tmp_path):
    for folder, mode in (("a", 0o644), ("b", 0o755), ("c", 0o755)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "sh").touch(mode=mode)
    path = [str(tmp_path / folder) for folder in ("none", "a", "b", "c")]
    assert _command.located("sh", path) == f"{tmp_path}/b/sh"
    assert _command.located("sh", []) == "sh"


def test_a_program_of_another_installation_is_never_taken_instead(tmp_path):
    with pytest.raises(CommandMissing, match=f"there is no sh in {tmp_path}; install it, or correct search_path"):
        _command.located("sh", [str(tmp_path)])
