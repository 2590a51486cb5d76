# Copyright: (c) 2026, gpuops.tenancy contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes a secret once on the Ansible controller and copies it to hosts; its bytes are in no argument and no result."""

from __future__ import annotations

import os
import secrets
import tempfile
import typing as t

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible.utils.hashing import checksum

# What the copy may tell; its checksums and sizes stay here.
_TOLD = ("changed", "failed", "msg", "skipped", "unreachable", "exception")


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
        _validation, args = self.validate_argument_spec(
            argument_spec={
                "source": {"type": "path", "required": True},
                "dest": {"type": "path", "required": True},
                "owner": {"type": "str", "default": "root"},
                "group": {"type": "str", "default": "root"},
                "mode": {"type": "str", "default": "0400"},
                "length": {"type": "int", "default": 128},
                "in_use": {"type": "list", "elements": "path", "default": []},
                "replace": {"type": "bool", "default": False},
            }
        )
        source = os.path.abspath(args["source"])
        result.update(changed=False, commands=[], plan=[], diff={}, generated=False)
        working = self._works_with(args, task_vars)
        if not os.path.exists(source):
            if working:
                raise AnsibleActionFail(
                    f"{source} does not exist and this host already works with a secret of its own ({args['dest']}): a new one "
                    f"would cut it off from the others. Copy the one in use to {source} (mode 0600, vault it if you like) and run again"
                )
            if self._task.check_mode:
                return self._planned(result, args, f"would be made as {source}")
            result["generated"] = generate(source, args["length"])
        # Another host of the run may have made the file a moment ago, or an earlier run on a new host.
        if working and not args["replace"] and working != self._checksum(source):
            raise AnsibleActionFail(
                f"this host works with another secret in {args['dest']} than {source}: replacing it would cut it off from the others. "
                f"If the host's is the one in use everywhere, copy it to {source} and run again; if it is not, replace it on purpose"
            )
        if self._task.check_mode and not self._exists(os.path.dirname(args["dest"]), task_vars):
            return self._planned(result, args, "would be copied")
        copied = self._copy(source, args, task_vars)
        result.update({key: copied[key] for key in _TOLD if key in copied})
        if result.get("failed"):
            result["msg"] = f"{args['dest']}: {result.get('msg', 'the copy failed')}"
        elif result["changed"]:
            self._planned(result, args, "copied, or its owner or mode corrected")
        return result

    def _planned(self, result: dict[str, t.Any], args: t.Mapping[str, t.Any], what: str) -> dict[str, t.Any]:
        change = {
            "kind": "change",
            "object": args["dest"],
            "field": "content",
            "before": None,
            "after": what,
            "risk": "safe",
        }
        result.update(
            changed=True,
            plan=[change],
            diff={
                "before_header": args["dest"], "after_header": args["dest"],
                "before": "secret: another, or none\n", "after": f"secret: {what}\n",
            },
        )  # fmt: skip
        return result

    def _works_with(self, args: t.Mapping[str, t.Any], task_vars: dict[str, t.Any] | None) -> str:
        """Checksum of the host's secret if the host works with it, else nothing. It stays in this process."""
        if not any(self._stat(path, task_vars).get("exists") for path in args["in_use"]):
            return ""
        return str(self._stat(args["dest"], task_vars, checksum=True).get("checksum") or "")

    def _checksum(self, source: str) -> str:
        """Of the bytes that a host would get: a vaulted file is decrypted first."""
        path = self._loader.get_real_file(source)
        try:
            return str(checksum(path))
        finally:
            self._loader.cleanup_tmp_file(path)

    def _exists(self, path: str, task_vars: dict[str, t.Any] | None) -> bool:
        return bool(self._stat(path, task_vars).get("exists"))

    def _stat(self, path: str, task_vars: dict[str, t.Any] | None, checksum: bool = False) -> dict[str, t.Any]:
        found = self._execute_module(
            module_name="ansible.legacy.stat",
            module_args={"path": path, "get_checksum": checksum, "get_mime": False, "get_attributes": False},
            task_vars=task_vars,
        )
        if found.get("failed"):
            raise AnsibleActionFail(f"cannot look at {path}: {found.get('msg', 'stat failed')}")
        return dict(found.get("stat", {}))

    def _copy(self, source: str, args: t.Mapping[str, t.Any], task_vars: dict[str, t.Any] | None) -> dict[str, t.Any]:
        task = self._task.copy()
        task.args = {"src": source, **{key: args[key] for key in ("dest", "owner", "group", "mode")}}
        task.diff = False
        action = self._shared_loader_obj.action_loader.get(
            "ansible.legacy.copy",
            task=task,
            connection=self._connection,
            play_context=self._play_context,
            loader=self._loader,
            templar=self._templar,
            shared_loader_obj=self._shared_loader_obj,
        )
        return action.run(task_vars=task_vars)
