# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes that change hands, and whether slurmctld upholds what a document says."""

from __future__ import annotations

import pytest
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import apart, labels, owners, partitions

OLD = "NodeName=gpu1 CPUs=2 Feature=a,owner-foo\nNodeName=gpu2 CPUs=2\nNodeName=gpu3 CPUs=2 Feature=owner-bar\n"


def shown(name, features="(null)", state="IDLE", reason=""):
    return (
        f"NodeName={name} Arch=x86_64 CoresPerSocket=1 \n   AvailableFeatures={features}\n   ActiveFeatures={features}\n"
        f"   State={state} ThreadsPerCore=1\n"
        + (f"   Reason={reason} [root@2026-11-30T08:00:00]\n" if reason else "")
        + "\n"
    )


def test_owners_in_the_file_and_in_force():
    assert owners.in_file(OLD) == {"gpu1": "foo", "gpu2": "", "gpu3": "bar"}
    assert owners.in_file("NodeName=DEFAULT Feature=owner-foo\nNodeName=a[1-2] CPUs=1\n") == {"a1": "foo", "a2": "foo"}
    assert owners.in_force(shown("gpu1", "a,owner-foo") + shown("gpu2")) == {"gpu1": "foo", "gpu2": ""}


@pytest.mark.parametrize(
    ("node", "busy", "refused"),
    [
        (shown("gpu2"), {}, True),
        (shown("gpu2", state="IDLE+DRAIN", reason="[reassign] to be scrubbed"), {}, False),
        (shown("gpu2", state="IDLE+DRAIN", reason="[incident-1] x; [reassign] to be scrubbed"), {}, False),
        (shown("gpu2", state="IDLE+DRAIN", reason="[reassign] to be scrubbed"), {"gpu2": ["7"]}, True),
        # Closed by somebody for another reason.
        (shown("gpu2", state="IDLE+DRAIN", reason="broken fan"), {}, True),
        # A reason of before on a node that takes jobs.
        (shown("gpu2", state="IDLE", reason="[reassign] to be scrubbed"), {}, True),
        # It has changed hands; only this host's file is behind.
        (shown("gpu2", "owner-foo", state="MIXED"), {"gpu2": ["7"]}, False),
        ("", {}, True),
    ],
)
def test_a_node_changes_hands_only_while_it_is_held(node, busy, refused):
    new = OLD.replace("NodeName=gpu2 CPUs=2", "NodeName=gpu2 CPUs=2 Feature=owner-foo")
    changes = owners.handed_over(OLD, new)
    assert changes == {"gpu2": ("", "foo")}
    assert bool(owners.refusal(changes, node, busy)) is refused


def test_what_comes_or_goes_changes_no_hands():
    assert owners.handed_over("", OLD) == {}
    assert owners.handed_over(OLD, "NodeName=gpu9 Feature=owner-x\n") == {}


MCS = {"MCSPlugin": "mcs/group", "MCSParameters": "enforced,select:mcs-foo|mcs-shared"}


def tenant(level, *teams, name="foo"):
    return {"tenant": name, "level": level, "accounts": [name, *teams], "group": f"mcs-{name}"}


def parts(*lines):
    return partitions.parse("".join(f"{line}\n" for line in lines))


@pytest.mark.parametrize(
    ("config", "level", "good"),
    [
        (MCS, "exclusive", True),
        ({}, "exclusive", False),
        ({**MCS, "MCSPlugin": "mcs/account"}, "exclusive", False),
        ({**MCS, "MCSParameters": "ondemand,select:mcs-foo|mcs-shared"}, "exclusive", False),
        ({**MCS, "MCSParameters": "enforced:mcs-foo|mcs-shared"}, "exclusive", False),
        ({**MCS, "MCSParameters": "enforced,select:mcs-bar|mcs-shared"}, "exclusive", False),
        ({**MCS, "MCSParameters": "enforced,select:mcs-bar|mcs-foo"}, "exclusive", False),
        ({}, "shared", True),
        (MCS, "shared", False),
    ],
)
def test_labels_are_upheld_or_not(config, level, good):
    assert (apart.problems(config, {}, tenant(level)) == []) is good


OWN = "PartitionName=foo AllowAccounts=foo,ml State=UP"
OTHER = "PartitionName=main DenyAccounts=foo,ml State=UP"


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ((OWN, OTHER), ""),
        ((OTHER,), "no partition of its own"),
        (("PartitionName=foo AllowAccounts=ALL State=UP", OTHER), "admits every account"),
        (("PartitionName=foo AllowAccounts=foo State=UP", OTHER), "does not admit ml"),
        (("PartitionName=foo AllowAccounts=bar,foo,ml State=UP", OTHER), "also admits bar"),
        ((OWN, "PartitionName=main DenyAccounts=foo State=UP"), "admits ml"),
        ((OWN, "PartitionName=main AllowAccounts=bar State=UP"), ""),
    ],
)
def test_nodes_of_its_own_are_upheld_or_not(lines, says):
    found = apart.problems({}, parts(*lines), tenant("private_nodes", "ml"))
    assert (says in found[0]) if says else found == []


def test_a_label_is_the_first_group_of_the_list():
    users = {"alice": frozenset({1, 20, 30}), "bob": frozenset({2, 30}), "carol": frozenset({3})}
    gids = {"mcs-foo": 20, "mcs-shared": 30}
    assert labels.labels(["mcs-gone", "mcs-foo", "mcs-shared"], gids, users) == {
        "alice": "mcs-foo",
        "bob": "mcs-shared",
        "carol": "",
    }
