# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.conf import files, storage, version
from ansible_collections.gpuops.tenancy.plugins.modules import slurm_database_info


@pytest.mark.parametrize(
    ("text", "database"),
    [
        ("", "localhost:3306/slurm_acct_db"),
        ("StorageHost=127.0.0.1\nStorageType=accounting_storage/mysql\n", "localhost:3306/slurm_acct_db"),
        ("storagehost = DB1.example.org\n", "db1.example.org:3306/slurm_acct_db"),
        ("StorageHost=db1\nStoragePort=3307\nStorageLoc=Acct\n", "db1:3307/Acct"),
        ("StoragePort=0\n", "localhost:3306/slurm_acct_db"),
        ("#StorageHost=db1\nStorageHost=db2 # not db1\n", "db2:3306/slurm_acct_db"),
        ("StorageType=accounting_storage/none\n", "none:localhost:3306/slurm_acct_db"),
    ],
)
def test_which_database(text, database):
    assert storage.database(text) == database


def test_what_is_written_is_what_is_meant():
    spec = {"host": "ctl", "address": "10.0.0.1", "user": "slurm", "log_dir": "/var/log", "storage_host": "db1"}
    spec |= {"storage_name": "acct", "storage_user": "slurm", "options": {"StoragePort": 3307}}
    assert storage.database(files.database(spec, version.parse("24.11"))) == "db1:3307/acct"


def info(path, capsys):
    with patch_module_args({"path": str(path)}), pytest.raises(SystemExit):
        slurm_database_info.main()
    return json.loads(capsys.readouterr().out)


def test_info_follows_includes_and_keeps_the_password_to_itself(tmp_path, capsys):
    assert info(tmp_path, capsys)["configured"] is False
    (tmp_path / "slurmdbd.conf").write_text("StorageHost=db1\nInclude secret\n")
    assert "cannot be known" in info(tmp_path, capsys)["msg"]
    (tmp_path / "secret").write_text("StoragePass=hush\nStorageLoc=acct\n")
    result = info(tmp_path, capsys)
    assert (result["configured"], result["database"]) == (True, "db1:3306/acct")
    assert "hush" not in str(result)
    (tmp_path / "slurmdbd.conf").unlink()
    (tmp_path / "slurmdbd.conf").symlink_to("/nonexistent")
    assert "cannot be known" in info(tmp_path, capsys)["msg"]
