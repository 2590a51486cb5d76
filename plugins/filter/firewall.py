# Copyright: (c) 2026, gpuops.tenancy contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filters that turn inventory data into a host's firewall; the work is done by pure functions."""

from __future__ import annotations

import typing as t

from ansible.errors import AnsibleFilterError
from ansible_collections.gpuops.tenancy.plugins.module_utils._firewall import rules, spec
from ansible_collections.gpuops.tenancy.plugins.module_utils._firewall.values import FirewallError


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
        except FirewallError as exc:
            raise AnsibleFilterError(str(exc)) from exc

    return filtered


def firewall_addresses(hosts: t.Sequence[str], hostvars: t.Mapping[str, t.Any]) -> dict[str, list[str]]:
    own = {host: hostvars[host] for host in dict.fromkeys(hosts)}
    picked = {
        host: {name: _plain(own[host][name]) for name in own[host] if str(name).startswith(spec.ADDRESS)}
        for host in own
    }
    return spec.addresses(list(own), picked)


def firewall_rules(given: t.Mapping[str, t.Any], host: str) -> str:
    return rules.render(spec.parse(_plain(given)), host)


def firewall_admins(given: t.Mapping[str, t.Any]) -> list[str]:
    return spec.admins(spec.parse(_plain(given)))


def firewall_unbound(users: t.Sequence[t.Mapping[str, t.Any]], ranges: t.Sequence[str]) -> list[str]:
    return spec.unbound(_plain(users), _plain(ranges))


class FilterModule:
    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {
            "firewall_addresses": _clear(firewall_addresses),
            "firewall_admins": _clear(firewall_admins),
            "firewall_rules": _clear(firewall_rules),
            "firewall_unbound": _clear(firewall_unbound),
        }
