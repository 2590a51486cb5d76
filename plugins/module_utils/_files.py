# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that are whole or not there, on the disk before anybody relies on them. Private to the gpuops.tenancy collection."""

from __future__ import annotations

import contextlib
import os
import tempfile
import typing as t


@contextlib.contextmanager
def replacing(path: str, mode: int = 0o600) -> t.Iterator[str]:
    """The name of an empty file beside ``path``, which takes its place when the block ends, and goes if it fails.

    :raises OSError: where the directory is not there or cannot be written.
    """
    directory, name = os.path.split(path)
    # Nobody else may read it, whatever mode it gets in the end.
    descriptor, temporary = tempfile.mkstemp(prefix=f".{name}-", dir=directory)
    os.close(descriptor)
    try:
        yield temporary
        os.chmod(temporary, mode)
        sync(temporary)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    sync(directory)


def write(path: str, text: str, mode: int = 0o600) -> None:
    with replacing(path, mode) as temporary, open(temporary, "w", encoding="utf-8", errors="surrogateescape") as handle:
        handle.write(text)


def sync(path: str) -> None:
    """A file, or a directory's names."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
