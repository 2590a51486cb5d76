# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What slurm.conf says of tenants who are apart, and of what surrounds a job."""

from __future__ import annotations

import pytest
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.conf import files, nodes, read
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.conf.version import ConfigError

V2205, V2411, V2511 = (22, 5), (24, 11), (25, 11)
AROUND = {
    "hooks": True,
    "hooks_dir": "/usr/local/libexec/gpuops-tenancy",
    "hooks_timeout": 240,
    "private_tmp": True,
    "private_tmp_dir": "/var/spool/slurm-tmp",
    "private_tmp_dirs": ["/tmp", "/dev/shm"],
}


def tenant(name, level, *teams):
    return {"tenant": name, "level": level, "accounts": [name, *teams], "group": f"mcs-{name}", "users": []}


def made(spec, definitions, version=V2411, **more):
    return files.cluster({**spec, **AROUND, "everybody_group": "mcs-shared", **more}, version, definitions)


def partitions(text):
    return {record["partitionname"]: record for record in read.records(text, "PartitionName")}


@pytest.mark.parametrize(("version", "flags"), [(V2205, "Contain"), (V2411, "Contain,ForceRequeueOnFail")])
def test_prolog_and_epilog_have_longer_than_their_scripts(spec, definitions, version, flags):
    conf = made(spec, definitions, version)["slurm.conf"]
    assert read.option(conf, "Prolog") == "/usr/local/libexec/gpuops-tenancy/prolog"
    assert read.option(conf, "Epilog") == "/usr/local/libexec/gpuops-tenancy/epilog"
    assert int(read.option(conf, "PrologEpilogTimeout")) > AROUND["hooks_timeout"]
    assert read.option(conf, "PrologFlags") == flags
    assert "nohold_on_prolog_fail" in read.option(conf, "SchedulerParameters")


def test_without_hooks_slurm_runs_none(spec, definitions):
    conf = made(spec, definitions, hooks=False)["slurm.conf"]
    assert read.option(conf, "Prolog") is None and read.option(conf, "PrologEpilogTimeout") is None


def test_a_sites_own_prolog_wins(spec, definitions):
    conf = made(spec, definitions, options={"Prolog": "/opt/site/prolog"})["slurm.conf"]
    assert read.option(conf, "Prolog") == "/opt/site/prolog"


def test_a_users_processes_are_limited_by_slurmd_and_not_by_the_shell_that_submits(spec, definitions):
    limited = made(spec, definitions, max_processes=32768)["slurm.conf"]
    assert read.option(limited, "PropagateResourceLimitsExcept") == "MEMLOCK,NPROC"
    assert (
        read.option(made(spec, definitions, max_processes=0)["slurm.conf"], "PropagateResourceLimitsExcept")
        == "MEMLOCK"
    )


def test_private_tmp_by_release(spec, definitions):
    old, new = made(spec, definitions, V2205), made(spec, definitions, V2411)
    assert read.option(old["slurm.conf"], "JobContainerType") == "job_container/tmpfs"
    assert "Dirs" not in old["job_container.conf"]
    assert "BasePath=/var/spool/slurm-tmp\nDirs=/tmp,/dev/shm\n" in new["job_container.conf"]
    assert read.option(new["slurm.conf"], "NamespaceType") is None
    newest = made(spec, definitions, V2511)
    assert read.option(newest["slurm.conf"], "NamespaceType") == "namespace/tmpfs"
    assert read.option(newest["slurm.conf"], "JobContainerType") is None
    assert newest["job_container.conf"] == new["job_container.conf"]
    off = made(spec, definitions, V2511, private_tmp=False)
    assert read.option(off["slurm.conf"], "NamespaceType") is None
    off = made(spec, definitions, private_tmp=False)
    assert "job_container.conf" not in off
    assert read.option(off["slurm.conf"], "JobContainerType") is None
    more = made(spec, definitions, private_tmp_options={"Shared": True})
    assert "Shared=yes" in more["job_container.conf"]


@pytest.mark.parametrize(
    ("version", "wrong", "says"),
    [
        (V2411, {"private_tmp_dir": "/tmp/base"}, "lies in /tmp"),
        (V2411, {"private_tmp_dir": "/tmp"}, "lies in /tmp"),
        (V2411, {"private_tmp_dir": ""}, "absolute path"),
        (V2411, {"private_tmp_dirs": ["tmp"]}, "no absolute path"),
        (V2205, {"private_tmp_dirs": ["/tmp", "/var/tmp"]}, "no other choice"),
        (V2511, {"private_tmp_dir": "/tmp"}, "lies in /tmp"),
    ],
)
def test_what_slurmd_would_not_start_with_is_refused(spec, definitions, version, wrong, says):
    with pytest.raises(ConfigError, match=says):
        made(spec, definitions, version, **wrong)


def test_a_neighbour_of_tmp_is_not_in_it(spec, definitions):
    assert "BasePath=/tmpfs-of-jobs" in made(spec, definitions, private_tmp_dir="/tmpfs-of-jobs")["job_container.conf"]


def test_shared_tenants_need_no_label(spec, definitions):
    conf = made(spec, definitions, isolation=[tenant("foo", "shared")])["slurm.conf"]
    assert read.option(conf, "MCSPlugin") is None


def test_every_job_has_the_label_of_its_tenant_or_everybodys(spec, definitions):
    wanted = [tenant("zed", "exclusive"), tenant("foo", "exclusive", "ml"), tenant("bar", "shared")]
    conf = made(spec, definitions, isolation=wanted)["slurm.conf"]
    assert read.option(conf, "MCSPlugin") == "mcs/group"
    assert read.option(conf, "MCSParameters") == "enforced,select:mcs-foo|mcs-zed|mcs-shared"


@pytest.mark.parametrize(
    ("wanted", "more", "says"),
    [
        ([tenant("foo", "private_cluster")], {}, "not to be had"),
        ([tenant("foo", "exclusive")], {"everybody_group": ""}, "no name for a Unix group"),
        ([tenant("foo", "exclusive")], {"everybody_group": "mcs-foo"}, "rename one"),
        ([tenant("foo|bar", "exclusive")], {}, "no name for a Unix group"),
        ([tenant("foo", "private_nodes")], {}, "gives them none"),
    ],
)
def test_what_would_keep_nobody_apart_is_refused(spec, definitions, wanted, more, says):
    with pytest.raises(ConfigError, match=says):
        made(spec, definitions, isolation=wanted, **more)


def owned(definitions, **owners):
    return [{**item, "owner": owners.get(item["name"], "")} for item in definitions]


def test_private_nodes_are_in_their_owners_partition_only(spec, definitions):
    spec["partitions"] = [
        {"name": "main", "nodes": ["gpu[1-3]"], "default": True},
        {"name": "h100", "gres": "gpu:h100"},
    ]
    wanted = [tenant("foo", "private_nodes", "ml", "data"), tenant("bar", "shared")]
    conf = made(spec, owned(definitions, gpu2="foo"), isolation=wanted, private_partition={"priority_tier": 5})
    found = partitions(conf["slurm.conf"])
    assert found["main"]["nodes"] == "gpu[1,3]"
    assert found["h100"]["nodes"] == "gpu1"
    assert found["foo"]["nodes"] == "gpu2"
    assert found["foo"]["allowaccounts"] == "foo,ml,data"
    assert (found["foo"]["prioritytier"], found["foo"]["hidden"], found["foo"]["default"]) == ("5", "yes", "no")
    # And its jobs do not land beside others.
    assert found["main"]["denyaccounts"] == found["h100"]["denyaccounts"] == "data,foo,ml"
    features = {record["nodename"]: record.get("feature") for record in read.records(conf["slurm.conf"], "NodeName")}
    assert features == {"gpu1": None, "gpu2": "owner-foo", "gpu3": None}


@pytest.mark.parametrize(
    ("wanted", "parts", "says"),
    [
        ([], None, "no tenant document"),
        ([tenant("foo", "shared")], None, "no tenant document"),
        ([tenant("foo", "private_nodes")], [{"name": "x", "nodes": "all", "allow_accounts": ["foo"]}], "take them out"),
        ([tenant("foo", "private_nodes")], [{"name": "foo", "nodes": "all"}], "rename it"),
        ([tenant("foo", "private_nodes")], [{"name": "x", "nodes": ["gpu2"]}], "has no nodes"),
    ],
)
def test_a_contradiction_about_owners_is_refused(spec, definitions, wanted, parts, says):
    if parts:
        spec["partitions"] = parts
    with pytest.raises(ConfigError, match=says):
        made(spec, owned(definitions, gpu2="foo"), isolation=wanted)


def test_a_partition_with_a_list_of_its_own_accounts_needs_no_denial(spec, definitions):
    spec["partitions"] = [
        {"name": "bars", "nodes": "all", "allow_accounts": ["bar"]},
        {"name": "main", "nodes": "all", "deny_accounts": ["x"]},
    ]
    conf = made(spec, owned(definitions, gpu2="foo"), isolation=[tenant("foo", "private_nodes")])["slurm.conf"]
    assert "denyaccounts" not in partitions(conf)["bars"]
    assert partitions(conf)["main"]["denyaccounts"] == "x,foo"


def test_the_owner_comes_from_a_variable_of_the_host(definitions):
    own = {nodes.NODE: {"cpus": 2, "real_memory": 2000}, nodes.ADDRESS: "10.0.0.1"}
    found = nodes.collect(["a", "b"], {"a": {**own, nodes.OWNER_OF_HOST: "foo"}, "b": own})
    assert [(item["name"], item["owner"]) for item in found] == [("a", "foo"), ("b", "")]
    with pytest.raises(ConfigError, match="slurm_compute_owner"):
        nodes.build([{**definitions[0], "features": ["owner-foo"]}])
