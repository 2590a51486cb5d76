# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Talking to slurmdbd through sacctmgr: reads the whole state once, writes in measured portions.

Private to the gpuops.tenancy collection.
"""

from __future__ import annotations

import concurrent.futures
import time
import typing as t

from ansible_collections.gpuops.tenancy.plugins.module_utils import _command
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import fields, lineage, parse, values
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.model import (
    ROOT,
    Account,
    Association,
    Key,
    State,
    User,
)

# run(argv, timeout=, pass_fds=) -> Completed; tests give one that reaches another host.
Runner = t.Callable[..., _command.Completed]

_KEY = ("account", "user", "partition")
_EFFECTIVE = ("account", "user", "partition", "parentname", "qos")
_READ_TIMEOUT = 300.0
_RETRY = ("something was wrong with your query", "database is busy", "waiting for lock", "deadlock")
_NO_ANSWER = (
    "connection refused",
    "persistent connection",
    "unable to contact slurmdbd",
    "connection timed out",
    # The connection broke while the answer came.
    "_slurm_persist_recv_msg",
    "getting response to message type",
)


class SlurmError(Exception):
    """Accounting cannot be read or written; ``details`` is what a module passes on."""

    def __init__(self, message: str, details: dict[str, t.Any] | None = None) -> None:
        super().__init__(message)
        self.details = details or {}


class Transient(SlurmError):
    """Refused because somebody else was writing: read again and retry."""


class Client:
    def __init__(self, cluster: str, search_path: t.Sequence[str] = (), runner: Runner = _command.run) -> None:
        self.cluster = cluster
        self.search_path = search_path
        self.runner = runner
        self.processes = 0
        # What does not change within a run is read once.
        self._fixed: dict[str, str] = {}
        self._version: tuple[int, int] | None = None

    # Running programs

    def program(self, name: str) -> str:
        try:
            return _command.located(name, self.search_path)
        except _command.CommandError as exc:
            raise SlurmError(str(exc), exc.as_result()) from exc

    def sacctmgr(self, words: t.Sequence[str]) -> list[str]:
        """-i on reads as well: some of them ask a question, and at end of input sacctmgr asks it for ever."""
        return [self.program("sacctmgr"), "-i", *words]

    def run(
        self, argv: t.Sequence[str], timeout: float = _READ_TIMEOUT, pass_fds: t.Sequence[int] = ()
    ) -> _command.Completed:
        self.processes += 1
        try:
            return self.runner(argv, timeout=timeout, pass_fds=pass_fds)
        except _command.CommandError as exc:
            raise SlurmError(str(exc), exc.as_result()) from exc

    def read_text(self, words: t.Sequence[str]) -> str:
        done = self.run(self.sacctmgr(["-nP", *words]))
        if done.rc != 0:
            raise failure(done)
        return done.stdout

    # Reading

    def read(
        self, texts_of: t.Iterable[str] = (), comments: t.Iterable[Key] | None = None, wckeys: bool = False
    ) -> State:
        """Everything that a plan needs, each kind by one query, the queries side by side.

        :param texts_of: accounts whose description and organization matter, should they need queries of their own.
        :param comments: the same for rows and their comments; None: nobody's comment matters.
        """
        here = f"cluster={self.cluster}"
        version = self.version()
        self._refuse_lost()
        queries = {
            "rows": ["show", "assoc", "where", here, "wopi", columns(row_columns(version))],
            "effective": ["show", "assoc", "where", here, columns(_EFFECTIVE)],
            "accounts": ["show", "account", "withcoord", columns(account_columns(version))],
            "description": ["show", "account", columns(("account", "description"))],
            "organization": ["show", "account", columns(("account", "organization"))],
            "users": ["show", "user", "where", here, columns(USER_COLUMNS)],
        }
        if wckeys:
            queries["wckeys"] = ["show", "wckey", "where", here, columns(("user", "wckey"))]
        if comments is not None and fields.BY_OPTION["comment"].exists(version):
            queries["comments"] = ["show", "assoc", "where", here, "wopi", columns((*_KEY, "comment"))]
        if not self._fixed:
            queries["qos"] = ["show", "qos", columns(("name",))]
            queries["tres"] = ["show", "tres", columns(("type", "name"))]
        # More threads than this make a busy slurmdbd no faster.
        with concurrent.futures.ThreadPoolExecutor(max_workers=4) as pool:
            futures = {name: pool.submit(self.read_text, words) for name, words in queries.items()}
            text = {name: future.result() for name, future in futures.items()}
        self._fixed = self._fixed or {name: text[name] for name in ("qos", "tres")}
        try:
            state = self._state({**self._fixed, **text}, set(texts_of))
            if "comments" in text:
                self._comments(state, text["comments"], comments or ())
            return state
        except (parse.ParseError, values.ValueProblem) as exc:
            raise SlurmError(str(exc)) from exc

    def _refuse_lost(self) -> None:
        """Before anything else is asked: on 24.11 slurmdbd looks for ever for what a row without a parent inherits.

        Not even the client's end stops it, and after a restart it never answers again. wopi asks for nothing inherited.
        """
        wanted = ("account", "id", "parentid")
        rows = self.read_text(["show", "assoc", "where", f"cluster={self.cluster}", "user=", "wopi", columns(wanted)])
        try:
            lost = lineage.without_root(parse.rows(rows, wanted))
        except parse.ParseError as exc:
            raise SlurmError(str(exc)) from exc
        if lost:
            raise SlurmError(
                f"the parent of account {', '.join(lost)} is gone, as 'delete account ... cluster=' of a parent leaves it; "
                "slurmdbd runs round in circles over such rows, and once restarted does not come up again. Do not restart "
                f"it; put them below root (sacctmgr -i modify account where name={','.join(lost)} "
                f"cluster={self.cluster} set parent=root) or delete them, and run this again"
            )

    def version(self) -> tuple[int, int]:
        """Read first, and once: what can be asked for depends on it."""
        if self._version is None:
            done = self.run([self.program("sacctmgr"), "-V"])
            if done.rc != 0:
                raise failure(done)
            try:
                self._version = parse.version(done.stdout)
            except parse.ParseError as exc:
                raise SlurmError(str(exc)) from exc
        return self._version

    def _state(self, text: t.Mapping[str, str], texts_of: set[str]) -> State:
        state = State(self.cluster, self.version())
        state.associations = associations(text["rows"], text["effective"], state.version)
        if (ROOT, "", "") not in state.associations:
            raise SlurmError(self._why_empty())
        state.accounts = self._accounts(state, text, texts_of)
        state.users = users(text["users"], text.get("wckeys", ""))
        state.qos = frozenset(row["name"] for row in parse.rows(text["qos"], ("name",)))
        state.tres = parse.tres_names(text["tres"])
        return state

    def _why_empty(self) -> str:
        """No cluster is without its root account: never plan from such an answer."""
        clusters = self.read_text(["show", "cluster", columns(("cluster",))]).split()
        if self.cluster not in clusters:
            return (
                f"cluster {self.cluster} is not registered in slurmdbd, which knows {', '.join(clusters) or 'none'}; "
                "correct the name, or register the cluster first"
            )
        return (
            f"slurmdbd returned no association of account root on cluster {self.cluster}: "
            "that is no state to plan from; look at the log of slurmdbd"
        )

    def _accounts(self, state: State, text: t.Mapping[str, str], texts_of: set[str]) -> dict[str, Account]:
        flag = fields.BY_OPTION["users_are_coordinators"]
        found = {}
        for row in parse.rows(text["accounts"], account_columns(state.version)):
            account = Account(row["account"], coordinators=frozenset(parse.names(row["coordinators"])))
            account.users_are_coordinators = values.from_text(flag, row.get(flag.column, ""))
            found[account.name] = account
        for column in ("description", "organization"):
            read = parse.texts(text[column], list(found))
            if read is None:
                # Somebody's text holds a line break: ask for each account that matters by itself.
                state.unread += (column,)
                read = {name: self._one_text(name, column) for name in sorted(texts_of & set(found))}
            for name, value in read.items():
                # What Slurm made up itself may be in mixed case; what it is given it folds.
                setattr(found[name], column, value.lower())
        return found

    def _one_text(self, account: str, column: str) -> str:
        return parse.whole(self.read_text(["show", "account", "where", f"name={account}", columns((column,))]))

    def _comments(self, state: State, text: str, wanted: t.Iterable[Key]) -> None:
        """In an order of their own: the rows may have been read in another."""
        lines = {"|".join(key): key for key in state.associations}
        heads = ["|".join(line.split("|")[: len(_KEY)]) for line in text.split("\n")[:-1]]
        read = parse.texts(text, heads) if sorted(heads) == sorted(lines) else None
        if read is None:
            state.unread += ("comment",)
            here = ["show", "assoc", "where", f"cluster={self.cluster}"]
            read = {}
            for key in sorted(set(wanted) & set(state.associations)):
                where = [f"{name}={value}" for name, value in zip(_KEY, key)]
                read["|".join(key)] = parse.whole(self.read_text([*here, *where, "wopi", columns(("comment",))]))
        for head, comment in read.items():
            state.associations[lines[head]].values["comment"] = comment.lower()

    def parents(self) -> dict[str, str]:
        """Account -> parent, as they are right now."""
        words = ["show", "assoc", "where", f"cluster={self.cluster}", "user=", columns(("account", "parentname"))]
        return {
            row["account"]: row["parentname"] for row in parse.rows(self.read_text(words), ("account", "parentname"))
        }

    # Jobs

    def jobs_of(self, keys: t.Sequence[Key]) -> list[dict[str, str]]:
        """Jobs, running or waiting, of these rows. A failed read is an error: it must not allow a removal."""
        accounts = sorted({key[0] for key in keys})
        pairs = {(key[0], key[1]) for key in keys}
        found: list[dict[str, str]] = []
        for first in range(0, len(accounts), 200):
            part = ",".join(accounts[first : first + 200])
            done = self.run([self.program("squeue"), "-h", "-M", self.cluster, "-A", part, "-o", "%i|%u|%a|%P|%T"])
            if done.rc != 0:
                raise failure(done, "the jobs of what would be removed cannot be listed, so nothing is removed")
            try:
                found += parse.jobs(done.stdout)
            except parse.ParseError as exc:
                raise SlurmError(str(exc)) from exc
        return [job for job in found if (job["account"], job["user"]) in pairs or (job["account"], "") in pairs]

    # Writing

    def write(self, words: t.Sequence[str], timeout: float, pass_fds: t.Sequence[int] = ()) -> float:
        """One command; returns the seconds it took. Success is for the caller to establish, by reading again."""
        started = time.monotonic()
        done = self.run(self.sacctmgr(words), timeout, pass_fds)
        if done.rc != 0:
            raise failure(done)
        return time.monotonic() - started


def row_fields(version: tuple[int, int]) -> list[fields.Field]:
    """What the query for rows asks for; texts have queries of their own."""
    return [field for field in fields.existing(fields.ASSOCIATION, version) if field.type != fields.TEXT]


def row_columns(version: tuple[int, int]) -> tuple[str, ...]:
    return (*_KEY, *_columns(row_fields(version)), *(("lineage",) if version >= lineage.SINCE else ()))


def account_columns(version: tuple[int, int]) -> tuple[str, ...]:
    given = [field for field in fields.existing(fields.RECORD, version) if field.type != fields.TEXT]
    return ("account", "coordinators", *_columns(given))


USER_COLUMNS = ("user", "defaultaccount", *(field.column for field in fields.USER))


def users(text: str, wckeys: str) -> dict[str, User]:
    found = {}
    for row in parse.rows(text, USER_COLUMNS):
        user = User(row["user"], row["defaultaccount"])
        for field in fields.USER:
            setattr(user, field.option, values.from_text(field, row[field.column]))
        found[user.name] = user
    for row in parse.rows(wckeys, ("user", "wckey")):
        if row["user"] in found:
            found[row["user"]].wckeys |= {row["wckey"].lstrip("*")}
    return found


def associations(rows: str, effective: str, version: tuple[int, int]) -> dict[Key, Association]:
    """Join what is set on the rows with what is in effect: QOS lists stored as a difference show only there."""
    found: dict[Key, Association] = {}
    read = row_fields(version)
    for row in parse.rows(rows, row_columns(version)):
        item = Association(row["account"], row["user"], row["partition"], lineage=row.get("lineage", ""))
        item.values = {field.option: field.unset for field in fields.ASSOCIATION}
        item.values.update({field.option: values.from_text(field, row[field.column]) for field in read})
        found[item.key] = item
    for row in parse.rows(effective, _EFFECTIVE):
        key = (row["account"], row["user"], row["partition"])
        if key not in found:
            raise parse.ParseError(f"{key} appeared while the associations were read; run again")
        found[key].parent = row["parentname"]
        found[key].effective_qos = frozenset(parse.names(row["qos"]))
    for item in found.values():
        _mark_difference(item, found)
    return found


def _mark_difference(item: Association, rows: t.Mapping[Key, Association]) -> None:
    own = item.values["qos"]
    if own and own == item.effective_qos:
        return
    above = rows.get((item.account, "", "") if item.user else (item.parent, "", ""))
    inherited = above.effective_qos if above else frozenset()
    if not own and (item.effective_qos == inherited or above is None):
        return
    item.values["qos"] = frozenset(
        [f"+{name}" for name in item.effective_qos - inherited]
        + [f"-{name}" for name in inherited - item.effective_qos]
        # What was added is in the parent's list by now: still no list of its own.
        or [f"+{name}" for name in own]
    )


def failure(done: _command.Completed, hint: str = "") -> SlurmError:
    said = f"{done.stdout}\n{done.stderr}".lower()
    if any(phrase in said for phrase in _NO_ANSWER):
        hint = "slurmdbd does not answer; start it, look at the network to it, or correct AccountingStorageHost in slurm.conf"
    if "you can not remove the default account of a user" in said:
        hint = (
            "Slurm marks all rows of a user in an account as default and parts with none of them alone; give the user "
            "an association with a second account for this run, and take it away with the next one"
        )
    error = _command.failed(done, hint)
    kind = Transient if any(phrase in said for phrase in _RETRY) else SlurmError
    return kind(str(error), error.as_result())


def _columns(table: t.Iterable[fields.Field]) -> tuple[str, ...]:
    return tuple(field.column for field in table)


def columns(names: t.Sequence[str]) -> str:
    return f"format={','.join(names)}"
