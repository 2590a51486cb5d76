# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import hostlist
from hypothesis import given
from hypothesis import strategies as st

names = st.lists(
    st.one_of(
        st.builds(
            lambda prefix, number: f"{prefix}{number}", st.sampled_from(["gpu", "n-", "rack1-n"]), st.integers(0, 300)
        ),
        st.builds(lambda number: f"z{number:03d}", st.integers(0, 120)),
        st.sampled_from(["login", "ctl", "a.b"]),
    ),
    max_size=40,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("gpu1", ["gpu1"]),
        ("gpu[1-3,7],login", ["gpu1", "gpu2", "gpu3", "gpu7", "login"]),
        ("r[1-2]n[01-02]", ["r1n01", "r1n02", "r2n01", "r2n02"]),
        ("/dev/nvidia[0-1]", ["/dev/nvidia0", "/dev/nvidia1"]),
        ("a,a", ["a"]),
        ("", []),
    ],
)
def test_expand(text, expected):
    assert hostlist.expand(text) == expected


@pytest.mark.parametrize(
    "text", ["gpu[1-", "gpu1]", "gpu[[1]]", "gpu[a]", "gpu[3-1]", "a,,b", "gpu[1-999999999]", "r[1-9999]n[1-9999]"]
)
def test_what_is_no_host_list(text):
    with pytest.raises(hostlist.HostlistError):
        hostlist.expand(text)


@pytest.mark.parametrize(
    ("hosts", "expected"),
    [
        (["gpu3", "gpu1", "gpu2"], "gpu[1-3]"),
        (["gpu1", "gpu3"], "gpu[1,3]"),
        (["gpu01", "gpu1"], "gpu01,gpu1"),
        (["gpu09", "gpu10"], "gpu09,gpu10"),
        (["login", "gpu2"], "gpu2,login"),
        ([], ""),
    ],
)
def test_fold(hosts, expected):
    assert hostlist.fold(hosts) == expected


@given(names)
def test_folding_loses_and_invents_nothing(hosts):
    assert sorted(hostlist.expand(hostlist.fold(hosts))) == sorted(set(hosts))
