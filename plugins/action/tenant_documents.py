# Copyright: (c) 2026, gpuops.tenancy contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads and checks tenant documents on the controller; documented in plugins/modules/tenant_documents.py."""

from __future__ import annotations

import os

from ansible.errors import AnsibleError
from ansible.parsing.vault import is_encrypted
from ansible.plugins.action import ActionBase
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant import folder, ledger, names
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.errors import TenantError
from ansible_collections.gpuops.tenancy.plugins.module_utils._tenant.load import Source, parse

ARGUMENT_SPEC = {
    "path": {"type": "path", "required": True},
    "tenant": {"type": "str"},
    "user": {"type": "str"},
    "operators": {"type": "list", "elements": "str", "default": []},
    "platform_account": {"type": "str", "default": "platform"},
    "reserved_names": {"type": "list", "elements": "str", "default": []},
    "retired_names": {"type": "list", "elements": "str", "default": []},
    "ledger": {"type": "path"},
    "site_qos": {"type": "list", "elements": "str"},
    "block_qos": {"type": "str", "default": "blocked"},
}


class ActionModule(ActionBase):
    TRANSFERS_FILES = False
    _requires_connection = False
    _supports_check_mode = True

    def run(self, tmp=None, task_vars=None):
        result = super().run(tmp, task_vars)
        result["changed"] = False
        _validation, options = self.validate_argument_spec(ARGUMENT_SPEC)
        try:
            checked = folder.load(folder.files(self._path(options["path"])), self._read, self._policy(options))
            selection = folder.select(checked, options["tenant"], options["user"])
        except TenantError as error:
            result.update(failed=True, msg=str(error), problems=[one.as_dict() for one in error.problems])
            return result
        result.update(tenants=selection.tenants, tenant=selection.tenant, user=selection.user, broken=selection.broken)
        if selection.warnings:
            result["warnings"] = selection.warnings
        # As include_vars does: what came out of a vault may be used, but not printed.
        result["_ansible_no_log"] = selection.secret
        return result

    def _path(self, path: str) -> str:
        full = self._loader.path_dwim(path)
        near = os.path.relpath(full)
        return full if near.startswith(os.pardir) else near

    def _policy(self, options: dict) -> names.Policy:
        retired = frozenset(names.fold(name) for name in options["retired_names"])
        if options["ledger"] is not None:
            retired |= ledger.retired(self._read(self._path(options["ledger"])))
        return names.Policy(
            operators=frozenset(names.fold(name) for name in options["operators"]),
            platform_account=names.fold(options["platform_account"]),
            reserved=frozenset(names.fold(name) for name in options["reserved_names"]),
            retired=retired,
            site_qos=None if options["site_qos"] is None else frozenset(names.fold(qos) for qos in options["site_qos"]),
            block_qos=names.fold(options["block_qos"]),
        )

    def _read(self, file: str) -> Source:
        full = os.path.abspath(file)
        try:
            with open(full, "rb") as stream:
                content = stream.read()
            vaulted = is_encrypted(content)
            if vaulted:
                content = self._loader.get_text_file_contents(full).encode("utf-8", "surrogateescape")
            return parse(content.decode("utf-8"), file, vaulted, self._decrypt)
        except OSError as error:
            return folder.unreadable(file, error.strerror)
        except UnicodeError:
            return folder.unreadable(file, "it is not UTF-8 text; save it as UTF-8")
        except AnsibleError:
            # The text of the error may quote what it failed on.
            return folder.unreadable(file, "it is vaulted, and no vault secret of this run opens it; give --vault-id")

    def _decrypt(self, ciphertext: str) -> str:
        block = "".join(f"  {line}\n" for line in ciphertext.split())
        try:
            # Through the loader's own YAML, which knows the vault secrets of this run; str() is what decrypts.
            value = self._loader.load("value: !vault |\n" + block, show_content=False)["value"]
            return "".join(str(value))
        except AnsibleError:
            raise ValueError("no vault secret of this run opens it; give --vault-id") from None
        except UnicodeError:
            raise ValueError("it is not UTF-8 text") from None
