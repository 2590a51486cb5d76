#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# All tests: source and units, and every scenario on both Debian releases, side by side. Prints how long each part took.
set -euo pipefail
cd "$(dirname "$0")/.."

SCENARIOS="default onboard onboard_faults adopt"
times=$(mktemp -d)

finish() {
    code=$?
    trap - EXIT INT TERM
    # Each lane is a process group.
    for lane in $(jobs -p); do kill -- "-$lane" 2>/dev/null || true; done
    wait || true
    # Nothing of ours stays: hosts, networks, a daemon that we started.
    if [ -x .build/venv/bin/python ]; then
        for debian in 12 13; do
            TENANCY_TESTBED=test-$debian .build/venv/bin/python tests/cluster/cluster.py down || true
        done
    fi
    printf '\n'
    cat "$times"/* 2>/dev/null || true
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

scenarios() { # DEBIAN
    for scenario in $SCENARIOS; do
        part "3-$1" "scenario $scenario, Debian $1" make --no-print-directory scenario S="$scenario" DEBIAN="$1" || return 1
    done
}

source_and_units() {
    part 2 "lint" make --no-print-directory lint || return 1
    part 2 "unit" make --no-print-directory unit || return 1
    part 2 "unit, other controller" .build/venv/bin/python tests/tools/other_controller.py python -m pytest -q -n 2 tests/unit
}

part 1 "set-up" make --no-print-directory venv
# Much of a scenario is waiting for daemons: lanes share the processors well. Each release has hosts of its own.
set -m
source_and_units 2>&1 | sed -u "s/^/[source] /" &
for debian in 12 13; do
    scenarios "$debian" 2>&1 | sed -u "s/^/[$debian] /" &
done
for _lane in 1 2 3; do
    wait -n
done
