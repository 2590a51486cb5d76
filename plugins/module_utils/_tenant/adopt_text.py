# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""An adopted document as YAML that a person goes on writing. Private to gpuops.tenancy; controller only."""

from __future__ import annotations

from typing import Any

try:
    import yaml
except ImportError:  # controller only, where ansible-core itself needs it
    yaml = None

_WIDTH = 120
_BEFORE = {
    "contacts": "Whom to ask about this tenant: mail addresses. Slurm does not know.",
    "slurm": "The tenant's own account.",
    "teams": "Accounts below the tenant's.",
    "users": "Members of the tenant's own account.",
}
_END = """\
# Slurm knows nothing of these; each has a default until you write it:
#   isolation, storage, network, gpu, retention_days, and of a user full_name, email, ssh_keys.
"""


def text(data: dict, cluster: str, left: int) -> str:
    """`left`: how much of the tenant is not in the document."""
    lines = [
        f"# Made by adopt.yml from what Slurm has on cluster {cluster}. It is yours now: no run writes it again.",
    ]
    if left:
        lines.append(f"# {left} of its accounts and associations are not in here; the report says which and why.")
    parts = []
    for key, value in data.items():
        comment = f"# {_BEFORE[key]}\n" if key in _BEFORE else ""
        parts.append(comment + _dump({key: _flow(value)}))
    return "\n".join(lines) + "\n---\n" + "".join(parts) + _END


class _Short(dict):
    """Written on one line."""


class _Names(list):
    """Written on one line, as long as it fits."""


def _flow(value: Any) -> Any:
    if isinstance(value, list):
        items = [_flow(one) for one in value]
        return _Names(items) if all(isinstance(one, str) for one in items) else items
    if isinstance(value, dict):
        if all(not isinstance(one, (dict, list)) for one in value.values()) and "name" not in value:
            return _Short(value)
        return {key: _flow(one) for key, one in value.items()}
    return value


def _dump(value: dict) -> str:
    class Dumper(yaml.SafeDumper):
        """Indents lists below their key, and makes no anchors of equal values."""

        def increase_indent(self, flow: bool = False, indentless: bool = False) -> Any:
            return super().increase_indent(flow, False)

        def ignore_aliases(self, data: Any) -> bool:
            return True

    def short(dumper: Any, data: dict) -> Any:
        return dumper.represent_mapping("tag:yaml.org,2002:map", data.items(), flow_style=True)

    def names(dumper: Any, data: list) -> Any:
        return dumper.represent_sequence("tag:yaml.org,2002:seq", data, flow_style=True)

    Dumper.add_representer(_Short, short)
    Dumper.add_representer(_Names, names)
    return yaml.dump(value, Dumper=Dumper, sort_keys=False, default_flow_style=False, allow_unicode=True, width=_WIDTH)
