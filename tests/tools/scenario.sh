#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# scenario.sh NAME: one molecule scenario on the Debian release in TENANCY_DEBIAN (12 or 13).
set -euo pipefail
cd "$(dirname "$0")/../.."
export MOLECULE_GLOB='molecule/*/molecule.yml'
export MOLECULE_PROJECT_DIRECTORY=$PWD

# On the kernel of a virtual machine; no part of `make test`, since it takes an hour.
if [ "$1" = cgroup_v2 ]; then
    tests/tools/deps.sh qemu
    exec python tests/vm/cgroup_v2.py --release "$TENANCY_DEBIAN"
fi
[ -d "molecule/$1" ] || {
    echo "no scenario $1; there are: $(cd molecule && echo */ | tr -d / | sed 's/shared//') cgroup_v2" >&2
    exit 2
}
start=converged
export TENANCY_TESTBED=${TENANCY_TESTBED:-test-$TENANCY_DEBIAN}
TENANCY_INVENTORY=$(python tests/cluster/definition.py)
MOLECULE_EPHEMERAL_DIRECTORY=$PWD/.build/molecule/$TENANCY_TESTBED/$1
export TENANCY_INVENTORY MOLECULE_EPHEMERAL_DIRECTORY
# What a killed run left of molecule's memory would have it skip what is to be made.
rm -rf "$MOLECULE_EPHEMERAL_DIRECTORY"
mkdir -p "$MOLECULE_EPHEMERAL_DIRECTORY"
[ "$1" != default ] || start=bare
# What two controllers share is in no snapshot.
if [ "$1" = failover ]; then
    start=bare
    export TENANCY_HOSTS=ctl2
fi
# The last two are for the suites of tests/integration.
exec env TENANCY_START="$start" TENANCY_CLUSTER=demo \
    TENANCY_CTL_EXEC="[\"ssh\", \"-F\", \"$PWD/.build/cluster/$TENANCY_TESTBED/ssh_config\", \"ctl\"]" \
    molecule -c molecule/config.yml test --scenario-name "$1"
