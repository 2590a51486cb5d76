# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading and writing with a runner that answers from a table. What the real daemon answers is tested elsewhere."""

from __future__ import annotations

import pytest
from accounting_world import EMPTY, account, example, user
from ansible_collections.gpuops.tenancy.plugins.module_utils._command import Completed
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import accounting, converge, qos_use
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import client as client_module
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.changes import AccountingPlan
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.client import Client, SlurmError, Transient, failure
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.command import Command

FOO = ("foo", "", "")
OLD = "".join(f"{name}||{'|' * len(client_module.row_fields((22, 5)))}\n" for name in ("root", "foo"))


class Answers:
    """Answers as sacctmgr would for a small cluster; ``replace`` changes answers by a word of the command."""

    def __init__(self, replace=None):
        self.seen = []
        self.replace = replace or {}

    def __call__(self, argv, timeout=60, pass_fds=()):
        self.seen.append((list(argv), tuple(pass_fds)))
        text = " ".join(argv)
        if "account,id,parentid" in text:
            return done("root|1|0\nfoo|2|1\n")
        for words, answer in self.replace.items():
            if words in text:
                return answer if isinstance(answer, Completed) else done(answer)
        table = {
            "-V": "slurm 24.11.5\n",
            "assoc": f"root||{EMPTY}\nfoo||{EMPTY}\n" if "wopi" in text else "root||||n\nfoo|||root|n\n",
            "account,coordinators": "root||None\nfoo||None\n",
            "account,description": "root|default root account\nfoo|foo\n",
            "account,organization": "root|root\nfoo|foo\n",
            "user where": "root|root|Administrator|\n",
            "show qos": "normal\nblocked\n",
            "show tres": "cpu|\n",
            "show cluster": "other\nc1\n",
            "squeue": "",
        }
        return done(next(answer for words, answer in table.items() if words in text))


def done(stdout="", rc=0, stderr=""):
    return Completed(("sacctmgr",), rc, stdout, stderr)


def run(answers, check_mode=False, **params):
    params = {"scope": ["foo"], "accounts": [account("foo")], "users": [], **params}
    return accounting.reconcile(params, check_mode, Client("c1", runner=answers), None)


def test_everything_is_read_once_for_one_cluster_without_a_question():
    answers = Answers()
    assert not run(answers)["changed"]
    commands = [" ".join(argv) for argv, _fds in answers.seen]
    assert len(commands) == len(set(commands)) == 10
    assert all(command.startswith("sacctmgr -i ") for command in commands if not command.endswith("-V"))
    assert all("cluster=c1" in command for command in commands if "assoc" in command or "show user" in command)


@pytest.mark.parametrize(
    ("replace", "message"),
    [
        ({"wopi": ""}, "appeared while the associations were read; run again"),
        ({"assoc": ""}, "no association of account root on cluster c1: that is no state to plan from"),
        ({"show cluster": "other\n", "assoc": ""}, "cluster c1 is not registered in slurmdbd, which knows other"),
        ({"show cluster": "", "assoc": ""}, "which knows none"),
        ({"account,coordinators": "a|b|c|d\n"}, "4 columns instead of 3"),
        ({"-V": "?"}, "cannot read the version"),
        (
            {
                "show qos": done(
                    rc=1, stderr="sacctmgr: error: _open_persist_conn: failed to open persistent connection"
                )
            },
            "slurmdbd does not answer; start it",
        ),
    ],
)
def test_a_reading_that_failed_or_looks_empty_is_an_error_never_a_state(replace, message):
    answers = Answers(replace)
    with pytest.raises(SlurmError, match=message):
        run(answers, exclusive=True, max_removals=100)
    assert not any(argv[2] in ("add", "modify", "delete") for argv, _fds in answers.seen if len(argv) > 2)


def test_what_cannot_change_is_not_read_again():
    answers = Answers()
    client = Client("c1", runner=answers)
    assert client.read() == client.read()
    assert len(answers.seen) == 10 + 7


def test_a_line_break_in_a_text_is_read_by_a_query_of_its_own():
    answers = Answers({"account,description": "root|x\nfoo|forged\nfoo|ours\n", "name=foo": "ours\n"})
    state = Client("c1", runner=answers).read(["foo", "new"])
    assert state.accounts["foo"].description == "ours"
    assert sum("name=foo" in " ".join(argv) for argv, _fds in answers.seen) == 1


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("error: Something was wrong with your query", Transient),
        ("Database is busy or waiting for lock from other user.", Transient),
        ("Deadlock found", Transient),
        ("Unknown option: Bogus=3", SlurmError),
    ],
)
def test_only_what_another_writer_causes_is_retried(said, kind):
    assert failure(done(rc=1, stderr=said)).__class__ is kind


def test_a_removal_is_refused_while_jobs_are_there_or_cannot_be_listed():
    rows = {
        "wopi": f"root||{EMPTY}\nfoo||{EMPTY}\nfoo|al|{EMPTY}\n",
        "assoc": "root||||n\nfoo|||root|n\nfoo|al||| n\n",
        "user where": "root|root|Administrator|\nal|foo|None|\n",
    }
    arguments = {"exclusive": True, "max_removals": 1}
    with pytest.raises(SlurmError, match=r"still have jobs: 7 \(al in foo, PENDING\); cancel them"):
        run(Answers({"squeue": "CLUSTER: c1\n7|al|foo|main|PENDING\n8|bo|foo|main|RUNNING\n", **rows}), **arguments)
    jobs = {"squeue": "7|al|foo|main|PENDING\n"}
    checked = run(Answers({**jobs, **rows}), check_mode=True, **arguments)
    assert checked["changed"]
    assert "a real run would be refused now: associations to remove still have jobs: 7" in checked["warnings"][0]
    with pytest.raises(SlurmError, match="cannot be listed, so nothing is removed"):
        run(Answers({"squeue": done(rc=1, stderr="Unable to contact slurm controller"), **rows}), **arguments)


def test_every_write_gets_the_lock_and_no_reading_does():
    class Lock:
        fds = (42,)

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

    answers = Answers({"modify": done()})
    params = {"scope": ["foo"], "accounts": [account("foo", grp_jobs=1)], "users": []}
    with pytest.raises(converge.ApplyError):
        accounting.reconcile(params, False, Client("c1", runner=answers), Lock())
    for argv, fds in answers.seen:
        assert fds == ((42,) if "modify" in argv else ())


def test_a_check_never_waits_for_the_lock():
    class Lock:
        def __enter__(self):
            raise AssertionError

    params = {"scope": ["foo"], "accounts": [account("foo", grp_jobs=1)], "users": []}
    result = accounting.reconcile(params, True, Client("c1", runner=Answers()), Lock())
    assert result["commands"] == ["sacctmgr -i modify account where name=foo cluster=c1 set GrpJobs=1"]


def test_the_search_path_is_used_for_every_program(tmp_path):
    answers = Answers()
    program = tmp_path / "sacctmgr"
    program.touch(mode=0o755)
    params = {"scope": ["foo"], "accounts": [account("foo")], "users": []}
    accounting.reconcile(params, False, Client("c1", [str(tmp_path / "none"), str(tmp_path)], answers), None)
    assert {argv[0] for argv, _fds in answers.seen} == {str(program)}


class TestPortions:
    def command(self, count=1000, entity="user", action="add"):
        return Command(action, entity, "c1", tuple(("foo", f"u{i}", "") for i in range(count)))

    def test_they_start_small_and_grow_while_the_server_is_quick(self):
        portions = converge.Portions(target=6)
        sizes = []
        for _attempt in range(4):
            size = portions.size(self.command())
            sizes.append(size)
            portions.measured(self.command(), size, size * 0.01)
        assert sizes == [25, 100, 400, 600]

    def test_they_shrink_when_it_gets_slow_but_never_to_nothing(self):
        portions = converge.Portions(target=6)
        portions.measured(self.command(), 25, 60.0)
        assert portions.size(self.command()) == 2
        portions.measured(self.command(), 2, 600.0)
        assert portions.size(self.command()) == 1

    def test_a_small_command_says_little_about_larger_ones(self):
        portions = converge.Portions(target=6)
        portions.measured(self.command(), 1, 0.6)
        assert portions.size(self.command()) == 25

    def test_kinds_are_measured_apart_and_accounts_are_deleted_in_small_portions(self):
        portions = converge.Portions(target=6)
        portions.measured(self.command(), 25, 0.01)
        assert portions.size(self.command(action="modify")) == 25
        delete = self.command(entity="account", action="delete")
        portions.measured(delete, 20, 0.01)
        assert portions.size(delete) == 20

    def test_all_objects_are_written_once(self):
        answers = Answers({"add user": done()})
        applied = []
        command = self.command(110)
        converge._run(Client("c1", runner=answers), [command], converge.Portions(), applied, ())
        names = [name for argv, _fds in answers.seen for name in argv[4].partition("=")[2].split(",")]
        assert names == [f"u{i}" for i in range(110)]
        assert len(applied) == len(answers.seen) == 2


def test_an_endless_conflict_ends(monkeypatch):
    monkeypatch.setattr(converge.time, "sleep", lambda seconds: None)
    answers = Answers({"modify": done(rc=1, stderr="Something was wrong with your query")})
    with pytest.raises(converge.ApplyError, match="still refused after 4 attempts") as caught:
        run(answers, accounts=[account("foo", grp_jobs=1)])
    assert caught.value.details["applied"] == []
    assert len(caught.value.details["remaining"]) == 1


def test_the_example_state_has_nothing_to_guard():
    accounting.refuse_with_jobs(Client("c1", runner=Answers({"squeue": done(rc=1)})), AccountingPlan())
    assert example().version == (24, 11)
    assert user("a", "b")["associations"] == [{"account": "b"}]


def test_comments_are_read_only_where_they_matter():
    lines = "foo|||ours | and more\nroot|||\n"
    answers = Answers({"format=account,user,partition,comment": lines})
    assert Client("c1", runner=answers).read(comments=[FOO]).associations[FOO].values["comment"] == "ours | and more"
    answers = Answers({"-V": "slurm-wlm 22.05.8\n", "wopi": OLD, "account,coordinators": "root|\nfoo|\n"})
    assert Client("c1", runner=answers).read(comments=[FOO]).associations[FOO].values["comment"] == ""
    assert not any("comment" in " ".join(argv) for argv, _fds in answers.seen)


def test_a_line_break_in_a_comment_forges_nothing():
    answers = Answers(
        {"format=account,user,partition,comment": "foo|||a\nroot|||forged\nroot|||\n", "format=comment": "a\nb\n"}
    )
    state = Client("c1", runner=answers).read(comments=[FOO])
    assert state.associations[FOO].values["comment"] == "a\nb"
    assert state.associations[("root", "", "")].values["comment"] == ""
    assert state.unread == ("comment",)


def test_wckeys_and_records_of_users():
    users = "root|root|Administrator|\nal|foo|Operator|w\n"
    state = Client("c1", runner=Answers({"user where": users, "show wckey": "al|w\nal|*v\nal|\n"})).read(wckeys=True)
    assert (state.users["al"].admin_level, state.users["al"].default_wckey) == ("operator", "w")
    assert state.users["al"].wckeys >= {"w", "v"}
    assert state.users["root"].admin_level == "administrator"


USE = {
    "format=cluster": "c1|foo|al||b,a|\nc1|foo|||-a|b\n",
    "show partition": "PartitionName=main AllowQos=ALL QoS=B\nPartitionName=gpu QoS=N/A\n",
    "-q a,b": "7|al|foo|a|RUNNING\n",
}


def test_who_uses_a_qos():
    assert qos_use.read(Client("c1", runner=Answers(USE)), {"a", "b"}) == {
        "a": ["user al in foo on c1", "account foo on c1", "job 7 of al in foo (RUNNING)"],
        "b": ["user al in foo on c1", "default of account foo on c1", "partition main"],
    }


@pytest.mark.parametrize("failing", ["show partition", "-q a"])
def test_who_uses_a_qos_must_be_known(failing):
    answers = Answers({**USE, failing: done(rc=1, stderr="Unable to contact slurm controller")})
    with pytest.raises(SlurmError, match="cannot be told, so nothing is removed"):
        qos_use.read(Client("c1", runner=answers), {"a"})
