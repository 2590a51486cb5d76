# Copyright: (c) 2026, gpuops.tenancy contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filters that turn inventory data into Slurm's configuration files; the work is done by pure functions."""

from __future__ import annotations

import typing as t

from ansible.errors import AnsibleFilterError
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.conf import (
    files,
    nodes,
    proposal,
    storage,
    version,
)
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.hostlist import HostlistError


def _plain(value: t.Any) -> t.Any:
    """Ansible's lazy and tagged containers as ordinary ones, so that nothing is templated half-way."""
    if isinstance(value, t.Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value


def _clear(function: t.Callable[..., t.Any]) -> t.Callable[..., t.Any]:
    def filtered(*args: t.Any, **kwargs: t.Any) -> t.Any:
        try:
            return function(*args, **kwargs)
        except (version.ConfigError, HostlistError) as exc:
            raise AnsibleFilterError(str(exc)) from exc

    return filtered


def slurm_nodes(hosts: t.Sequence[str], hostvars: t.Mapping[str, t.Any]) -> list[dict[str, t.Any]]:
    picked: dict[str, dict[str, t.Any]] = {}
    for host in hosts:
        own = hostvars[host]
        picked[host] = {
            name: _plain(own[name]) for name in (nodes.NODE, nodes.ADDRESS, nodes.OWNER_OF_HOST) if name in own
        }
    return nodes.collect(list(hosts), picked)


def slurm_hosts(hosts: t.Sequence[str], hostvars: t.Mapping[str, t.Any]) -> list[dict[str, str]]:
    picked: dict[str, dict[str, t.Any]] = {}
    for host in hosts:
        own = hostvars[host]
        picked[host] = {name: _plain(own[name]) for name in (nodes.HOSTNAME, nodes.ADDRESS) if name in own}
    return nodes.servers(list(hosts), picked)


def slurm_conf_files(
    definitions: t.Sequence[t.Mapping[str, t.Any]], spec: t.Mapping[str, t.Any], slurm_version: str
) -> dict[str, str]:
    return files.cluster(_plain(spec), version.parse(slurm_version), _plain(definitions))


def slurmdbd_conf(spec: t.Mapping[str, t.Any], slurm_version: str) -> str:
    return files.database(_plain(spec), version.parse(slurm_version))


def slurmdbd_database(text: str) -> str:
    return storage.database(str(text))


def slurm_node_proposal(
    report: str, devices: t.Sequence[str], gpus: str = "", information: t.Sequence[str] = ()
) -> dict[str, t.Any]:
    return proposal.propose(report, list(devices), gpus, list(information))


class FilterModule:
    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {
            "slurm_conf_files": _clear(slurm_conf_files),
            "slurm_hosts": _clear(slurm_hosts),
            "slurm_node_proposal": _clear(slurm_node_proposal),
            "slurm_nodes": _clear(slurm_nodes),
            "slurmdbd_conf": _clear(slurmdbd_conf),
            "slurmdbd_database": slurmdbd_database,
        }
