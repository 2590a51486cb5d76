# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules on limits, QOS, storage, network and GPUs that a schema cannot state. Private to the collection gpuops.tenancy.

Each rule is given (problems, warnings) to add to. Warnings are for advice that is widely published and wrong: valid for
Slurm, but not doing what people expect of it.
"""

from __future__ import annotations

import ipaddress
from typing import Any

from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant import keys, names, units
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.errors import Path, Problem
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.outline import Outline, items, mapping, strings
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.schema_limits import COUNTS, TIMES, TRES

_WAITS = "is 0, which refuses no submission: jobs are accepted and wait; to stop a tenant write 'state: suspended'"
_VOID = (
    "is 0, which is void wherever a QOS sets the same limit, and lets a requeue run; to stop a tenant write "
    "'state: suspended'"
)


class Rules:
    def __init__(self, doc: Outline, policy: names.Policy) -> None:
        self.doc = doc
        self.source = doc.source
        self.policy = policy
        self.problems: list[Problem] = []
        self.warnings: list[Problem] = []

    def bad(self, path: Path, text: str) -> None:
        self.problems.append(self.source.problem(path, text))

    def warn(self, path: Path, text: str) -> None:
        self.warnings.append(self.source.problem(path, text))

    def apply(self) -> Rules:
        data = self.doc.data
        tenant = mapping(data.get("slurm"))
        self.limits(("slurm", "limits"), tenant.get("limits"))
        above = {self.doc.tenant: self.qos(("slurm",), tenant, None, None)}
        one_factor = {self.doc.tenant: tenant.get("one_factor") is True}
        for team in self.doc.teams:
            self.limits(team.path + ("limits",), team.entry.get("limits"))
            above[team.name] = self.qos(team.path, team.entry, *above[self.doc.tenant])
            one_factor[team.name] = team.entry.get("one_factor") is True
        for member in self.doc.members:
            self.limits(member.path + ("limits",), member.entry.get("limits"))
            self.qos(member.path, member.entry, *above[member.account])
            if one_factor[member.account] and "fairshare" in member.entry:
                self.bad(
                    member.path + ("fairshare",),
                    f"has no place where 'one_factor' gives all users of {member.account} one factor; remove one of "
                    "the two",
                )
            self.ssh_keys(member.path + ("ssh_keys",), member.entry.get("ssh_keys"))
        for area in ("home", "scratch"):
            self.quota(("storage", area), mapping(mapping(data.get("storage")).get(area)))
        self.networks(("network", "allow_from"), mapping(data.get("network")).get("allow_from"))
        self.gpu(mapping(data.get("gpu")).get("sharing"), data.get("isolation", "shared"))
        return self

    def limits(self, path: Path, value: Any) -> None:
        limits = mapping(value)
        for key in COUNTS:
            if limits.get(key) == 0 and not isinstance(limits[key], bool):
                self.warn(path + (key,), _VOID if "submit" in key else _WAITS)
        for key in TIMES:
            minutes = self.number(path + (key,), limits.get(key), units.DURATION, units.duration_minutes)
            if minutes == 0:
                self.warn(path + (key,), _WAITS)
        running, submitted = limits.get("max_jobs"), limits.get("max_submit_jobs")
        if isinstance(running, int) and isinstance(submitted, int) and running > submitted:
            self.warn(path + ("max_jobs",), "is above max_submit_jobs, so it is never reached")
        for key in TRES:
            resources = mapping(limits.get(key))
            self.number(path + (key, "mem"), resources.get("mem"), units.MEMORY, units.memory_mib)
            for name in resources:
                untyped = name.partition(":")[0]
                if untyped != name and untyped not in resources and name.startswith("gres/"):
                    evasion = untyped.replace("gres/", "--gres=") + ":1"
                    self.warn(
                        path + (key, name),
                        f"is evaded by {evasion}, which names no type; limit {untyped} as well, or give the type a "
                        "partition of its own",
                    )

    def number(self, path: Path, value: Any, pattern: str, read: Any) -> int | None:
        """The value in its unit; None where there is none, or where the schema check complains already."""
        if not isinstance(value, str) or not units.matches(pattern, value):
            return None
        try:
            return read(value)
        except ValueError as error:
            self.bad(path, f"{self.source.show(path, value)} {error}; write another value")
            return None

    def qos(
        self, path: Path, level: dict, above: list[str] | None, default: str | None
    ) -> tuple[list[str] | None, str | None]:
        """Checks the QOS of one level against the one above; returns (list, default) that hold below."""
        own, own_default = strings(level.get("qos")), level.get("default_qos")
        for index, name in enumerate(items(level.get("qos"))):
            place = path + ("qos", index)
            if not isinstance(name, str) or self.unusable(place, name) or above is None:
                continue
            if name not in above and level.get("qos_exception") is not True:
                shown = self.source.show(place, name)
                self.bad(
                    place,
                    f"{shown} is not in the list of the level above; add it there, remove it here, or write "
                    "'qos_exception: true' beside the list if it is meant",
                )
        effective = own or above
        place = path + ("default_qos",)
        if isinstance(own_default, str):
            shown = self.source.show(place, own_default)
            if self.unusable(place, own_default):
                pass
            elif effective is not None and own_default not in effective:
                # Without any list here the cluster's holds, and the plan compares with that.
                self.bad(place, f"{shown} is not in the list that holds here; add it to 'qos'")
        elif own and default is not None and default not in own:
            shown = self.source.show(path + ("qos",), default)
            self.bad(
                path + ("qos",),
                f"leaves out {shown}, the default that is inherited; Slurm refuses that: add it, or set 'default_qos'",
            )
        elif len(own) > 1 and default is None and "normal" not in own:
            self.warn(
                path + ("qos",),
                "has neither a default nor normal: unless the site has a default, jobs that ask for no QOS are refused; "
                "set 'default_qos'",
            )
        return effective, own_default if isinstance(own_default, str) else default

    def unusable(self, path: Path, name: str) -> bool:
        if name == self.policy.block_qos:
            self.bad(path, "is the QOS that blocks; a document cannot name it: write 'state: suspended' instead")
        elif self.policy.site_qos is not None and name not in self.policy.site_qos:
            known = self.policy.site_qos - {self.policy.block_qos}
            near = "" if self.source.secret(path) else names.near(name, known)
            fix = near or f"; there are: {', '.join(sorted(known))}"
            self.bad(path, f"{self.source.show(path, name)} is not a QOS of this site{fix}")
        else:
            return False
        return True

    def ssh_keys(self, path: Path, value: Any) -> None:
        for index, line in enumerate(items(value)):
            why = keys.wrong(line) if isinstance(line, str) and path + (index,) not in self.source.reported else None
            if why:
                self.bad(path + (index,), why)

    def quota(self, path: Path, quota: dict) -> None:
        hard = self.number(path + ("hard",), quota.get("hard"), units.SIZE, units.size_bytes)
        soft = self.number(path + ("soft",), quota.get("soft"), units.SIZE, units.size_bytes)
        if hard == 0:
            self.bad(path + ("hard",), "is 0, which back ends take for no limit at all; write a size")
        if hard and soft is not None and soft > hard:
            self.bad(path + ("soft",), "is above the hard quota; write at most that")

    def networks(self, path: Path, value: Any) -> None:
        for index, text in enumerate(items(value)):
            place = path + (index,)
            if not isinstance(text, str) or place in self.source.reported:
                continue
            try:
                network = ipaddress.ip_network(text, strict=False)
            except ValueError:
                self.bad(place, f"{self.source.show(place, text)} is not a network; write one such as 203.0.113.0/24")
                continue
            if "/" in text and ipaddress.ip_interface(text).ip != network.network_address:
                fix = "the network's first address" if self.source.secret(place) else str(network)
                self.bad(place, f"has bits set behind its prefix; write {fix}")
            elif network.prefixlen == 0:
                self.warn(place, "is every address; remove 'allow_from' if that is meant")

    def gpu(self, sharing: Any, isolation: Any) -> None:
        if sharing in ("mps", "shard") and isolation == "shared":
            self.bad(
                ("gpu", "sharing"),
                f"{sharing} on nodes shared with other tenants lets one tenant's fault stop the others' jobs; set "
                "'isolation' to exclusive or private_nodes, or 'sharing' to exclusive or mig",
            )
