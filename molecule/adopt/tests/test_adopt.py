# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Three clusters that were run by hand: what is in a document, what is in the report, and that nothing is lost."""

from __future__ import annotations

import pathlib
import shutil
import stat
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from byhand import CLUSTER, ROOT, Hand, Site, sacctmgr
from remote import said, wait_for


@pytest.fixture
def hand():
    made = Hand()
    yield made
    made.clean()


@pytest.fixture
def site(tmp_path):
    """With the one document that the site has already."""
    folder = tmp_path / "tenants"
    folder.mkdir()
    shutil.copy(ROOT / "inventories" / "demo" / "tenants" / "tenant-bar.yml", folder)
    return Site(folder)


def by(adopted, kind):
    return {(one["object"], one["field"]): one for one in adopted["findings"] if one["kind"] == kind}


def test_a_university(hand, site):
    """Limits on every level, users in several accounts, guests, partitions, one level too many, texts from a form."""
    hand.login(20001, "ada", "ben", "cleo", "dan", "eva", "fred")
    sacctmgr("add", "account", "physics", "description=Dept. of Physics|Räume 1 & 2", "organization=Uni\nsecond line",
             "fairshare=40", "grptres=gres/gpu=8,mem=1500G,cpu=100", "grpjobs=50", "maxwall=2-00:00:00", "qos=normal,high")  # fmt: skip
    sacctmgr("modify", "account", "where", "name=physics", f"cluster={CLUSTER}", "set", "defaultqos=normal")
    sacctmgr(
        "add",
        "account",
        "theory",
        "parent=physics",
        "organization=physics",
        "grptresmins=gres/gpu=100000",
        "grpwall=500:00:00",
    )
    sacctmgr("add", "account", "lab", "parent=physics", "priority=5")
    sacctmgr("add", "account", "lab-x", "parent=lab", "maxjobs=7")
    sacctmgr("add", "account", "chem", "description=日本 'quoted' text")
    sacctmgr("add", "user", "ada", "account=physics,theory", "defaultaccount=theory", "maxjobs=3", "maxsubmit=9")
    sacctmgr("add", "user", "ada", "account=theory", "partition=a100", "maxtres=gres/gpu=2")
    sacctmgr("add", "user", "ben", "account=theory", "defaultaccount=theory")
    sacctmgr("modify", "user", "where", "name=ben", f"cluster={CLUSTER}", "set", "qos+=low")
    sacctmgr("add", "user", "cleo", "account=chem", "defaultaccount=chem", "fairshare=parent")
    sacctmgr("add", "user", "cleo", "account=lab", "defaultaccount=chem", "fairshare=7")
    sacctmgr("add", "user", "dan", "account=lab,lab-x", "defaultaccount=lab-x")
    sacctmgr("add", "user", "eva", "account=chem", "defaultaccount=chem", "fairshare=parent")
    sacctmgr("add", "user", "fred", "account=theory", "partition=h100", "defaultaccount=theory", "qos=normal")
    sacctmgr("add", "user", "zoe", "account=lab", "defaultaccount=lab")  # left years ago, no login
    sacctmgr("add", "coordinator", "account=lab", "names=ada")

    checked = site.adopt("--check", "--diff")
    assert [path.name for path in site.folder.iterdir()] == ["tenant-bar.yml"] and not site.report.exists()
    adopted = site.adopt()
    assert adopted["documents"] == checked["documents"] and len(adopted["documents"]) == 2
    assert stat.S_IMODE((site.folder / "physics.yml").stat().st_mode) == 0o640
    theory = {
        "name": "theory",
        "limits": {"grp_tres_mins": {"gres/gpu": 100000}, "grp_wall": "20-20:00:00"},
        "users": [
            {"name": "ada", "limits": {"max_jobs": 3, "max_submit_jobs": 9}, "default_account": "theory"},
            {"name": "ada", "partition": "a100", "limits": {"max_tres_per_job": {"gres/gpu": 2}}},
            {"name": "ben", "qos": ["high", "low", "normal"], "qos_exception": True},
            {"name": "fred", "partition": "h100", "qos": ["normal"]},
        ],
        "organization": "physics",
    }
    document = site.document("physics")
    found = {team["name"]: team for team in document["teams"]}
    assert found["theory"] == theory
    assert found["lab"]["users"] == [{"name": "cleo", "fairshare": 7, "home": "chem"}]
    assert document["description"] == "dept. of physics/räume 1 & 2"
    assert document["slurm"]["limits"]["grp_tres"] == {"cpu": 100, "gres/gpu": 8, "mem": "1500G"}
    chem = site.document("chem")
    assert chem["slurm"] == {"one_factor": True}
    assert chem["users"] == [{"name": "cleo", "member_of": ["physics"]}, "eva"]
    assert set(by(adopted, "left")) == {("account lab-x", ""), ("user dan in lab", ""), ("user zoe in lab", "")}
    changes = by(adopted, "changes")
    assert set(changes) == {("account physics", "description"), ("account physics", "organization"),
                            ("account chem", "description"), ("user ben in theory", "qos")}  # fmt: skip
    assert changes[("user ben in theory", "qos")]["value"] == "+low -> high,low,normal"
    assert set(by(adopted, "decide")) == {("account lab", "coordinators")}
    report = site.report.read_text()
    for words in ("user zoe in lab", "sacctmgr delete user where name=zoe cluster=demo", "coordinators: ada"):
        assert words in report
    site.prove(adopted)


def test_leftovers(hand, site):
    """A deleted parent's children, people whose jobs keep their rows, a second cluster, defaults that lead nowhere."""
    hand.login(21001, "gil", "hal", "ina", "jon")
    for account, parent in (("biology", "root"), ("genome", "biology"), ("old", "root"), ("older", "old")):
        sacctmgr("add", "account", account, f"parent={parent}", "organization=biology")
    sacctmgr("add", "cluster", "attic")
    sacctmgr("add", "account", "biology,storeroom", "cluster=attic")
    sacctmgr("add", "user", "gil", "account=genome,biology", f"cluster={CLUSTER}", "defaultaccount=genome")
    sacctmgr("add", "user", "gil", "account=storeroom", "cluster=attic", "defaultaccount=storeroom")
    sacctmgr("add", "user", "moth", "account=storeroom", "cluster=attic", "defaultaccount=storeroom")
    sacctmgr("add", "user", "hal", "account=biology", f"cluster={CLUSTER}", "defaultaccount=biology")
    sacctmgr("add", "user", "ina", "account=biology,genome", f"cluster={CLUSTER}", "defaultaccount=biology")
    sacctmgr("add", "user", "ina", "account=older", f"cluster={CLUSTER}", "defaultaccount=biology")
    sacctmgr("add", "user", "jon", "account=older", f"cluster={CLUSTER}", "defaultaccount=older")
    # Somebody worked, and left.
    said("login", "srun", "-n1", "-t1", "true", user="hal")
    wait_for(lambda: "COMPLETED" in said("ctl", "sacct", "-nPXu", "hal", "-o", "state"))
    sacctmgr("delete", "user", "where", "name=hal")
    # Somebody tidied up from the top.
    sacctmgr("delete", "account", "where", "name=old")

    adopted = site.adopt()
    assert site.document("biology")["teams"][0]["users"] == [{"name": "gil", "default_account": "genome"}, "ina"]
    left = by(adopted, "left")
    assert set(left) >= {
        ("account older", ""),
        ("account storeroom", "clusters"),
        ("user moth", "clusters"),
        ("user jon", ""),
    }
    assert left[("account storeroom", "clusters")]["value"] == "attic"
    assert "has a record and no association on any cluster" in left[("account older", "")]["why"]
    assert by(adopted, "changes") == {}
    assert by(adopted, "decide")[("deleted users", "")]["value"].count("hal") == 1
    site.prove(adopted)
    attic = said(
        "ctl", "sacctmgr", "-inP", "show", "assoc", "where", "cluster=attic", "format=account,user"
    ).splitlines()
    assert sorted(attic) == ["biology|", "root|", "root|root", "storeroom|", "storeroom|gil", "storeroom|moth"]


def test_names_and_rights(hand, site):
    """Names that no document may hold, operators, blocks, limits that do not hold, and accounts that are no tenants."""
    hand.login(22001, "kim", "lea", "max.m", "ned", "ops1")
    for account in ("astro", "staff", "1984", "platform", "trial"):
        sacctmgr("add", "account", account)
    sacctmgr("add", "account", "sudo", "parent=astro")
    sacctmgr("add", "account", "stars", "parent=astro", "organization=astro", "grptres=gres/gpu=1")
    sacctmgr("add", "user", "kim", "account=stars,sudo", "defaultaccount=stars")
    sacctmgr("add", "user", "lea", "account=staff,astro", "defaultaccount=staff")
    sacctmgr("add", "user", "max.m", "account=stars", "defaultaccount=stars", "adminlevel=operator")
    sacctmgr("add", "user", "4711", "account=astro", "defaultaccount=astro")
    sacctmgr("add", "user", "ned", "account=trial", "defaultaccount=trial", "qos=blocked")
    sacctmgr("modify", "user", "where", "name=ned", f"cluster={CLUSTER}", "set", "defaultqos=blocked")
    sacctmgr("add", "user", "ops1", "account=platform,stars", "defaultaccount=platform")
    sacctmgr("add", "qos", "wide", "grptres=gres/gpu=4")
    sacctmgr("modify", "user", "where", "name=max.m", f"cluster={CLUSTER}", "set", "qos=normal,wide")
    site.options += ["-e", '{"tenancy_operators": ["ops1"], "adopt_exclude": ["nothing"]}']

    adopted = site.adopt()
    assert sorted(path.name for path in site.folder.iterdir()) == ["astro.yml", "tenant-bar.yml", "trial.yml"]
    assert [team["name"] for team in site.document("astro")["teams"]] == ["stars"]
    assert site.document("astro")["teams"][0]["users"] == [{"name": "max.m", "qos": ["normal", "wide"]}]
    assert site.document("trial")["users"] == ["ned"]
    left = by(adopted, "left")
    assert set(left) == {(what, "") for what in (
        "account staff", "account 1984", "account platform", "account sudo", "user kim in stars", "user lea in astro",
        "user 4711 in astro", "user ops1 in stars")}  # fmt: skip
    assert "system account or group" in left[("account sudo", "")]["why"]
    decide = by(adopted, "decide")
    assert "is blocked" in decide[("user ned in trial", "")]["why"]
    assert decide[("user max.m", "admin_level")]["value"] == "operator"
    assert "account stars would not hold: QOS wide: grp_tres gres/gpu 4" in decide[("pre-flight", "")]["value"]
    assert by(adopted, "changes") == {}
    # As the report says: put it right first.
    sacctmgr("modify", "qos", "where", "name=wide", "set", "grptres=gres/gpu=-1")
    sacctmgr("delete", "user", "where", "name=ned")
    sacctmgr("delete", "account", "where", "name=trial")
    (site.folder / "trial.yml").unlink()
    site.prove(site.adopt())
