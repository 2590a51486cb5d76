#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# All tests: source, units, then every scenario on both Debian releases. Prints how long each part took.
set -euo pipefail
cd "$(dirname "$0")/.."

times=()
finish() {
    code=$?
    # Nothing of ours stays: hosts, networks, a daemon that we started.
    [ ! -x .build/venv/bin/python ] || .build/venv/bin/python tests/cluster/cluster.py down --only=test || true
    printf '\n'
    printf '%s\n' "${times[@]}"
    if [ "$code" -eq 0 ]; then echo "make test: all passed in $SECONDS s"; else echo "make test: FAILED after $SECONDS s" >&2; fi
}
trap finish EXIT

part() {
    local started=$SECONDS name=$1
    shift
    echo "=== $name"
    if ! "$@"; then
        times+=("$name FAILED after $((SECONDS - started)) s")
        return 1
    fi
    times+=("$name: $((SECONDS - started)) s")
}

part "set-up" make --no-print-directory venv
part "lint" make --no-print-directory lint
part "unit" make --no-print-directory unit
part "unit, other controller" .build/venv/bin/python tests/tools/other_controller.py python -m pytest -q -n 2 tests/unit
for debian in 12 13; do
    for scenario in default onboard onboard_faults; do
        part "scenario $scenario, Debian $debian" make --no-print-directory scenario S="$scenario" DEBIAN="$debian"
    done
done
