# Copyright: (c) 2026, gpuops.tenancy contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes a secret once on the Ansible controller and copies it to hosts; its bytes are in no argument and no result."""

from __future__ import annotations

import os
import secrets
import tempfile
import typing as t

from ansible.plugins.action import ActionBase
from ansible_collections.gpuops.tenancy.plugins.modules.secret_file import argument_spec


def generate(path: str, length: int) -> bool:
    """Create the file with random bytes unless it exists; whoever comes first wins, nobody sees half a file."""
    directory = os.path.dirname(path)
    os.makedirs(directory, mode=0o700, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=directory, prefix=".secret-")
    try:
        with os.fdopen(descriptor, "wb") as handle:
            handle.write(secrets.token_bytes(length))
            handle.flush()
            os.fsync(handle.fileno())
        try:
            os.link(temporary, path)
        except FileExistsError:
            return False
        return True
    finally:
        os.unlink(temporary)


class ActionModule(ActionBase):
    TRANSFERS_FILES = True

    def run(self, tmp: str | None = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        result = super().run(tmp, task_vars)
        del tmp
        _validation, args = self.validate_argument_spec(argument_spec=argument_spec())
        source = os.path.abspath(args["source"])
        args.update(source=source, staged=None)
        generated = False
        if not os.path.exists(source):
            # Asked first, for what is made is kept.
            answer = self._host(args, task_vars)
            if answer.get("failed") or self._task.check_mode:
                return {**result, **answer}
            generated = generate(source, args["length"])
        try:
            args["staged"] = self._stage(source)
            answer = self._host(args, task_vars)
        finally:
            self._remove_tmp_path(self._connection._shell.tmpdir)
        return {**result, **answer, "generated": generated}

    def _stage(self, source: str) -> str:
        """The bytes in the directory of this task on the host, which only its user can enter. A vaulted file is decrypted."""
        if self._connection._shell.tmpdir is None:
            self._make_tmp_path()
        directory = self._connection._shell.tmpdir
        staged = self._connection._shell.join_path(directory, ".secret")
        path = self._loader.get_real_file(source)
        try:
            self._transfer_file(path, staged)
        finally:
            self._loader.cleanup_tmp_file(path)
        self._fixup_perms2((directory, staged))
        return staged

    def _host(self, args: t.Mapping[str, t.Any], task_vars: dict[str, t.Any] | None) -> dict[str, t.Any]:
        answer = self._execute_module(
            module_name="gpuops.tenancy.secret_file", module_args=dict(args), task_vars=task_vars
        )
        return dict(answer)
