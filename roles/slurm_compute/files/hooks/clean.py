# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cleans up behind a job (epilog.d/90-clean), or behind everybody (``clean.py scrub``) before a node gets another owner.

A user who has another job on the node keeps all that may belong to it. System accounts, and the people and groups
that the configuration exempts, are never touched. A read that fails ends it with a traceback: nothing is removed.
"""

from __future__ import annotations

import glob
import grp
import json
import os
import pwd
import sys
import time
import typing as t

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import jobs
import leftovers
import processes

NODE = 86
PROC = "/proc"
# systemd's services of changing users, nobody, and what no account may have.
NOBODYS = range(61184, 65536)
MQUEUE = "/dev/mqueue"
# What would start something of a user's by and by: crontabs, at jobs, services of users who are not logged in.
SPOOLS = ("/var/spool/cron", "/var/spool/at")
LINGER = "/var/lib/systemd/linger"


def subordinate(text: str, user: pwd.struct_passwd) -> list[range]:
    """The numbers that a user may take inside a container of his own, from /etc/subuid. Pure."""
    found = []
    for row in text.splitlines():
        words = row.strip().split(":")
        if (
            len(words) == 3
            and words[0] in (user.pw_name, str(user.pw_uid))
            and words[1].isdigit()
            and words[2].isdigit()
        ):
            first, size = int(words[1]), int(words[2])
            # Below lie real users.
            if first >= 65536:
                found.append(range(first, first + size))
    return found


def a_users(uid: int, config: t.Mapping[str, t.Any]) -> bool:
    return uid >= config["uid_min"] and uid not in NOBODYS


def exempt(user: pwd.struct_passwd, config: t.Mapping[str, t.Any]) -> str:
    """Why nothing of this user is touched."""
    if not a_users(user.pw_uid, config):
        return f"uid {user.pw_uid} is no user's"
    if user.pw_name in config["exempt_users"]:
        return f"{user.pw_name} is exempt"
    member = set(os.getgrouplist(user.pw_name, user.pw_gid))
    for name in config["exempt_groups"]:
        try:
            if grp.getgrnam(name).gr_gid in member:
                return f"{user.pw_name} is in group {name}"
        except KeyError:
            continue
    return ""


def owner_of(user: pwd.struct_passwd, subuid: str = "/etc/subuid") -> t.Callable[[int], bool]:
    try:
        with open(subuid, encoding="utf-8") as handle:
            ranges = subordinate(handle.read(), user)
    except FileNotFoundError:
        ranges = []
    return lambda uid: uid == user.pw_uid or any(uid in numbers for numbers in ranges)


def everybody(config: t.Mapping[str, t.Any]) -> t.Callable[[int], bool]:
    """Every user's number, the exempt ones' excepted; one that nobody has (any more) counts as a user's."""
    known: dict[int, bool] = {}

    def owns(uid: int) -> bool:
        if uid not in known:
            try:
                known[uid] = not exempt(pwd.getpwuid(uid), config)
            except KeyError:
                known[uid] = a_users(uid, config)
        return known[uid]

    return owns


def devices(config: t.Mapping[str, t.Any]) -> set[str]:
    return {path for pattern in config["devices"] for path in glob.glob(pattern)}


class Cleaner:
    def __init__(self, config: t.Mapping[str, t.Any], owns: t.Callable[[int], bool], job: int | None) -> None:
        self.config = config
        self.owns = owns
        self.job = job
        self.report: list[str] = []
        self.broken: list[str] = []

    def end(self, find: t.Callable[[], list[processes.Process]], what: str, uid: int | None = None) -> None:
        ended, left = processes.end(PROC, find, self.config["patience"], uid)
        if ended:
            self.report.append(f"{what} ended: " + ", ".join(f"{one.pid} {one.name}" for one in ended[:10]))
        if left:
            self.broken.append(f"{what} cannot be ended: " + ", ".join(f"{one.pid} {one.name}" for one in left[:10]))

    def processes(self, spare: t.Container[int], all_of_them: bool, uid: int | None = None) -> None:
        def find() -> list[processes.Process]:
            return processes.targets(processes.read(PROC), self.owns, self.job, spare, all_of_them)

        self.end(find, "processes", uid)

    def gpus(self, spare: t.Container[int]) -> None:
        """Holders of a GPU outside every job that runs: nobody's work, and in the next job's way."""
        names = devices(self.config)

        def find() -> list[processes.Process]:
            # Only users' processes: the persistence daemon and monitoring are the system's.
            outside = [
                one
                for one in processes.read(PROC)
                if one.belongs_to(self.owns) and (one.job is None or one.job == self.job or one.job not in spare)
            ]
            return processes.holders(PROC, outside, names)

        if names:
            self.end(find, "holders of GPUs")

    def objects(self) -> None:
        gone = leftovers.remove_sysv(PROC, self.owns)
        if gone:
            self.report.append(f"{len(gone)} System V objects removed")
        self.files([MQUEUE, *self.config["directories"]], self.config["patience"])

    def files(self, directories: t.Iterable[str], patience: float) -> None:
        deadline = time.monotonic() + patience
        for directory in directories:
            count, done = leftovers.remove_files(directory, self.owns, deadline)
            if count:
                self.report.append(f"{count} entries of {directory} removed")
            if not done:
                self.report.append(f"{directory} is not finished: too many files")


def after_job(config: t.Mapping[str, t.Any], job: int, uid: int) -> Cleaner:
    """:raises KeyError: this node does not know the user, so not who is exempt either."""
    user = pwd.getpwuid(uid)
    cleaner = Cleaner(config, owner_of(user), job)
    why = exempt(user, config)
    if why:
        cleaner.report.append(f"nothing touched: {why}")
        return cleaner
    registry = jobs.Registry(config["state"])
    # A job of this user that is about to begin waits in its prolog until this is done.
    with registry.lock(f"user-{uid}", config["patience"]) as held:
        alive = jobs.live(PROC, config["spool"]) - {job}
        members = {one.job for one in processes.read(PROC) if one.job is not None and one.belongs_to(cleaner.owns)}
        registry.prune(alive | {job}, config["grace"], time.time())
        other = jobs.others(job, uid, registry.read(), alive, members, config["grace"], time.time())
        if not held:
            cleaner.report.append("another clean-up of this user is at work")
            # As if there were another job: only what is certainly this one's.
            other = other | {0}
        spare = alive | other
        cleaner.processes(spare, all_of_them=not other, uid=None if other else uid)
        cleaner.gpus(spare)
        if other:
            cleaner.report.append("the user has other jobs here: " + ", ".join(str(one) for one in sorted(other)[:10]))
        else:
            cleaner.objects()
    return cleaner


def scrub(config: t.Mapping[str, t.Any]) -> Cleaner:
    """Everything of every user. Only on a node without jobs."""
    alive = jobs.live(PROC, config["spool"])
    cleaner = Cleaner(config, everybody(config), None)
    if alive:
        cleaner.broken.append("jobs are still here: " + ", ".join(str(one) for one in sorted(alive)))
        return cleaner
    # First what would start them again.
    cleaner.files(SPOOLS, config["patience"])
    for path in lingering(config, cleaner.owns):
        os.unlink(path)
        cleaner.report.append(f"{path} removed")
    cleaner.processes(set(), all_of_them=True)
    cleaner.gpus(set())
    cleaner.objects()
    cleaner.files(config["scrub_directories"], config["scrub_patience"])
    return cleaner


def lingering(config: t.Mapping[str, t.Any], owns: t.Callable[[int], bool]) -> list[str]:
    """systemd's marks of users whose services run without a login. They are root's files, with the users' names."""
    found = []
    try:
        names = sorted(os.listdir(LINGER))
    except FileNotFoundError:
        return []
    for name in names:
        try:
            users = owns(pwd.getpwnam(name).pw_uid)
        except KeyError:
            # As with a number that nobody has (any more).
            users = name not in config["exempt_users"]
        if users:
            found.append(os.path.join(LINGER, name))
    return found


def left(config: t.Mapping[str, t.Any]) -> list[str]:
    """What users still have on this node; removes nothing."""
    owns = everybody(config)
    found = [
        f"process {one.pid} {one.name} of {one.real}"
        for one in processes.read(PROC)
        if one.belongs_to(owns) and one.state not in "ZX"
    ]
    found += leftovers.remove_sysv(PROC, owns, dry=True)
    found += lingering(config, owns)
    deadline = time.monotonic() + config["scrub_patience"]
    for directory in [MQUEUE, *config["directories"], *SPOOLS, *config["scrub_directories"]]:
        count, done = leftovers.remove_files(directory, owns, deadline, dry=True)
        if count or not done:
            found.append(f"{count} entries of {directory}" + ("" if done else ", and more"))
    return found


def main(argv: t.Sequence[str], given: t.Mapping[str, str]) -> int:
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "hooks.json"), encoding="utf-8") as handle:
        config = json.load(handle)
    if argv[1:] == ["left"]:
        found = left(config)
        print("\n".join(found) or "nothing")
        return NODE if found else 0
    behind_all = argv[1:] == ["scrub"]
    cleaner = (
        scrub(config) if behind_all else after_job(config, int(given["SLURM_JOB_ID"]), int(given["SLURM_JOB_UID"]))
    )
    print("; ".join(cleaner.report) or "nothing was left")
    if cleaner.broken:
        print("node: " + "; ".join(cleaner.broken))
        return NODE
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv, os.environ))
