# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""YAML text to plain data that remembers its lines. Private to the collection gpuops.tenancy; controller only.

The nodes are walked by hand instead of by a YAML constructor: an operator must hear of every duplicate key with its
line, of a name that YAML took for a number or a boolean, and C(48:00:00) must stay a time (YAML 1.1 makes it 172800).
"""

from __future__ import annotations

import re
from typing import Any, Callable

from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.errors import Path, Problem, dotted

try:
    import yaml
except ImportError:  # controller only, where ansible-core itself needs it
    yaml = None

MAX_DEPTH = 32
MAX_NODES = 500000
MAX_BYTES = 16 * 1024 * 1024

_TAG = "tag:yaml.org,2002:"
_READ_AS = {"bool": "a boolean", "int": "a number", "float": "a number", "null": "nothing", "timestamp": "a date"}
_VAULT_TAGS = ("!vault", "!vault-encrypted")
_DECIMAL = re.compile(r"[-+]?(0|[1-9][0-9_]*)")
_TEMPLATE = re.compile(r"\{\{|\{%|\{#")


class Source:
    """One document as it was read: the data, and where each part of it stands."""

    def __init__(self, file: str, vaulted: bool = False) -> None:
        self.file = file
        self.vaulted = vaulted
        self.data: Any = None
        self.problems: list[Problem] = []
        self.lines: dict[Path, int] = {}
        self.raw: dict[Path, tuple[str, str]] = {}  # what YAML did not take for text: (how it stands, what YAML saw)
        self.secrets: set[Path] = set()
        self.reported: set[Path] = set()

    def line(self, path: Path) -> int:
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)

    def problem(self, path: Path, text: str, line: int | None = None) -> Problem:
        return Problem(self.file, line or self.line(path), dotted(path), text)

    def report(self, path: Path, text: str, line: int | None = None) -> None:
        """A problem found while reading; later stages stay silent about the same place."""
        self.problems.append(self.problem(path, text, line))
        self.reported.add(path)

    def secret(self, path: Path) -> bool:
        return self.vaulted or any(path[:end] in self.secrets for end in range(len(path) + 1))

    def show(self, path: Path, value: Any) -> str:
        """The value for a message, unless it comes out of a vault."""
        if self.secret(path):
            return "the vaulted value"
        if path in self.raw:
            return self.raw[path][0]
        text = repr(value)
        return text if len(text) <= 80 else text[:77] + "..."


def parse(text: str, file: str, vaulted: bool = False, decrypt: Callable[[str], str] | None = None) -> Source:
    """Never raises: what is wrong is in the result's `problems`."""
    source = Source(file, vaulted)
    if len(text) > MAX_BYTES:
        source.report((), f"is larger than {MAX_BYTES // 1024**2} MiB, which no tenant document is")
        return source
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        node = _compose(text, loader, source)
    except (yaml.YAMLError, UnicodeError) as error:
        line, what = _syntax(error, text)
        source.report((), "is not valid YAML: " + what, line)
        return source
    if node is not None:
        _Reader(source, decrypt).document(node)
    return source


def _compose(text: str, loader: Any, source: Source) -> Any:
    """The root node, or None after reporting; depth is limited first, because composing and walking recurse."""
    depth = documents = 0
    for event in yaml.parse(text, Loader=loader):
        if isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
            depth += 1
        elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
            depth -= 1
        elif isinstance(event, yaml.DocumentStartEvent):
            documents += 1
        if depth > MAX_DEPTH or documents > 1:
            what = "is nested too deeply" if depth > MAX_DEPTH else "holds a second document; write one tenant per file"
            source.report((), what, event.start_mark.line + 1)
            return None
    node = yaml.compose(text, Loader=loader)
    if node is None:
        source.report((), "is empty; a tenant document starts with 'schema: 1' and 'name:'")
    elif not isinstance(node, yaml.MappingNode):
        source.report((), "is not a mapping of keys to values; it starts with 'schema: 1' and 'name:'")
        return None
    return node


def _syntax(error: Any, text: str) -> tuple[int, str]:
    """Line and words of a parser's error, without the excerpt that it would print."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    if mark is not None:
        parts = [getattr(error, "problem", None), getattr(error, "context", None)]
        what = " ".join(part for part in parts if part)
        # Name an undefined alias and the like, but no character of the document that could be part of a secret.
        return mark.line + 1, re.sub(r"\s+", " ", what) or "it cannot be parsed"
    position = getattr(error, "position", None)
    line = text.count("\n", 0, position) + 1 if isinstance(position, int) else 1
    return line, "it holds a character that YAML does not allow"


class _Reader:
    """Walks the nodes of one document."""

    def __init__(self, source: Source, decrypt: Callable[[str], str] | None) -> None:
        self.source = source
        self.decrypt = decrypt
        self.nodes = 0
        self.full = False
        self.open: set[int] = set()

    def document(self, node: Any) -> None:
        self.source.lines[()] = node.start_mark.line + 1
        self.source.data = self.value(node, ())

    def value(self, node: Any, path: Path) -> Any:
        self.nodes += 1
        if isinstance(node, yaml.ScalarNode):
            return self.scalar(node, path)
        if node.tag not in (_TAG + "map", _TAG + "seq"):
            self.source.report(path, f"has the tag {_tag(node.tag)}, which has no meaning here; remove it")
        if not self.enter(node, path):
            return None
        if isinstance(node, yaml.MappingNode):
            result: Any = self.mapping(node, path)
        else:
            result = []
            for index, item in enumerate(node.value):
                self.source.lines[path + (index,)] = item.start_mark.line + 1
                result.append(self.value(item, path + (index,)))
        self.open.discard(id(node))
        return result

    def mapping(self, node: Any, path: Path) -> dict:
        result: dict[str, Any] = {}
        for key, (line, value_node) in self.pairs(node, path).items():
            self.source.lines[path + (key,)] = line
            result[key] = self.value(value_node, path + (key,))
        return result

    def pairs(self, node: Any, path: Path) -> dict[str, tuple[int, Any]]:
        """What stands in the mapping, then what `<<: *other` or `<<: [*one, *two]` add to it; the first one wins."""
        own: dict[str, tuple[int, Any]] = {}
        merges = []
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            self.nodes += 1
            if key_node.tag == _TAG + "merge":
                parts = value_node.value if isinstance(value_node, yaml.SequenceNode) else [value_node]
                merges.extend((line, part) for part in parts)
                continue
            key = self.key(key_node, path)
            if key in own:
                self.source.report(
                    path + (key,), f"is given twice (first on line {own[key][0]}); keep one of them", line
                )
            elif key is not None:
                own[key] = (line, value_node)
        for line, part in merges:
            if not isinstance(part, yaml.MappingNode):
                self.source.report(path + ("<<",), "merges something that is not a mapping", line)
            elif self.enter(part, path + ("<<",), line):
                for key, pair in self.pairs(part, path).items():
                    own.setdefault(key, pair)
                self.open.discard(id(part))
        return own

    def enter(self, node: Any, path: Path, line: int | None = None) -> bool:
        """Aliases can make a loop, a tower or, repeated, a document that outgrows the memory."""
        if id(node) in self.open:
            self.source.report(path, "contains itself through an alias", line)
        elif len(self.open) > 2 * MAX_DEPTH:
            self.source.report(path, "is nested too deeply", line)
        elif self.nodes > MAX_NODES:
            if not self.full:
                self.source.report(path, f"is too large: more than {MAX_NODES} values, aliases counted in full")
            self.full = True
        else:
            self.open.add(id(node))
            return True
        return False

    def key(self, node: Any, path: Path) -> str | None:
        line = node.start_mark.line + 1
        if not isinstance(node, yaml.ScalarNode):
            self.source.report(
                path,
                "has a key that is itself a list or a mapping; if '{{ ... }}' was meant: documents are data and are "
                "never templated",
                line,
            )
            return None
        kind = node.tag[len(_TAG) :] if node.tag.startswith(_TAG) else None
        if kind not in ("str", "value") and not (kind == "int" and ":" in node.value):
            self.source.report(
                path + (node.value,),
                "is a key that YAML reads as {}; quote it".format(_READ_AS.get(kind, "something else than text")),
                line,
            )
        return node.value

    def scalar(self, node: Any, path: Path) -> Any:
        if node.tag in _VAULT_TAGS:
            return self.vaulted(node, path)
        if not node.tag.startswith(_TAG):
            self.source.report(path, f"has the tag {_tag(node.tag)}, which has no meaning here; remove it")
            return node.value
        kind, text = node.tag[len(_TAG) :], node.value
        # YAML 1.1 makes base-60 numbers of times and dates of some words; editors follow 1.2 and see text.
        if kind in ("str", "value", "timestamp") or (kind in ("int", "float") and ":" in text):
            return self.text(text, path)
        if kind not in ("bool", "int", "float", "null"):
            self.source.report(path, f"has the YAML type {_tag(kind)}, which no value here has")
            return text
        self.source.raw[path] = (text, _READ_AS[kind])
        if kind == "bool":
            return text.lower() in ("yes", "true", "on")
        if kind == "null":
            return None
        if kind == "int":
            if _DECIMAL.fullmatch(text) and len(text) < 40:
                return int(text.replace("_", ""))
            self.source.report(
                path, f"is written as {self._short(path)}; write a plain decimal number, or quote a name"
            )
            return text
        try:
            return float(text.replace("_", ""))
        except ValueError:  # .inf and .nan
            self.source.report(path, f"is {self._short(path)}, which is no number to count with")
            return text

    def _short(self, path: Path) -> str:
        shown = self.source.show(path, None)
        return shown if len(shown) <= 40 else shown[:37] + "..."

    def text(self, text: str, path: Path) -> str:
        if _TEMPLATE.search(text):
            self.source.report(
                path,
                "contains a template expression; documents are data and are never templated: write the value itself",
            )
        return text

    def vaulted(self, node: Any, path: Path) -> str:
        self.source.secrets.add(path)
        if self.decrypt is None:
            self.source.report(path, "is vaulted, and there is no vault secret to read it with; give --vault-id")
            return ""
        try:
            return self.text(self.decrypt(node.value), path)
        except ValueError as error:
            self.source.report(path, f"is vaulted and cannot be read: {error}")
            return ""


def _tag(tag: str) -> str:
    return re.sub(r"[^\w!:/.,-]", "?", tag)[:60]
