# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Isolation proven by attack. Private to the gpuops.tenancy collection."""
