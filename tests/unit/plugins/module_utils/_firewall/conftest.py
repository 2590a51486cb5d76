# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A small site."""

from __future__ import annotations

import copy

import pytest

NUMBERS = {"ctl": 10, "login": 11, "gpu1": 21, "gpu2": 22, "gpu3": 23}
SITE = {
    "mode": "enforce",
    "controller": ["ctl"],
    "database": ["ctl"],
    "login": ["login"],
    "compute": ["gpu1", "gpu2", "gpu3"],
    # An address in the operators' network each: that does not make operators of them.
    "addresses": {
        host: [f"10.0.0.{number}", f"10.1.0.{number}", f"fd29:1::{number}"] for host, number in NUMBERS.items()
    },
    "management": ["10.0.0.0/24", "fd29:0::/64"],
    "management_hosts": [],
    "monitoring": ["10.5.0.0/24", "fd29:5::/64"],
    "monitoring_hosts": [],
    "storage": ["10.8.0.0/24"],
    "storage_ports": [],
    "owners": {"gpu1": "", "gpu2": "", "gpu3": ""},
    "node_groups": [],
    "ports": {},
    "rows_off": [],
    "rows_on": [],
    "rows_extra": [],
    "egress": "deny",
    "egress_login": "log",
    "egress_exceptions": [],
    "user_uids": ["1000-61183", "65536-4294967294"],
    "log_group": 5,
}


@pytest.fixture
def site():
    """What the role hands over, to be changed."""
    return copy.deepcopy(SITE)
