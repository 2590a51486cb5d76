# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""MariaDB as root, by its socket or by a defaults file. Private to the gpuops.tenancy collection.

No password is ever an argument, and no dump is ever in memory as a whole.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import os
import subprocess
import tempfile
import threading
import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils import _command
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.database import dump

_CHUNK = 1 << 20


def argument_spec() -> dict[str, t.Any]:
    """What every module takes that works on the database."""
    return {
        "database": {"type": "str", "default": "slurm_acct_db"},
        "socket": {"type": "path"},
        "defaults_file": {"type": "path"},
        "timeout": {"type": "int", "default": 14400},
        "search_path": {"type": "list", "elements": "path", "default": _command.SEARCH_PATH},
        "lock_timeout": {"type": "int", "default": 300},
    }


class Server:
    def __init__(self, params: t.Mapping[str, t.Any], fds: t.Sequence[int] = ()) -> None:
        self.params = params
        self.fds = tuple(fds)

    def argv(self, *programs: str) -> list[str]:
        path = self.params["search_path"]
        found = next((where for name in programs if (where := _command.find(name, path))), None)
        argv = [found or _command.located(programs[0], path)]
        if self.params["defaults_file"]:
            # Must be the first option. It names the user, too.
            return [*argv, f"--defaults-extra-file={self.params['defaults_file']}"]
        socket = self.params["socket"]
        return [*argv, "--user=root", *([f"--socket={socket}"] if socket else [])]

    def client(self) -> list[str]:
        return [*self.argv("mariadb", "mysql"), "--batch", "--skip-column-names"]

    def dump_argv(self, name: str) -> list[str]:
        options = ["--single-transaction", "--quick", "--hex-blob", "--skip-triggers"]
        return [*self.argv("mariadb-dump", "mysqldump"), *options, name]

    def execute(self, sql: str, timeout: float = 600) -> list[list[str]]:
        done = _command.run(self.client(), timeout=timeout, stdin=sql, pass_fds=self.fds, ok=(0,))
        return [line.split("\t") for line in done.stdout.splitlines()]

    def tables(self, name: str) -> list[str]:
        rows = self.execute(
            "SELECT table_name FROM information_schema.tables "  # noqa: S608
            f"WHERE table_schema = '{dump.database(name)}' AND table_type = 'BASE TABLE' ORDER BY table_name;"
        )
        return [row[0] for row in rows]

    def rows(self, name: str) -> dict[str, int]:
        """Table -> number of rows; empty where there is no such database."""
        sql = "".join(f"SELECT '{table}', COUNT(*) FROM `{name}`.`{table}`;\n" for table in self.tables(name))  # noqa: S608
        return {table: int(count) for table, count in self.execute(sql, self.params["timeout"])} if sql else {}

    def size(self, name: str) -> int:
        rows = self.execute(
            "SELECT COALESCE(SUM(data_length), 0) FROM information_schema.tables "  # noqa: S608
            f"WHERE table_schema = '{dump.database(name)}';"
        )
        return int(rows[0][0])

    @contextlib.contextmanager
    def started(self, argv: t.Sequence[str], **streams: t.Any) -> t.Iterator[subprocess.Popen[bytes]]:
        """A program with a stream; it is ended at the deadline and when we fail, and must end well."""
        with tempfile.TemporaryFile() as complaints:
            process = subprocess.Popen(
                list(argv),
                **{"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, **streams},
                stderr=complaints,
                pass_fds=self.fds,
                env={**os.environ, "LC_ALL": "C"},
            )
            alarm = threading.Timer(self.params["timeout"], process.kill)
            alarm.start()
            try:
                with contextlib.suppress(BrokenPipeError):
                    yield process
                    if process.stdin:
                        process.stdin.close()
                process.wait()
            except BaseException:
                process.kill()
                process.wait()
                raise
            finally:
                alarm.cancel()
            complaints.seek(0)
            said = complaints.read(4000).decode(errors="replace")
        if process.returncode != 0:
            raise _command.failed(_command.Completed(tuple(argv), process.returncode, "", said))

    def write_dump(self, name: str, handle: t.BinaryIO) -> dump.Rows:
        """A consistent dump, compressed, into an open file. Nobody is kept from writing meanwhile."""
        rows = dump.Rows()
        with (
            self.started(self.dump_argv(name), stdout=subprocess.PIPE) as process,
            gzip.GzipFile("", "wb", 6, t.cast(t.IO[bytes], handle)) as packed,
        ):
            for line in t.cast(t.IO[bytes], process.stdout):
                rows.feed(line)
                packed.write(line)
        return rows

    def load_dump(self, path: str, name: str) -> None:
        with gzip.open(path, "rb") as packed, self.started([*self.client(), name], stdin=subprocess.PIPE) as process:
            while chunk := packed.read(_CHUNK):
                t.cast(t.IO[bytes], process.stdin).write(chunk)


def slurm_release(params: t.Mapping[str, t.Any]) -> str:
    """As slurmdbd tells it; empty where there is none."""
    try:
        argv = [_command.located("slurmdbd", params["search_path"]), "-V"]
        return _command.run(argv, timeout=20, ok=(0,)).stdout.strip()
    except _command.CommandError:
        return ""


def checksum(path: str) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as handle:
        while chunk := handle.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def rows_of(path: str) -> dump.Rows:
    """What is really on the disk.

    :raises BackupError: it cannot be read to its end.
    """
    rows = dump.Rows()
    try:
        with gzip.open(path, "rb") as packed:
            for line in packed:
                rows.feed(line)
    except (OSError, EOFError) as exc:
        raise dump.BackupError(f"{path} is damaged ({exc}); take another backup") from exc
    if not rows.complete:
        raise dump.BackupError(f"{path} ends before the dump does; take another backup")
    return rows


def beside(path: str) -> dump.Manifest:
    """The manifest of a backup.

    :raises BackupError: there is none.
    """
    place = dump.manifest_path(path)
    try:
        with open(place, encoding="utf-8") as handle:
            return dump.manifest(handle.read(), place)
    except OSError as exc:
        raise dump.BackupError(f"cannot read {place}: {exc.strerror}; a backup is a dump and its .json") from exc


def verified(path: str) -> dump.Manifest:
    """The manifest of a backup that is whole: checksum, end, rows.

    :raises BackupError: it is not.
    """
    found = beside(path)
    try:
        actual = checksum(path)
    except OSError as exc:
        raise dump.BackupError(f"cannot read {path}: {exc.strerror}") from exc
    if actual != found.sha256:
        raise dump.BackupError(f"{path} is not the file that its .json describes (checksum); take another backup")
    if rows_of(path).tables != found.rows:
        raise dump.BackupError(f"{path} has other rows than its .json says; take another backup")
    return found
