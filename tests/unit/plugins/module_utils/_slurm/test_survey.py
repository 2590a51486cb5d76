# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.gpuops.tenancy.plugins.module_utils._command import Completed
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.client import Client, SlurmError
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.lineage import without_root
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.survey import deleted_too, survey, texts


def rows(*triples):
    return [dict(zip(("account", "id", "parentid"), triple)) for triple in triples]


@pytest.mark.parametrize(
    ("accounts", "lost"),
    [
        ([("root", "1", "0"), ("a", "2", "1"), ("b", "3", "2")], []),
        ([("root", "1", ""), ("a", "2", "1")], []),
        ([("root", "1", "0"), ("b", "3", "2"), ("c", "4", "3")], ["b", "c"]),
        ([("root", "1", "0"), ("x", "5", "6"), ("y", "6", "5")], ["x", "y"]),
    ],
)
def test_an_account_whose_parent_is_gone(accounts, lost):
    assert without_root(rows(*accounts)) == lost


def client(answer):
    seen = []

    def run(argv, timeout=0, pass_fds=()):
        words = list(argv)[3:]
        seen.append(words)
        return Completed(("sacctmgr",), 0, answer(words), "")

    made = Client("c1", runner=run)
    made.program = lambda name: name
    made.seen = seen
    return made


def test_slurmdbd_is_asked_nothing_else_while_a_parent_is_gone():
    asked = client(lambda words: "root|1|0\nlost|3|2\n")
    asked.version = lambda: (24, 11)
    with pytest.raises(SlurmError, match="parent of account lost is gone.*name=lost cluster=c1 set parent=root"):
        survey(asked)
    assert len(asked.seen) == 1 and "wopi" in asked.seen[0]


def test_line_breaks_cost_queries_for_their_own_accounts_only():
    told = {f"a{number:03}": f"text {number}" for number in range(200)}
    told["a077"] = "one\na078|forged"

    def answer(words):
        names = next(word for word in words if word.startswith("name=")).partition("=")[2].split(",")
        if words[-1] == "format=description":
            return told[names[0]] + "\n"
        return "".join(f"{name}|{told[name]}\n" for name in names)

    asked = client(answer)
    assert texts(asked, "description", list(told)) == told
    assert len(asked.seen) < 20


def test_who_was_deleted_is_known_by_row_or_by_record():
    answers = {"assoc": "root|\nfoo|hal\nfoo|\n", "account": "root\nold\n", "user": "root\nina\n"}
    found = deleted_too(client(lambda words: answers[words[1]]))
    assert found == {"account": {"root", "foo", "old"}, "user": {"hal", "root", "ina"}}
