# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""One value of one field: option, normal form, text of sacctmgr, set word. Private to the gpuops.tenancy collection.

Everything is compared in normal form: memory in MB, times in seconds, TRES as dict, QOS as frozenset, names and
texts in lower case (Slurm folds them), unset as ``field.unset``.
"""

from __future__ import annotations

import re
import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import fields, tres

_CLOCK = re.compile(r"^(?:([0-9]+)-)?([0-9]{1,5}):([0-9]{2}):([0-9]{2})$")
_NAME = re.compile(r"^[a-z0-9][a-z0-9._-]*$")
# Slurm turns quotes into backticks, and | or a control character would forge columns and lines of its output.
_UNSAFE_TEXT = re.compile(r"[\x00-\x1f\x7f|\"']")
# Numbers near 2**32 are Slurm's own marks for "unset" and "unlimited".
_MAX_INT = 2**31 - 1


class ValueProblem(ValueError):
    """A value that cannot be meant; the message says what to write instead."""


def check_name(kind: str, name: str) -> str:
    """The folded name. Digits alone are a uid to most tools, whatever Slurm calls them."""
    folded = name.lower() if isinstance(name, str) else name
    if not isinstance(folded, str) or not _NAME.match(folded):
        raise ValueProblem(
            f"{kind} name {name!r} is refused: use lower-case letters, digits, '.', '_' and '-', "
            "beginning with a letter or digit"
        )
    if folded.isdigit():
        raise ValueProblem(f"{kind} name {name!r} is refused: it consists of digits only and reads like a uid")
    return folded


def check_text(what: str, text: str) -> str:
    if _UNSAFE_TEXT.search(text):
        raise ValueProblem(f"{what} {text!r} is refused: remove quotes, '|' and control characters, which Slurm spoils")
    return fold(text.strip())


def fold(text: str) -> str:
    """Slurm folds ASCII letters and leaves others as they are."""
    return "".join(letter.lower() if letter.isascii() else letter for letter in text)


def seconds(text: str) -> int:
    """Minutes, or [D-]HH:MM:SS. Slurm keeps whole minutes and rounds up."""
    text = text.strip()
    if text.isdigit():
        return int(text) * 60
    match = _CLOCK.match(text)
    if not match:
        raise ValueProblem(f"{text!r} is no time: write minutes, or HH:MM:SS, or D-HH:MM:SS (quoted, as YAML text)")
    days, hours, minutes, secs = (int(part or 0) for part in match.groups())
    if minutes > 59 or secs > 59 or (match[1] and hours > 23):
        raise ValueProblem(f"{text!r} is no time: minutes and seconds go to 59, hours beside days to 23")
    return days * 86400 + hours * 3600 + minutes * 60 + secs


def clock(value: int) -> str:
    days, rest = divmod(value, 86400)
    text = f"{rest // 3600:02d}:{rest % 3600 // 60:02d}:{rest % 60:02d}"
    return f"{days}-{text}" if days else text


def from_option(field: fields.Field, value: t.Any) -> t.Any:
    """Normal form of a module argument that is not None."""
    try:
        return _FROM_OPTION[field.type](field, value)
    except (ValueProblem, tres.TresError) as exc:
        raise ValueProblem(f"{field.option}: {exc}") from exc


def from_text(field: fields.Field, text: str) -> t.Any:
    """Normal form of what sacctmgr prints; empty is unset."""
    if text == "":
        return field.unset
    try:
        return _FROM_TEXT[field.type](text)
    except ValueError as exc:
        raise ValueProblem(f"cannot read {text!r} in column {field.column} of sacctmgr: {exc}") from exc


def to_text(field: fields.Field, value: t.Any) -> str:
    """For people: diff, plan."""
    if value is None or value == field.unset:
        return ""
    if field.type == fields.SWITCH:
        return "true"
    if field.type == fields.TRES:
        return tres.show(value)
    if field.type in (fields.QOS_LIST, fields.FLAGS):
        return ",".join(sorted(value))
    if field.type in (fields.TIME, fields.SECONDS):
        return clock(value)
    return str(value)


def set_word(field: fields.Field, before: t.Any, after: t.Any) -> str:
    """``Name=value`` for sacctmgr. Never empty for a number: that would store 0."""
    if field.type == fields.TRES:
        return f"{field.set_name}={tres.set_word(before or {}, after)}"
    if after is None or after == field.unset:
        return f"{field.set_name}={field.clear}"
    if field.type == fields.SWITCH:
        return f"{field.set_name}={field.choices[0]}"
    if field.type == fields.TIME:
        return f"{field.set_name}={clock(after)}"
    if field.type in (fields.QOS_LIST, fields.FLAGS):
        return f"{field.set_name}={','.join(sorted(after))}"
    return f"{field.set_name}={after}"


def difference_words(field: fields.Field, names: t.Iterable[str]) -> list[str]:
    """Of a list that is a difference to the parent's, sacctmgr takes additions and removals as options of their own."""
    found = []
    for sign in "+-":
        part = sorted(name[1:] for name in names if name[0] == sign)
        found += [f"{field.set_name}{sign}={','.join(part)}"] if part else []
    return found


def _whole(field: fields.Field, value: t.Any) -> t.Any:
    number = int(value)
    if number == -1:
        return field.unset
    if not 0 <= number <= _MAX_INT:
        raise ValueProblem(f"{number} is out of range: 0 to {_MAX_INT}, or -1 to clear")
    return number


def _factor(field: fields.Field, value: t.Any) -> t.Any:
    number = float(value)
    if number == -1:
        return field.unset
    if number < 0:
        raise ValueProblem(f"{value!r} is negative; -1 clears")
    return number


def _time(field: fields.Field, value: t.Any) -> t.Any:
    text = str(value).strip()
    if text == "-1":
        return field.unset
    return -(-seconds(text) // 60) * 60


def _share(field: fields.Field, value: t.Any) -> t.Any:
    text = str(value).strip().lower()
    if text == "parent":
        return text
    if text == "-1":
        return field.unset
    if not text.isdigit() or int(text) > _MAX_INT:
        raise ValueProblem(f"{value!r} is neither a number of shares nor 'parent'")
    return int(text)


def _names(field: fields.Field, value: t.Any) -> t.Any:
    return frozenset(check_name("QOS", name) for name in value)


def _name_or_nothing(field: fields.Field, value: t.Any) -> t.Any:
    return check_name("QOS", value) if value else field.unset


def _flags(field: fields.Field, value: t.Any) -> t.Any:
    names = {name.lower(): name for name in fields.FLAG_NAMES}
    unknown = sorted(flag for flag in value if flag.lower() not in names)
    if unknown:
        raise ValueProblem(f"{', '.join(unknown)} is no QOS flag; known are {', '.join(fields.FLAG_NAMES)}")
    return frozenset(names[flag.lower()] for flag in value)


def _word(field: fields.Field, value: t.Any) -> t.Any:
    text = value.strip().lower()
    if not text:
        return field.unset
    if not re.match(r"^[a-z,]+$", text):
        raise ValueProblem(f"{value!r} is no word of letters")
    if field.choices and text not in field.choices:
        raise ValueProblem(f"{value!r} is none of {', '.join(field.choices)}")
    return text


def _key(field: fields.Field, value: t.Any) -> t.Any:
    if not value:
        raise ValueProblem("Slurm cannot take it away, only change it; name another, or leave it out")
    return check_name("WCKey", value)


_FROM_OPTION: dict[str, t.Callable[[fields.Field, t.Any], t.Any]] = {
    fields.INT: _whole,
    fields.SECONDS: _whole,
    fields.FACTOR: _factor,
    fields.TIME: _time,
    fields.TRES: lambda field, value: tres.from_option(value),
    fields.FAIRSHARE: _share,
    fields.QOS: _name_or_nothing,
    fields.QOS_LIST: _names,
    fields.FLAGS: _flags,
    fields.TEXT: lambda field, value: check_text(field.option, value),
    fields.WORD: _word,
    fields.NAME: _key,
    fields.SWITCH: lambda field, value: bool(value),
}

_FROM_TEXT: dict[str, t.Callable[[str], t.Any]] = {
    fields.INT: int,
    fields.SECONDS: seconds,
    fields.FACTOR: float,
    fields.TIME: seconds,
    fields.TRES: tres.parse,
    fields.FAIRSHARE: lambda text: text if text == "parent" else int(text),
    fields.QOS: str,
    fields.QOS_LIST: lambda text: frozenset(text.split(",")),
    fields.FLAGS: lambda text: frozenset(text.split(",")),
    fields.TEXT: str,
    fields.WORD: str.lower,
    fields.NAME: str,
    fields.SWITCH: lambda text: "UsersAreCoords" in text.split(","),
}
