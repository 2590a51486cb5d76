# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The inventories that we ship would be onboarded without a word: documents, QOS and partitions fit together."""

from __future__ import annotations

import pathlib

import pytest
import yaml
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import outrank, qos_definitions
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.conf import files
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.partitions import Partition
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant import accounting, folder, names

ROOT = pathlib.Path(__file__).resolve().parents[2]
TENANTS = {"demo": ["tenant-bar", "tenant-foo"], "example": ["tenant-bar", "tenant-foo", "tenant-lab"]}


def variables(site: str) -> dict:
    """Of the site, and the role's own where it says nothing."""
    defaults = yaml.safe_load((ROOT / "roles" / "slurm_controller" / "defaults" / "main.yml").read_text())
    own = ROOT / "inventories" / site / "inventory" / "group_vars" / "slurm_cluster.yml"
    return {**defaults, **yaml.safe_load(own.read_text())}


def documents(site: str) -> list[dict]:
    given = variables(site)
    policy = names.Policy(
        operators=frozenset(given.get("tenancy_operators", ())),
        site_qos=frozenset(qos["name"] for qos in given["slurm_controller_qos"]),
    )
    checked = folder.load(folder.files(str(ROOT / "inventories" / site / "tenants")), folder.read_plain, policy)
    chosen = folder.select(checked)
    assert chosen.warnings == []
    return chosen.tenants


@pytest.mark.parametrize("site", TENANTS)
def test_the_documents_are_right(site):
    assert [one["name"] for one in documents(site)] == TENANTS[site]


@pytest.mark.parametrize("site", TENANTS)
def test_no_qos_outranks_a_cap_or_makes_it_inexact(site):
    given = variables(site)
    qos = qos_definitions.build({"qos": given["slurm_controller_qos"]})
    partitions = {one["name"]: Partition(one["name"]) for one in given["slurm_config_partitions"]}
    for document in documents(site):
        wanted = accounting.arguments(document)
        rows = outrank.rows(wanted["accounts"], wanted["users"], ["normal"])
        assert outrank.check(rows, qos, partitions) == outrank.Verdict([], [])


@pytest.mark.parametrize("site", TENANTS)
def test_a_partition_that_a_user_is_bound_to_exists(site):
    there = {one["name"] for one in variables(site)["slurm_config_partitions"]}
    for document in documents(site):
        for user in accounting.arguments(document)["users"]:
            assert {row["partition"] for row in user["associations"] if "partition" in row} <= there


def test_the_example_has_the_qos_that_blocks():
    ours = next(qos for qos in variables("example")["slurm_controller_qos"] if qos["name"] == "blocked")
    assert ours in variables("demo")["slurm_controller_qos"]


@pytest.mark.parametrize("site", TENANTS)
def test_no_fair_share_and_no_waiting_lift_a_job_over_the_next_tier(site):
    weights = {
        key: value
        for key, value in files._slurm_defaults(dict.fromkeys(files._NAMES, ""), (24, 11), [], 1440, "").items()
        if key.startswith("PriorityWeight")
    }
    others = sum(weights.values()) - weights["PriorityWeightQOS"]
    tiers = {qos["name"]: qos.get("priority", 0) for qos in variables(site)["slurm_controller_qos"]}
    del tiers["blocked"]
    steps = sorted(set(tiers.values()))
    gaps = [weights["PriorityWeightQOS"] * (b - a) / steps[-1] for a, b in zip(steps, steps[1:])]
    assert min(gaps) > others
