# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A set of files that changes as one. Private to the gpuops.tenancy collection.

``plan`` compares without touching anything; ``Stage`` holds the new files on the file system of their destination
until they have been checked; ``Stage.install`` renames them, and puts the old ones back when a rename fails.
"""

from __future__ import annotations

import dataclasses
import grp
import os
import pwd
import re
import shutil
import stat
import tempfile
import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils import _files
from ansible_collections.gpuops.tenancy.plugins.module_utils._plan import ADD, CHANGE, Change

HIDDEN = "********"
STAGE, NEW, OLD = ".tenancy-", ".tenancy-new", ".tenancy-old"
_MARK = re.compile(r"<<secret:([a-z_]+)>>")
_PASSWORD = re.compile(r"^(\s*[A-Za-z]*pass[A-Za-z]*\s*=\s*)(\S.*)$", re.IGNORECASE | re.MULTILINE)


class DeployError(Exception):
    """The files cannot be put in place; the message names the path and the fix."""


@dataclasses.dataclass(frozen=True)
class Item:
    """A wanted file, or a wanted directory (``content`` is None)."""

    path: str
    owner: str
    group: str
    mode: int
    content: str | None = None


@dataclasses.dataclass(frozen=True)
class State:
    exists: bool = False
    owner: str = ""
    group: str = ""
    mode: int = 0
    content: str | None = None


def fill(text: str, secrets: t.Mapping[str, str]) -> str:
    """The text with its marks replaced by the secrets."""

    def one(match: re.Match[str]) -> str:
        name = match.group(1)
        value = secrets.get(name)
        if not value:
            raise DeployError(f"the file needs the secret {name}, which was not given")
        if re.search(r"[\s\"'#\\]", value):
            raise DeployError(
                f"the secret {name} holds a blank, a quote, '#' or a backslash, which Slurm would misread"
            )
        return value

    return _MARK.sub(one, text)


def masked(text: str, changed: bool = False) -> str:
    """The text for a diff: whatever stands behind a key with 'pass' in its name is hidden."""
    replacement = f"{HIDDEN} (changed)" if changed else HIDDEN
    return _PASSWORD.sub(lambda match: match.group(1) + replacement, text)


def read(path: str, directory: bool) -> State:
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return State()
    except NotADirectoryError as exc:
        raise DeployError(f"{path}: a part of this path is no directory") from exc
    if stat.S_ISLNK(status.st_mode) and directory:
        status = os.stat(path)
    if stat.S_ISLNK(status.st_mode):
        raise DeployError(f"{path} is a symbolic link, it would be replaced by a file; remove it, or manage its target")
    if directory != stat.S_ISDIR(status.st_mode):
        raise DeployError(f"{path} exists and is no {'directory' if directory else 'file'}; move it away")
    content = None
    if not directory:
        with open(path, encoding="utf-8", errors="surrogateescape") as handle:
            content = handle.read()
    return State(
        True,
        _name(pwd.getpwuid, status.st_uid),
        _name(grp.getgrgid, status.st_gid),
        stat.S_IMODE(status.st_mode),
        content,
    )


def plan(items: t.Iterable[Item], states: t.Mapping[str, State], secrets: t.Mapping[str, str]) -> list[Change]:
    """What has to change, in the order given. Pure."""
    changes: list[Change] = []
    for item in items:
        state = states[item.path]
        if not state.exists:
            changes.append(Change(ADD, item.path))
        elif item.content is not None and state.content != fill(item.content, secrets):
            changes.append(Change(CHANGE, item.path, "content", "as on disk", "as in the diff"))
        for field in ("owner", "group", "mode"):
            before, after = getattr(state, field), getattr(item, field)
            if before != after:
                kind = CHANGE if state.exists else ADD
                show = (lambda value: f"{value:04o}") if field == "mode" else str
                changes.append(Change(kind, item.path, field, show(before) if state.exists else None, show(after)))
    return changes


def difference(
    items: t.Iterable[Item], states: t.Mapping[str, State], changes: t.Iterable[Change], secrets: t.Mapping[str, str]
) -> dict[str, str]:
    """Ansible's diff: every file that changes in full (Ansible shows the hunks), secrets hidden. Pure."""
    touched = {change.object for change in changes}
    before: list[str] = []
    after: list[str] = []
    for item in items:
        if item.path not in touched:
            continue
        state = states[item.path]
        if state.exists:
            before.append(_block(item.path, state.owner, state.group, state.mode, masked(state.content or "")))
        text = item.content or ""
        secret_changed = state.exists and _secrets_of(state.content or "") != _secrets_of(fill(text, secrets))
        after.append(_block(item.path, item.owner, item.group, item.mode, masked(text, secret_changed)))
    return {"before_header": "on disk", "after_header": "wanted", "before": "".join(before), "after": "".join(after)}


def _block(path: str, owner: str, group: str, mode: int, text: str) -> str:
    return f"[{path}] {owner}:{group} {mode:04o}\n{text}"


def _secrets_of(text: str) -> list[str]:
    return [match.group(2) for match in _PASSWORD.finditer(text)]


def missing_names(items: t.Iterable[Item]) -> list[str]:
    """Users and groups that this host does not know (yet)."""
    found: list[str] = []
    for item in items:
        for kind, name, lookup in (("user", item.owner, pwd.getpwnam), ("group", item.group, grp.getgrnam)):
            try:
                lookup(name)
            except KeyError:
                found.append(f"{kind} {name}")
    return list(dict.fromkeys(found))


def sweep(base: str, items: t.Iterable[Item]) -> None:
    """Remove what a killed run has left. Only for the holder of the lock."""
    if os.path.isdir(base):
        for entry in os.scandir(base):
            if entry.name.startswith(STAGE) and entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path, ignore_errors=True)
    for item in items:
        for suffix in (NEW, OLD):
            if item.content is not None and os.path.lexists(item.path + suffix):
                os.unlink(item.path + suffix)


class Stage:
    """New files beside their destination, invisible to everybody but root until they are installed."""

    def __init__(self, base: str) -> None:
        self.base = base
        self.directory = tempfile.mkdtemp(prefix=STAGE, dir=_existing(base))

    def __enter__(self) -> Stage:
        return self

    def __exit__(self, *_exc: object) -> None:
        shutil.rmtree(self.directory, ignore_errors=True)

    def path(self, name: str) -> str:
        return os.path.join(self.directory, name)

    def write(self, items: t.Iterable[Item], secrets: t.Mapping[str, str]) -> None:
        """The wanted files of the base directory; what else lies there is linked, so that includes are found."""
        wanted = {os.path.basename(item.path): item for item in items if os.path.dirname(item.path) == self.base}
        for name, item in wanted.items():
            _write(self.path(name), item, secrets, lenient=True)
        if os.path.isdir(self.base):
            for entry in os.scandir(self.base):
                if entry.name not in wanted and (entry.is_file() or entry.is_dir()) and not entry.name.startswith("."):
                    os.symlink(entry.path, self.path(entry.name))

    def install(self, items: t.Sequence[Item], changed: t.Container[str], secrets: t.Mapping[str, str]) -> list[str]:
        """Directories first, then all files or none. Returns the paths in the order in which they were put in place."""
        done: list[str] = []
        for item in items:
            if item.content is None and item.path in changed:
                os.makedirs(item.path, exist_ok=True)
                _own(item.path, item)
                done.append(item.path)
        ready: list[tuple[str, Item]] = []
        try:
            for item in items:
                if item.content is None or item.path not in changed:
                    continue
                os.makedirs(os.path.dirname(item.path), exist_ok=True)
                temporary = item.path + NEW
                ready.append((temporary, item))
                _write(temporary, item, secrets)
            done += _rename([(temporary, item.path) for temporary, item in ready])
        finally:
            for temporary, _item in ready:
                if os.path.lexists(temporary):
                    os.unlink(temporary)
        return done


def _rename(pairs: t.Sequence[tuple[str, str]]) -> list[str]:
    """All or none: what was there is kept under a second name until the last rename has succeeded."""
    kept: list[tuple[str, str | None]] = []
    try:
        for temporary, path in pairs:
            backup: str | None = None
            if os.path.exists(path):
                backup = path + OLD
                if os.path.lexists(backup):
                    os.unlink(backup)
                os.link(path, backup)
            kept.append((path, backup))
            os.rename(temporary, path)
    except OSError as exc:
        for path, backup in reversed(kept):
            if backup is not None:
                os.rename(backup, path)
                # Renaming one name of a file onto another name of it does nothing.
                if os.path.lexists(backup):
                    os.unlink(backup)
            elif os.path.exists(path):
                os.unlink(path)
        raise DeployError(f"cannot put {exc.filename} in place: {exc.strerror}; the old files are back") from exc
    for path, backup in kept:
        if backup is not None:
            os.unlink(backup)
        _files.sync(os.path.dirname(path))
    return [path for path, _backup in kept]


def _write(path: str, item: Item, secrets: t.Mapping[str, str], lenient: bool = False) -> None:
    # 0600 from the first byte on: the final mode comes when owner and content are right.
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8", errors="surrogateescape") as handle:
        handle.write(fill(item.content or "", secrets))
        handle.flush()
        os.fsync(handle.fileno())
    try:
        _own(path, item)
    except KeyError:
        if not lenient:
            raise


def _own(path: str, item: Item) -> None:
    os.chown(path, pwd.getpwnam(item.owner).pw_uid, grp.getgrnam(item.group).gr_gid)
    os.chmod(path, item.mode)


def _existing(path: str) -> str:
    while not os.path.isdir(path):
        path = os.path.dirname(path) or "/"
    return path


def _name(lookup: t.Callable[[int], t.Any], number: int) -> str:
    try:
        return lookup(number)[0]
    except KeyError:
        return str(number)
