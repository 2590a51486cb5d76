# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pathlib
import sys

# They lie side by side on a node, and find each other there the same way.
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[4] / "roles" / "slurm_compute" / "files" / "hooks"))
