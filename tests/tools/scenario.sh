#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# scenario.sh NAME: one molecule scenario on the Debian release in TENANCY_DEBIAN (12 or 13).
set -euo pipefail
cd "$(dirname "$0")/../.."
export MOLECULE_GLOB='molecule/*/molecule.yml'
export MOLECULE_PROJECT_DIRECTORY=$PWD

[ -d "molecule/$1" ] || {
    echo "no scenario $1; there are: $(cd molecule && echo */ | tr -d / | sed 's/shared//')" >&2
    exit 2
}
start=converged
[ "$1" != default ] || start=bare
exec env TENANCY_START="$start" molecule -c molecule/config.yml test --scenario-name "$1"
