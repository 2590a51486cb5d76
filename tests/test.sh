#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# All tests: source and units, and every scenario on both Debian releases, side by side. Prints how long each part took.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH=$PATH:/usr/sbin:/sbin
# Molecule breaks lines at 80 columns otherwise, also those that name a failed test.
export COLUMNS=${COLUMNS:-180}

# A lane is a testbed of its own. The first scenario of each release also tries what the others start from. What is about
# our own code more than about Slurm's runs on one release here (also within scenarios, by TENANCY_ONCE), else this takes
# twice as long; ALL=1 has everything on both, and so has make scenario S=name DEBIAN=12 or 13, one by one.
declare -A LANES=(
    [test-12]="default onboard"
    [test-12b]="accounting scheduler adopt attest node_access"
    [test-13]="default onboard accounting"
    [test-13b]="onboard_faults fairshare"
)
if [ "${ALL:-}" = 1 ]; then
    for release in 12 13; do
        LANES[test-$release]="default onboard accounting adopt database attest node_access"
        LANES[test-${release}b]="onboard_faults limits scheduler fairshare failover firewall isolation"
    done
else
    export TENANCY_ONCE=1
fi
times=$(mktemp -d)

finish() {
    code=$?
    trap - EXIT INT TERM
    # Each lane is a process group.
    for lane in $(jobs -p); do kill -- "-$lane" 2>/dev/null || true; done
    wait || true
    # Nothing of ours stays: hosts, networks, a daemon that we started.
    if [ -x .build/venv/bin/python ]; then
        for testbed in "${!LANES[@]}"; do
            TENANCY_TESTBED=$testbed .build/venv/bin/python tests/cluster/cluster.py down || true
        done
    fi
    printf '\n'
    if [ "$code" -ne 0 ]; then
        # What failed, again at the end: the lanes' lines are thousands, and mixed.
        sed 's/\x1b\[[0-9;]*m//g' "$times"/log-* |
            grep -E '^\[[a-z0-9-]+\] +(│ +)?(E  |FAILED |ERROR |CRITICAL |\[ERROR\]|fatal: |\* \[)' | tail -n 15 || true
    fi
    cat "$times"/[0-9]* 2>/dev/null || true
    rm -r "$times"
    if [ "$code" -eq 0 ]; then echo "make test: all passed in $SECONDS s"; else echo "make test: FAILED after $SECONDS s" >&2; fi
    exit "$code"
}
trap finish EXIT
trap 'exit 130' INT TERM

part() { # LANE NAME COMMAND...
    local started=$SECONDS lane=$1 name=$2 passed=0
    shift 2
    echo "=== $name"
    "$@" || passed=$?
    if [ "$passed" -ne 0 ]; then
        echo "$name: FAILED after $((SECONDS - started)) s" | tee -a "$times/$lane"
        return 1
    fi
    echo "$name: $((SECONDS - started)) s" >>"$times/$lane"
}

scenarios() { # TESTBED DEBIAN SCENARIO...
    local testbed=$1 debian=$2
    shift 2
    for scenario in "$@"; do
        TENANCY_TESTBED=$testbed part "3-$testbed" "scenario $scenario, Debian $debian" \
            make --no-print-directory scenario S="$scenario" DEBIAN="$debian" || return 1
    done
}

source_and_units() {
    part 2 "lint" make --no-print-directory lint || return 1
    part 2 "unit" make --no-print-directory unit || return 1
    part 2 "unit, other controller" .build/venv/bin/python tests/tools/other_controller.py python -m pytest -q -n 2 tests/unit
}

part 1 "set-up" make --no-print-directory venv
# The images once, before lanes ask for them at the same time.
for debian in 12 13; do
    part 1 "host image, Debian $debian" .build/venv/bin/python tests/cluster/cluster.py build --release "$debian"
done
# Much of a scenario is waiting for daemons: lanes share the processors well.
set -m
source_and_units 2>&1 | sed -u "s/^/[source] /" | tee "$times/log-source" &
for testbed in "${!LANES[@]}"; do
    debian=${testbed//[!0-9]/}
    # shellcheck disable=SC2086  # a list of words
    scenarios "$testbed" "$debian" ${LANES[$testbed]} 2>&1 | sed -u "s/^/[$testbed] /" | tee "$times/log-$testbed" &
done
for _lane in source "${!LANES[@]}"; do
    wait -n
done
