# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Include lines, followed as Slurm follows them. Private to the gpuops.tenancy collection.

Measured on 22.05 and 24.11: the word in any case and then a blank; one file, no pattern, no quotes; %c is the name of
the cluster, which must stand before; what follows on the line counts. A relative name inside an included file is
looked for beside that file by 22.05 and beside slurm.conf by 24.11.
"""

from __future__ import annotations

import os
import re
import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.conf import read

_LINE = re.compile(r"^\s*include\s+(?P<file>[^\s#]+)(?P<rest>.*)$", re.IGNORECASE)
_DEEPEST = 16

# Path -> text; raises OSError.
Reader = t.Callable[[str], str]


class IncludeError(Exception):
    """An included file cannot be followed: what it says is unknown, not nothing."""


def from_disk(path: str) -> str:
    with open(path, encoding="utf-8", errors="surrogateescape") as handle:
        return handle.read()


def expand(path: str, reader: Reader = from_disk) -> str:
    """The file with its included files in their places."""
    return _expanded(path, path, reader(path), reader, "", 0)


def _expanded(path: str, top: str, text: str, reader: Reader, before: str, depth: int) -> str:
    if depth > _DEEPEST:
        raise IncludeError(f"{path} includes itself, over other files or at once; take the Include line out")
    result: list[str] = []
    for line in re.sub(r"\\\r?\n", " ", text).splitlines():
        match = _LINE.match(line)
        if match is None:
            result.append(line)
            continue
        said = "\n".join([before, *result])
        name = _named(path, match.group("file"), said)
        found, inner = _found(path, top, name, reader)
        result.append(_expanded(found, top, inner, reader, said, depth + 1))
        result.append(match.group("rest"))
    return "".join(f"{line}\n" for line in result)


def _named(path: str, name: str, before: str) -> str:
    if "%c" not in name:
        return name
    cluster = read.option(before, "ClusterName")
    if not cluster:
        raise IncludeError(f"{path} includes {name}, and no ClusterName stands before; write the file's name out")
    return name.replace("%c", cluster)


def _found(path: str, top: str, name: str, reader: Reader) -> tuple[str, str]:
    places = dict.fromkeys(os.path.join(os.path.dirname(start), name) for start in (path, top))
    texts: dict[str, str] = {}
    problem = ""
    for place in places:
        try:
            texts[place] = reader(place)
        except FileNotFoundError as exc:
            problem = f"{place}: {exc.strerror}"
        except OSError as exc:
            raise IncludeError(f"{path} includes {place}, which cannot be read: {exc.strerror}") from exc
    if not texts:
        raise IncludeError(
            f"{path} includes {name}, which cannot be read ({problem}); put the file there, or take the line out"
        )
    if len(set(texts.values())) > 1:
        raise IncludeError(
            f"{path} includes {name}, which is {' or '.join(texts)}, depending on the release; write its full path"
        )
    return next(iter(texts.items()))
