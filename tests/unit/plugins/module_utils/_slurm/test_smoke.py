# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import smoke


def waiting(job_id="7"):
    return smoke.Attempt("alice", "ml", job_id=job_id, state="PENDING")


def test_submission_runs_as_the_user_and_asks_only_for_what_was_given():
    argv = smoke.submit_argv(smoke.Attempt("alice", "ml", gres="gpu:1"), "/opt/slurm/bin/sbatch")
    assert argv[:5] == ["runuser", "-u", "alice", "--", "/opt/slurm/bin/sbatch"]
    assert "--gres=gpu:1" in argv
    assert not [word for word in argv if word.startswith(("--qos", "--partition"))]


@pytest.mark.parametrize("said", ["42\n", "42;cluster\n"])
def test_accepted(said):
    attempt = smoke.Attempt("alice", "ml")
    smoke.note_submission(attempt, 0, said, "")
    assert (attempt.job_id, attempt.open, attempt.proven) == ("42", True, False)


@pytest.mark.parametrize(
    ("stderr", "refused"),
    [
        (
            "sbatch: error: Batch job submission failed: Invalid account or account/partition combination specified",
            True,
        ),
        ("sbatch: error: Batch job submission failed: Invalid qos specification", True),
        (
            "sbatch: error: AssocMaxSubmitJobLimit\nsbatch: error: Batch job submission failed: Job violates accounting/QOS policy",
            False,
        ),
        ("sbatch: error: QOSGrpSubmitJobsLimit", False),
        ("", True),
    ],
)
def test_refused_is_a_fault_unless_a_limit_says_no(stderr, refused):
    attempt = smoke.Attempt("alice", "ml")
    smoke.note_submission(attempt, 1, "", stderr)
    assert attempt.refused is refused
    assert attempt.reason
    assert not attempt.open


def test_an_answer_without_a_job_id_is_no_success():
    attempt = smoke.Attempt("alice", "ml")
    smoke.note_submission(attempt, 0, "", "")
    assert attempt.refused


def test_states_from_queue_then_history():
    one, other = waiting("7"), waiting("8")
    smoke.note_queue([one, other], "7|RUNNING|gpu1|None\n8|PENDING||AssocGrpGRES\n")
    assert (one.state, one.node, one.reason) == ("RUNNING", "gpu1", "")
    assert other.reason == "AssocGrpGRES"
    smoke.note_history([one, other], "7|COMPLETED|gpu1|0:0\n8|PENDING|None assigned|0:0\n")
    assert one.proven
    assert other.open


def test_a_job_that_failed_is_not_proven():
    attempt = waiting()
    smoke.note_history([attempt], "7|CANCELLED by 0|gpu1|0:15\n")
    assert (attempt.state, attempt.proven) == ("CANCELLED", False)
    assert "0:15" in attempt.reason


def test_at_the_deadline_only_open_jobs_are_cancelled_and_the_reason_stays():
    done, late = waiting("7"), waiting("8")
    done.state = "COMPLETED"
    late.reason = "Resources"
    assert smoke.give_up([done, late], 60) == ["8"]
    assert late.as_dict()["proven"] is False
    assert late.reason == "PENDING after 60 s (Resources)"


def test_other_peoples_jobs_in_the_output_are_ignored():
    attempt = waiting("7")
    smoke.note_queue([attempt], "9|RUNNING|gpu1|None\n")
    assert attempt.state == "PENDING"
