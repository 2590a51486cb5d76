# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The part of the tenant schema that speaks of Slurm's limits. Private to the collection gpuops.tenancy."""

from __future__ import annotations

from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant import units

COUNT_MAX = 2147483647
TRES_MAX = 2**53 - 1  # editors and JSON readers lose whole numbers above it

# Kinds of limit, in the order of the documentation.
COUNTS = ("grp_jobs", "grp_submit_jobs", "max_jobs", "max_submit_jobs")
TIMES = ("grp_wall", "max_wall")
TRES = (
    "grp_tres",
    "grp_tres_mins",
    "grp_tres_run_mins",
    "max_tres_per_job",
    "max_tres_per_node",
    "max_tres_mins_per_job",
)

TRES_NAME = (
    r"^(cpu|node|billing|energy|(gres|license|bb|fs|ic)/[A-Za-z0-9][A-Za-z0-9_.-]*(:[A-Za-z0-9][A-Za-z0-9_.@-]*)?)$"
)


def count(description: str, example: int) -> dict:
    return {
        "type": "integer",
        "minimum": 0,
        "maximum": COUNT_MAX,
        "description": description + " Unit: jobs; each task of a job array counts as one.",
        "examples": [example],
    }


def duration(description: str, example: str) -> dict:
    return {
        "type": "string",
        "pattern": units.DURATION,
        "description": description + " Unit: HH:MM:SS or D-HH:MM:SS, whole minutes. A bare number is refused, because "
        "Slurm reads it as minutes in one option and as seconds in the next.",
        "examples": [example],
    }


def tres(description: str, example: dict, unit: str) -> dict:
    return {
        "type": "object",
        "minProperties": 1,
        "properties": {
            "mem": {
                "type": "string",
                "pattern": units.MEMORY,
                "description": f"Memory{unit}. Unit: GB (decimal), GiB (binary), or Slurm's own M, G, T (binary); "
                "rounded down to a whole MiB.",
                "examples": ["512GiB"],
            },
        },
        "patternProperties": {
            TRES_NAME: {
                "type": "integer",
                "minimum": 0,
                "maximum": TRES_MAX,
                "description": f"Amount of a resource{unit}: cpu, node, billing, energy, gres/NAME, gres/NAME:TYPE, "
                "license/NAME, bb/NAME (burst buffer), fs/NAME or ic/NAME. 0 means none at all.",
                "examples": [8],
            },
        },
        "additionalProperties": False,
        "description": description,
        "examples": [example],
    }


LIMITS = {
    "type": "object",
    "properties": {
        "grp_tres": tres(
            "What all running jobs below this point may hold together; further jobs wait. A QOS with a larger limit of "
            "the same kind outranks it. Unit: per resource, as listed below.",
            {"gres/gpu": 128, "cpu": 2048, "mem": "16TiB"},
            "",
        ),
        "grp_tres_mins": tres(
            "Budget for all jobs below this point, past ones included, as far as the site's usage decay leaves them. A "
            "job starts only if it can end within the budget, so it needs a time limit. Unit: resource times minutes.",
            {"gres/gpu": 10000},
            " times minutes",
        ),
        "grp_tres_run_mins": tres(
            "Cap on the sum, over running jobs, of resource times remaining time limit. Unit: resource times minutes.",
            {"gres/gpu": 20000},
            " times minutes",
        ),
        "grp_jobs": count("Running jobs below this point; further ones wait. It never refuses a submission.", 200),
        "grp_submit_jobs": count("Pending and running jobs below this point; further submissions are refused.", 2000),
        "grp_wall": duration(
            "Wall time of all jobs below this point together, as far as the site's usage decay leaves it.",
            "100-00:00:00",
        ),
        "max_jobs": count(
            "Running jobs of each user; further ones wait. It never refuses a submission: that is max_submit_jobs.", 20
        ),
        "max_submit_jobs": count("Pending and running jobs of each user; further submissions are refused.", 200),
        "max_tres_per_job": tres(
            "The most one job may hold; a larger one stays pending. Unit: per resource, as listed below.",
            {"gres/gpu": 16},
            " of one job",
        ),
        "max_tres_per_node": tres(
            "The most one job may hold on one node. Unit: per resource, as listed below.",
            {"gres/gpu": 4},
            " of one job on one node",
        ),
        "max_tres_mins_per_job": tres(
            "The most one job may use up. Unit: resource times minutes.",
            {"gres/gpu": 2880},
            " times minutes of one job",
        ),
        "max_wall": duration("The longest time limit a job may have; a longer one stays pending.", "2-00:00:00"),
    },
    "additionalProperties": False,
    "description": "Limits at this level. A limit that is not named is cleared. The max_ limits are inherited by "
    "what is below; the grp_ limits count everything below together. Unit: see each limit.",
    "examples": [{"grp_tres": {"gres/gpu": 4}, "max_submit_jobs": 200}],
}
