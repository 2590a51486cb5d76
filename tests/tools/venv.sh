#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# venv.sh PYTHON MARKER: a virtual environment with requirements-dev.txt; MARKER, a file in it, says from which version.
set -euo pipefail
python=$1 marker=$2
venv=$(dirname "$marker")

"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
    echo "$python is $("$python" --version 2>&1): the controller needs Python 3.11 or newer; set PYTHON=python3.x" >&2
    exit 1
}
# The interpreter itself: what PATH finds may lie in the environment that is about to go.
base=$("$python" -c 'import sys; print(sys._base_executable)')
rm -rf "$venv"
"$base" -m venv "$venv"
"$venv/bin/pip" install --quiet --disable-pip-version-check -r requirements-dev.txt
touch "$marker"
