# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The one way to run a program. Private to the gpuops.tenancy collection.

An argument list, never a shell; the C locale; standard input closed unless text is given; always a timeout; typed
errors. Two module needs are not met by ``AnsibleModule.run_command``: handing a lock's file descriptor to the child,
and ending a command (with whatever it started) at a deadline.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
import signal
import subprocess
import typing as t

DEFAULT_TIMEOUT = 60.0
# How long a command that was told to stop may take before it is killed.
GRACE = 5.0
# The default of every option search_path.
SEARCH_PATH = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"]
_STDERR_SHOWN = 2000


@dataclasses.dataclass(frozen=True)
class Completed:
    argv: tuple[str, ...]
    rc: int
    stdout: str
    stderr: str


class CommandError(Exception):
    """A program did not do what was asked. ``argv``, ``rc`` (None: no exit status), ``stdout``, ``stderr``."""

    def __init__(
        self,
        message: str,
        argv: t.Sequence[str],
        rc: int | None = None,
        stdout: str = "",
        stderr: str = "",
    ) -> None:
        super().__init__(message)
        self.argv = tuple(argv)
        self.rc = rc
        self.stdout = stdout
        self.stderr = stderr

    def as_result(self) -> dict[str, t.Any]:
        """What a module passes on to fail_json besides the message."""
        return {"cmd": list(self.argv), "rc": self.rc, "stdout": self.stdout, "stderr": self.stderr}


class CommandMissing(CommandError):
    """The program does not exist or may not be executed."""


class CommandTimeout(CommandError):
    """The program was still running at its deadline and was ended; what it did until then is unknown."""


class CommandFailed(CommandError):
    """The program ended with a status that the caller does not accept."""


def find(program: str, search_path: t.Sequence[str]) -> str | None:
    return shutil.which(program, path=os.pathsep.join(search_path))


def located(program: str, search_path: t.Sequence[str]) -> str:
    """Its path. Never that of another one which is not in the search path; without one the name is left alone.

    :raises CommandMissing: it is in none of the directories.
    """
    path = find(program, search_path) if search_path else program
    if path is None:
        where = ":".join(search_path)
        raise CommandMissing(f"there is no {program} in {where}; install it, or correct search_path", [program])
    return path


def run(
    argv: t.Sequence[str],
    timeout: float = DEFAULT_TIMEOUT,
    stdin: str | None = None,
    pass_fds: t.Sequence[int] = (),
    env: t.Mapping[str, str] | None = None,
    ok: t.Container[int] | None = None,
) -> Completed:
    """Run a program and return what it said.

    :param argv: program and arguments; each a string without a NUL byte.
    :param timeout: seconds until the whole process group is ended and CommandTimeout raised.
    :param stdin: text for standard input; without it the program reads end of file.
    :param pass_fds: file descriptors the program inherits (a lock that has to outlive us).
    :param env: added to our environment, after the C locale.
    :param ok: exit statuses that count as success; without it the caller looks at ``rc`` itself.
    :raises CommandMissing: no such program, or it cannot be executed.
    :raises CommandTimeout: not finished in time.
    :raises CommandFailed: exit status not in ``ok``.
    """
    command = _checked(argv)
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=tuple(pass_fds),
            env=_environment(env),
            # A group of its own: at the deadline everything the program started ends with it.
            start_new_session=True,
        )
    except (FileNotFoundError, PermissionError, NotADirectoryError) as exc:
        raise CommandMissing(
            f"cannot run {command[0]}: {exc.strerror}; install it, or give the path where it is", command
        ) from exc
    except OSError as exc:
        raise CommandMissing(f"cannot run {command[0]}: {exc.strerror}", command) from exc
    try:
        out, err = process.communicate(None if stdin is None else stdin.encode(), timeout=timeout)
    except subprocess.TimeoutExpired:
        out, err = _end(process)
        raise CommandTimeout(
            f"{command[0]} did not finish within {timeout:g} s and was ended",
            command,
            stdout=_decode(out),
            stderr=_decode(err),
        ) from None
    except BaseException:
        _end(process)
        raise
    done = Completed(tuple(command), process.returncode, _decode(out), _decode(err))
    if ok is not None and done.rc not in ok:
        raise failed(done)
    return done


def failed(done: Completed, hint: str = "") -> CommandFailed:
    """The error for a finished command, with the tool's own words (it may complain on either stream)."""
    said = " ".join((done.stderr.strip() or done.stdout.strip()).split())[:_STDERR_SHOWN]
    message = f"{done.argv[0]} ended with status {done.rc}"
    if said:
        message += f": {said}"
    if hint:
        message += f" ({hint})"
    return CommandFailed(message, done.argv, done.rc, done.stdout, done.stderr)


def _checked(argv: t.Sequence[str]) -> list[str]:
    if isinstance(argv, (str, bytes)):
        raise TypeError("argv must be a list of strings, not one string")
    command = list(argv)
    if not command or not command[0]:
        raise ValueError("argv names no program")
    for word in command:
        if not isinstance(word, str):
            raise TypeError(f"argument {word!r} is not a string")
        if "\0" in word:
            raise ValueError(f"argument {word!r} contains a NUL byte")
    return command


def _environment(extra: t.Mapping[str, str] | None) -> dict[str, str]:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("LC_") and key != "LANGUAGE"}
    environment.update({"LC_ALL": "C", "LANG": "C", "TZ": "UTC"})
    environment.update(extra or {})
    return environment


def _decode(data: bytes | None) -> str:
    # A tool may print bytes that are no UTF-8 (a user's comment): keep them readable, and the result valid JSON.
    return (data or b"").decode("utf-8", errors="backslashreplace")


def _end(process: subprocess.Popen[bytes]) -> tuple[bytes, bytes]:
    """Stop the group politely, then for good; return what it had printed."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        try:
            return process.communicate(timeout=GRACE)
        except subprocess.TimeoutExpired:
            continue
    # Not even SIGKILL ended it (a process in uninterruptible sleep): do not hang with it.
    return b"", b""
