#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Installs what the make targets need from Debian's or Ubuntu's packages, and only what is missing; `deps.sh qemu` what a
# virtual machine needs.
set -euo pipefail

missing=()
need() { command -v "$1" > /dev/null 2>&1 || missing+=("$2"); }
need mmdebstrap mmdebstrap
need ssh openssh-client
need shellcheck shellcheck
# A client alone may be there; an engine that answers needs no daemon from us.
docker info > /dev/null 2>&1 || command -v dockerd > /dev/null 2>&1 || [ -x /usr/sbin/dockerd ] || missing+=(docker.io)
# Debian 13 ships the client apart from the daemon.
command -v docker > /dev/null 2>&1 || [ -z "$(apt-cache search --names-only '^docker-cli$' 2> /dev/null)" ] || missing+=(docker-cli)
[ -e /usr/share/keyrings/debian-archive-keyring.gpg ] || missing+=(debian-archive-keyring)
"${PYTHON:-python3}" -c 'import ensurepip, venv' > /dev/null 2>&1 || missing+=(python3-venv)

if [ "${1:-}" = qemu ]; then
    need qemu-system-x86_64 qemu-system-x86
    need qemu-img qemu-utils
fi

if [ ${#missing[@]} -gt 0 ]; then
    echo "installing: ${missing[*]}" >&2
    sudo=()
    [ "$(id -u)" -eq 0 ] || sudo=(sudo)
    "${sudo[@]}" apt-get update -q > /dev/null
    "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends "${missing[@]}" > /dev/null
fi
