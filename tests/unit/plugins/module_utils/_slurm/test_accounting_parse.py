# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import client, parse


def test_columns_are_split_and_a_wrong_number_is_an_error():
    assert parse.rows("a|b\nc|\n", ("x", "y")) == [{"x": "a", "y": "b"}, {"x": "c", "y": ""}]
    with pytest.raises(parse.ParseError, match="'a|b|c', which has 3 columns instead of 2"):
        parse.rows("a|b|c\n", ("x", "y"))


def test_a_bar_in_free_text_stays_in_the_text():
    assert parse.texts("a|x|y|z\nb|\n", ["a", "b"]) == {"a": "x|y|z", "b": ""}


@pytest.mark.parametrize("text", ["a|x\nb|forged\nb|real\n", "a|x\n\nb|y\n", "b|x\na|y\n", "a|x\n", "a\nb|y\n"])
def test_texts_with_line_breaks_are_not_guessed_at(text):
    assert parse.texts(text, ["a", "b"]) is None


def test_a_text_read_alone_keeps_its_line_breaks():
    assert parse.whole("one\ntwo|\n\n") == "one\ntwo|\n"


@pytest.mark.parametrize(("text", "version"), [("slurm-wlm 22.05.8\n", (22, 5)), ("slurm 24.11.5", (24, 11))])
def test_versions(text, version):
    assert parse.version(text) == version


def test_an_unknown_version_is_an_error():
    with pytest.raises(parse.ParseError, match="cannot read the version"):
        parse.version("sacctmgr: command not found")


def test_tres_names_carry_their_type():
    assert parse.tres_names("cpu|\ngres|gpu:h100\n") == {"cpu", "gres/gpu:h100"}


def test_jobs_and_the_heading_of_a_named_cluster():
    text = "CLUSTER: c1\n7|alice|ml|main|PENDING\n8_[1-3]|bob|ml|main|RUNNING\n"
    assert [job["id"] for job in parse.jobs(text)] == ["7", "8_[1-3]"]
    with pytest.raises(parse.ParseError):
        parse.jobs("squeue: something else\n")


VERSION = (24, 11)


def rows(*lines):
    """Lines 'account|user|partition|qos|defaultqos' filled up with empty columns."""
    made = []
    for line in lines:
        account, user, partition, qos, default = line.split("|")
        given = {"qos": qos, "default_qos": default}
        made.append(
            "|".join(
                [account, user, partition, *(given.get(field.option, "") for field in client.row_fields(VERSION)), ""]
            )
        )
    return "\n".join(made) + "\n"


def test_what_is_set_and_what_is_in_effect_are_joined():
    found = client.associations(
        rows("root||||", "foo||||", "foo|al|gpu|a|a"), "root||||n\nfoo|||root|n\nfoo|al|gpu||a\n", VERSION
    )
    assert found[("foo", "", "")].parent == "root"
    assert found[("foo", "", "")].values["qos"] == frozenset()
    assert found[("foo", "al", "gpu")].values["qos"] == {"a"}
    assert found[("foo", "", "")].values["fairshare"] == 1


def test_a_stored_difference_is_no_list_of_its_own():
    # "QOS+=low" prints as list "low"; only the effective list tells.
    found = client.associations(
        rows("foo|||n|", "foo|al||low|", "foo|bo|||"), "foo||||n\nfoo|al|||low,n\nfoo|bo|||\n", VERSION
    )
    assert found[("foo", "al", "")].values["qos"] == {"+low"}
    assert found[("foo", "bo", "")].values["qos"] == {"-n"}


def test_a_row_that_appears_between_two_readings_is_an_error_not_a_guess():
    with pytest.raises(parse.ParseError, match="run again"):
        client.associations(rows("foo||||"), "foo|||root|n\nnew|||root|n\n", VERSION)
