# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each control of ours that attest's catalogue names is switched off by tests/show/mutations.yml, or it is said why not."""

from __future__ import annotations

import pathlib

import pytest
import yaml
from ansible_collections.gpuops.tenancy.plugins.module_utils._attest import api, catalogue

ROOT = pathlib.Path(__file__).resolve().parents[2]
GIVEN = yaml.safe_load((ROOT / "tests" / "show" / "mutations.yml").read_text())
MUTATIONS, EXCEPTIONS = GIVEN["mutations"], GIVEN["exceptions"]
PROBES = catalogue.load({})
# What is not ours to switch off.
FOREIGN = ("kernel", "slurm", "driver", "container engines", "none")


def controls() -> dict[str, set[tuple[str, str]]]:
    """Control -> (probe, context) where it upholds the claim."""
    found: dict[str, set[tuple[str, str]]] = {}
    for id, probe in PROBES.items():
        for context in probe.contexts:
            for part in probe.control_in(context).split("; "):
                if part.split(":")[0] not in FOREIGN:
                    found.setdefault(part, set()).add((id, context))
    return found


CONTROLS = controls()


def switched_off(control: str) -> list[str]:
    return [
        one["name"] for one in MUTATIONS if one["control"] in control and set(one["fails"].items()) & CONTROLS[control]
    ]


@pytest.mark.parametrize("control", sorted(CONTROLS))
def test_each_control_is_switched_off_or_an_exception_with_a_reason(control):
    if control in EXCEPTIONS:
        assert EXCEPTIONS[control]
        assert switched_off(control) == [], "no exception any more"
    else:
        assert switched_off(control), f"no entry of mutations.yml has {control!r} and a probe that names it"


def test_exceptions_are_controls():
    assert set(EXCEPTIONS) <= set(CONTROLS)


@pytest.mark.parametrize("one", MUTATIONS, ids=[one["name"] for one in MUTATIONS])
def test_an_entry_names_probes_that_there_are_and_what_takes_each_step_back(one):
    assert set(one) <= {"name", "control", "hosts", "change", "without", "apply", "fails", "variables"}
    for probe, context in one["fails"].items():
        assert context in PROBES[probe].contexts and context in api.CONTEXTS
        assert one["control"] in PROBES[probe].control_in(context)
    for step in [*one["change"], *one.get("without", [])]:
        assert set(step) - {"hosts"} in ({"path", "find", "put"}, {"path", "mode"}, {"path", "gone"}, {"run", "undo"})


def test_names_are_told_apart():
    assert len({one["name"] for one in MUTATIONS}) == len(MUTATIONS)
