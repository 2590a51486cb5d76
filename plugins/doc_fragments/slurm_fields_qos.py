# Copyright: (c) 2026, gpuops.tenancy contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Made by tests/tools/gen_field_docs.py from plugins/module_utils/_slurm/fields.py and options.py. Do not edit.

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  name:
    description:
    - Name of the QOS. Either this, or O(qos).
    type: str
  qos:
    description:
    - Several at once, with the same options as one QOS.
    type: list
    elements: dict
    suboptions:
      name:
        description:
        - Name of the QOS.
        type: str
        required: true
      description:
        description:
        - Text of the QOS. Slurm folds it to lower case.
        type: str
      priority:
        description:
        - Priority added to jobs. V(-1) sets 0.
        type: int
      flags:
        description:
        - Flags, exactly these. The empty list clears them.
        - Known are V(DenyOnLimit), V(EnforceUsageThreshold), V(NoDecay), V(NoReserve), V(OverPartQOS), V(PartitionMaxNodes),
          V(PartitionMinNodes), V(PartitionTimeLimit), V(Relative), V(RequiresReservation), V(UsageFactorSafe).
        type: list
        elements: str
      preempt:
        description:
        - QOS whose jobs this one may preempt, exactly these.
        type: list
        elements: str
      preempt_mode:
        description:
        - How its jobs are preempted. The empty string or V(cluster) takes the cluster's mode.
        type: str
      preempt_exempt_time:
        description:
        - Time that a job runs before it may be preempted. Write V(00:05:00); a bare number means minutes.
        type: str
      grace_time:
        description:
        - Seconds between the warning and the preemption. V(-1) sets 0.
        type: int
      usage_factor:
        description:
        - Factor by which usage counts. V(-1) sets 1.
        type: float
      usage_threshold:
        description:
        - Lowest fair share with which a job may run or be submitted.
        type: float
      limit_factor:
        description:
        - Factor by which the TRES limits of associations are multiplied.
        type: float
      grp_tres:
        description:
        - TRES that all running jobs of the QOS may use together.
        type: dict
      grp_tres_mins:
        description:
        - TRES minutes that all jobs of the QOS may use together.
        type: dict
      grp_tres_run_mins:
        description:
        - TRES minutes that all running jobs of the QOS may still need together.
        type: dict
      grp_jobs:
        description:
        - Jobs of the QOS that may run together.
        type: int
      grp_jobs_accrue:
        description:
        - Waiting jobs of the QOS that may gain priority by their age at the same time.
        type: int
      grp_submit_jobs:
        description:
        - Jobs of the QOS that may wait or run together.
        type: int
      grp_wall:
        description:
        - Wall clock time that all jobs of the QOS may use together.
        type: str
      max_tres_per_job:
        description:
        - TRES that one job may use.
        type: dict
      max_tres_per_node:
        description:
        - TRES that one job may use on a node.
        type: dict
      max_tres_mins_per_job:
        description:
        - TRES minutes that one job may use.
        type: dict
      max_wall:
        description:
        - Wall clock time of one job.
        type: str
      max_tres_per_user:
        description:
        - TRES that the running jobs of one user may use together.
        type: dict
      max_tres_run_mins_per_user:
        description:
        - TRES minutes that the running jobs of one user may still need together.
        type: dict
      max_jobs_per_user:
        description:
        - Running jobs of one user.
        type: int
      max_jobs_accrue_per_user:
        description:
        - Waiting jobs of one user that may gain priority by their age at the same time.
        type: int
      max_submit_jobs_per_user:
        description:
        - Waiting and running jobs of one user.
        type: int
      max_tres_per_account:
        description:
        - TRES that the running jobs of one account may use together.
        type: dict
      max_tres_run_mins_per_account:
        description:
        - TRES minutes that the running jobs of one account may still need together.
        - Needs Slurm 24.05 or newer.
        type: dict
      max_jobs_per_account:
        description:
        - Running jobs of one account.
        type: int
      max_jobs_accrue_per_account:
        description:
        - Waiting jobs of one account that may gain priority by their age at the same time.
        type: int
      max_submit_jobs_per_account:
        description:
        - Waiting and running jobs of one account.
        type: int
      min_tres_per_job:
        description:
        - TRES that a job has to ask for at least.
        type: dict
      min_prio_threshold:
        description:
        - Priority that a job needs for resources to be reserved for it.
        type: int
  description:
    description:
    - Text of the QOS. Slurm folds it to lower case.
    type: str
  priority:
    description:
    - Priority added to jobs. V(-1) sets 0.
    type: int
  flags:
    description:
    - Flags, exactly these. The empty list clears them.
    - Known are V(DenyOnLimit), V(EnforceUsageThreshold), V(NoDecay), V(NoReserve), V(OverPartQOS), V(PartitionMaxNodes),
      V(PartitionMinNodes), V(PartitionTimeLimit), V(Relative), V(RequiresReservation), V(UsageFactorSafe).
    type: list
    elements: str
  preempt:
    description:
    - QOS whose jobs this one may preempt, exactly these.
    type: list
    elements: str
  preempt_mode:
    description:
    - How its jobs are preempted. The empty string or V(cluster) takes the cluster's mode.
    type: str
  preempt_exempt_time:
    description:
    - Time that a job runs before it may be preempted. Write V(00:05:00); a bare number means minutes.
    type: str
  grace_time:
    description:
    - Seconds between the warning and the preemption. V(-1) sets 0.
    type: int
  usage_factor:
    description:
    - Factor by which usage counts. V(-1) sets 1.
    type: float
  usage_threshold:
    description:
    - Lowest fair share with which a job may run or be submitted.
    type: float
  limit_factor:
    description:
    - Factor by which the TRES limits of associations are multiplied.
    type: float
  grp_tres:
    description:
    - TRES that all running jobs of the QOS may use together.
    type: dict
  grp_tres_mins:
    description:
    - TRES minutes that all jobs of the QOS may use together.
    type: dict
  grp_tres_run_mins:
    description:
    - TRES minutes that all running jobs of the QOS may still need together.
    type: dict
  grp_jobs:
    description:
    - Jobs of the QOS that may run together.
    type: int
  grp_jobs_accrue:
    description:
    - Waiting jobs of the QOS that may gain priority by their age at the same time.
    type: int
  grp_submit_jobs:
    description:
    - Jobs of the QOS that may wait or run together.
    type: int
  grp_wall:
    description:
    - Wall clock time that all jobs of the QOS may use together.
    type: str
  max_tres_per_job:
    description:
    - TRES that one job may use.
    type: dict
  max_tres_per_node:
    description:
    - TRES that one job may use on a node.
    type: dict
  max_tres_mins_per_job:
    description:
    - TRES minutes that one job may use.
    type: dict
  max_wall:
    description:
    - Wall clock time of one job.
    type: str
  max_tres_per_user:
    description:
    - TRES that the running jobs of one user may use together.
    type: dict
  max_tres_run_mins_per_user:
    description:
    - TRES minutes that the running jobs of one user may still need together.
    type: dict
  max_jobs_per_user:
    description:
    - Running jobs of one user.
    type: int
  max_jobs_accrue_per_user:
    description:
    - Waiting jobs of one user that may gain priority by their age at the same time.
    type: int
  max_submit_jobs_per_user:
    description:
    - Waiting and running jobs of one user.
    type: int
  max_tres_per_account:
    description:
    - TRES that the running jobs of one account may use together.
    type: dict
  max_tres_run_mins_per_account:
    description:
    - TRES minutes that the running jobs of one account may still need together.
    - Needs Slurm 24.05 or newer.
    type: dict
  max_jobs_per_account:
    description:
    - Running jobs of one account.
    type: int
  max_jobs_accrue_per_account:
    description:
    - Waiting jobs of one account that may gain priority by their age at the same time.
    type: int
  max_submit_jobs_per_account:
    description:
    - Waiting and running jobs of one account.
    type: int
  min_tres_per_job:
    description:
    - TRES that a job has to ask for at least.
    type: dict
  min_prio_threshold:
    description:
    - Priority that a job needs for resources to be reserved for it.
    type: int
"""
