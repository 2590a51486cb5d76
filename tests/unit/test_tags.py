# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run of one tag alone has everything that its tasks refer to."""

from __future__ import annotations

import dataclasses
import pathlib
import re
import typing as t

import pytest
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROLES = sorted(path.parent.parent.name for path in (ROOT / "roles").glob("*/tasks/main.yml"))
PLAYBOOKS = sorted((ROOT / "playbooks").glob("*.yml"))
NAMESPACE = "gpuops.tenancy."
# What follows a name that may be undefined: name | default(...), name.part | default(...), name is not defined.
GUARD = r"(?!\w)(?![\w.\[\]']*\s*(?:\|\s*default\(|is (?:not )?defined))"


@dataclasses.dataclass(frozen=True)
class Task:
    name: str
    tags: frozenset[str]
    text: str
    makes: frozenset[str]


def load(path: pathlib.Path) -> t.Any:
    return yaml.safe_load(path.read_text()) or {}


def tags_of(item: dict) -> frozenset[str]:
    found = item.get("tags", [])
    return frozenset([found] if isinstance(found, str) else found)


def tasks(items: list[dict], folder: pathlib.Path, tags: frozenset[str], when: str = "") -> t.Iterator[Task]:
    """Every task with the tags and conditions that it inherits, imports followed."""
    for item in items:
        mine = tags | tags_of(item)
        ifs = when + yaml.safe_dump(item.get("when", ""), width=10000)
        if "ansible.builtin.import_tasks" in item:
            path = folder / item["ansible.builtin.import_tasks"]
            yield from tasks(load(path), folder, mine, ifs)
        elif "ansible.builtin.import_role" in item:
            role = item["ansible.builtin.import_role"]
            yield Task(item["name"], mine, yaml.safe_dump(item.get("vars", {})), frozenset())
            yield from role_tasks(role["name"].removeprefix(NAMESPACE), mine, role.get("tasks_from", "main"), ifs)
        elif "block" in item:
            for part in ("block", "rescue", "always"):
                yield from tasks(item.get(part, []), folder, mine, ifs)
        else:
            makes = set(item.get("ansible.builtin.set_fact", {})) | (
                {item["register"]} if "register" in item else set()
            )
            if "ansible.builtin.setup" in item:
                makes.add("ansible_facts")
            own = {key: value for key, value in item.items() if key not in ("register", "until", "tags", "name")}
            yield Task(item["name"], mine, yaml.safe_dump(own, width=10000) + when, frozenset(makes))


def role_tasks(role: str, tags: frozenset[str], name: str = "main", when: str = "") -> t.Iterator[Task]:
    folder = ROOT / "roles" / role / "tasks"
    specs = load(folder.parent / "meta" / "argument_specs.yml").get("argument_specs", {})
    if name in specs:
        # Ansible puts it before the others, for every tag.
        yield Task(f"arguments of {role}", tags | {"always"}, when, frozenset())
    yield from tasks(load(folder / f"{name}.yml"), folder, tags, when)


def playbook_tasks(path: pathlib.Path) -> t.Iterator[Task]:
    for play in load(path):
        tags = tags_of(play)
        for role in play.get("roles", []):
            yield from role_tasks(role["role"].removeprefix(NAMESPACE), tags | tags_of(role))
        yield from tasks(play.get("tasks", []), path.parent, tags)


def variables(playbook: pathlib.Path | None = None) -> dict[str, str]:
    found: dict[str, str] = {}
    for play in load(playbook) if playbook else []:
        found |= {name: yaml.safe_dump(value, width=10000) for name, value in play.get("vars", {}).items()}
    for path in (ROOT / "roles").glob("*/*/main.yml"):
        if path.parent.name in ("vars", "defaults"):
            found |= {name: yaml.safe_dump(value, width=10000) for name, value in load(path).items()}
    return found


def needs(text: str, made: set[str], table: dict[str, str], seen: frozenset[str] = frozenset()) -> set[str]:
    """The made names that a text cannot do without, through the variables that it refers to."""
    found = {name for name in made if re.search(rf"\b{name}{GUARD}", text)}
    for name in set(re.findall(r"\b\w+\b", text)) & set(table) - seen:
        found |= needs(table[name], made, table, seen | {name})
    return found


def missing(all_tasks: list[Task], table: dict[str, str]) -> list[str]:
    """What a task lacks in a run of one of its tags alone, or without a tag that is not its own."""
    problems: list[str] = []
    makers: dict[str, list[frozenset[str]]] = {name: [] for task in all_tasks for name in task.makes}
    for task in all_tasks:
        for name in needs(task.text, set(makers), table) - task.makes:
            run = frozenset().union(*makers[name])
            for tag in task.tags - run if "always" not in run else ():
                problems.append(f"{task.name}: {name} is not there with --tags {tag}")
            skipped = frozenset.intersection(*makers[name]) if makers[name] else frozenset()
            for tag in skipped - task.tags:
                # Who leaves the checks out has asked for it.
                if tag != "always" and not tag.endswith(("_validate", "_plan")):
                    problems.append(f"{task.name}: {name} is not there with --skip-tags {tag}")
        for name in task.makes:
            makers[name].append(task.tags)
    return problems


@pytest.mark.parametrize("role", ROLES)
def test_every_tag_of_a_role_may_be_run_alone(role):
    assert missing(list(role_tasks(role, frozenset())), variables()) == []


@pytest.mark.parametrize("path", PLAYBOOKS, ids=lambda path: path.stem)
def test_every_tag_of_a_playbook_may_be_run_alone(path):
    assert missing(list(playbook_tasks(path)), variables(path)) == []


def swallowed(items: list[dict], folder: pathlib.Path, tags: frozenset[str] = frozenset()) -> list[str]:
    """A rescue that is left out with some tag of its block: the block's failure would count as a success."""
    problems: list[str] = []
    for item in items:
        mine = tags | tags_of(item)
        for part in ("block", "rescue", "always", "tasks", "pre_tasks", "post_tasks"):
            problems += swallowed(item.get(part, []), folder, mine)
        every = frozenset().union(*(task.tags for task in tasks(item.get("block", []), folder, mine)))
        for inner in item.get("rescue", []):
            if "ansible.builtin.include_tasks" in inner:
                problems.append(f"{inner['name']}: what is included has no tags")
            for task in tasks([inner], folder, mine):
                if "always" not in task.tags and every - task.tags:
                    problems.append(f"{task.name}: is left out with --tags {', '.join(sorted(every - task.tags))}")
    return problems


@pytest.mark.parametrize("path", [*PLAYBOOKS, *sorted(ROOT.glob("*/*/tasks/*.yml"))], ids=lambda path: path.stem)
def test_no_tag_makes_a_success_of_a_failure(path):
    assert swallowed(load(path) or [], path.parent) == []


def test_the_test_itself_finds_a_rescue_that_is_left_out():
    failing = {"name": "try", "tags": ["a"], "ansible.builtin.command": {}}
    for rescue, fails in (
        ({"name": "stop", "ansible.builtin.fail": {}}, True),
        ({"name": "stop", "tags": ["a"], "ansible.builtin.fail": {}}, False),
        ({"name": "stop", "tags": ["always"], "ansible.builtin.fail": {}}, False),
        ({"name": "stop", "tags": ["always"], "ansible.builtin.include_tasks": "stop.yml"}, True),
    ):
        assert bool(swallowed([{"tasks": [{"name": "both", "block": [failing], "rescue": [rescue]}]}], ROOT)) == fails


def task(name, tags, text="", makes=()):
    return Task(name, frozenset(tags), text, frozenset(makes))


@pytest.mark.parametrize(
    ("text", "fails"),
    [
        ("{{ found.version }}", True),
        ("{{ release }}", True),
        ("{{ found is changed }}", True),
        ("{{ found | default({}) is changed }}", False),
        ("{{ (found.version | default('0', true)) }}", False),
        ("found is not defined", False),
        ("{{ found_too }}", False),
    ],
)
def test_the_test_itself_finds_what_is_missing(text, fails):
    made = task("read", ["a"], makes=["found"])
    table = {"release": "{{ found.version }}"}
    assert bool(missing([made, task("use", ["a", "b"], text)], table)) == fails
    assert missing([made, task("use", ["a"], text)], table) == []
    assert bool(missing([task("use", ["a"], text), made], table)) == fails
    everywhere = task("read", ["a_validate", "always"], makes=["found"])
    assert missing([everywhere, task("use", ["b"], text)], table) == []
    of_both = task("read", ["a", "b"], makes=["found"])
    assert bool(missing([of_both, task("use", ["b"], text)], table)) == fails


def test_the_tasks_are_really_read():
    found = {name for role in ROLES for task in role_tasks(role, frozenset()) for name in task.makes}
    assert {"__slurm_config_found", "__slurm_database_deployed", "ansible_facts", "__munge_key"} <= found
