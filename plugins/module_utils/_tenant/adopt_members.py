# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which users are in which document. Pure; private to the collection gpuops.tenancy.

Onboarding makes the associations of a user it names exact within the tenant. So a user with one association that a
document cannot say is left out of that document altogether, and keeps all of them.
"""

from __future__ import annotations

from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.adopt_findings import LEFT, Finding, label
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.adopt_tree import Options, Refusals, Tree
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.outline import Outline


class Members(Tree):
    """`included`: tenant -> user -> rows in it; `one_factor`: accounts whose users have their parent's factor."""

    def __init__(self, survey: dict, options: Options, existing: dict[str, Outline], refused: Refusals) -> None:
        super().__init__(survey, options, existing, refused)
        self.included: dict[str, dict[str, list[dict]]] = {tenant: {} for tenant in self.tenants}
        self.one_factor: set[str] = set()
        self._users()

    def _users(self) -> None:
        self._factors()
        for name, user in self.users.items():
            here = self._by_tenant(user)
            if not here:
                continue
            home, why, fix = self._home(user)
            if why:
                self._leave(name, [row for rows in here.values() for row in rows], why, fix)
                continue
            # The home document first: without it no other one may list the user.
            for tenant in sorted(here, key=lambda one: one != home):
                why, fix = self._refusal(user, tenant, home)
                if why:
                    self._leave(name, here[tenant], why, fix)
                else:
                    self.included[tenant][name] = here[tenant]

    def _by_tenant(self, user: dict) -> dict[str, list[dict]]:
        """The user's rows in the tenants that are drafted."""
        found: dict[str, list[dict]] = {}
        for row in user["associations"]:
            top = self.top.get(row["account"], "")
            if top in self.tenants:
                found.setdefault(top, []).append(row)
        return found

    def _home(self, user: dict) -> tuple[str, str, str]:
        """(home, "", "") or ("", why, fix)."""
        posix, accounts = self.options.posix, sorted({row["account"] for row in user["associations"]})
        if posix is not None and user["name"] not in posix:
            return (
                "",
                "no such user on the controller, so probably somebody who left; onboarding would create the login anew",
                "take the user out of Slurm (sacctmgr delete user where name=NAME cluster=CLUSTER), or create the login",
            )
        if posix is not None and not self.options.uid_min <= posix[user["name"]]["uid"] <= self.options.uid_max:
            return (
                "",
                f"the number of the user is outside {self.options.uid_min} to {self.options.uid_max}, where onboarding "
                "takes it for an account of the system",
                "set identity_uid_min and identity_uid_max to what your users have, or leave this one to the operators",
            )
        default = user["default_account"]
        pick = "name one: sacctmgr modify user where name=NAME cluster=CLUSTER set DefaultAccount=..."
        if not default:
            if len(accounts) == 1:
                return self.top[accounts[0]], "", ""
            return "", "has several accounts and no default, and only you know which one is meant", pick
        if default not in accounts:
            return "", "the default account is none of the user's accounts on this cluster", pick
        home = self.top.get(default, "")
        if home not in self.tenants and home not in self.existing:
            return (
                "",
                "the default account is in no tenant, and a document would move it",
                f"give the user a default in a tenant ({pick}), or keep the user by hand",
            )
        return home, "", ""

    def _refusal(self, user: dict, tenant: str, home: str) -> tuple[str, str]:
        name = user["name"]
        if (tenant, name) in self.refused.users:
            return self.refused.users[(tenant, name)]
        for row in user["associations"]:
            account = row["account"]
            if self.top.get(account) == tenant and account not in self.home_of:
                return (
                    "has an association in an account that is in no document, and onboarding would take that away from "
                    "a user it names",
                    "see that account in this report",
                )
            if self.home_of.get(account) == tenant and self._odd_factor(row):
                return (
                    "others in the account have fairshare=parent and this user has not, or the other way round; a "
                    "document says it for the whole account",
                    "make them alike: sacctmgr modify user where name=NAME account=ACCOUNT cluster=CLUSTER set "
                    "fairshare=...",
                )
        if tenant != home:
            listed = self.included[home] if home in self.included else self.existing[home].by_user
            if name not in listed:
                return "the document of the home tenant does not list the user", f"see the user there ({home})"
        return "", ""

    def _leave(self, name: str, rows: list[dict], why: str, fix: str) -> None:
        for row in rows:
            if row["account"] in self.home_of:  # else its account is left out as a whole
                key = (row["account"], name, row["partition"])
                self.findings.append(
                    Finding(LEFT, label(key), why, fix, "", "", frozenset([key]), name, row["account"])
                )

    def _factors(self) -> None:
        """Accounts most of whose users have fairshare=parent."""
        for account in self.home_of:
            rows = [row for user in self.users.values() for row in user["associations"] if row["account"] == account]
            if sum(row.get("fairshare") == "parent" for row in rows) * 2 > len(rows):
                self.one_factor.add(account)

    def _odd_factor(self, row: dict) -> bool:
        return (row.get("fairshare") == "parent") != (row["account"] in self.one_factor)
