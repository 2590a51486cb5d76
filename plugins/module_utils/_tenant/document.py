# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The normalised document: every key present, units converted, one entry per user. Private to gpuops.tenancy.

This is what the action plugin returns and the filters take. It grows by adding keys.
"""

from __future__ import annotations

import ipaddress
from typing import Any

from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant import names, units
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.outline import Member, Outline, mapping
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.schema import VERSION
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.schema_limits import TIMES, TRES

_PLAIN = {"contacts": [], "isolation": "shared", "retention_days": 30, "state": "present"}


def normalise(doc: Outline) -> dict:
    """Only for documents that passed every check."""
    data = doc.data
    description = names.fold_text(data.get("description", doc.tenant))
    organization = names.fold_text(data.get("organization", doc.tenant))
    result = {key: data.get(key, default) for key, default in _PLAIN.items()}
    storage = mapping(data.get("storage"))
    one_factor = {team.name for team in doc.teams if team.entry.get("one_factor")}
    if mapping(data.get("slurm")).get("one_factor"):
        one_factor.add(doc.tenant)
    result.update(
        schema=VERSION,
        name=doc.tenant,
        file=doc.source.file,
        description=description,
        organization=organization,
        slurm=_slurm(mapping(data.get("slurm"))),
        teams=[
            dict(
                _slurm(team.entry),
                name=team.name,
                description=names.fold_text(team.entry.get("description", team.name)),
                organization=names.fold_text(team.entry.get("organization", organization)),
            )
            for team in doc.teams
        ],
        users=[_user(doc, name, one_factor) for name in doc.by_user],
        storage={area: _quota(mapping(storage.get(area))) for area in ("home", "scratch")},
        network={
            "allow_from": [str(ipaddress.ip_network(one)) for one in mapping(data.get("network")).get("allow_from", [])]
        },
        gpu={"sharing": mapping(data.get("gpu")).get("sharing", "exclusive")},
    )
    return result


def _slurm(level: dict) -> dict:
    return {
        "fairshare": level.get("fairshare", 1),
        "priority": level.get("priority"),
        "limits": _limits(mapping(level.get("limits"))),
        "qos": sorted(level.get("qos", [])),
        "default_qos": level.get("default_qos"),
    }


def _limits(limits: dict) -> dict:
    result: dict = {}
    for key, value in limits.items():
        if key in TIMES:
            result[key] = units.duration_text(units.duration_minutes(value))
        elif key in TRES:
            result[key] = {name: _amount(name, amount) for name, amount in sorted(value.items())}
        else:
            result[key] = value
    return result


def _amount(name: str, value: Any) -> Any:
    return f"{units.memory_mib(value)}M" if name == "mem" else value


def _user(doc: Outline, name: str, one_factor: set[str]) -> dict:
    entries = doc.by_user[name]
    home = doc.home(name)
    guest = home != doc.tenant
    default: str | None = doc.stated(name, "default_account")
    return {
        "name": name,
        "full_name": doc.stated(name, "full_name"),
        "email": doc.stated(name, "email"),
        "ssh_keys": doc.stated(name, "ssh_keys") or [],
        "home": home,
        "guest": guest,
        "member_of": sorted(doc.stated(name, "member_of") or []),
        # A guest's default account is the home tenant's business.
        "default_account": None if guest else default or entries[0].account,
        "associations": [_association(entry, entry.account in one_factor) for entry in entries],
    }


def _association(entry: Member, one_factor: bool) -> dict:
    result = dict(_slurm(entry.entry), account=entry.account, partition=entry.partition)
    return dict(result, fairshare="parent") if one_factor else result


def _quota(quota: dict) -> dict | None:
    if not quota:
        return None
    soft = quota.get("soft")
    return {
        "hard_bytes": units.size_bytes(quota["hard"]),
        "soft_bytes": None if soft is None else units.size_bytes(soft),
    }
