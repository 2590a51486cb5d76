# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Is this a public SSH key, and a sound one? Private to the collection gpuops.tenancy."""

from __future__ import annotations

import base64
import binascii
import re

TYPES = (
    "ssh-ed25519",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "ssh-rsa",
    "sk-ssh-ed25519@openssh.com",
    "sk-ecdsa-sha2-nistp256@openssh.com",
)
RSA_BITS = 3072


def wrong(line: str) -> str | None:
    """Why this line must not reach an authorized_keys file, without repeating the line; or None."""
    if "PRIVATE KEY" in line:
        return "is a PRIVATE key; it has been disclosed by being here: replace the pair, and write the .pub file's line"
    if re.search(r"[\x00-\x1f\x7f]", line):
        return "is not one line; write one key per entry, without a line break"
    words = line.split(" ", 2)
    if words[0] == "ssh-dss":
        return "is a DSA key, which OpenSSH no longer accepts; make an ed25519 key"
    if words[0] not in TYPES:
        return "does not start with a key type ({}); options in front of a key are not accepted".format(
            ", ".join(TYPES)
        )
    blob = _blob(words[1] if len(words) > 1 else "")
    parts = _parts(blob) if blob else None
    if not parts or parts[0] != words[0].encode():
        return f"is not a complete {words[0]} key; copy the whole line of the .pub file"
    if words[0] == "ssh-rsa":
        bits = int.from_bytes(parts[-1], "big").bit_length()
        if len(parts) != 3 or bits < RSA_BITS:
            return f"is an RSA key of {bits} bits; at least {RSA_BITS} are needed, or make an ed25519 key"
    elif words[0] == "ssh-ed25519" and (len(parts) != 2 or len(parts[1]) != 32):
        return "is not a complete ssh-ed25519 key; copy the whole line of the .pub file"
    return None


def _blob(text: str) -> bytes:
    try:
        return base64.b64decode(text.encode("ascii", "replace"), validate=True)
    except (binascii.Error, ValueError):
        return b""


def _parts(blob: bytes) -> list[bytes]:
    """The length-prefixed strings of a key; an empty list if they do not add up."""
    parts = []
    while blob:
        size = int.from_bytes(blob[:4], "big")
        if len(blob) < 4 + size:
            return []
        parts.append(blob[4 : 4 + size])
        blob = blob[4 + size :]
    return parts
