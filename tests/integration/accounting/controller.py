# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs on the controller, as the modules run them, and what sacctmgr prints there."""

from __future__ import annotations

import os
import shlex

from ansible_collections.gpuops.tenancy.plugins.module_utils import _command


class Ctl:
    """Runs programs on the controller and remembers them."""

    def __init__(self, prefix, cluster):
        self.prefix = prefix
        self.cluster = cluster
        self.seen = []
        self.timeouts = []

    def run(self, argv, timeout=120, pass_fds=()):
        self.seen.append(list(argv))
        self.timeouts.append(timeout)
        return self.execute(argv, timeout)

    def execute(self, argv, timeout=120):
        over_ssh = os.path.basename(self.prefix[0]) == "ssh"
        return _command.run([*self.prefix, *([shlex.join(argv)] if over_ssh else argv)], timeout=timeout)

    def sacctmgr(self, *words):
        return self.execute(["sacctmgr", "-i", *words])

    def show(self, *words):
        """Lines of columns."""
        done = self.execute(["sacctmgr", "-inP", "show", *words])
        assert done.rc == 0, done
        return [line.split("|") for line in done.stdout.splitlines()]

    def column(self, column, account, user=""):
        return self.columns([column], account, user)[column]

    def columns(self, names, account, user=""):
        """Values that are set on one row itself."""
        where = [f"cluster={self.cluster}", f"account={account}", f"user={user}", "partition="]
        rows = self.show("assoc", "where", *where, "wopi", f"format={','.join(names)}")
        assert len(rows) == 1, rows
        return dict(zip(names, rows[0]))

    @property
    def writes(self):
        return [words for words in self.seen if {"add", "modify", "delete"} & set(words[2:3])]
