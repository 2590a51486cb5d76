# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A block stops people in every QOS and partition, spares what runs, and is lifted without a trace."""

from __future__ import annotations

import itertools
import json
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "cluster"))
from recorded import module, playbook
from remote import on, said, wait_for

LEDGER = "/var/lib/gpuops-tenancy/blocks-demo.json"
SLOW = "/opt/slow"
# Held, so that nothing runs of what is let in.
SUBMIT = """
import json, subprocess, sys
base = ["sbatch", "--parsable", "--hold", "--time=1", "--mem=10", "--chdir=/", "--output=/dev/null", "--wrap=true"]
taken, jobs = [], []
for qos, partition in json.load(sys.stdin):
    asked = [f"--qos={qos}"] * bool(qos) + [f"--partition={partition}"] * bool(partition)
    done = subprocess.run(base + asked, capture_output=True, text=True)
    if done.returncode == 0:
        taken.append((qos, partition))
        jobs.append(done.stdout.strip())
if jobs:
    subprocess.run(["scancel", *jobs])
print(json.dumps(taken))
"""
COLUMNS = "format=account,user,partition,qos,qosraw,defaultqos"


def accounting() -> str:
    """What sacctmgr says of every association and user, with and without what is inherited."""
    asked = (["assoc", "wopi"], ["assoc", "wopi", COLUMNS], ["assoc"], ["assoc", COLUMNS], ["user"])
    # 22.05 lists them in the order of the tree's numbers, which a move there and back changes.
    return "\n\n".join("\n".join(sorted(said("ctl", "sacctmgr", "-nP", "show", *what).splitlines())) for what in asked)


def block(state: str = "blocked", *options: str, **arguments):
    given = {"cluster": "demo", "owner": "incident", "state": state, **arguments}
    run = module("ctl", "slurm_block", given, *options)
    assert run.returncode == 0, run.output
    return run.results[-1]


def sbatch(user: str, *options: str, wrap: str = "sleep 300"):
    words = ["sbatch", "--parsable", "--time=10", "--mem=10", "--chdir=/", "--output=/dev/null", *options]
    return on("login", *words, f"--wrap={wrap}", user=user)


def submitted(user: str, *options: str) -> str:
    done = sbatch(user, *options)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def state_of(job: str) -> str:
    return said("ctl", "squeue", "-h", "-j", job, "-o", "%T %r")


def due(*jobs: str) -> None:
    """Their time has come, and the scheduler has looked at them: twice, for one look may have begun before."""
    for job in jobs:
        said("ctl", "scontrol", "update", f"JobId={job}", "StartTime=now")
    before = looks()
    wait_for(lambda: looks() >= before + 2, 130, "the scheduler")


def looks() -> int:
    """How often slurmctld has gone through the queue."""
    shown = said("ctl", "sdiag").split("Main schedule statistics")[1]
    return int(shown.split("Total cycles:")[1].split()[0])


def names(*what: str) -> list[str]:
    return said("ctl", "sacctmgr", "-nP", "show", *what).split()


def partitions() -> list[str]:
    return said("ctl", "sinfo", "-h", "-a", "-o", "%R").split()


def let_in(user: str) -> list[tuple[str, str]]:
    """(QOS, partition) of each submission that Slurm took, of every pair that the user can name or leave out."""
    pairs = itertools.product(["", *names("qos", "format=name")], ["", *partitions()])
    taken = json.loads(said("login", "python3", "-c", SUBMIT, stdin=json.dumps(list(pairs)), user=user))
    return [tuple(pair) for pair in taken]


@pytest.fixture
def before():
    """Leaves no block, no job and no trace in the accounting."""
    was = accounting()
    yield was
    said("ctl", "sh", "-c", "for user in alice carol dave bob eve; do scancel -u $user; done")
    empty = json.loads(on("ctl", "cat", LEDGER).stdout or '{"blocks": []}')["blocks"] == []
    for owner in () if empty else ("incident", "suspension"):
        block("unblocked", owner=owner, users=["alice", "carol", "bob"], accounts=["tenant-foo"])
    assert empty
    assert accounting() == was
    assert json.loads(said("ctl", "cat", LEDGER)) == {"schema": 1, "blocks": [], "rows": [], "held": []}
    wait_for(lambda: not said("ctl", "squeue", "-h"), what="an empty queue")


@pytest.fixture
def generous():
    """A partition whose QOS allows submissions that no account allows."""
    said("ctl", "sacctmgr", "-i", "add", "qos", "generous", "set", "GrpSubmitJobs=1000", "MaxSubmitJobsPerUser=1000")
    said("ctl", "scontrol", "create", "PartitionName=generous", "Nodes=gpu1", "QOS=generous", "MaxTime=60")
    yield
    said("ctl", "scontrol", "delete", "PartitionName=generous")
    said("ctl", "sacctmgr", "-i", "delete", "qos", "generous")


def test_nothing_gets_in_what_runs_goes_on_and_nothing_starts_again(before, generous):
    assert ("", "") in let_in("alice")
    assert ("high", "generous") in let_in("alice")
    running, requeued = submitted("alice"), submitted("alice")
    wait_for(lambda: {state_of(running).split()[0], state_of(requeued).split()[0]} == {"RUNNING"}, what="running jobs")
    waiting = submitted("alice", "--qos=high", "--begin=now+1hour")
    array = submitted("alice", "--array=0-3%1", "--begin=now+1hour")

    checked = block("blocked", "--check", accounts=["tenant-foo"], reason="unpaid")
    assert accounting() == before
    done = block(accounts=["tenant-foo"], reason="unpaid")
    assert (done["plan"], done["commands"]) == (checked["plan"], checked["commands"])
    assert {job["id"].split("_")[0] for job in done["jobs"]} == {running, requeued, waiting, array}
    assert not block(accounts=["tenant-foo"], reason="unpaid")["changed"]
    assert "600 root" in said("ctl", "stat", "-c", "%a %U", LEDGER)

    for user in ("alice", "carol"):
        assert let_in(user) == []
    assert ("", "") in let_in("bob")
    said("ctl", "scontrol", "requeue", requeued)
    # Slurm puts it off by two minutes.
    wait_for(lambda: "PENDING" in state_of(requeued), what="a job that is put off")
    due(requeued, waiting, array)
    assert state_of(requeued) == state_of(waiting) == state_of(array) == "PENDING JobHeldAdmin"
    assert state_of(running).startswith("RUNNING")

    done = block(accounts=["tenant-foo"], cancel_pending=True)
    assert done["changed"]
    assert state_of(running).startswith("RUNNING")
    assert said("ctl", "squeue", "-h", "-A", "ml-team-foo", "-t", "PENDING") == ""
    assert not block(accounts=["tenant-foo"], cancel_pending=True)["changed"]

    done = block("unblocked", accounts=["tenant-foo"])
    assert accounting() == before
    assert not block("unblocked", accounts=["tenant-foo"])["changed"]
    assert ("high", "") in let_in("alice")
    assert counted("alice") == 1
    assert state_of(running).startswith("RUNNING")


def counted(user: str) -> int:
    """Submitted jobs of a user as slurmctld counts them."""
    shown = said("ctl", "scontrol", "-o", "show", "assoc_mgr", f"users={user}", "flags=assoc")
    line = next(line for line in shown.splitlines() if f"UserName={user}(" in line)
    return int(line.split(" GrpSubmitJobs=")[1].split("(")[1].split(")")[0])


def test_what_waited_starts_after_the_block_and_is_counted_right(before):
    """Without the hold slurmctld counts such jobs off twice, and the tenant can submit no more."""
    waiting, array = submitted("alice", "--begin=now+1hour"), submitted("alice", "--array=0-3", "--begin=now+1hour")
    held = submitted("alice", "--hold")
    block(users=["alice"])
    assert counted("alice") == 6
    due(waiting, array)
    assert state_of(waiting) == "PENDING JobHeldAdmin"
    block("unblocked", users=["alice"])
    assert state_of(held) == "PENDING JobHeldUser"
    wait_for(lambda: state_of(waiting).startswith("RUNNING"), 120, "the job that waited")
    assert counted("alice") == 6
    said("ctl", "scancel", array, waiting, held)
    wait_for(lambda: counted("alice") == 0, what="a count of nothing")


def test_without_the_hold_a_requeue_still_stops(before):
    """What a run that is killed between block and hold leaves."""
    requeued = submitted("alice")
    wait_for(lambda: state_of(requeued).startswith("RUNNING"), what="a running job")
    block(users=["alice"])
    said("ctl", "scontrol", "release", requeued)
    said("ctl", "scontrol", "requeue", requeued)
    wait_for(lambda: "BeginTime" in state_of(requeued), what="a job that is put off")
    said("ctl", "scontrol", "update", f"JobId={requeued}", "StartTime=now")
    wait_for(lambda: "InvalidQOS" in state_of(requeued), what="a requeue that stops")
    assert state_of(requeued).startswith("PENDING")
    block("unblocked", users=["alice"])
    said("ctl", "scancel", requeued)


def test_lists_of_all_kinds_come_back_and_owners_stack(before):
    """Own lists and defaults, a difference to the parent's list, several accounts, a row for a partition."""
    modify = ["sacctmgr", "-i", "modify"]
    said("ctl", *modify, "user", "where", "name=carol", "account=data-team-foo", "set", "QOS=high", "DefaultQOS=high")
    said("ctl", *modify, "user", "where", "name=alice", "account=ml-team-foo", "set", "QOS+=low")
    said("ctl", *modify, "account", "where", "name=data-team-foo", "set", "QOS-=normal", "DefaultQOS=high")
    said("ctl", "sacctmgr", "-i", "add", "user", "carol", "account=tenant-bar")
    said("ctl", "sacctmgr", "-i", "add", "user", "carol", "account=tenant-bar", "partition=a100")
    ugly = accounting()
    try:
        block(accounts=["tenant-foo"], owner="suspension")
        block(users=["carol"], owner="incident")
        assert let_in("carol") == []
        assert sbatch("carol", "--account=tenant-bar").returncode != 0
        assert sbatch("carol", "--account=tenant-bar", "--partition=a100").returncode != 0
        done = block("unblocked", accounts=["tenant-foo"], owner="suspension")
        assert done["still_blocked"] == ["user carol in data-team-foo: user carol by incident"]
        assert let_in("carol") == []
        assert ("low", "") in let_in("alice")
        block("unblocked", users=["carol"], owner="incident")
        assert accounting() == ugly
    finally:
        said("ctl", "sacctmgr", "-i", "delete", "user", "carol", "account=tenant-bar")
        said("ctl", *modify, "user", "where", "name=carol", "account=data-team-foo", "set", "QOS=", "DefaultQOS=-1")
        said("ctl", *modify, "user", "where", "name=alice", "account=ml-team-foo", "set", "QOS=")
        said("ctl", *modify, "account", "where", "name=data-team-foo", "set", "QOS=", "DefaultQOS=-1")


def test_accounting_lets_nobody_past_a_block(before):
    """A new user, a move, a new team: below a blocked account all of it is blocked, and comes out with it."""
    tree = {
        "cluster": "demo",
        "scope": ["tenant-foo"],
        "accounts": [{"name": "tenant-foo", "accounts": [{"name": "new-team-foo"}]}],
        "users": [
            {"name": "eve", "associations": [{"account": "new-team-foo", "qos": ["normal"], "default_qos": "normal"}]},
            {"name": "dave", "associations": [{"account": "ml-team-foo"}]},
        ],
    }
    block(accounts=["tenant-foo"])
    try:
        run = module("ctl", "slurm_accounting", tree)
        assert run.returncode == 0, run.output
        assert {"user eve in new-team-foo", "user dave in ml-team-foo"} <= set(run.results[-1]["blocked"])
        assert sbatch("eve", "--account=new-team-foo").returncode != 0
        assert sbatch("eve", "--account=new-team-foo", "--qos=normal").returncode != 0
        assert let_in("dave") == []
        block("unblocked", accounts=["tenant-foo"])
        assert ("", "") in let_in("dave")
        assert sbatch("eve", "--account=new-team-foo", wrap="true").returncode == 0
    finally:
        block("unblocked", accounts=["tenant-foo"])
        said("ctl", "sh", "-c", "scancel -u eve; sleep 2")
        said("ctl", "sacctmgr", "-i", "delete", "user", "eve", "account=new-team-foo")
        said("ctl", "sacctmgr", "-i", "delete", "account", "new-team-foo")
        tree["users"] = [{"name": "dave", "associations": [{"account": "data-team-foo"}]}]
        tree["accounts"] = [{"name": "tenant-foo"}]
        assert module("ctl", "slurm_accounting", tree).returncode == 0


def test_a_user_on_record_is_blocked_wherever_he_turns_up(before):
    block(users=["bob"])
    guest = {
        "cluster": "demo",
        "scope": ["tenant-foo"],
        "users": [{"name": "bob", "associations": [{"account": "tenant-foo"}]}],
    }
    try:
        assert module("ctl", "slurm_accounting", guest).results[-1]["blocked"] == ["user bob in tenant-foo"]
        assert sbatch("bob", "--account=tenant-foo").returncode != 0
    finally:
        said("ctl", "sacctmgr", "-i", "delete", "user", "bob", "account=tenant-foo")
        block("unblocked", users=["bob"])


def test_who_could_lift_it_is_named_and_a_further_run_blocks_again(before):
    said("ctl", "sacctmgr", "-i", "add", "coordinator", "account=ml-team-foo", "names=alice")
    try:
        run = module("ctl", "slurm_block", {"cluster": "demo", "owner": "incident", "users": ["alice"]})
        assert "alice is coordinator of ml-team-foo and can lift the block" in run.output
        lifted = [
            "modify",
            "user",
            "where",
            "name=alice",
            "account=ml-team-foo",
            "set",
            "QOS=normal",
            "DefaultQOS=normal",
        ]
        said("login", "sacctmgr", "-i", *lifted, user="alice")
        assert block(users=["alice"])["changed"]
        assert let_in("alice") == []
    finally:
        said("ctl", "sacctmgr", "-i", "delete", "coordinator", "account=ml-team-foo", "names=alice")
        block("unblocked", users=["alice"])


@pytest.fixture
def slow_writes():
    """A folder of commands in which sacctmgr waits before it writes, so that a kill meets it in the middle."""
    shim = (
        f'#!/bin/sh\ncase " $* " in *" modify "*) touch {SLOW}/writing; sleep 3;; esac\nexec /usr/bin/sacctmgr "$@"\n'
    )
    said("ctl", "sh", "-c", f"mkdir -p {SLOW}; ln -sf /usr/bin/s* /usr/sbin/runuser {SLOW}/; rm {SLOW}/sacctmgr")
    said("ctl", "sh", "-c", f"cat > {SLOW}/sacctmgr; chmod 755 {SLOW}/sacctmgr", stdin=shim)
    yield
    said("ctl", "rm", "-rf", SLOW)


def killed(writes: int, state: str) -> None:
    """The module is killed at its n-th write; what that had started still finishes."""
    said("ctl", "rm", "-f", f"{SLOW}/writing")
    run = playbook_of_block(state)
    for _write in range(writes):
        wait_for(lambda: on("ctl", "test", "-e", f"{SLOW}/writing").returncode == 0, what="a write")
        said("ctl", "rm", "-f", f"{SLOW}/writing")
    lock = "/run/gpuops-tenancy/gpuops-tenancy-slurm-accounting-demo.lock"
    said("ctl", "sh", "-c", f"kill -9 $(grep -o '\"pid\": [0-9]*' {lock} | grep -o '[0-9]*')")
    assert run.wait().returncode != 0


def playbook_of_block(state: str):
    name = "suspend.yml" if state == "blocked" else "resume.yml"
    return playbook(name, "-e", "tenant=tenant-foo", "-e", json.dumps({"slurm_config_search_path": [SLOW]}))


@pytest.mark.parametrize("writes", [1, 2])
def test_a_run_that_is_killed_in_the_middle_is_finished_by_the_next(before, slow_writes, writes):
    killed(writes, "blocked")
    done = block(accounts=["tenant-foo"], owner="suspension")
    assert let_in("alice") == []
    assert not block(accounts=["tenant-foo"], owner="suspension")["changed"]
    assert done["blocks"][0]["owner"] == "suspension"
    killed(writes, "unblocked")
    block("unblocked", accounts=["tenant-foo"], owner="suspension")
    assert accounting() == before
    assert not block("unblocked", accounts=["tenant-foo"], owner="suspension")["changed"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"users": ["alicce"]}, "user alicce has no association on cluster demo"),
        ({"accounts": ["root"]}, "account root is Slurm's own"),
        ({}, "neither users nor accounts are named"),
        ({"users": ["alice"], "block_qos": "normal"}, "QOS normal does not block: it needs grp_submit_jobs 0"),
        ({"users": ["alice"], "block_qos": "nosuch"}, "the blocking QOS nosuch does not exist"),
    ],
)
def test_what_is_refused(before, arguments, says):
    run = module("ctl", "slurm_block", {"cluster": "demo", "owner": "incident", **arguments})
    assert run.returncode != 0
    assert says in run.errors[0]


def test_a_record_that_cannot_be_read_stops_everything(before):
    said("ctl", "cp", "-p", LEDGER, f"{LEDGER}.kept")
    try:
        said("ctl", "sh", "-c", f"echo '{{' > {LEDGER}")
        for name, arguments in (
            ("slurm_block", {"owner": "incident", "users": ["alice"]}),
            ("slurm_accounting", {"scope": ["tenant-foo"], "accounts": [{"name": "tenant-foo"}]}),
        ):
            run = module("ctl", name, {"cluster": "demo", **arguments})
            assert run.returncode != 0
            assert "the record of blocks" in run.errors[0]
    finally:
        said("ctl", "mv", f"{LEDGER}.kept", LEDGER)
