# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who and what a document names, as far as it can be read. Private to the collection gpuops.tenancy.

Works on documents with errors too: the rules and the checks across documents see the same outline, so that a broken
document still claims its names.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant import names
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.errors import Path
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.load import Source


def mapping(value: Any) -> dict:
    return value if isinstance(value, dict) else {}


def items(value: Any) -> list:
    return value if isinstance(value, list) else []


def strings(value: Any) -> list[str]:
    return [one for one in items(value) if isinstance(one, str)]


@dataclass(frozen=True)
class Team:
    name: str
    path: Path
    entry: dict

    @property
    def name_path(self) -> Path:
        return self.path + ("name",)


@dataclass(frozen=True)
class Member:
    """One line of a list of users: a user in one account."""

    name: str
    path: Path
    account: str
    entry: dict

    @property
    def name_path(self) -> Path:
        return self.path + ("name",) if self.entry else self.path

    @property
    def partition(self) -> str:
        """Empty where the entry holds for every partition."""
        stated = self.entry.get("partition")
        return stated if isinstance(stated, str) else ""


@dataclass
class Outline:
    source: Source
    tenant: str
    teams: list[Team] = field(default_factory=list)
    members: list[Member] = field(default_factory=list)

    @property
    def data(self) -> dict:
        return mapping(self.source.data)

    @cached_property
    def by_user(self) -> dict[str, list[Member]]:
        result: dict[str, list[Member]] = {}
        for member in self.members:
            result.setdefault(member.name, []).append(member)
        return result

    def stated(self, user: str, key: str) -> Any | None:
        """What the document says of a person, in whichever of the user's entries."""
        for member in self.by_user[user]:
            if member.entry.get(key) is not None:
                return member.entry[key]
        return None

    def home(self, user: str) -> str:
        stated = self.stated(user, "home")
        return stated if isinstance(stated, str) else self.tenant


def stem(file: str) -> str:
    return os.path.splitext(os.path.basename(file))[0].lower()


def outline(source: Source) -> Outline:
    data = mapping(source.data)
    name = data.get("name")
    well_formed = isinstance(name, str) and names.shape(name, names.ACCOUNT_LENGTH) is None
    result = Outline(source, name if well_formed else stem(source.file))
    result.members.extend(_members(data.get("users"), ("users",), result.tenant))
    for index, entry in enumerate(items(data.get("teams"))):
        team = mapping(entry).get("name")
        if isinstance(team, str):
            path = ("teams", index)
            result.teams.append(Team(team, path, entry))
            result.members.extend(_members(entry.get("users"), path + ("users",), team))
    return result


def _members(users: Any, path: Path, account: str) -> Iterator[Member]:
    for index, entry in enumerate(items(users)):
        name = entry if isinstance(entry, str) else mapping(entry).get("name")
        if isinstance(name, str):
            yield Member(name, path + (index,), account, mapping(entry))
