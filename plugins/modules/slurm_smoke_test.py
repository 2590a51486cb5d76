#!/usr/bin/python
# Copyright: (c) 2026, gpuops.tenancy contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: slurm_smoke_test
short_description: Prove that users can run jobs, by running one as each of them
description:
  - Submits a job of at most one minute as each user and waits until all have ended or the deadline has passed.
    Jobs that have not ended by then are cancelled.
  - A job that a full cluster or a limit keeps waiting is not a failure. The result says that nothing is proven, and why.
  - A submission that Slurm refuses for another reason than a limit is marked RV(results[].refused).
  - Run it as root on a login host.
author:
  - gpuops.tenancy contributors (@gpuops)
extends_documentation_fragment:
  - gpuops.tenancy.attributes
  - gpuops.tenancy.attributes.actiongroup_slurm
  - gpuops.tenancy.host.programs
attributes:
  check_mode:
    support: full
    details: Submits nothing; nothing is proven.
  diff_mode:
    support: N/A
    details: Leaves nothing behind but the job's record in the accounting.
  idempotent:
    support: full
    details: Never reports a change.
options:
  jobs:
    description: What to run.
    type: list
    elements: dict
    required: true
    suboptions:
      user:
        description: Login name of the submitting user.
        type: str
        required: true
      account:
        description: Account to charge.
        type: str
        required: true
      qos:
        description: QOS to ask for. Slurm takes the default QOS if it is empty.
        type: str
        default: ''
      partition:
        description: Partition to ask for. Slurm takes the default partition if it is empty.
        type: str
        default: ''
      gres:
        description: Generic resources to ask for, for example V(gpu:1).
        type: str
        default: ''
  deadline:
    description: Seconds until jobs that have not ended are cancelled and counted as not proven.
    type: int
    default: 60
"""

EXAMPLES = r"""
- name: Run a job as alice
  gpuops.tenancy.slurm_smoke_test:
    jobs:
      - user: alice
        account: ml-team-foo
"""

RETURN = r"""
proven:
  description: Whether all jobs completed.
  type: bool
  returned: success
results:
  description: One entry for each job, in the order of O(jobs).
  type: list
  elements: dict
  returned: success
  contains:
    user:
      description: Submitting user.
      type: str
    account:
      description: Account charged.
      type: str
    job_id:
      description: Job id, empty if the submission was refused.
      type: str
    state:
      description: Slurm's job state, V(REFUSED), V(NOT_PROVEN) or V(SKIPPED).
      type: str
    node:
      description: Where it ran.
      type: str
    reason:
      description: Why nothing is proven.
      type: str
    refused:
      description: Slurm refused the submission for another reason than a limit. The user is not set up.
      type: bool
    proven:
      description: Whether this job completed.
      type: bool
"""

import time

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpuops.tenancy.plugins.module_utils._command import SEARCH_PATH, CommandError, located, run
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import smoke

# slurmctld learns of new users a moment after slurmdbd.
PROPAGATION = 15


def argument_spec():
    """Options of the module."""
    return {
        "jobs": {
            "type": "list",
            "elements": "dict",
            "required": True,
            "options": {
                "user": {"type": "str", "required": True},
                "account": {"type": "str", "required": True},
                "qos": {"type": "str", "default": ""},
                "partition": {"type": "str", "default": ""},
                "gres": {"type": "str", "default": ""},
            },
        },
        "deadline": {"type": "int", "default": 60},
        "search_path": {"type": "list", "elements": "path", "default": SEARCH_PATH},
    }


def submit(attempt, search_path, until):
    """Submit as the user; a refusal counts only once slurmctld must have heard of her."""
    while True:
        done = run(smoke.submit_argv(attempt, located("sbatch", search_path)), stdin=smoke.SCRIPT, timeout=60)
        smoke.note_submission(attempt, done.rc, done.stdout, done.stderr)
        if not attempt.refused or time.monotonic() >= until:
            return
        attempt.state, attempt.reason, attempt.refused = "", "", False
        time.sleep(1)


def watch(attempts, search_path, deadline):
    """Follow the jobs to their end or to the deadline."""
    until = time.monotonic() + deadline
    while True:
        waiting = [attempt.job_id for attempt in attempts if attempt.open]
        if not waiting:
            return
        ids = ",".join(waiting)
        # A job that has left the queue makes squeue fail for the whole list on some versions: only its output counts.
        queue = run([located("squeue", search_path), "--noheader", f"--jobs={ids}", "--format=%i|%T|%N|%r"], timeout=60)
        smoke.note_queue(attempts, queue.stdout)
        history = run(
            [located("sacct", search_path), "-nPX", f"--jobs={ids}", "--format=jobid,state,nodelist,exitcode"],
            timeout=60,
        )
        smoke.note_history(attempts, history.stdout)
        if time.monotonic() >= until:
            late = smoke.give_up(attempts, deadline)
            if late:
                run([located("scancel", search_path), *late], timeout=60)
            return
        time.sleep(0.5)


def main():
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    params = module.params
    attempts = [smoke.Attempt(**job) for job in params["jobs"]]
    if module.check_mode:
        for attempt in attempts:
            attempt.state, attempt.reason = "SKIPPED", "check mode"
    else:
        try:
            until = time.monotonic() + PROPAGATION
            for attempt in attempts:
                submit(attempt, params["search_path"], until)
            watch(attempts, params["search_path"], params["deadline"])
        except CommandError as error:
            module.fail_json(msg=str(error), results=[attempt.as_dict() for attempt in attempts])
    module.exit_json(
        changed=False,
        proven=bool(attempts) and all(attempt.proven for attempt in attempts),
        results=[attempt.as_dict() for attempt in attempts],
    )


if __name__ == "__main__":
    main()
