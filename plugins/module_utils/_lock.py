# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""One writer per backend on a host. Private to the gpuops.tenancy collection.

A kernel lock (flock), because the kernel frees it at the moment its last holder dies, however it dies. Killing
ansible-playbook does not stop the module on this host, and killing the module does not stop the command it runs:
the command inherits the descriptor (``pass_fds=lock.fds``), so the lock is held exactly as long as a write may
still be going on.
"""

from __future__ import annotations

import contextlib
import datetime
import errno
import fcntl
import json
import os
import re
import stat
import time
import types
import typing as t

# Root's own directory: in /tmp, or in a /run/lock that anybody may write to, any user could make or hold the file.
DIRECTORIES = ("/run/gpuops-tenancy",)
_NAME = re.compile(r"^[a-z0-9][a-z0-9._-]*$")
_POLL = 0.25


def lock_name(kind: str, what: str) -> str:
    """A name for the lock of one object. Two objects may share one; an object never has two."""
    return f"{kind}-{re.sub(r'[^a-z0-9._-]', '-', what.lower())}"


class LockError(Exception):
    """The lock cannot be used at all (no directory, not a plain file of ours)."""


class LockBusy(LockError):
    """Somebody else holds the lock; ``holder`` says who, as far as the lock file tells."""

    def __init__(self, message: str, holder: dict[str, t.Any]) -> None:
        super().__init__(message)
        self.holder = holder


class Lock:
    """``with Lock("slurm-production", purpose="slurm_accounting", timeout=300) as lock: run(..., pass_fds=lock.fds)``

    :param name: what is locked: backend and instance, lower case.
    :param purpose: what the holder does; shown to whoever waits in vain.
    :param timeout: seconds to wait for the present holder; 0 tries once.
    """

    def __init__(
        self,
        name: str,
        purpose: str,
        timeout: float = 300.0,
        directories: t.Sequence[str] = DIRECTORIES,
    ) -> None:
        if not _NAME.match(name):
            raise ValueError(f"lock name {name!r} must match {_NAME.pattern}")
        self.name = name
        self.purpose = purpose
        self.timeout = timeout
        self.path = os.path.join(_directory(directories), f"gpuops-tenancy-{name}.lock")
        self._fd: int | None = None

    @property
    def fds(self) -> tuple[int, ...]:
        """Descriptors a child has to inherit to keep the lock while it runs."""
        return () if self._fd is None else (self._fd,)

    def acquire(self) -> None:
        if self._fd is not None:
            raise LockError(f"{self.path} is already held by this process")
        fd = _open(self.path)
        deadline = time.monotonic() + self.timeout
        try:
            while not _try(fd):
                if time.monotonic() >= deadline:
                    holder = _read(fd)
                    raise LockBusy(_busy_message(self.path, self.timeout, holder), holder)
                time.sleep(min(_POLL, max(0.0, deadline - time.monotonic())))
            _write(fd, self.purpose)
        except BaseException:
            os.close(fd)
            raise
        self._fd = fd

    def release(self) -> None:
        """Give up our share. The file stays: removing it would let two holders have a file each."""
        if self._fd is not None:
            # Closing, not LOCK_UN: an unlock would also take it from a child that still writes.
            os.close(self._fd)
            self._fd = None

    def __enter__(self) -> Lock:
        self.acquire()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: types.TracebackType | None,
    ) -> None:
        self.release()


def _directory(candidates: t.Sequence[str]) -> str:
    problem = ""
    for path in candidates:
        try:
            with contextlib.suppress(FileExistsError):
                os.mkdir(path, 0o700)
            status = os.stat(path, follow_symlinks=False)
        except OSError as exc:
            problem = f"{path}: {exc.strerror}"
            continue
        if stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o022:
            return path
        problem = f"{path} is not a directory that uid {os.geteuid()} alone may write to"
    raise LockError(f"no directory for the lock ({problem}); run as root")


def _open(path: str) -> int:
    # A link or a stranger's file is refused.
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as exc:
        if exc.errno == errno.ELOOP:
            raise LockError(f"{path} is a symbolic link; remove it") from exc
        raise LockError(f"cannot open the lock {path}: {exc.strerror}; run as root, or remove the file") from exc
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
        os.close(fd)
        raise LockError(f"{path} is not a plain file of uid {os.geteuid()}; remove it")
    return fd


def _try(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _write(fd: int, purpose: str) -> None:
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    data = json.dumps({"pid": os.getpid(), "since": now, "purpose": purpose}).encode()
    os.ftruncate(fd, 0)
    os.pwrite(fd, data, 0)


def _read(fd: int) -> dict[str, t.Any]:
    try:
        holder = json.loads(os.pread(fd, 4096, 0).decode())
    except ValueError:
        return {}
    return holder if isinstance(holder, dict) else {}


def _busy_message(path: str, timeout: float, holder: dict[str, t.Any]) -> str:
    pid = holder.get("pid")
    if pid is None:
        who = "an unknown process"
    elif _alive(pid):
        who = f"process {pid} ({holder.get('purpose')}, since {holder.get('since')})"
    else:
        # The module was killed; a command it had started still writes.
        who = f"a command left by process {pid}, which has ended ({holder.get('purpose')}, since {holder.get('since')})"
    return f"{path} is still held after {timeout:g} s by {who}; wait for it to finish and run again"


def _alive(pid: t.Any) -> bool:
    try:
        os.kill(int(pid), 0)
    except PermissionError:
        return True
    except (OSError, ValueError, TypeError, OverflowError):
        return False
    return True
