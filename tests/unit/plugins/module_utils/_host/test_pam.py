# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.gpuops.tenancy.plugins.module_utils._host import pam
from hypothesis import given
from hypothesis import strategies as st

DEBIAN = """# PAM configuration for the Secure Shell service

# Standard Un*x authentication.
@include common-auth

# Disallow non-root logins when /etc/nologin exists.
account    required     pam_nologin.so

# account  required     pam_access.so

# Standard Un*x authorization.
@include common-account

session [success=ok ignore=ignore module_unknown=ignore default=bad]        pam_selinux.so close
session    required     pam_loginuid.so
session    optional     pam_keyinit.so force revoke

# Standard Un*x session setup and teardown.
@include common-session

session    optional     pam_motd.so  motd=/run/motd.dynamic
session    required     pam_limits.so

@include common-password
"""
WANT = pam.Wanted("tenancy-admins", ["action_no_jobs=deny", "action_unknown=newest"])


def order(text: str) -> list[str]:
    return [line.module or f"@{line.include}" for line in pam.parse(text) if line.module or line.include]


def test_the_order_that_holds():
    made = pam.compute(DEBIAN, WANT)
    assert order(made) == [
        "@common-auth", "pam_nologin.so", "pam_succeed_if.so", "pam_slurm_adopt.so", "@common-account", "pam_selinux.so", "pam_loginuid.so",
        "pam_keyinit.so", "@common-session-noninteractive", "pam_succeed_if.so", "pam_systemd.so", "pam_motd.so", "pam_limits.so", "@common-password",
    ]  # fmt: skip
    assert (
        "account [success=1 default=ignore] pam_succeed_if.so quiet user ingroup tenancy-admins\naccount required pam_slurm_adopt.so"
        in made
    )
    assert (
        "session [success=ignore default=1] pam_succeed_if.so quiet user ingroup tenancy-admins\n-session optional pam_systemd.so"
        in made
    )
    assert pam.problems(made) == []
    assert pam.problems(DEBIAN) == ["pam_slurm_adopt is not in it: everybody comes in without a job"]


def test_a_second_time_changes_nothing_and_it_can_be_taken_back():
    made = pam.compute(DEBIAN, WANT)
    assert pam.compute(made, WANT) == made
    assert pam.without(made) == DEBIAN
    other = pam.compute(made, pam.Wanted("wheel", ["action_no_jobs=ignore"], mkhomedir=True))
    assert "tenancy-admins" not in other
    assert other.count("pam_slurm_adopt.so") == 1
    assert "pam_mkhomedir.so" in other
    assert pam.compute(other, WANT) == made


def test_what_somebody_wrote_by_hand_goes():
    by_hand = DEBIAN.replace(
        "@include common-account\n", "@include common-account\naccount sufficient pam_slurm_adopt.so\n"
    )
    assert pam.problems(by_hand) == [
        "pam_slurm_adopt comes after common-account, which may have let the user in",
        "pam_slurm_adopt is sufficient instead of required",
        "common-session may hold pam_systemd, which moves a login out of the job it was adopted by",
    ]
    assert pam.compute(by_hand, WANT) == pam.compute(DEBIAN, WANT)
    with_systemd = DEBIAN.replace(
        "session    required     pam_limits.so\n",
        "-session optional pam_systemd.so\nsession    required     pam_limits.so\n",
    )
    assert pam.compute(with_systemd, WANT) == pam.compute(DEBIAN, WANT)


@pytest.mark.parametrize(
    "line",
    [
        "account sufficient pam_access.so",
        "account [success=2 default=ignore] pam_succeed_if.so user = deploy",
        "account [success=done new_authtok_reqd=done default=ignore] pam_localuser.so",
        "-account SUFFICIENT pam_localuser.so",
        "account [success=1 \\\n default=ignore] pam_localuser.so",
    ],
)
def test_what_lets_people_in_before_is_refused(line):
    with pytest.raises(pam.PamError, match="before pam_slurm_adopt is asked"):
        pam.compute(
            DEBIAN.replace("account    required     pam_nologin.so", f"account required pam_nologin.so\n{line}"), WANT
        )
    # After it, it does no harm.
    after = DEBIAN.replace("@include common-account\n", f"@include common-account\n{line}\n")
    assert pam.problems(pam.compute(after, WANT)) == []


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (DEBIAN.replace("@include common-account\n", ""), "no '@include common-account'"),
        (DEBIAN.replace("@include common-session\n", ""), "no '@include common-session'"),
        ("", "no '@include common-account'"),
    ],
)
def test_a_file_without_a_place_is_refused(text, says):
    with pytest.raises(pam.PamError, match=says):
        pam.compute(text, WANT)


@pytest.mark.parametrize("group", ["", "a b", "x\naccount sufficient pam_permit.so", "Admins"])
def test_a_group_cannot_bring_a_line_of_its_own(group):
    with pytest.raises(pam.PamError, match="no name of a group"):
        pam.compute(DEBIAN, pam.Wanted(group, []))


harmless = st.sampled_from(
    [
        "# a comment", "", "account required pam_access.so", "auth required pam_google_authenticator.so", "session optional pam_mail.so",
        "session required pam_env.so # [1]", "account requisite pam_time.so",
        "password required pam_pwquality.so", "session optional pam_lastlog.so \\\n  silent",
    ]
)  # fmt: skip


@given(st.lists(harmless, max_size=4), st.lists(harmless, max_size=4), st.lists(harmless, max_size=4), st.booleans())
def test_whatever_else_is_in_it_stays_and_the_order_holds(first, second, third, home):
    text = "\n".join([*first, "@include common-account", *second, "@include common-session", *third]) + "\n"
    want = pam.Wanted("tenancy-admins", ["a=b"], home)
    made = pam.compute(text, want)
    assert pam.problems(made) == []
    assert pam.compute(made, want) == made
    assert pam.without(made) == text
