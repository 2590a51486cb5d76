# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import fields, tres, values
from hypothesis import given
from hypothesis import strategies as st

F = fields.BY_OPTION
Q = fields.QOS_BY_OPTION


@pytest.mark.parametrize(
    ("text", "megabytes"),
    [
        ("1024", 1024),
        ("1024M", 1024),
        ("1G", 1024),
        ("1.50G", 1536),
        ("1T", 1024**2),
        ("2T", 2 * 1024**2),
        ("5000000M", 5000000),
    ],
)
def test_memory_in_any_spelling_is_one_number(text, megabytes):
    assert tres.parse(f"mem={text}") == {"mem": megabytes}
    if "." not in text:
        assert tres.from_option({"mem": text}) == {"mem": megabytes}


def test_tres_are_compared_without_their_order():
    assert tres.parse("cpu=8,gres/gpu:h100=2") == tres.parse("gres/gpu:h100=2,cpu=8")


def test_zero_is_a_limit_and_not_the_absence_of_one():
    assert tres.parse("gres/gpu=0") == {"gres/gpu": 0}
    assert values.from_text(F["grp_jobs"], "0") == 0
    assert values.from_text(F["grp_jobs"], "") is None
    assert values.set_word(F["grp_jobs"], None, 0) == "GrpJobs=0"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"gres/gpu": -1}, "is negative; leave the TRES out"),
        ({"gres/gpu": None}, "is no count"),
        ({"gres/gpu": True}, "is no count"),
        ({"cpu": "1G"}, "only mem takes a unit"),
        ({"cpu": 1.5}, "no whole number"),
        ({"a=b": 1}, "no TRES name"),
        ({"": 1}, "no TRES name"),
        ({"mem": 2**63}, "too large"),
    ],
)
def test_a_tres_that_cannot_be_meant_is_refused(value, message):
    with pytest.raises(values.ValueProblem, match=message):
        values.from_option(F["grp_tres"], value)


def test_tres_are_cleared_name_by_name_and_only_changes_are_sent():
    field = F["grp_tres"]
    assert values.set_word(field, {"cpu": 4, "mem": 1, "node": 2}, {"cpu": 8, "mem": 1}) == "GrpTRES=cpu=8,node=-1"
    assert values.set_word(field, {"cpu": 4}, {}) == "GrpTRES=cpu=-1"


@given(
    st.dictionaries(st.sampled_from(["cpu", "mem", "gres/gpu"]), st.integers(0, 9)),
    st.dictionaries(st.sampled_from(["cpu", "mem", "gres/gpu"]), st.integers(0, 9)),
)
def test_merging_the_set_word_into_what_is_there_gives_exactly_what_is_wanted(before, after):
    merged = dict(before)
    for part in filter(None, tres.set_word(before, after).split(",")):
        name, _equals, count = part.rpartition("=")
        merged.pop(name, None) if count == "-1" else merged.update({name: int(count)})
    assert merged == after


@pytest.mark.parametrize(
    ("given_value", "seconds"),
    [
        (90, 5400),
        ("90", 5400),
        ("01:30:00", 5400),
        ("00:01:30", 120),
        ("1-00:00:00", 86400),
        ("166:40:00", 600000),
        ("0", 0),
    ],
)
def test_times_are_minutes_or_a_clock_rounded_up_to_minutes(given_value, seconds):
    assert values.from_option(F["max_wall"], given_value) == seconds


@pytest.mark.parametrize("text", ["1:30", "1-2", "abc", "00:61:00", "1-25:00:00", "-5", "1.5", ""])
def test_an_ambiguous_time_is_refused(text):
    with pytest.raises(values.ValueProblem, match="is no time"):
        values.from_option(F["max_wall"], text)


@given(st.integers(0, 10**8))
def test_a_time_survives_printing(seconds):
    assert values.seconds(values.clock(seconds)) == seconds


@pytest.mark.parametrize(
    "option", [field.option for field in fields.ASSOCIATION if field.type in (fields.INT, fields.TIME)]
)
def test_a_number_is_cleared_by_minus_one_and_never_by_an_empty_value(option):
    field = F[option]
    assert values.from_option(field, -1) is None
    assert values.set_word(field, 5, None) == f"{field.set_name}=-1"


@pytest.mark.parametrize("value", [-2, 2**32 - 2, 2**31])
def test_numbers_that_slurm_would_take_for_its_own_marks_are_refused(value):
    with pytest.raises(values.ValueProblem, match="out of range"):
        values.from_option(F["max_jobs"], value)


def test_fairshare_has_a_default_of_one_and_a_word():
    assert values.from_option(F["fairshare"], "-1") == 1
    assert values.from_option(F["fairshare"], "Parent") == "parent" == values.from_text(F["fairshare"], "parent")
    assert values.set_word(F["fairshare"], 5, 1) == "Fairshare=1"
    with pytest.raises(values.ValueProblem, match="neither a number of shares nor 'parent'"):
        values.from_option(F["fairshare"], "half")


def test_qos_lists_are_sets_and_an_empty_one_inherits():
    assert values.from_text(F["qos"], "high,normal") == values.from_option(F["qos"], ["Normal", "HIGH"])
    assert values.set_word(F["qos"], None, frozenset()) == "QOS="
    assert values.set_word(F["qos"], None, frozenset({"b", "a"})) == "QOS=a,b"
    assert values.set_word(F["default_qos"], "a", None) == "DefaultQOS=-1"


@pytest.mark.parametrize(
    "name", ["", "1003", "-a", "a b", "a,b", "n[1-3]", "a'b", 'a"b', "a;b", "a|b", "a\nb", "a=b", "é", "..", None]
)
def test_names_that_a_tool_could_read_otherwise_are_refused(name):
    with pytest.raises(values.ValueProblem, match="is refused"):
        values.check_name("user", name)


@pytest.mark.parametrize("text", ["a|b", "a\nb", 'say "x"', "it's", "a\x1b[0m"])
def test_texts_that_slurm_would_spoil_are_refused(text):
    with pytest.raises(values.ValueProblem, match="is refused"):
        values.from_option(F["description"], text)


def test_texts_are_folded():
    assert values.from_option(F["description"], " Tenant Foo, GmbH ") == "tenant foo, gmbh"


def test_flags_get_slurms_spelling_and_unknown_ones_are_refused():
    assert values.from_option(Q["flags"], ["denyonlimit", "OverPartQOS"]) == {"DenyOnLimit", "OverPartQOS"}
    with pytest.raises(values.ValueProblem, match="Bogus is no QOS flag; known are DenyOnLimit"):
        values.from_option(Q["flags"], ["Bogus"])


def test_exempt_time_is_written_as_a_clock_and_grace_time_as_seconds():
    assert values.set_word(Q["preempt_exempt_time"], None, 300) == "PreemptExemptTime=00:05:00"
    assert values.set_word(Q["grace_time"], 0, 300) == "GraceTime=300"
    assert values.from_text(Q["grace_time"], "00:05:00") == 300


@pytest.mark.parametrize("column", ["GrpJobs", "MaxWall"])
def test_what_sacctmgr_prints_and_nobody_can_read_is_named(column):
    field = next(field for field in fields.ASSOCIATION if field.set_name == column)
    with pytest.raises(values.ValueProblem, match=f"cannot read 'x' in column {field.column}"):
        values.from_text(field, "x")


def test_every_kind_of_field_can_be_read_and_written():
    used = {field.type for table in (F, Q) for field in table.values()}
    assert used == set(fields.KINDS) == set(values._FROM_OPTION) == set(values._FROM_TEXT)


@pytest.mark.parametrize(("given_value", "word"), [(True, "Flags=UsersAreCoords"), (False, "Flags=NoUsersAreCoords")])
def test_a_switch_is_cleared_by_a_word_because_anything_else_sets_it(given_value, word):
    field = F["users_are_coordinators"]
    assert values.set_word(field, None, values.from_option(field, given_value)) == word
    assert values.from_text(field, "UsersAreCoords") is True
    assert values.from_text(field, "None") is values.from_text(field, "") is False


def test_a_level_is_one_of_its_words_and_cleared_by_none():
    field = F["admin_level"]
    assert values.from_text(field, "Administrator") == values.from_option(field, "administrator") == "administrator"
    assert values.set_word(field, "operator", values.from_option(field, "none")) == "AdminLevel=None"


def test_a_release_that_has_not_a_field_is_named():
    assert fields.missing(Q, {"max_tres_run_mins_per_account": {}}, (22, 5)) == [
        "max_tres_run_mins_per_account needs Slurm 24.05, and this is 22.05; leave it out"
    ]
    assert fields.missing(Q, {"flags": frozenset({"Relative"})}, (23, 2)) == [
        "flag Relative needs Slurm 23.11, and this is 23.02; leave it out"
    ]
    assert fields.missing(F, dict.fromkeys(F), (24, 11)) == fields.missing(Q, dict.fromkeys(Q), (24, 11)) == []
    gone = fields.make("old", "Old", "old", fields.INT, "Old.", until=(24, 11))
    assert gone.exists((24, 5))
    assert gone.missing((24, 11)) == "old is gone since Slurm 24.11, and this is 24.11; leave it out"


def test_texts_are_folded_as_slurm_folds_them():
    assert values.check_text("description", " Physik ÄÖÜ ") == "physik ÄÖÜ"
