# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""All documents of a folder, checked alone and together. Private to the collection gpuops.tenancy; controller only.

A tenant is onboarded although another tenant's document is broken: that one is a warning. What the broken document
claims (names of tenant, teams and users, where they can be read) still counts, so that nothing is given away twice.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Callable

from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant import (
    check,
    cross,
    document,
    names,
    rules_members,
    rules_values,
)
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.errors import Problem, TenantError
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.load import Source, parse
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.outline import Outline, outline
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.pick import pick_user

EXTENSIONS = (".yml", ".yaml")


@dataclass
class Checked:
    """One document after all checks."""

    outline: Outline
    problems: list[Problem]
    warnings: list[Problem]
    document: dict | None = None  # None when there are problems

    @property
    def secret(self) -> bool:
        return self.outline.source.vaulted or bool(self.outline.source.secrets)


@dataclass
class Selection:
    """What the caller gets."""

    tenants: list[dict]
    tenant: dict | None = None
    user: dict | None = None
    warnings: list[str] = field(default_factory=list)
    broken: list[dict] = field(default_factory=list)
    secret: bool = False


def files(folder: str, may_be_empty: bool = False) -> list[str]:
    try:
        found = sorted(name for name in os.listdir(folder) if name.endswith(EXTENSIONS) and not name.startswith("."))
    except OSError as error:
        raise TenantError(
            f"the folder of tenant documents, {folder}, cannot be read: {error.strerror}; set tenancy_tenants_dir to "
            "the right one"
        ) from error
    if not found and not may_be_empty:
        # An empty folder is far more likely a wrong path than a cluster without tenants.
        raise TenantError(f"the folder {folder} holds no tenant document (*.yml, *.yaml)")
    return [os.path.join(folder, name) for name in found]


def load(paths: list[str], read: Callable[[str], Source], policy: names.Policy) -> list[Checked]:
    """`read` never raises: a file that cannot be read is a source with a problem."""
    check.require_library()
    return check_sources([read(path) for path in paths], policy)


def check_sources(sources: list[Source], policy: names.Policy) -> list[Checked]:
    warnings: dict[str, list[Problem]] = {one.file: [] for one in sources}
    problems: dict[str, list[Problem]] = {one.file: list(one.problems) for one in sources}
    docs = []
    for source in sources:
        if source.data is not None:
            warnings[source.file] += check.fold_names(source)
            problems[source.file] += check.check(source)
        doc = outline(source)
        docs.append(doc)
        if source.data is not None:
            problems[source.file] += rules_members.problems(doc, policy)
            rules = rules_values.Rules(doc, policy).apply()
            problems[source.file] += rules.problems
            warnings[source.file] += rules.warnings
    for problem in cross.problems(docs):
        problems[problem.file].append(problem)
    result = []
    for doc in docs:
        found = problems[doc.source.file]
        ready = None if found else document.normalise(doc)
        result.append(Checked(doc, found, warnings[doc.source.file], ready))
    return result


def select(checked: list[Checked], tenant: str | None = None, user: str | None = None) -> Selection:
    """Raises TenantError for problems of the selected tenant, or of any one when none is selected."""
    if user is not None and tenant is None:
        raise TenantError("a user is selected without a tenant; give the tenant too")
    wanted = checked
    if tenant is not None:
        name = names.fold(tenant)
        wanted = [one for one in checked if one.outline.tenant == name]
        if not wanted:
            known = [one.outline.tenant for one in checked]
            raise TenantError(
                "there is no document of tenant {!r}{}".format(
                    tenant, names.near(str(name), known) or "; there are: " + ", ".join(sorted(known))
                )
            )
    failures = [problem for one in wanted for problem in one.problems]
    if failures:
        raise TenantError(_headline(wanted, failures), failures)
    others = [one for one in checked if one not in wanted and one.problems]
    result = Selection(
        tenants=[one.document for one in checked if one.document is not None],
        warnings=[str(warning) for one in wanted for warning in one.warnings] + [_left_out(one) for one in others],
        broken=[_broken(one) for one in others],
        secret=any(one.secret for one in checked if one.document is not None),
    )
    if tenant is not None:
        result.tenant = wanted[0].document
        if user is not None:
            result.user = pick_user(result.tenant, user)
    return result


def _headline(wanted: list[Checked], failures: list[Problem]) -> str:
    broken = [one.outline.tenant for one in wanted if one.problems]
    count, whose = len(set(failures)), ", ".join(broken)
    return f"{count} problem(s) in the tenant document(s) of {whose}; nothing was changed:"


def _left_out(one: Checked) -> str:
    first = min(one.problems, key=lambda problem: problem.line)
    count = len(set(one.problems))
    return f"tenant {one.outline.tenant} is left out, its document has {count} problem(s), the first is: {first}"


def _broken(one: Checked) -> dict:
    return {
        "tenant": one.outline.tenant,
        "file": one.outline.source.file,
        "problems": [problem.as_dict() for problem in dict.fromkeys(one.problems)],
    }


def read_plain(path: str, file: str | None = None) -> Source:
    """Reads a document without Ansible: nothing vaulted can be opened."""
    try:
        with open(path, encoding="utf-8") as stream:
            return parse(stream.read(), file or path)
    except (OSError, UnicodeError) as error:
        return unreadable(file or path, str(getattr(error, "strerror", None) or "it is not UTF-8 text"))


def unreadable(file: str, why: str) -> Source:
    source = Source(file)
    source.report((), f"cannot be read: {why}")
    return source
