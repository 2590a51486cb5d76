#!/usr/bin/python
# Copyright: (c) 2026, gpuops.tenancy contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: slurm_preflight
short_description: Check that a cluster can take a tenant, before anything is touched
description:
  - slurmctld answers and runs the cluster that is meant; slurmdbd answers and knows it; limits are enforced; every QOS that is
    named exists; no QOS, and no QOS of a partition, sets a larger limit of a kind that the tenant has a cap on, since Slurm
    would then ignore the cap; the clock is right.
  - All problems are reported in one failure.
author:
  - gpuops.tenancy contributors (@gpuops)
extends_documentation_fragment:
  - gpuops.tenancy.attributes
  - gpuops.tenancy.attributes.actiongroup_slurm
  - gpuops.tenancy.host.programs
attributes:
  check_mode:
    support: full
  diff_mode:
    support: N/A
    details: Changes nothing.
  idempotent:
    support: full
options:
  cluster:
    description: Name of the cluster.
    type: str
    required: true
  accounts:
    description: As in M(gpuops.tenancy.slurm_accounting), flat, parents first. Only names, QOS and limits are looked at.
    type: list
    elements: dict
    default: []
  users:
    description: As in M(gpuops.tenancy.slurm_accounting). Only QOS and limits are looked at.
    type: list
    elements: dict
    default: []
  isolation:
    description: The tenant's entry of the filter P(gpuops.tenancy.tenant_isolation#filter). slurmctld has to uphold it already.
    type: dict
  now:
    description: The controller's clock, in seconds since 1970. The clock is not checked without it.
    type: int
"""

EXAMPLES = r"""
- name: Check the cluster before anything is touched
  gpuops.tenancy.slurm_preflight:
    cluster: production
    accounts:
      - name: tenant-foo
        grp_tres: {gres/gpu: 128}
        qos: [normal, high]
    now: "{{ '%s' | ansible.builtin.strftime | int }}"
"""

RETURN = r"""
problems:
  description: What must be put right first. Empty on success.
  type: list
  elements: str
  returned: always
version:
  description: Slurm's version.
  type: str
  returned: success
"""

import time

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpuops.tenancy.plugins.module_utils._command import (
    SEARCH_PATH,
    CommandError,
    failed,
    located,
    run,
)
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import (
    apart,
    effective,
    fields,
    outrank,
    parse,
    partitions,
    preflight,
    values,
)


def argument_spec():
    """Options of the module."""
    return {
        "cluster": {"type": "str", "required": True},
        "accounts": {"type": "list", "elements": "dict", "default": []},
        "users": {"type": "list", "elements": "dict", "default": []},
        "isolation": {"type": "dict"},
        "now": {"type": "int"},
        "search_path": {"type": "list", "elements": "path", "default": SEARCH_PATH},
    }


def ask(search_path, program, *args):
    """Output of a read-only command; a daemon that does not answer is an error with its words."""
    done = run([located(program, search_path), *args], timeout=60)
    if done.rc != 0:
        raise failed(done, "is the daemon up? systemctl status slurmctld slurmdbd")
    return done.stdout


def read(search_path, cluster, now):
    """Everything that the checks need."""
    skew = time.time() - now if now is not None else 0.0
    config = preflight.parse_config(ask(search_path, "scontrol", "show", "config"))
    clusters = ask(search_path, "sacctmgr", "-nP", "show", "cluster", "format=cluster").split()
    table = [field for field in fields.QOS_FIELDS if field.option in effective.READ_OF_QOS]
    columns = ["name", *(field.column for field in table)]
    rows = parse.rows(ask(search_path, "sacctmgr", "-nP", "show", "qos", f"format={','.join(columns)}"), columns)
    root = ask(
        search_path, "sacctmgr", "-nP", "show", "assoc", f"cluster={cluster}", "account=root", "user=", "format=account,qos"
    )  # fmt: skip
    return preflight.Reading(
        config=config,
        clusters=clusters,
        qos={
            row["name"]: {field.option: values.from_text(field, row[field.column]) for field in table} for row in rows
        },
        partitions=partitions.parse(ask(search_path, "scontrol", "-o", "show", "partition")),
        root_qos=[name for line in root.splitlines() for name in line.partition("|")[2].split(",") if name],
        skew=skew,
    )


def main():
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    params = module.params
    try:
        reading = read(params["search_path"], params["cluster"], params["now"])
        wanted = outrank.rows(params["accounts"], params["users"], reading.root_qos)
    except CommandError as error:
        module.fail_json(msg=str(error), problems=[str(error)])
    except (parse.ParseError, values.ValueProblem) as error:
        module.fail_json(msg=str(error), problems=[str(error)])
    rows = params["accounts"] + [row for user in params["users"] for row in user.get("associations") or []]
    named = {
        name
        for row in rows
        for name in [*(row.get("qos") or []), *([row["default_qos"]] if row.get("default_qos") else [])]
    }
    verdict = outrank.check(wanted, reading.qos, reading.partitions)
    problems = preflight.problems(reading, params["cluster"], named) + verdict.problems
    if params["isolation"]:
        problems += apart.problems(reading.config, reading.partitions, params["isolation"])
    if problems:
        module.fail_json(msg="; ".join(problems), problems=problems)
    for warning in verdict.warnings:
        module.warn(warning)
    module.exit_json(changed=False, problems=[], version=reading.config.get("SLURM_VERSION", ""))


if __name__ == "__main__":
    main()
