#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# ansible-test sanity over a real copy of the checkout, since ansible-test takes neither symlinks nor ignored paths.
# Arguments go to ansible-test, for example: tests/tools/sanity.sh --test validate-modules
set -euo pipefail
cd "$(dirname "$0")/../.."
bin=$PWD/.build/venv/bin
"$bin/python" tests/tools/prepare_ansible_test.py

copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
target=$copy/ansible_collections/gpuops/tenancy
mkdir -p "$target"
git ls-files -z --cached --others --exclude-standard | while IFS= read -r -d '' file; do
    [ ! -e "$file" ] || printf '%s\0' "$file"
done | tar --null -cf - -T - | tar -xf - -C "$target"

cd "$target"
version=$("$bin/python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
PATH=$bin:$PATH LC_ALL=C.UTF-8 ansible-test sanity --local --python "$version" --color no "$@" 2>&1 | tee "$copy/log"
if grep -q 'All targets skipped' "$copy/log"; then
    echo "sanity: ansible-test skipped everything, which proves nothing" >&2
    exit 1
fi
