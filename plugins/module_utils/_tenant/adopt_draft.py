# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""From what Slurm has to drafts of tenant documents. Pure; private to the collection gpuops.tenancy."""

from __future__ import annotations

from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.adopt_findings import DECIDE, Finding, Key, label
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.adopt_level import clean, level
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.adopt_members import Members
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.adopt_tree import Options, Refusals
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.outline import Outline


class Draft(Members):
    """`documents`: name -> data; `findings`: what is in none of them."""

    def __init__(self, survey: dict, options: Options, existing: dict[str, Outline], refused: Refusals) -> None:
        super().__init__(survey, options, existing, refused)
        self.documents = {tenant: self._document(tenant) for tenant in self.tenants}

    def _document(self, tenant: str) -> dict:
        row = self.accounts[tenant]
        result: dict = {"schema": 1, "name": tenant, **self._texts(row, tenant, tenant), "contacts": []}
        slurm = self._level((tenant, "", ""), row, None)
        if tenant in self.one_factor:
            slurm["one_factor"] = True
        if slurm:
            result["slurm"] = slurm
        organization = result.get("organization", tenant)
        teams = [
            self._team(tenant, team, slurm.get("qos"), organization)
            for team in self.below.get(tenant, [])
            if self.home_of.get(team) == tenant
        ]
        if teams:
            result["teams"] = teams
        users = self._members(tenant, tenant, slurm.get("qos"))
        if users:
            result["users"] = users
        return result

    def _team(self, tenant: str, team: str, above: list[str] | None, organization: str) -> dict:
        row = self.accounts[team]
        result = {"name": team, **self._texts(row, team, organization), **self._level((team, "", ""), row, above)}
        if team in self.one_factor:
            result["one_factor"] = True
        users = self._members(tenant, team, result.get("qos") or above)
        if users:
            result["users"] = users
        return result

    def _texts(self, row: dict, description: str, organization: str) -> dict:
        found = {}
        for key, default in (("description", description), ("organization", organization)):
            text = clean(row.get(key) or "")
            if text and text != default:
                found[key] = text
        return found

    def _level(self, key: Key, row: dict, above: list[str] | None) -> dict:
        block = self.options.policy.block_qos
        if row.get("qos") == [block]:
            self.findings.append(
                Finding(
                    DECIDE,
                    label(key),
                    "is blocked; onboarding leaves that alone, and which QOS it had before is not known here",
                    "write its QOS into the document before you unblock it, or unblock it first and adopt then",
                )
            )
        return level(row, above, block)

    def _members(self, tenant: str, account: str, above: list[str] | None) -> list:
        entries: list = []
        for name in sorted(self.included[tenant]):
            for row in self.included[tenant][name]:
                if row["account"] == account:
                    entries.append(self._entry(tenant, name, row, above))
        return entries

    def _entry(self, tenant: str, name: str, row: dict, above: list[str] | None) -> dict | str:
        entry = {"name": name}
        if row["partition"]:
            entry["partition"] = row["partition"]
        entry.update(self._level((row["account"], name, row["partition"]), row, above))
        if row["account"] in self.one_factor:
            entry.pop("fairshare", None)
        entry.update(self._person(tenant, name, row))
        return name if list(entry) == ["name"] else entry

    def _person(self, tenant: str, name: str, row: dict) -> dict:
        """What is said once about the person goes to her default account's entry, or to the first one."""
        user, mine = self.users[name], self.included[tenant][name]
        home = self._home(user)[0]
        if home != tenant:
            return {"home": home} if row is mine[0] else {}
        default = user["default_account"] or mine[0]["account"]
        first = next(one for one in mine if one["account"] == default)
        if row is not first:
            return {}
        found: dict = {}
        if len({one["account"] for one in mine}) > 1:
            found["default_account"] = default
        others = [one for one in self.included if one != tenant and name in self.included[one]]
        others += [one for one, doc in self.existing.items() if name in doc.by_user]
        if others:
            found["member_of"] = sorted(others)
        return found
