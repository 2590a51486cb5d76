# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is blocked while a host runs, and what of the table belongs to the role."""

from __future__ import annotations

import ipaddress

import pytest
from ansible_collections.gpuops.tenancy.plugins.module_utils._firewall import runtime, values
from hypothesis import given
from hypothesis import strategies as st

# As nft 1.0.6 and 1.1.3 list it.
LISTING = """\
table inet tenancy_runtime {
\tset quarantined {
\t\ttypeof meta nfproto
\t\telements = { ipv4, ipv6 }
\t}

\tset blocked_4 {
\t\ttype ipv4_addr
\t\tflags interval
\t\telements = { 1.2.3.0/24, 5.6.7.8,
\t\t\t     10.0.0.1-10.0.0.6 }
\t}

\tset blocked_6 {
\t\ttype ipv6_addr
\t\tflags interval
\t}

\tset admins_4 {
\t\ttype ipv4_addr
\t\tflags interval
\t\telements = { 10.9.0.0/16 }
\t}

\tset admins_6 {
\t\ttype ipv6_addr
\t\tflags interval
\t}

\tchain input {
\t\ttype filter hook input priority filter - 10; policy accept;
\t\tip saddr @blocked_4 counter name "blocked" drop
\t}
}
"""


def nets(*texts):
    return [ipaddress.ip_network(text) for text in texts]


def test_sets_are_read():
    assert runtime.quarantined(LISTING)
    found = values.collapsed(runtime.networks(LISTING, "blocked"))
    assert [values.shown(one) for one in found] == [
        "1.2.3.0/24", "5.6.7.8", "10.0.0.1", "10.0.0.2/31", "10.0.0.4/31", "10.0.0.6",
    ]  # fmt: skip
    assert runtime.networks(LISTING, "admins") == nets("10.9.0.0/16")
    with pytest.raises(values.FirewallError, match="has no set"):
        runtime.elements("table inet tenancy_runtime {\n}\n", "blocked_4")


def test_what_was_filled_is_no_difference_but_operators_are():
    bare = runtime.without_kept(LISTING)
    assert "1.2.3.0" not in bare
    assert "ipv4, ipv6" not in bare
    assert "10.9.0.0/16" in bare
    assert runtime.without_kept(bare) == bare


def test_blocking_an_operator_is_refused():
    for admin, add in (("10.9.0.0/16", "10.9.3.4/32"), ("10.9.3.4/32", "10.9.0.0/16"), ("10.9.3.4/32", "0.0.0.0/0")):
        with pytest.raises(values.FirewallError, match="would lock you out"):
            runtime.refuse_operators(nets(add), nets(admin))
    runtime.refuse_operators(nets("10.8.0.0/16", "::/0"), nets("10.9.0.0/16"))


def test_a_part_of_a_blocked_network_may_go_alone():
    left = runtime.blocked(nets("10.0.0.0/30"), [], nets("10.0.0.1/32"))
    assert left == nets("10.0.0.0/32", "10.0.0.2/31")


network4 = st.builds(
    lambda address, length: ipaddress.ip_network((address, length), strict=False),
    st.integers(min_value=0, max_value=2**32 - 1).map(ipaddress.IPv4Address),
    st.integers(min_value=20, max_value=32),
)


@given(st.lists(network4, max_size=6), st.lists(network4, max_size=4), st.lists(network4, max_size=4))
def test_blocked_is_what_was_without_what_goes_with_what_comes(now, add, gone):
    after = runtime.blocked(now, add, gone)
    for one, other in zip(after, after[1:], strict=False):
        assert not one.overlaps(other)
    # The edges are where an error would show.
    for net in [*now, *add, *gone]:
        for address in (net[0], net[-1]):
            was = any(address in one for one in now) and not any(address in one for one in gone)
            expected = was or any(address in one for one in add)
            assert any(address in one for one in after) is expected
    assert runtime.blocked(after, add, []) == after


def test_a_change_is_one_transaction_and_touches_what_changes_only():
    text = runtime.change(nets("1.1.1.1/32", "fd00::/64"), nets("1.1.1.1/32", "2.2.2.2/32", "fd00::/64"), None)
    assert text == (
        "flush set inet tenancy_runtime blocked_4\nadd element inet tenancy_runtime blocked_4 { 1.1.1.1, 2.2.2.2 }\n"
    )
    assert runtime.change([], [], None) == ""
    assert "add element inet tenancy_runtime quarantined { ipv4, ipv6 }" in runtime.change([], [], True)
    assert runtime.change([], [], False) == "flush set inet tenancy_runtime quarantined\n"


def test_the_structure_never_empties_what_is_kept():
    text = runtime.structure(["10.9.0.0/16", "fd29::/64", "10.9.1.0/24"])
    for name in runtime.KEPT:
        assert f"flush set inet tenancy_runtime {name}" not in text
    assert "delete table" not in text
    assert "flush ruleset" not in text
    assert "add element inet tenancy_runtime admins_4 { 10.9.0.0/16 }" in text
    # What is blocked must stop though it is established.
    assert "established" not in text
