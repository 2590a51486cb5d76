# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The configuration files of a cluster, from plain data. Private to the gpuops.tenancy collection.

The text depends on the inventory and the release only, never on the host it is made for: every host gets the same
slurm.conf, and a run limited to one host makes the same file as a run on all.
"""

from __future__ import annotations

import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.conf import (
    isolation,
    jobs,
    lines,
    refused,
    retention,
    topology,
)
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.conf import (
    nodes as node_lines,
)
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.conf import (
    partitions as partition_lines,
)
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.conf.version import ConfigError, Version

# Stands in for the database password until the file is written; the module replaces it (no_log).
PASSWORD_MARK = "<<secret:storage_pass>>"

_NAMES = ("cluster_name", "controllers", "database_host", "user", "state_dir", "spool_dir", "log_dir")


def cluster(
    spec: t.Mapping[str, t.Any], version: Version, definitions: t.Sequence[t.Mapping[str, t.Any]]
) -> dict[str, str]:
    """File name -> text for slurm.conf, cgroup.conf, gres.conf and, where there is need, topology.conf and job_container.conf."""
    missing = [name for name in _NAMES if not spec.get(name)]
    if missing:
        raise ConfigError(f"the cluster's configuration lacks {', '.join(missing)}")
    if not definitions:
        raise ConfigError(
            "the inventory defines no compute node, and a slurm.conf without nodes would drop every job; "
            "check the group slurm_compute"
        )
    if len(spec["controllers"]) > 1 and not spec.get("state_shared"):
        names = ", ".join(str(item.get("name")) for item in spec["controllers"])
        raise ConfigError(
            f"there are several controllers ({names}), and a backup that does not see the primary's {spec['state_dir']} would start "
            "without its jobs and kill them; put slurm_config_state_dir on storage that all of them mount, and say so: "
            "slurm_config_state_shared: true"
        )
    nodes = node_lines.build(definitions)
    tree = topology.build(nodes, spec.get("switches") or [])
    apart = isolation.read(spec)
    parts, longest = partition_lines.build(
        isolation.partitions(spec.get("partitions") or [], nodes, apart, spec.get("private_partition") or {}),
        nodes,
        spec.get("partition_defaults") or {},
        spec.get("billing_weights") or {},
    )
    values = lines.options(
        "slurm.conf",
        version,
        {**_slurm_defaults(spec, version, nodes, longest, tree), **apart.mcs()},
        spec.get("options"),
        spec.get("options_extra"),
    )
    controllers = "".join(f"SlurmctldHost={_controller(item)}\n" for item in spec["controllers"])
    result = {
        "slurm.conf": (
            f"{lines.HEADER}{controllers}{lines.text(values)}"
            f"\n# Nodes: from the inventory only.\n{_joined(node.line for node in nodes)}"
            f"\n{_joined(parts)}"
        ),
        "cgroup.conf": lines.HEADER
        + lines.text(
            lines.options("cgroup.conf", version, CGROUP, spec.get("cgroup_options"), spec.get("cgroup_options_extra"))
        ),
        "gres.conf": node_lines.gres_conf(nodes, str(spec.get("gres_autodetect") or "off")),
    }
    container = jobs.container(spec, version)
    result.update({name: text for name, text in (("topology.conf", tree), (jobs.FILE, container)) if text})
    return result


def database(spec: t.Mapping[str, t.Any], version: Version) -> str:
    """slurmdbd.conf with a mark in the place of the password."""
    defaults = {
        "AuthType": "auth/munge",
        "DbdHost": spec.get("host"),
        "DbdAddr": spec.get("address"),
        "DbdBackupHost": spec.get("backup_host"),
        "SlurmUser": spec.get("user"),
        "LogFile": f"{spec.get('log_dir')}/slurmdbd.log",
        "DebugLevel": "info",
        # Private here as well: slurm.conf's PrivateData does not bind sacct and sacctmgr.
        "PrivateData": ",".join(refused.PRIVATE),
        "StorageType": "accounting_storage/mysql",
        "StorageHost": spec.get("storage_host"),
        "StorageLoc": spec.get("storage_name"),
        "StorageUser": spec.get("storage_user"),
        "StoragePass": PASSWORD_MARK,
        **retention.keys(spec),
    }
    values = lines.options("slurmdbd.conf", version, defaults, spec.get("options"), spec.get("options_extra"))
    retention.check(values, spec)
    return lines.HEADER + lines.text(values)


CGROUP: dict[str, t.Any] = {
    "CgroupPlugin": "autodetect",
    "ConstrainCores": True,
    "ConstrainDevices": True,
    "ConstrainRAMSpace": True,
    # Otherwise a job over its memory limit moves to swap and slows down everybody on the node.
    "ConstrainSwapSpace": True,
    "AllowedSwapSpace": 0,
}


def _slurm_defaults(
    spec: t.Mapping[str, t.Any],
    version: Version,
    nodes: t.Sequence[node_lines.Node],
    longest: int,
    tree: str,
) -> dict[str, t.Any]:
    return {
        "ClusterName": spec["cluster_name"],
        "SlurmUser": spec["user"],
        "AuthType": "auth/munge",
        "CredType": "cred/munge",
        "StateSaveLocation": spec["state_dir"],
        "SlurmdSpoolDir": spec["spool_dir"],
        "SlurmctldLogFile": f"{spec['log_dir']}/slurmctld.log",
        "SlurmdLogFile": f"{spec['log_dir']}/slurmd.log",
        # Who may use what.
        "AccountingStorageType": "accounting_storage/slurmdbd",
        "AccountingStorageHost": spec["database_host"],
        "AccountingStorageBackupHost": spec.get("database_backup_host"),
        "AccountingStorageEnforce": ",".join(refused.ENFORCE),
        "AccountingStorageTRES": node_lines.tres(nodes, spec.get("tres_extra") or []),
        "EnforcePartLimits": "ALL",
        "DisableRootJobs": True,
        "PrivateData": ",".join(refused.PRIVATE),
        # What a job is kept in.
        "ProctrackType": "proctrack/cgroup",
        "TaskPlugin": "task/affinity,task/cgroup",
        **jobs.keys(spec, version),
        "JobAcctGatherType": "jobacct_gather/cgroup",
        # What slurmd has itself, instead of what the shell had that submitted.
        "PropagateResourceLimitsExcept": "MEMLOCK,NPROC" if spec.get("max_processes") else "MEMLOCK",
        "UnkillableStepTimeout": 300,
        "GresTypes": node_lines.gres_types(nodes),
        "SelectType": "select/cons_tres",
        "SelectTypeParameters": "CR_Core_Memory",
        "TopologyPlugin": "topology/tree" if tree else None,
        # Who comes first.
        "PriorityType": "priority/multifactor",
        "PriorityFlags": "FAIR_TREE",
        "PriorityDecayHalfLife": "7-00:00:00",
        "PriorityMaxAge": "7-00:00:00",
        # A QOS outweighs fair share, fair share outweighs waiting, waiting breaks ties.
        "PriorityWeightQOS": 1000000,
        "PriorityWeightFairshare": 100000,
        "PriorityWeightAge": 10000,
        "PriorityWeightJobSize": 1000,
        "SchedulerType": "sched/backfill",
        # Backfill has to look as far ahead as the longest job may run.
        "SchedulerParameters": [
            "bf_continue",
            f"bf_window={longest}",
            "bf_resolution=180",
            "bf_max_job_test=1000",
            "max_rpc_cnt=150",
            # A job whose node fails its prolog goes to another one, instead of waiting for its owner to release it.
            "nohold_on_prolog_fail",
        ],
        "PreemptType": "preempt/qos",
        "PreemptMode": "REQUEUE",
        "PreemptExemptTime": "00:05:00",
        # How daemons and nodes behave.
        "MaxJobCount": 50000,
        "ReturnToService": 2,
        "SlurmctldTimeout": 120,
        "SlurmdTimeout": 300,
        # srun listens here: a firewall can name the ports.
        "SrunPortRange": "60001-63000",
        "SlurmctldParameters": _controller_parameters(spec, version),
    }


def _controller_parameters(spec: t.Mapping[str, t.Any], version: Version) -> list[str]:
    result = ["enable_configless"] if spec.get("configless") else []
    if version >= (23, 2):
        # One user's script in a loop must not take the controller from the others.
        result.append("rl_enable")
    return result + [str(item) for item in spec.get("slurmctld_parameters") or []]


def _controller(item: t.Mapping[str, t.Any]) -> str:
    name, address = str(item.get("name") or ""), str(item.get("address") or "")
    if not name or not address:
        raise ConfigError(
            f"controller {name or '?'} has no {'address' if name else 'name'}; set tenancy_address_cluster for the host"
        )
    lines.value("slurm.conf", "SlurmctldHost", name + address)
    return f"{name}({address})"


def _joined(items: t.Iterable[str]) -> str:
    return "".join(f"{item}\n" for item in items)
