# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Do the documents of one cluster agree with each other? Private to the collection gpuops.tenancy.

Every disagreement is a problem of each document that takes part in it, so that whichever tenant is onboarded first
hears of it. The rule on membership in several tenants: one of them is the user's home. The home document says
C(member_of: [other]) and sets keys, mail address and default account; the other document says C(home: tenant) and
nothing else about the person. Shares, limits and QOS belong to each membership.
"""

from __future__ import annotations

from collections.abc import Iterator

from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant import names
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.errors import Path, Problem
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.outline import Outline, items, strings


def problems(docs: list[Outline]) -> list[Problem]:
    return [*_tenants(docs), *_accounts(docs), *_users(docs), *_keys(docs)]


def _at(doc: Outline, path: Path) -> str:
    return f"{doc.source.file}:{doc.source.line(path)}"


def _tenants(docs: list[Outline]) -> Iterator[Problem]:
    for doc in docs:
        for other in docs:
            if other is not doc and other.tenant == doc.tenant:
                yield doc.source.problem(
                    ("name",), "is also the tenant of {}; one tenant has one document".format(_at(other, ("name",)))
                )


def _accounts(docs: list[Outline]) -> Iterator[Problem]:
    claims: dict[str, list] = {}
    for doc in docs:
        claims.setdefault(doc.tenant, []).append((doc, ("name",)))
        for team in doc.teams:
            claims.setdefault(team.name, []).append((doc, team.name_path))
    for name, places in claims.items():
        for doc, path in places:
            others = [one for one in places if one[0] is not doc and not (path == one[1] == ("name",))]
            if others:
                other, place = others[0]
                what = "the tenant itself" if place == ("name",) else "a team"
                fix = "rename one of the two" if path == ("name",) else "prefix it with the tenant's name"
                yield doc.source.problem(
                    path,
                    f"{doc.source.show(path, name)} is already an account in {_at(other, place)} ({what}); "
                    f"account names are global in a Slurm cluster: {fix}",
                )


def _users(docs: list[Outline]) -> Iterator[Problem]:
    tenants = {doc.tenant: doc for doc in docs}
    listing: dict[str, list[Outline]] = {}
    for doc in docs:
        for user in doc.by_user:
            listing.setdefault(user, []).append(doc)
            yield from _invitations(doc, user, tenants)
    for user, places in listing.items():
        at_home = [doc for doc in places if doc.home(user) == doc.tenant]
        for doc in places:
            if doc.home(user) != doc.tenant:
                yield from _guest(doc, user, tenants)
            for other in at_home:
                if other is not doc and doc in at_home:
                    path = _entry(doc, user)
                    yield doc.source.problem(
                        path,
                        f"{doc.source.show(path, user)} is also a user of {_at(other, _entry(other, user))}; if it is "
                        f"one person, write 'home: {other.tenant}' here and 'member_of: [{doc.tenant}]' there, "
                        "or the other way round; if not, rename one of the two",
                    )
                    break


def _entry(doc: Outline, user: str) -> Path:
    return doc.by_user[user][0].name_path


def _stating(doc: Outline, user: str, key: str) -> Path:
    return next(member.path + (key,) for member in doc.by_user[user] if member.entry.get(key) is not None)


def _guest(doc: Outline, user: str, tenants: dict[str, Outline]) -> Iterator[Problem]:
    path = _stating(doc, user, "home")
    home = tenants.get(doc.home(user))
    shown = doc.source.show(path, doc.home(user))
    if home is None:
        near = "" if doc.source.secret(path) else names.near(doc.home(user), tenants)
        yield doc.source.problem(
            path, "no document of tenant {} was found{}".format(shown, near or "; add it, or remove the user")
        )
    elif home.source.data is None:
        yield doc.source.problem(
            path, f"the document of tenant {shown} cannot be read, so nothing proves the membership; repair it"
        )
    elif user not in home.by_user:
        yield doc.source.problem(
            path, f"{home.source.file} does not list this user; add the user there first, or remove this line"
        )
    elif home.home(user) != home.tenant:
        yield doc.source.problem(path, f"{home.source.file} says that its home is yet another tenant; name that one")
    elif doc.tenant not in strings(home.stated(user, "member_of")):
        yield doc.source.problem(
            path,
            f"the home tenant does not agree; add 'member_of: [{doc.tenant}]' to the user at "
            f"{_at(home, _entry(home, user))}, or remove the user here",
        )


def _invitations(doc: Outline, user: str, tenants: dict[str, Outline]) -> Iterator[Problem]:
    """member_of may name a tenant that does not list the user yet, but not one that does not exist."""
    for index, name in enumerate(items(doc.stated(user, "member_of"))):
        if isinstance(name, str) and name not in tenants:
            path = _stating(doc, user, "member_of") + (index,)
            near = "" if doc.source.secret(path) else names.near(name, tenants)
            yield doc.source.problem(
                path, "no document of tenant {} was found{}".format(doc.source.show(path, name), near or "; remove it")
            )


def _keys(docs: list[Outline]) -> Iterator[Problem]:
    """One key, one person: a shared key makes an audit trail worthless."""
    owners: dict[str, list] = {}
    for doc in docs:
        for member in doc.members:
            for index, line in enumerate(items(member.entry.get("ssh_keys"))):
                words = line.split() if isinstance(line, str) else []
                if len(words) > 1:
                    owners.setdefault(words[1], []).append((member.name, doc, member.path + ("ssh_keys", index)))
    for places in owners.values():
        for user, doc, path in places:
            for other_user, other, place in places:
                if other_user != user:
                    yield doc.source.problem(
                        path, f"is also the key of another user ({_at(other, place)}); every user needs a key pair"
                    )
                    break
