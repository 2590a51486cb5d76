# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import random

import pytest
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.conf import files, lines, nodes, refused, table
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.conf.read import option, records
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.conf.version import ConfigError, parse

V2205, V2411, V2605 = (22, 5), (24, 11), (26, 5)


def value(text, key):
    return option(text, key)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("22.05", V2205), ("slurm-wlm 22.05.8", V2205), ("24.11.5-4+deb13u1", V2411), ("slurm 25.05.0-rc1", (25, 5)),
    ],
)  # fmt: skip
def test_version(text, expected):
    assert parse(text) == expected


@pytest.mark.parametrize(
    ("text", "words"), [("", "write it like"), ("nonsense", "write it like"), ("20.11.9", "older than 22.05")]
)
def test_version_refused(text, words):
    with pytest.raises(ConfigError, match=words):
        parse(text)


@pytest.mark.parametrize("release", [V2205, V2411, V2605])
def test_what_keeps_tenants_apart_is_there_in_every_release(spec, definitions, release):
    conf = files.cluster(spec, release, definitions)["slurm.conf"]
    assert value(conf, "AccountingStorageEnforce") == "associations,limits,qos,safe"
    assert value(conf, "PrivateData") == "accounts,events,jobs,reservations,usage,users"
    assert value(conf, "ProctrackType") == "proctrack/cgroup"
    assert value(conf, "TaskPlugin") == "task/affinity,task/cgroup"
    assert value(conf, "JobAcctGatherType") == "jobacct_gather/cgroup"
    assert "Contain" in value(conf, "PrologFlags").split(",")
    assert value(conf, "SelectType") == "select/cons_tres"
    assert value(conf, "PriorityFlags") == "FAIR_TREE"
    assert value(conf, "SchedulerType") == "sched/backfill"
    assert value(conf, "PreemptType") == "preempt/qos"
    assert value(conf, "PreemptExemptTime") == "00:05:00"
    assert value(conf, "EnforcePartLimits") == "ALL"
    assert value(conf, "SrunPortRange") == "60001-63000"
    assert value(conf, "PropagateResourceLimitsExcept") == "MEMLOCK"
    assert int(value(conf, "UnkillableStepTimeout")) >= 180
    assert value(conf, "AccountingStorageTRES") == "gres/gpu,gres/gpu:a100,gres/gpu:h100"
    assert value(conf, "GresTypes") == "gpu"


@pytest.mark.parametrize(
    ("release", "expected"), [(V2205, None), ((23, 2), "rl_enable"), (V2411, "rl_enable"), (V2605, "rl_enable")]
)
def test_rpc_rate_limit_where_the_release_has_it(spec, definitions, release, expected):
    assert value(files.cluster(spec, release, definitions)["slurm.conf"], "SlurmctldParameters") == expected


@pytest.mark.parametrize("release", [V2205, V2411])
def test_cgroup_conf(spec, definitions, release):
    conf = files.cluster(spec, release, definitions)["cgroup.conf"]
    for key in ("ConstrainCores", "ConstrainRAMSpace", "ConstrainSwapSpace", "ConstrainDevices"):
        assert value(conf, key) == "yes"


def test_every_file_says_who_writes_it(spec, definitions):
    for text in files.cluster(spec, V2411, definitions).values():
        assert text.startswith("# Managed by Ansible (gpuops.tenancy)")


def test_the_order_of_hosts_and_options_means_nothing(spec, definitions):
    spec["options"] = {"MaxJobCount": 9, "MessageTimeout": 30, "KillWait": 60}
    before = files.cluster(spec, V2411, definitions)
    random.Random(1).shuffle(definitions)
    spec["options"] = dict(reversed(spec["options"].items()))
    assert files.cluster(spec, V2411, definitions) == before


def test_partitions_have_limits_memory_and_one_weight_per_gpu(spec, definitions):
    conf = files.cluster(spec, V2411, definitions)["slurm.conf"]
    h100, a100 = records(conf, "PartitionName")
    assert (h100["nodes"], h100["default"], h100["maxtime"], h100["defaulttime"]) == (
        "gpu[1-2]",
        "yes",
        "1-00:00:00",
        "00:30:00",
    )
    assert h100["defmempercpu"] == "1000"
    assert h100["tresbillingweights"] == "CPU=1.0,Mem=0.25G,GRES/gpu:h100=32.0"
    # No weight of its own: the untyped one stands in, and is not written besides.
    assert a100["tresbillingweights"] == "CPU=1.0,Mem=0.25G,GRES/gpu:a100=16.0"


def test_backfill_looks_as_far_as_the_longest_job(spec, definitions):
    spec["partitions"][1]["max_time"] = "2-12:00:00"
    assert "bf_window=3600" in value(files.cluster(spec, V2411, definitions)["slurm.conf"], "SchedulerParameters")


@pytest.mark.parametrize(
    ("key", "raw", "words"),
    [
        ("AccountingStorageEnforce", "none", "no value of this key"),
        ("AccountingStorageEnforce", "all", "wckeys"),
        ("AccountingStorageEnforce", "limits", "without associations,qos,safe"),
        ("TaskPluginParam", "Cores,Sockets", "exclude each other"),
        ("TaskPluginParam", "RAM", "no 'RAM'"),
        ("RequeueExit", "0", "requeued for ever"),
        ("RequeueExit", ["100", "0-3"], "requeued for ever"),
        ("PreemptExemptTime", 300, "bare number"),
        ("PrivateData", "jobs,nodes", "sinfo"),
        ("PrivateData", "jobs", "without accounts"),
        ("SchedulerParameters", "bf_continue=true", "takes no value"),
        ("PreemptMode", "SUSPEND", "keep their GPUs"),
    ],
)
@pytest.mark.parametrize("where", ["options", "options_extra"])
def test_published_mistakes_are_refused_with_the_reason(spec, definitions, key, raw, words, where):
    spec[where] = {key: raw}
    with pytest.raises(ConfigError, match=words) as caught:
        files.cluster(spec, V2205, definitions)
    assert key in str(caught.value)


@pytest.mark.parametrize("release", [V2205, V2411])
@pytest.mark.parametrize("where", ["cgroup_options", "cgroup_options_extra"])
def test_kernel_memory_limits_are_refused_everywhere(spec, definitions, release, where):
    spec[where] = {"ConstrainKmemSpace": "no"}
    with pytest.raises(ConfigError, match=r"removed in Slurm 23\.11"):
        files.cluster(spec, release, definitions)


def test_a_harmless_value_of_a_watched_key_is_written(spec, definitions):
    spec["options"] = {"RequeueExit": "100-110", "TaskPluginParam": "Cores", "PreemptExemptTime": "01:00:00"}
    conf = files.cluster(spec, V2205, definitions)["slurm.conf"]
    assert (value(conf, "RequeueExit"), value(conf, "TaskPluginParam")) == ("100-110", "Cores")


@pytest.mark.parametrize(
    ("options", "release", "words"),
    [
        ({"MaxJobCont": 1}, V2205, "did you mean MaxJobCount"),
        ({"Qqq": 1}, V2205, "options_extra"),
        ({"SuspendExcStates": "DOWN"}, V2205, "from Slurm 23.02 on"),
        ({"MailDomain": 'a"b'}, V2205, "misread"),
        ({"MailDomain": "a\nNodeName=x"}, V2205, "misread"),
        ({"MailDomain": "a#b"}, V2205, "misread"),
    ],
)
def test_options_that_do_not_fit(spec, definitions, options, release, words):
    spec["options"] = options
    with pytest.raises(ConfigError, match=words):
        files.cluster(spec, release, definitions)


def test_options_fold_case_override_defaults_and_remove_them(spec, definitions):
    spec["options"] = {"maxjobcount": 7, "ReturnToService": ""}
    spec["options_extra"] = {"SomethingNew": [1, 2], "returntoservice": 1}
    conf = files.cluster(spec, V2411, definitions)["slurm.conf"]
    assert (value(conf, "MaxJobCount"), value(conf, "SomethingNew"), value(conf, "ReturnToService")) == (
        "7",
        "1,2",
        "1",
    )
    assert len([line for line in conf.splitlines() if line.lower().startswith("returntoservice=")]) == 1


TWO = [{"name": "ctl", "address": "172.29.20.10"}, {"name": "ctl2", "address": "172.29.20.12"}]


def test_a_second_controller_needs_shared_state(spec, definitions):
    spec["controllers"] = TWO
    with pytest.raises(ConfigError, match=r"ctl, ctl2.*slurm_config_state_shared: true"):
        files.cluster(spec, V2411, definitions)
    # One alone shares with nobody, whatever is said.
    assert files.cluster({**spec, "controllers": TWO[:1]}, V2411, definitions)


@pytest.mark.parametrize("release", [V2205, V2411])
def test_the_backups_come_second(spec, definitions, release):
    alone = files.cluster(spec, release, definitions)["slurm.conf"]
    assert value(alone, "AccountingStorageBackupHost") is None
    spec |= {"controllers": TWO, "state_shared": True, "database_backup_host": "172.29.20.12"}
    conf = files.cluster(spec, release, definitions)["slurm.conf"]
    assert [it["slurmctldhost"] for it in records(conf, "SlurmctldHost")] == [
        "ctl(172.29.20.10)", "ctl2(172.29.20.12)",
    ]  # fmt: skip
    assert value(conf, "AccountingStorageHost") == "172.29.20.10"
    assert value(conf, "AccountingStorageBackupHost") == "172.29.20.12"
    assert int(value(conf, "SlurmctldTimeout")) == 120


@pytest.mark.parametrize(("backup", "expected"), [("", None), (None, None), ("ctl2", "ctl2")])
def test_slurmdbd_knows_its_backup(backup, expected):
    spec = {"host": "ctl", "address": "172.29.20.10", "backup_host": backup, "storage_host": "172.29.20.10"}
    for release in (V2205, V2411):
        text = files.database(spec, release)
        assert (value(text, "DbdHost"), value(text, "DbdBackupHost")) == ("ctl", expected)


@pytest.mark.parametrize("key", ["cluster_name", "controllers", "database_host", "partitions"])
def test_what_must_not_be_missing(spec, definitions, key):
    spec[key] = None
    with pytest.raises(ConfigError):
        files.cluster(spec, V2411, definitions)


def test_no_nodes_is_an_error_not_an_empty_cluster(spec):
    with pytest.raises(ConfigError, match="no compute node"):
        files.cluster(spec, V2411, [])


@pytest.mark.parametrize("release", [V2205, V2411])
def test_slurmdbd_conf(release):
    spec = {
        "host": "ctl",
        "user": "slurm",
        "log_dir": "/var/log/slurm",
        "storage_host": "localhost",
        "storage_name": "a",
        "storage_user": "slurm",
    }
    text = files.database(spec, release)
    assert value(text, "PrivateData") == "accounts,events,jobs,reservations,usage,users"
    assert value(text, "StoragePass") == files.PASSWORD_MARK
    with pytest.raises(ConfigError, match="sinfo"):
        files.database({**spec, "options": {"PrivateData": "nodes"}}, release)


def test_table_is_free_of_doubles_and_of_unknown_rules():
    for file in ("slurm.conf", "slurmdbd.conf", "cgroup.conf"):
        known = table.keys(file)
        assert len({key.lower() for key in known}) == len(known)
    for file, key in [*table._SINCE, *table._UNTIL]:
        assert key in table.keys(file)
    for file, key in refused._RULES:
        assert table.spelled(file, key)


def test_values():
    assert lines.value("w", "k", True) == "yes"
    assert lines.value("w", "k", {"a": 1, "b": 2}) == "a=1,b=2"
    assert lines.value("w", "k", "a b") == '"a b"'
    assert lines.value("w", "k", []) is None
    assert lines.value("w", "k", 0) == "0"


def test_gres_conf_is_the_same_everywhere_and_folds_nodes(definitions):
    text = nodes.gres_conf(nodes.build(definitions), "off")
    assert "NodeName=gpu[1-2] Name=gpu Type=h100 File=/dev/nvidia[0-3]\n" in text
    assert "NodeName=gpu3 Name=gpu Type=a100 File=/dev/nvidia[0-3]\n" in text
