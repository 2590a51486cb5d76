# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cluster that is measured: the one that is up in this testbed, else one that goes afterwards."""

from __future__ import annotations

import contextlib
import os
import pathlib
import sys
import typing as t

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cluster"))
from cluster import Cluster
from converge import converged
from definition import definition
from engine import ClusterError, Engine


@contextlib.contextmanager
def server() -> t.Iterator[None]:
    engine = Engine()
    engine.start()
    cluster = Cluster(definition(), engine)
    ours = cluster.running() is None
    if ours:
        converged(cluster, os.environ.get("TENANCY_DEBIAN", "12"))
    try:
        yield
    finally:
        if ours:
            cluster.down()
            engine.stop()


def measured(name: str, work: t.Callable[[], t.Any]) -> t.Any:
    """What ``work`` found on the server; what went wrong is one line and ends the program."""
    try:
        with server():
            return work()
    except (ClusterError, AssertionError) as error:
        sys.exit(f"{name}: {error}")
