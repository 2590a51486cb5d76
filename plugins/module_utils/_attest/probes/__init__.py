# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The catalogue: one file for each kind of attack. Standard library only; this runs on nodes as a tenant would."""
