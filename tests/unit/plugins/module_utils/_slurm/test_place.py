# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The order of moves, played on a slurmdbd that writes the new path of a moved account one level deep, as 24.11 does."""

from __future__ import annotations

from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import place
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.model import chain
from hypothesis import given
from hypothesis import strategies as st

NAMES = list("abcdef")


def test_an_account_without_accounts_below_moves_in_one_step():
    now = {"root": "", "a": "root", "b": "root", "c": "a"}
    assert place.steps(now, {**now, "c": "b"}, True) == [place.Step(move=(("c", "b"),))]


def test_accounts_below_step_aside_from_below_and_follow():
    now = {"root": "", "a": "root", "b": "root", "c": "a", "d": "c"}
    assert place.steps(now, {**now, "a": "b"}, True) == [
        place.Step(move=(("d", "b"),)),
        place.Step(move=(("c", "b"),)),
        place.Step(move=(("a", "b"),)),
        place.Step(move=(("c", "a"),)),
        place.Step(move=(("d", "c"),)),
    ]
    assert place.steps(now, {**now, "a": "b"}, False) == [place.Step(move=(("a", "b"),))]


def test_what_is_new_is_added_where_its_parent_has_arrived():
    now = {"root": "", "a": "root", "b": "root"}
    assert place.steps(now, {**now, "a": "b", "n": "a"}, True) == [
        place.Step(move=(("a", "b"),)),
        place.Step(add=("n",)),
    ]


@st.composite
def trees(draw, names):
    tree = {"root": ""}
    for name in draw(st.permutations(names)):
        tree[name] = draw(st.sampled_from(sorted(tree)))
    return tree


@given(st.data())
def test_every_path_is_right_in_the_end(data):
    names = data.draw(st.lists(st.sampled_from(NAMES), min_size=1, unique=True))
    now = data.draw(trees(names))
    will = data.draw(trees(sorted({*names, *data.draw(st.lists(st.sampled_from(NAMES), unique=True))})))
    tree = dict(now)
    # Each account has a user; both carry the path.
    path = {key: tuple(chain(name, now)) for name in now for key in (name, f"{name}-user")}
    for step in place.steps(now, will, True):
        for name in step.add:
            tree[name] = will[name]
            path[name] = path[f"{name}-user"] = (name, *path[tree[name]])
        for name, parent in step.move:
            assert name not in chain(parent, tree), "an account below itself"
            tree[name] = parent
            path[name] = path[f"{name}-user"] = (name, *path[parent])
            for child in [other for other, above in tree.items() if above == name]:
                path[child] = (child, *path[name])
    assert tree == will
    assert path == {key: tuple(chain(name, will)) for name in will for key in (name, f"{name}-user")}
