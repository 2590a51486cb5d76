# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes docs/tenant-document.md and docs/schema/tenant.schema.json from the schema of the tenant document.

Without argument the files are written; with --check nothing is written, and the exit status says whether they are
current.
"""

from __future__ import annotations

import importlib
import json
import pathlib
import runpy
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = "ansible_collections.gpuops.tenancy.plugins.module_utils._tenant"
# Our own annotations mean nothing to an editor.
PRIVATE = ("x-name", "x-vault")

INTRO = """\
# The tenant document

<!-- Made by tests/tools/gen_tenant_docs.py from the schema in plugins/module_utils/_tenant/schema.py. Do not edit. -->

A tenant is one YAML file, `<name>.yml`, in the folder that `tenancy_tenants_dir` names. Everything the collection does
for the tenant is derived from it. `gpuops.tenancy.tenant_documents` reads and checks it; an error names file, line,
path, what is wrong and the fix, and nothing is changed until the document is right.

Editors can check a document while you write: [schema/tenant.schema.json](schema/tenant.schema.json). For the YAML
language server put this line at the top of a document:

```yaml
# yaml-language-server: $schema=PATH/TO/tenant.schema.json
```

## Rules

- A document is data: a template expression (`{{ ... }}`) in it is refused. Whole files may be vaulted; so may single
  values (`!vault`) of the keys marked *vault* below. A vaulted value is never printed. Names, limits and the like may
  not be vaulted one by one, because plans and reports show them.
- A key given twice is an error. Anchors, aliases and merge keys (`<<`) work.
- What is not written is cleared: deleting the line of a limit removes the limit. `-1` is refused.
- Times are `HH:MM:SS` or `D-HH:MM:SS`, also unquoted. Sizes need a unit: `100GB` is decimal, `100GiB` binary.
- Names are folded to lower case with a warning, since Slurm does the same. Quote names that YAML takes for something
  else (`"no"`). Allowed are `a-z`, `0-9`, `.`, `_` and `-`, with a letter somewhere and a letter or digit first.
- Refused as names: system accounts and groups (`root`, `slurm`, `docker`, ...), operators, the platform's account,
  names of those who left, a team with the name of another tenant or of another tenant's team.
- A user belongs to one tenant. To be a member of a second one, the *home* document says `member_of: [other]`, and the
  other document lists the user with `home: <home tenant>`; limits and shares belong to each membership, while keys,
  mail address and default account are set at home only. Anything else is refused in both documents.
- A user in several teams is written in each of them, and names a `default_account` once.
- QOS are defined once per site. A `qos` list may narrow the list of the level above. Where it
  has to hold more, `qos_exception: true` beside it says that this is meant.
- Removing a user's line takes the association away. It is not offboarding.

## What Slurm really does

| you write | what happens |
|---|---|
| `max_jobs: 20` | caps *running* jobs; more are accepted and wait. `max_submit_jobs` caps running and pending ones |
| `max_jobs: 0`, `grp_jobs: 0`, `grp_wall: 00:00:00` | jobs are accepted and wait for ever (warning) |
| `max_submit_jobs: 0`, `grp_submit_jobs: 0` | void where a QOS sets that limit (warning); write `state: suspended` |
| `gres/gpu:h100: 4` without `gres/gpu` | evaded by a request that names no type (warning) |
| `gpu: 4` | refused: the resource is called `gres/gpu` |
| `fairshare: parent` | refused: everybody below would have one factor, however much each has used; `one_factor: true` says that it is meant |
| `max_wall: 90` | refused: Slurm reads bare numbers as minutes in one option and as seconds in the next |
| `grp_tres_mins` | a job without time limit, in a partition without one, waits for ever |

## Keys
"""

HEADER = "| key | type | default | meaning | example |\n|---|---|---|---|---|"
SECTIONS = (
    ("The tenant", None),
    ("A team: `teams[]`", "team"),
    ("A user: `users[]`, `teams[].users[]`", "user"),
    ("Limits: `slurm.limits`, `teams[].limits`, `users[].limits`", "limits"),
)


def schema() -> dict:
    # Makes the collection importable from a checkout in any folder.
    runpy.run_path(str(ROOT / "tests" / "unit" / "conftest.py"))
    return importlib.import_module(PACKAGE + ".schema").SCHEMA


def published(part: object) -> object:
    if isinstance(part, dict):
        return {key: published(value) for key, value in part.items() if key not in PRIVATE}
    return [published(one) for one in part] if isinstance(part, list) else part


def as_json(root: dict) -> str:
    return json.dumps(published(root), indent=2, ensure_ascii=True) + "\n"


def as_markdown(root: dict) -> str:
    lines = [INTRO]
    for title, name in SECTIONS:
        part = root["$defs"][name] if name else root
        lines += [f"### {title}", "", part["description"], ""]
        lines += [HEADER, *rows(root, part, ""), ""]
    lines += ["### Resources: inside the limits with `tres` in their name", "", HEADER, *resources(root), ""]
    lines += ["## Example", "", "```yaml", example().rstrip("\n"), "```", ""]
    return "\n".join(lines)


def rows(root: dict, part: dict, prefix: str):
    required = part.get("required", ())
    for key, child in part["properties"].items():
        yield row(root, prefix + key, child, key in required)
        if "properties" in child and "patternProperties" not in child:
            yield from rows(root, child, prefix + key + ".")


def resources(root: dict) -> list:
    """The keys of a limit per resource, which are the same in each of them."""
    part = root["$defs"]["limits"]["properties"]["grp_tres"]
    children = {**part["properties"], "RESOURCE": next(iter(part["patternProperties"].values()))}
    return [row(root, key, child, False) for key, child in children.items()]


def row(root: dict, name: str, child: dict, required: bool) -> str:
    child = root["$defs"][child["$ref"].rpartition("/")[2]] if "$ref" in child else child
    meaning = child["description"] + (" *vault*" if vault(child) else "")
    default = "**required**" if required else f"`{flow(child['default'])}`" if "default" in child else ""
    cells = [f"`{name}`", kind(child), default, meaning, f"`{flow(child['examples'][0])}`"]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def vault(child: dict) -> bool:
    return bool(child.get("x-vault") or child.get("items", {}).get("x-vault"))


def kind(child: dict) -> str:
    if "enum" in child:
        return "one of " + ", ".join(f"`{one}`" for one in child["enum"])
    if child["type"] == "array":
        return "list"
    return {"object": "mapping", "string": "text", "integer": "number", "boolean": "true, false"}[child["type"]]


def flow(value: object) -> str:
    """One line of YAML flow style; quotes only where YAML needs them."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {flow(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(flow(one) for one in value) + "]"
    return str(value).lower() if isinstance(value, bool) else str(value)


def example() -> str:
    text = (ROOT / "inventories" / "example" / "tenants" / "tenant-foo.yml").read_text(encoding="utf-8")
    return text[text.index("---\n") + 4 :]


def outputs() -> dict:
    root = schema()
    return {
        ROOT / "docs" / "tenant-document.md": as_markdown(root),
        ROOT / "docs" / "schema" / "tenant.schema.json": as_json(root),
    }


def main(argv: list) -> int:
    stale = []
    for path, text in outputs().items():
        current = path.read_text(encoding="utf-8") if path.exists() else None
        if current != text:
            stale.append(path)
            if "--check" not in argv:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
    for path in stale:
        print(("stale: " if "--check" in argv else "written: ") + str(path.relative_to(ROOT)))
    return 1 if stale and "--check" in argv else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
