# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Properties that hold for any document, made up by hypothesis."""

from __future__ import annotations

import json

import yaml
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant import accounting, folder, names, users
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.errors import TenantError
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.load import parse
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.schema import SCHEMA
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

POLICY = names.Policy(site_qos=frozenset({"normal", "high", "low", "blocked"}))
QUICK = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])

counts = st.integers(0, 10**6)
resources = st.dictionaries(st.sampled_from(["cpu", "node", "gres/gpu", "gres/gpu:h100"]), counts, min_size=1)
memory = st.builds("{}{}".format, st.integers(2, 9999), st.sampled_from(["M", "G", "T", "MB", "GiB", "TB"]))
tres = st.builds(lambda most, mem: dict(most, **({"mem": mem} if mem else {})), resources, st.none() | memory)
times = st.builds("{}-{:02d}:{:02d}:00".format, st.integers(0, 99), st.integers(0, 23), st.integers(0, 59))
limits = st.fixed_dictionaries(
    {},
    optional={
        "grp_tres": tres,
        "grp_tres_mins": tres,
        "max_jobs": counts,
        "max_wall": times,
        "grp_submit_jobs": counts,
    },
)
level = {"fairshare": st.integers(0, 1000), "limits": limits, "priority": counts}


@st.composite
def documents(draw):
    """A valid tenant: up to four accounts, users in any of them, a default where one is needed."""
    qos = draw(st.lists(st.sampled_from(["normal", "high", "low"]), unique=True))
    slurm = draw(st.fixed_dictionaries({}, optional=level))
    if qos:
        slurm.update(qos=qos, default_qos=draw(st.sampled_from(qos)))
    teams = [
        dict(draw(st.fixed_dictionaries({}, optional=level)), name=f"team{n}", users=[])
        for n in range(draw(st.integers(0, 3)))
    ]
    flat = {"name": "tenant-foo", "users": []}
    for number in range(draw(st.integers(0, 5))):
        homes = draw(
            st.lists(st.sampled_from([flat, *teams]), min_size=1, max_size=3, unique_by=lambda one: one["name"])
        )
        for place, account in enumerate(homes):
            user = dict(draw(st.fixed_dictionaries({}, optional=level)), name=f"user{number}")
            if len(homes) > 1 and place == 0:
                user["default_account"] = draw(st.sampled_from(homes))["name"]
            bare = list(user) == ["name"] and draw(st.booleans())
            account["users"].append(user["name"] if bare else user)
    document = {"schema": 1, "name": "tenant-foo", "teams": teams, "users": flat["users"]}
    return dict(document, slurm=slurm) if slurm else document


def checked(text):
    (one,) = folder.check_sources([parse(text, "tenant-foo.yml")], POLICY)
    return one


@QUICK
@given(documents())
def test_a_valid_document_stays_inside_its_scope(data):
    one = checked(yaml.safe_dump(data))
    assert one.problems == []
    wanted = accounting.arguments(one.document)
    accounts = [account["name"] for account in wanted["accounts"]]
    assert wanted["scope"] == ["tenant-foo"] == accounts[:1]
    assert len(set(accounts)) == len(accounts) == 1 + len(data["teams"])
    for position, account in enumerate(wanted["accounts"]):
        assert account["parent"] == ("root" if position == 0 else "tenant-foo")
    fields = set(wanted["accounts"][0]) - {"name", "parent", "description", "organization"}
    for user in wanted["users"]:
        inside = [one["account"] for one in user["associations"]]
        assert set(inside) <= set(accounts) and len(set(inside)) == len(inside) > 0
        assert user["default_account"] in inside
        assert all(set(one) == fields | {"account"} for one in user["associations"])
    assert json.loads(json.dumps(wanted)) == wanted


@QUICK
@given(documents())
def test_one_user_is_the_same_as_in_the_whole(data):
    document = checked(yaml.safe_dump(data)).document
    whole = {user["name"]: user for user in accounting.arguments(document)["users"]}
    assert [one["name"] for one in users.users(document)] == list(whole)
    for name, user in whole.items():
        assert accounting.arguments(document, name)["users"] == [user]


@QUICK
@given(documents(), st.data())
def test_deleting_a_limit_clears_it(data, draw):
    """The wish of a document without a limit differs from the one with it in that field only."""
    places = [one for one in [data.get("slurm", {}), *data["teams"]] if one.get("limits")]
    if not places:
        return
    before = accounting.arguments(checked(yaml.safe_dump(data)).document)
    place = draw.draw(st.sampled_from(places))
    key = draw.draw(st.sampled_from(sorted(place["limits"])))
    del place["limits"][key]
    after = accounting.arguments(checked(yaml.safe_dump(data)).document)
    changed = [
        (field, new[field])
        for old, new in zip(before["accounts"], after["accounts"])
        for field in old
        if old[field] != new[field]
    ]
    assert changed == [(key, {} if "tres" in key else -1)]
    assert after["users"] == before["users"]


junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=10,
)
keys = st.sampled_from(
    [
        *SCHEMA["properties"],
        *SCHEMA["$defs"]["user"]["properties"],
        *SCHEMA["$defs"]["limits"]["properties"],
        "hard",
        "soft",
    ]
)
nearly = st.recursive(
    junk | st.sampled_from(["alice", "normal", "48:00:00", "100GB", "tenant-foo", "1003", "ssh-rsa AAAA"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=6),
    max_leaves=25,
)


def only_our_error(sources):
    found = folder.check_sources(sources, POLICY)
    for one in found:
        assert (one.document is None) == bool(one.problems)
        for problem in one.problems + one.warnings:
            assert problem.line >= 1 and "\n" not in str(problem)
    try:
        folder.select(found, "tenant-foo", "alice")
        folder.select(found)
    except TenantError:
        pass


@settings(QUICK, max_examples=150)
@given(st.dictionaries(keys, nearly, max_size=8), st.dictionaries(keys, nearly, max_size=8))
def test_whatever_the_data_only_our_error_comes(first, second):
    sources = [parse(yaml.safe_dump(one), f"tenant-{name}.yml") for one, name in ((first, "foo"), (second, "bar"))]
    only_our_error(sources)


@settings(QUICK, max_examples=150)
@given(st.text(alphabet=st.sampled_from("ab:- \n\t{}[]&*!<>|'\"#,?%@`=0.x\x00\u2028é~"), max_size=40))
def test_whatever_the_text_only_our_error_comes(text):
    only_our_error([parse(text, "tenant-foo.yml"), parse("schema: 1\nname: tenant-foo\n" + text, "tenant-foo.yaml")])


@QUICK
@given(st.text(max_size=40))
def test_a_name_is_refused_or_plain(name):
    if names.shape(name, names.USER_LENGTH) is None:
        assert name.isascii() and name == name.lower() and not name.isdigit()
        assert not set(name) & set(" \t\r\n'\"`;|&$()<>\\/*?[]{}!#=,:")
