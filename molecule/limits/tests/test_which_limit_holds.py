# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The one function says which limit holds; jobs of a user say whether it is right. Every kind, every place."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import runpy
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "cluster"))
runpy.run_path(str(ROOT / "tests" / "unit" / "conftest.py"))

from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import effective, fields  # noqa: E402
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.effective import Level  # noqa: E402
from remote import on  # noqa: E402

GPU = "gres/gpu"


@dataclasses.dataclass(frozen=True)
class Probe:
    """How jobs find out a limit. ``set``: what sacctmgr calls the option. ``jobs``: how many jobs of which options
    are sent where the limit is expected to be a number; ``allowed``: how many of them get through then."""

    option: str
    name: str
    counts: bool = False
    refuses: bool = False
    minutes: int = 0
    gpus: bool = False

    def word(self, value: int) -> str:
        return f"{self.name}={GPU}={value}" if self.gpus else f"{self.name}={value}"

    def value(self, value: int):
        """In normal form."""
        field = fields.QOS_BY_OPTION.get(self.option) or fields.BY_OPTION[self.option]
        return {GPU: value} if self.gpus else value * 60 if field.type == fields.TIME else value

    def jobs(self, expected: int) -> list[list[str]]:
        if self.counts:
            return [[]] * (expected + 1)
        if self.minutes:
            gpu = ["--gres=gpu:1"] if self.gpus else []
            # Minutes that earlier jobs have used are counted as well.
            return [[*gpu, f"--time={expected - self.minutes // 2}"], [*gpu, f"--time={expected + 1}"]]
        return [[f"--gres=gpu:{expected}"], [f"--gres=gpu:{expected + 1}"]]


def both(option: str, name: str, **how) -> tuple[Probe, dict[str, Probe]]:
    """A limit that association and QOS know by the same name."""
    probe = Probe(option, name, **how)
    return probe, {option: probe}


# (limit of associations, limits of a QOS that displace it)
KINDS = [
    both("grp_tres", "GrpTRES", gpus=True),
    both("grp_tres_mins", "GrpTRESMins", gpus=True, minutes=60),
    both("grp_tres_run_mins", "GrpTRESRunMins", gpus=True, minutes=60),
    both("grp_jobs", "GrpJobs", counts=True),
    both("grp_submit_jobs", "GrpSubmitJobs", counts=True, refuses=True),
    both("grp_wall", "GrpWall", minutes=60),
    (Probe("max_jobs", "MaxJobs", counts=True), {
        "max_jobs_per_user": Probe("max_jobs_per_user", "MaxJobsPerUser", counts=True),
        "max_jobs_per_account": Probe("max_jobs_per_account", "MaxJobsPerAccount", counts=True),
    }),
    (Probe("max_submit_jobs", "MaxSubmitJobs", counts=True, refuses=True), {
        "max_submit_jobs_per_user": Probe("max_submit_jobs_per_user", "MaxSubmitJobsPerUser", counts=True, refuses=True),
        "max_submit_jobs_per_account": Probe(
            "max_submit_jobs_per_account", "MaxSubmitJobsPerAccount", counts=True, refuses=True
        ),
    }),
    both("max_tres_per_job", "MaxTRESPerJob", gpus=True),
    both("max_tres_per_node", "MaxTRESPerNode", gpus=True),
    both("max_tres_mins_per_job", "MaxTRESMinsPerJob", gpus=True, minutes=60),
    both("max_wall", "MaxWall", minutes=60),
]  # fmt: skip
ONLY_QOS = [
    Probe("max_tres_per_user", "MaxTRESPerUser", gpus=True),
    Probe("max_tres_per_account", "MaxTRESPerAccount", gpus=True),
]
# Where the numbers 1, 2 and 3 are set. What wins is for the function to say.
PLACES = [
    {"user": 2, "team": 1},
    {"team": 2, "top": 1},
    {"top": 2},
    {"user": 1, "job": 3},
    {"user": 1, "partition_qos": 2},
    {"team": 1, "job": 3, "partition_qos": 2},
    {"user": 1, "job": 3, "partition_qos": 2, "over": True},
]


@dataclasses.dataclass
class Case:
    name: str
    levels: dict[str, dict]
    words: dict[str, list[str]]
    jobs: list[list[str]]
    allowed: list[bool]
    refused: bool | None
    says: str
    partition: list[str] = dataclasses.field(default_factory=list)

    def as_dict(self) -> dict:
        found = {
            "name": self.name,
            "set": self.words,
            "jobs": self.jobs,
            "partition_qos": "partition_qos" in self.levels,
        }
        return {**found, "partition": self.partition} if self.partition else found


def limits(levels: dict[str, dict], partition: dict | None = None) -> list[effective.Limit]:
    rows = [Level(f"assoc {name}", levels.get(name, {})) for name in ("user", "team", "top")]
    job = Level("QOS of job", levels.get("job", {}))
    of_partition = Level("QOS of partition", levels["partition_qos"]) if "partition_qos" in levels else None
    return effective.effective(rows, job, of_partition, Level("partition", partition) if partition else None)


def cases() -> list[Case]:
    found = []
    for probe, of_qos in KINDS:
        for option, in_qos in of_qos.items():
            for place in PLACES:
                if option != next(iter(of_qos)) and not {"job", "partition_qos"} & set(place):
                    continue
                found.append(one(probe, in_qos, place))
    for probe in ONLY_QOS:
        found += [one(probe, probe, place) for place in ({"job": 2}, {"job": 3, "partition_qos": 2})]
    return found + special()


def one(probe: Probe, in_qos: Probe, place: dict) -> Case:
    scale = probe.minutes or 1
    levels: dict[str, dict] = {}
    words: dict[str, list[str]] = {}
    for level, number in place.items():
        if level == "over":
            levels["job"]["flags"] = frozenset({"OverPartQOS"})
            words["job"].append("Flags=OverPartQOS")
            continue
        setter = in_qos if level in ("job", "partition_qos") else probe
        levels[level] = {setter.option: setter.value(number * scale)}
        words[level] = [setter.word(number * scale)]
    holds = min(limits(levels), key=lambda limit: limit.value)
    field = fields.QOS_BY_OPTION.get(holds.option) or fields.BY_OPTION[holds.option]
    expected = holds.value // 60 if field.type == fields.TIME else holds.value
    jobs = probe.jobs(expected)
    where = ",".join(f"{level}={number}" for level, number in place.items())
    # A QOS alone has limits for each account.
    family = "Assoc" if holds.level.startswith("assoc") else "PerAccount" if "per_account" in holds.option else "QOS"
    name = f"{in_qos.option} {where}"
    return Case(name, levels, words, jobs, [True] * (len(jobs) - 1) + [False], probe.refuses, family)


def special() -> list[Case]:
    def gpu(count):
        return [f"--gres=gpu:{count}"]

    def wall(*minutes):
        return [[f"--time={number}"] for number in minutes]

    def case(name, words, jobs, allowed, refused=None, says="", partition=(), of_partition=False):
        levels = {"partition_qos": {}} if of_partition else {}
        return Case(name, levels, words, jobs, allowed, refused, says, list(partition))

    thirty = ["MaxTime=30"]
    flag = "Flags=PartitionTimeLimit"
    two = ["Nodes=gpu1,gpu2", "MaxNodes=1"]
    nodes = [["-N2"]]
    factor = {"user": ["GrpTRES=gres/gpu=1"], "job": ["LimitFactor=2"]}
    return [
        case("a smaller one of another TRES", {"user": ["GrpTRES=gres/gpu=1"], "job": ["GrpTRES=cpu=8"]},
             [gpu(1), gpu(2)], [True, False], False, "AssocGrpGRES"),
        # What a QOS counts by itself the association does not: a cap of 1, and 3 GPUs in use.
        case("a larger group limit adds up", {"team": ["GrpTRES=gres/gpu=1"], "job": ["GrpTRES=gres/gpu=2"]},
             [[*gpu(1), "--qos=normal"], gpu(2)], [True, True]),
        case("a smaller group limit adds up", {"team": ["GrpTRES=gres/gpu=2"], "job": ["GrpTRES=gres/gpu=1"]},
             [[*gpu(2), "--qos=normal"], gpu(1), gpu(1)], [True, True, False], False, "QOSGrpGRES"),
        case("factor grp_tres", factor, [gpu(2)], [True]),
        case("factor grp_tres, more", factor, [gpu(3)], [False], False, "AssocGrpGRES"),
        case("factor max_tres_per_job", {"user": ["MaxTRESPerJob=gres/gpu=1"], "job": ["LimitFactor=2"]},
             [gpu(2), gpu(3)], [True, False], False, "AssocMaxGRESPerJob"),
        case("factor does not touch nodes", {"user": ["MaxTRESPerNode=gres/gpu=1"], "job": ["LimitFactor=2"]},
             [gpu(1), gpu(2)], [True, False], False, "AssocMaxGRESPerNode"),
        case("factor does not touch minutes", {"user": ["GrpTRESMins=gres/gpu=60"], "job": ["LimitFactor=2"]},
             [[*gpu(1), "--time=61"]], [False], False, "AssocGrpGRESMinutes"),
        case("factor of the partition's QOS first", {"user": ["GrpTRES=gres/gpu=1"], "job": ["LimitFactor=3"],
             "partition_qos": ["LimitFactor=2"]}, [gpu(3)], [False], False, "AssocGrpGRES", of_partition=True),
        case("a QOS in the way of no other level", {"job": ["MinTRES=gres/gpu=2"]}, [gpu(1), gpu(2)], [False, True],
             False, "QOSMinGRES"),
        case("DenyOnLimit refuses", {"job": ["MaxTRESPerUser=gres/gpu=2", "Flags=DenyOnLimit"]}, [gpu(2), gpu(3)],
             [True, False], True, "QOSMaxGRESPerUser"),
        case("DenyOnLimit refuses by the association too", {"user": ["GrpTRES=gres/gpu=2"], "job": ["Flags=DenyOnLimit"]},
             [gpu(2), gpu(3)], [True, False], True, "AssocGrpGRES"),
        case("a partition bounds time", {"job": ["MaxWall=60"]}, wall(30, 31), [True, False], True, "time limit", thirty),
        case("a shorter wall counts", {"user": ["MaxWall=20"]}, wall(20, 25), [True, False], False, "AssocMaxWall", thirty),
        case("PartitionTimeLimit", {"job": ["MaxWall=60", flag]}, wall(60, 61), [True, False], False, "QOSMaxWall", thirty),
        case("PartitionTimeLimit and nothing else", {"job": [flag]}, wall(90), [True], partition=thirty),
        case("PartitionTimeLimit and an association", {"user": ["MaxWall=45"], "job": [flag]}, wall(45, 46),
             [True, False], False, "AssocMaxWall", thirty),
        case("PartitionTimeLimit of the partition's QOS is none", {"partition_qos": ["MaxWall=60", flag]}, wall(30, 31),
             [True, False], True, "time limit", thirty, of_partition=True),
        case("a partition bounds nodes", {"job": ["MaxTRESPerJob=node=2"]}, nodes, [False], True, "Node count", two),
        case("PartitionMaxNodes", {"job": ["Flags=PartitionMaxNodes"]}, nodes, [True], partition=two),
        case("PartitionMaxNodes and a QOS", {"job": ["Flags=PartitionMaxNodes", "MaxTRESPerJob=node=1"]}, nodes, [False],
             False, "QOSMaxNodePerJob", two),
        case("PartitionMaxNodes of the partition's QOS is none", {"partition_qos": ["Flags=PartitionMaxNodes"]}, nodes,
             [False], True, "Node count", two, of_partition=True),
    ]  # fmt: skip


CASES = {case.name: case for case in cases()}


@pytest.fixture(scope="module")
def answers() -> dict[str, list[dict]]:
    source = (ROOT / "molecule" / "limits" / "probe.py").read_text()
    sent = json.dumps([case.as_dict() for case in CASES.values()])
    done = on("ctl", "python3", "-c", source, stdin=sent, timeout=600)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    told = json.loads(done.stdout)
    assert not told["errors"]
    return {answer["name"]: answer["jobs"] for answer in told["found"]}


@pytest.mark.parametrize("name", CASES)
def test_jobs_meet_the_limit_that_the_function_says(answers, name):
    case = CASES[name]
    got = answers[name]
    through = ("RUNNING", "ACCEPTED", "PENDING") if case.refused and "submit" in name else ("RUNNING",)
    assert [job["state"] in through for job in got] == case.allowed, got
    for job, allowed in zip(got, case.allowed):
        if not allowed:
            assert case.says in job["reason"], job
            assert (job["state"] == "REFUSED") is case.refused, job
