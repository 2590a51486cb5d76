# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The proven table in the documentation is of the fields there are now."""

from __future__ import annotations

import pathlib
import re

import pytest
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import fields

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "accounting-fields.md"
TABLES = (
    ("association", fields.ASSOCIATION),
    ("account", fields.RECORD),
    ("user", fields.USER),
    ("QOS", fields.QOS_FIELDS),
)
EXPECTED = [(kind, f.option, f.set_name, f.column) for kind, table in TABLES for f in table]
SECTIONS = dict(re.findall(r"^## (Slurm \S+) .*?\n(.*?)(?=^## |\Z)", PAGE.read_text(), re.M | re.S))


def test_both_releases_are_there():
    assert [name.split()[1].rsplit(".", 1)[0] for name in SECTIONS] == ["22.05", "24.11"]


@pytest.mark.parametrize("section", SECTIONS)
def test_the_page_has_each_field_with_the_names_that_slurm_takes(section):
    rows = [line.strip("| ").split(" | ") for line in SECTIONS[section].splitlines() if line.startswith("| ")]
    assert [tuple(cell.strip("`") for cell in row[:4]) for row in rows[1:]] == EXPECTED
