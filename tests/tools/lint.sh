#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Everything that reads the source without running it. All checks run; the names of those that failed come last.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1

failed=()
check() {
    local name=$1 log
    shift
    log=$(mktemp)
    if "$@" > "$log" 2>&1; then
        echo "lint: $name ok"
    else
        failed+=("$name")
        cat "$log"
        echo "lint: $name FAILED"
    fi
    rm -f "$log"
}

check ruff ruff check --quiet .
check format ruff format --quiet --check .
check yamllint yamllint --strict .
check reuse reuse lint --quiet
check changelog antsibull-changelog lint
check antsibull-docs antsibull-docs lint-collection-docs . --plugin-docs --validate-collection-refs self
check ansible-lint ansible-lint --offline -r tests/lint_rules -R
check sanity tests/tools/sanity.sh

if [ ${#failed[@]} -gt 0 ]; then
    echo "lint: failed: ${failed[*]}" >&2
    exit 1
fi
