# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import base64

import pytest
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant import keys, units


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0B", 0),
        ("100GB", 100 * 10**9),
        ("100GiB", 100 * 2**30),
        ("1kB", 1000),
        ("1KB", 1000),
        ("1.5TB", 15 * 10**11),
        ("0.5KiB", 512),
        ("2PiB", 2**51),
    ],
)
def test_sizes(text, value):
    assert units.size_bytes(text) == value


@pytest.mark.parametrize(
    "text", ["100", "100G", "GB", "1.GB", "-1GB", "1,5GB", "100 GB", "1e3GB", "100GB\n", "0.3B", "٣GB"]
)
def test_no_sizes(text):
    with pytest.raises(ValueError):
        units.size_bytes(text)


@pytest.mark.parametrize(
    ("text", "mib"), [("1M", 1), ("1G", 1024), ("100GiB", 102400), ("100GB", 95367), ("1.5G", 1536), ("0G", 0)]
)
def test_memory(text, mib):
    assert units.memory_mib(text) == mib


@pytest.mark.parametrize("text", ["1", "512", "1K", "1MB", "0.5M", "1GiB "])
def test_no_memory(text):
    with pytest.raises(ValueError):
        units.memory_mib(text)


@pytest.mark.parametrize(
    ("text", "minutes", "canonical"),
    [
        ("00:30:00", 30, "00:30:00"),
        ("48:00:00", 2880, "2-00:00:00"),
        ("1-12:00:00", 2160, "1-12:00:00"),
        ("1-2:00:00", 1560, "1-02:00:00"),
        ("0-00:01:00", 1, "00:01:00"),
    ],
)
def test_durations(text, minutes, canonical):
    assert units.duration_minutes(text) == minutes
    assert units.duration_text(minutes) == canonical
    assert units.duration_minutes(canonical) == minutes


@pytest.mark.parametrize("text", ["90", "1:30", "1-24:00:00", "00:60:00", "00:00:30", "1-", "-1:00:00", "01:00:00\n"])
def test_no_durations(text):
    with pytest.raises(ValueError):
        units.duration_minutes(text)


def blob(*parts):
    return base64.b64encode(b"".join(len(part).to_bytes(4, "big") + part for part in parts)).decode()


ED25519 = "ssh-ed25519 " + blob(b"ssh-ed25519", bytes(32))


@pytest.mark.parametrize(
    "line",
    [
        ED25519,
        ED25519 + " alice@laptop with blanks",
        "ssh-rsa " + blob(b"ssh-rsa", b"\x01\x00\x01", b"\x00\x80" + bytes(383)),
        "ecdsa-sha2-nistp256 " + blob(b"ecdsa-sha2-nistp256", b"nistp256", bytes(65)),
        "sk-ssh-ed25519@openssh.com " + blob(b"sk-ssh-ed25519@openssh.com", bytes(32), b"ssh:"),
    ],
)
def test_keys(line):
    assert keys.wrong(line) is None


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("", "does not start with a key type"),
        ("AAAA", "does not start with a key type"),
        ('command="id" ' + ED25519, "options in front"),
        (ED25519 + "\nssh-rsa AAAA", "is not one line"),
        ("-----BEGIN OPENSSH PRIVATE KEY-----\nx", "is a PRIVATE key"),
        ("ssh-dss AAAA", "DSA"),
        ("ssh-ed25519", "not a complete"),
        (ED25519[:-8], "not a complete"),
        ("ssh-ed25519 !!!!", "not a complete"),
        ("ssh-ed25519 é", "not a complete"),
        ("ssh-ed25519 " + blob(b"ssh-rsa", bytes(32)), "not a complete"),
        ("ssh-ed25519 " + blob(b"ssh-ed25519", bytes(31)), "not a complete"),
        ("ssh-rsa " + blob(b"ssh-rsa", b"\x01\x00\x01", b"\x00\x80" + bytes(255)), "2048 bits; at least 3072"),
        ("ssh-rsa " + blob(b"ssh-rsa"), "at least 3072"),
    ],
)
def test_no_keys(line, why):
    found = keys.wrong(line)
    assert why in found
    assert len(line) < 20 or line not in found
