# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Jobs: reading the queue, and selecting from it. Pure; private to the gpuops.tenancy collection.

Users choose names and comments of their jobs freely, line breaks included: columns are separated by a word that is
drawn for each reading, so that no text can pass for another job.
"""

from __future__ import annotations

import dataclasses
import re
import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import hostlist
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.desired import Refused

# column: letter of squeue's format
COLUMNS = {
    "id": "i",
    "array_job_id": "F",
    "array_task_id": "K",
    "user": "u",
    "account": "a",
    "partition": "P",
    "qos": "q",
    "state": "T",
    "reason": "r",
    "priority": "Q",
    "nodes": "N",
    "node_count": "D",
    "cpus": "C",
    "gres": "b",
    "reservation": "v",
    "submit_time": "V",
    "start_time": "S",
    "end_time": "e",
    "time_limit": "l",
    "dependency": "E",
    "work_dir": "Z",
    "name": "j",
    "comment": "k",
}
_EMPTY = ("", "(null)", "N/A", "n/a", "None")
# squeue keeps showing a job for some minutes after its end.
OVER = frozenset(
    (
        "BOOT_FAIL",
        "CANCELLED",
        "COMPLETED",
        "DEADLINE",
        "FAILED",
        "NODE_FAIL",
        "OUT_OF_MEMORY",
        "PREEMPTED",
        "REVOKED",
        "TIMEOUT",
    )
)
_WAITING = frozenset(("PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD"))
_STATES = (
    OVER
    | _WAITING
    | {
        "COMPLETING",
        "CONFIGURING",
        "RESIZING",
        "RUNNING",
        "SIGNALING",
        "STAGE_OUT",
        "STOPPED",
        "SUSPENDED",
    }
)
_SHORT = {
    "BF": "BOOT_FAIL",
    "CA": "CANCELLED",
    "CD": "COMPLETED",
    "CF": "CONFIGURING",
    "CG": "COMPLETING",
    "DL": "DEADLINE",
    "F": "FAILED",
    "NF": "NODE_FAIL",
    "OOM": "OUT_OF_MEMORY",
    "PD": "PENDING",
    "PR": "PREEMPTED",
    "R": "RUNNING",
    "S": "SUSPENDED",
    "ST": "STOPPED",
    "TO": "TIMEOUT",
}
_ID = re.compile(r"^[0-9]+(_[0-9]+)?(\+[0-9]+)?$")


@dataclasses.dataclass(frozen=True)
class Selection:
    """A job is meant when it is in every list that was given."""

    ids: frozenset[str] | None = None
    users: frozenset[str] | None = None
    accounts: frozenset[str] | None = None
    states: frozenset[str] | None = None
    nodes: frozenset[str] | None = None
    partitions: frozenset[str] | None = None
    reservations: frozenset[str] | None = None

    @property
    def everything(self) -> bool:
        """A state or a partition is shared by people who have nothing to do with each other."""
        return not any((self.ids, self.users, self.accounts, self.nodes, self.reservations))

    def holds(self, job: Job) -> bool:
        return (
            (self.ids is None or bool(self.ids & {job.id, job.array, job.leader}))
            and (self.users is None or job.user in self.users)
            and (self.accounts is None or job.account in self.accounts)
            and (self.states is None or job.state in self.states)
            and (self.nodes is None or bool(self.nodes & set(job.nodes)))
            and (self.partitions is None or bool(self.partitions & set(job.partition.split(","))))
            and (self.reservations is None or job.reservation in self.reservations)
        )


@dataclasses.dataclass(frozen=True)
class Job:
    id: str
    user: str
    account: str
    state: str
    nodes: tuple[str, ...] = ()
    partition: str = ""
    array: str = ""
    reservation: str = ""
    held: bool = False
    start_time: str = ""
    values: t.Mapping[str, t.Any] = dataclasses.field(default_factory=dict, compare=False)

    @property
    def leader(self) -> str:
        """The id that a heterogeneous job has as a whole."""
        return self.id.partition("+")[0]

    @property
    def over(self) -> bool:
        return self.state in OVER

    @property
    def waiting(self) -> bool:
        return self.state in _WAITING

    @property
    def on_nodes(self) -> bool:
        return bool(self.nodes) and not self.over and not self.waiting

    @property
    def label(self) -> str:
        return f"{self.id} ({self.user}, {self.state})"

    def as_dict(self) -> dict[str, t.Any]:
        return dict(self.values)


def squeue_words(mark: str) -> list[str]:
    """-a: hidden partitions too; -r: a line for each task of an array; --local: not the jobs of a federation.

    :param mark: a word that no user can have guessed.
    """
    between, after = _separators(mark)
    return ["-h", "-a", "-r", "--local", "-o", between.join(f"%{letter}" for letter in COLUMNS.values()) + after]


def parse(text: str, mark: str) -> list[Job]:
    between, after = _separators(mark)
    records = text.split(f"{after}\n")
    if records.pop().strip():
        raise ValueError(f"squeue ended in the middle of a job: {text[-200:]!r}")
    found = []
    for record in records:
        values = record.split(between)
        if len(values) != len(COLUMNS):
            raise ValueError(f"squeue printed {record!r}, which has {len(values)} columns, not {len(COLUMNS)}")
        found.append(_job(dict(zip(COLUMNS, values))))
    return found


def _separators(mark: str) -> tuple[str, str]:
    """Between columns and after the last one; not the same, since a text may begin with a line break."""
    return f"|{mark}|", f"|{mark}."


def _job(row: dict[str, str]) -> Job:
    values: dict[str, t.Any] = {key: "" if text in _EMPTY else text for key, text in row.items()}
    nodes = tuple(hostlist.expand(values["nodes"]))
    # Nothing else has the priority 0; the reason may lag behind.
    held = row["state"] in _WAITING and (row["priority"] == "0" or row["reason"].startswith("JobHeld"))
    is_task = values["array_task_id"].isdigit()
    array = values["array_job_id"] if is_task else row["id"]
    values.update(
        nodes=list(nodes),
        # 22.05 prints gres:gpu:1, later releases gres/gpu:1.
        gres=values["gres"].replace("gres:", "gres/"),
        held=held,
        array_job_id=array if is_task else "",
        priority=int(row["priority"]) if row["priority"].isdigit() else 0,
        node_count=int(row["node_count"]) if row["node_count"].isdigit() else 0,
        cpus=int(row["cpus"]) if row["cpus"].isdigit() else 0,
    )
    return Job(
        row["id"],
        row["user"],
        values["account"],
        row["state"],
        nodes,
        values["partition"],
        array,
        values["reservation"],
        held,
        values["start_time"],
        values,
    )


def selection(params: t.Mapping[str, t.Any]) -> Selection:
    """An empty list is refused: a variable that lost its content must not select more than it did before."""
    problems: list[str] = []
    given: dict[str, frozenset[str]] = {}
    for field in dataclasses.fields(Selection):
        value = params.get(field.name)
        if value is None:
            continue
        words = [str(word).strip() for word in value]
        if not words or not all(words):
            problems.append(f"{field.name} is empty or holds an empty entry; leave it out, or say which are meant")
            continue
        given[field.name] = frozenset(words)
    try:
        for name in ("ids", "nodes"):
            if name in given:
                given[name] = frozenset(one for text in given[name] for one in hostlist.expand(text))
    except hostlist.HostlistError as exc:
        problems.append(str(exc))
    wrong = sorted(text for text in given.get("ids", ()) if not _ID.match(text))
    if wrong:
        problems.append(f"{', '.join(wrong)} is no id of a job; write for example 123, 123_4 or 123_[1-9]")
    if "states" in given:
        given["states"] = frozenset(_SHORT.get(word.upper(), word.upper()) for word in given["states"])
        unknown = sorted(given["states"] - _STATES)
        if unknown:
            problems.append(f"{', '.join(unknown)} is no state of a job; known are {', '.join(sorted(_STATES))}")
    if "accounts" in given:
        given["accounts"] = frozenset(name.lower() for name in given["accounts"])
    if problems:
        raise Refused(problems)
    return Selection(**given)


def refuse_everything(wanted: Selection) -> None:
    if wanted.everything:
        raise Refused(["this would select everybody's jobs; give ids, users, accounts, nodes or reservations as well"])


def on_nodes(jobs: t.Iterable[Job], names: t.Iterable[str]) -> dict[str, list[Job]]:
    """Node -> jobs that hold it. A suspended job does, although Slurm shows its node as idle."""
    found: dict[str, list[Job]] = {name: [] for name in names}
    for job in jobs:
        if job.on_nodes:
            for name in job.nodes:
                if name in found:
                    found[name].append(job)
    return found
