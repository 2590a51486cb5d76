# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Somebody who listens outside of the cluster: this machine, at its address in the cluster's network."""

from __future__ import annotations

import contextlib
import socket
import threading
import typing as t

from definition import definition, gateway


@contextlib.contextmanager
def outside() -> t.Iterator[str]:
    """ADDRESS:PORT, for as long as it lasts."""
    with socket.create_server((gateway(definition(), "cluster"), 0)) as server:
        threading.Thread(target=_answer, args=(server,), daemon=True).start()
        yield "{}:{}".format(*server.getsockname())


def _answer(server: socket.socket) -> None:
    # Ends with the socket.
    with contextlib.suppress(OSError):
        while True:
            server.accept()[0].close()
