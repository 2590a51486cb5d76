# Copyright: (c) 2026, gpuops.tenancy contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Made by tests/tools/gen_field_docs.py from plugins/module_utils/_slurm/fields.py and options.py. Do not edit.

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  accounts:
    description:
    - Accounts, nested or flat.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description:
        - Name of the account, unique in the cluster.
        type: str
        required: true
      parent:
        description:
        - The account above. By default the account that encloses this entry, at the top V(root).
        type: str
      accounts:
        description:
        - Accounts below this one, with the same options, to any depth.
        type: list
        elements: dict
      coordinators:
        description:
        - Coordinators of the account, exactly these. They may add users and raise limits below the account.
        type: list
        elements: str
      description:
        description:
        - Text of the account. Slurm folds it to lower case.
        type: str
      organization:
        description:
        - Text of the account. Slurm folds it to lower case.
        type: str
      users_are_coordinators:
        description:
        - Whether every user of the account coordinates it and all below it. Excludes a list of coordinators.
        - Needs Slurm 23.11 or newer.
        type: bool
      fairshare:
        description:
        - Shares relative to the other children of the same parent, or V(parent).
        - V(-1) sets Slurm's own default, 1.
        type: str
      priority:
        description:
        - Priority added to jobs.
        type: int
      grp_tres:
        description:
        - 'TRES that all running jobs below this object may use together, for example V({gres/gpu: 128}).'
        type: dict
      grp_tres_mins:
        description:
        - TRES minutes that all jobs below this object may use together.
        type: dict
      grp_tres_run_mins:
        description:
        - TRES minutes that all running jobs below this object may still need together.
        type: dict
      grp_jobs:
        description:
        - Jobs that may run below this object together. More are accepted and wait.
        type: int
      grp_jobs_accrue:
        description:
        - Waiting jobs below this object that may gain priority by their age at the same time.
        type: int
      grp_submit_jobs:
        description:
        - Jobs that may wait or run below this object together. More are refused.
        type: int
      grp_wall:
        description:
        - Wall clock time that all jobs below this object may use together.
        type: str
      max_jobs:
        description:
        - Running jobs of each user. More are accepted and wait.
        type: int
      max_jobs_accrue:
        description:
        - Waiting jobs of each user that may gain priority by their age at the same time.
        type: int
      max_submit_jobs:
        description:
        - Waiting and running jobs of each user. More are refused.
        type: int
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
      max_tres_run_mins:
        description:
        - TRES minutes that the running jobs of each user may still need together.
        type: dict
      max_wall:
        description:
        - Wall clock time of one job.
        type: str
      min_prio_threshold:
        description:
        - Priority that a job needs for resources to be reserved for it.
        type: int
      qos:
        description:
        - QOS that may be used, exactly these. The empty list inherits the parent's.
        - Left alone on an object that is blocked, see O(block_qos).
        type: list
        elements: str
      default_qos:
        description:
        - QOS of a job that names none. It has to be in the effective list of everything that inherits it. The empty
          string clears it.
        type: str
      comment:
        description:
        - Text of the association. Slurm folds it to lower case.
        - Needs Slurm 23.11 or newer.
        type: str
  users:
    description:
    - Users with all the associations that they have within O(scope). One that is not listed is removed, so that
      a move from team to team is a move. Associations outside the scope stay.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description:
        - Name of the user.
        type: str
        required: true
      default_account:
        description:
        - Account of a job that names none. Required where several would do. By default the present one stays as
          long as the user is associated with it.
        type: str
      admin_level:
        description:
        - Rights over the whole database, in all clusters. V(administrator) may do everything.
        type: str
        choices:
        - none
        - operator
        - administrator
      default_wckey:
        description:
        - Workload characterization key of a job that names none. Added to the user where it is missing.
        - Slurm cannot take a default away, only change it.
        type: str
      associations:
        description:
        - At least one.
        type: list
        elements: dict
        required: true
        suboptions:
          account:
            description:
            - The account.
            type: str
            required: true
          partition:
            description:
            - The association is for this partition only.
            type: str
          fairshare:
            description:
            - Shares relative to the other children of the same parent, or V(parent).
            - V(-1) sets Slurm's own default, 1.
            type: str
          priority:
            description:
            - Priority added to jobs.
            type: int
          grp_tres:
            description:
            - 'TRES that all running jobs below this object may use together, for example V({gres/gpu: 128}).'
            type: dict
          grp_tres_mins:
            description:
            - TRES minutes that all jobs below this object may use together.
            type: dict
          grp_tres_run_mins:
            description:
            - TRES minutes that all running jobs below this object may still need together.
            type: dict
          grp_jobs:
            description:
            - Jobs that may run below this object together. More are accepted and wait.
            type: int
          grp_jobs_accrue:
            description:
            - Waiting jobs below this object that may gain priority by their age at the same time.
            type: int
          grp_submit_jobs:
            description:
            - Jobs that may wait or run below this object together. More are refused.
            type: int
          grp_wall:
            description:
            - Wall clock time that all jobs below this object may use together.
            type: str
          max_jobs:
            description:
            - Running jobs of each user. More are accepted and wait.
            type: int
          max_jobs_accrue:
            description:
            - Waiting jobs of each user that may gain priority by their age at the same time.
            type: int
          max_submit_jobs:
            description:
            - Waiting and running jobs of each user. More are refused.
            type: int
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
          max_tres_run_mins:
            description:
            - TRES minutes that the running jobs of each user may still need together.
            type: dict
          max_wall:
            description:
            - Wall clock time of one job.
            type: str
          min_prio_threshold:
            description:
            - Priority that a job needs for resources to be reserved for it.
            type: int
          qos:
            description:
            - QOS that may be used, exactly these. The empty list inherits the parent's.
            - Left alone on an object that is blocked, see O(block_qos).
            type: list
            elements: str
          default_qos:
            description:
            - QOS of a job that names none. It has to be in the effective list of everything that inherits it. The
              empty string clears it.
            type: str
          comment:
            description:
            - Text of the association. Slurm folds it to lower case.
            - Needs Slurm 23.11 or newer.
            type: str
"""
