# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Trees made by hand on a real cluster, adopted, onboarded and compared, and taken away again."""

from __future__ import annotations

import pathlib
import sys

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "cluster"))
from recorded import playbook
from remote import on, said

HOSTS = ("ctl", "login", "gpu1", "gpu2", "gpu3")
CLUSTER = "demo"
COLUMNS = (
    "account,user,partition,share,priority,grptres,grptresmins,grpjobs,grpsubmit,grpwall,maxjobs,maxsubmit,maxtres,"
    "maxwall,qos,defaultqos"
)


def sacctmgr(*words: str, **options) -> str:
    return said("ctl", "sacctmgr", "-i", *words, **options)


def shown(*words: str) -> list[str]:
    return said("ctl", "sacctmgr", "-inP", "show", *words).splitlines()


class Hand:
    """What somebody once typed."""

    def __init__(self):
        # What was there before stays.
        self.kept = {kind: set(shown(kind, f"format={kind}")) for kind in ("account", "user", "cluster")}
        self.kept["qos"] = set(shown("qos", "format=name"))
        self.logins: list[str] = []

    def login(self, first: int, *names: str) -> None:
        """On every host, with a shell and a comment of their own."""
        script = "".join(
            f"useradd -M -u {first + number} -U -s /bin/sh -c 'Old {name},,,' {name}\n"
            for number, name in enumerate(names)
        )
        for host in HOSTS:
            said(host, "sh", "-e", stdin=script)
        self.logins += names

    def clean(self) -> None:
        users = [name for name in shown("user", "format=user") if name not in self.kept["user"]]
        if users:
            on("ctl", "sacctmgr", "-i", "delete", "user", "where", f"name={','.join(users)}")
        # Children first: a parent that goes before leaves rows over which slurmdbd runs in circles.
        accounts = set(shown("account", "format=account")) - self.kept["account"]
        parents = dict(
            line.split("|")
            for line in shown("assoc", "where", f"cluster={CLUSTER}", "user=", "format=account,parentname")
        )
        while accounts:
            leaves = sorted(accounts - {parents.get(name) for name in accounts})
            on("ctl", "sacctmgr", "-i", "delete", "account", "where", f"name={','.join(leaves)}")
            accounts -= set(leaves)
        for name in set(shown("cluster", "format=cluster")) - self.kept["cluster"]:
            sacctmgr("delete", "cluster", "where", f"name={name}")
        for name in set(shown("qos", "format=name")) - self.kept["qos"]:
            sacctmgr("delete", "qos", "where", f"name={name}")
        for host in HOSTS:
            on(host, "sh", stdin="".join(f"userdel {name}\n" for name in self.logins))


class Site:
    """The operator's side: adopt, and prove by onboarding."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        self.report = folder.parent / "adopt-report.md"
        self.options = ["-e", f"tenancy_tenants_dir={folder}"]

    def adopt(self, *args: str):
        run = playbook("adopt.yml", *self.options, *args).wait()
        assert run.returncode == 0, run.output
        return run.of("tenant_adopt")[0]

    def document(self, tenant: str) -> dict:
        return yaml.safe_load((self.folder / f"{tenant}.yml").read_text())

    def onboard(self, tenant: str, *args: str):
        run = playbook("onboard.yml", "-e", f"tenant={tenant}", *self.options, *args).wait()
        assert run.returncode == 0, run.output
        return run

    def prove(self, adopted: dict) -> None:
        """Onboarding changes what the report says, and nothing else, not even on the hosts."""
        said_so = {(one["object"], one["field"]) for one in adopted["findings"] if one["kind"] == "changes"}
        before, files = rows(), logins()
        planned = set()
        tenants = [name for name in adopted["tenants"] if name != "tenant-bar"]
        for tenant in tenants:
            checked = self.onboard(tenant, "--check", "--diff")
            (plan,) = [one["plan"] for one in checked.of("slurm_accounting") if one["task"].startswith("Accounts")]
            planned |= {(one["object"], one["field"]) for one in plan}
            # Besides, a ledger of our own notes which numbers are taken.
            changed = {one["action"].rsplit(".", 1)[-1] for one in checked.changed}
            assert changed <= {"slurm_accounting", "posix_numbers"}, checked.output
        assert planned == said_so
        assert (rows(), logins()) == (before, files)
        for tenant in tenants:
            self.onboard(tenant)
        after = rows()
        assert set(after) == set(before)
        # Slurm rewrites what it prints of a row only where it was told to.
        touched = {one[0] for one in said_so}
        assert {key for key in before if before[key] != after[key]} <= touched | {f"texts of {one}" for one in touched}
        assert logins() == files
        again = self.adopt()
        assert again["documents"] == []
        assert [one for one in again["findings"] if one["kind"] == "changes"] == []


def rows() -> dict[str, str]:
    """Everything that onboarding could change in Slurm, by object."""
    found = {}
    for line in shown("assoc", "where", f"cluster={CLUSTER}", "wopi", f"format={COLUMNS}"):
        account, user, partition, rest = line.split("|", 3)
        what = f"user {user} in {account}" if user else f"account {account}"
        found[what + (f" partition {partition}" if partition else "")] = rest
    for account in shown("account", "format=account"):
        for text in ("description", "organization"):
            value = said("ctl", "sacctmgr", "-inP", "show", "account", account, f"format={text}")
            found[f"texts of account {account}"] = found.get(f"texts of account {account}", "") + value
    for line in shown("user", "where", f"cluster={CLUSTER}", "format=user,defaultaccount,adminlevel"):
        found[f"user {line.split('|')[0]}"] = line
    return found


def logins() -> list[str]:
    return [said(host, "sh", "-c", "cat /etc/passwd /etc/group") for host in HOSTS]
