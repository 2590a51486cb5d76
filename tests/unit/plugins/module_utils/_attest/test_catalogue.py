# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The catalogue: sound entries, a site's own probes, and one program that holds all of it."""

from __future__ import annotations

import ast
import base64
import importlib.util
import io
import pathlib
import sys
import zipfile

import pytest
from ansible_collections.gpuops.tenancy.plugins.module_utils._attest import api, catalogue, planning

SITE = """
from attest.api import passed, probe

@probe("site-motd", "cannot change the message of the day", "site: modes", ("login",))
def motd(world):
    \"\"\"Open /etc/motd for writing.\"\"\"
    return passed("EACCES")
"""


@pytest.fixture(scope="module")
def probes():
    return catalogue.load({})


def test_every_entry_is_sound(probes):
    assert len(probes) >= 40
    for id, probe in probes.items():
        assert probe.id == id
        assert api.unsound(probe) == []
        # It goes on "a tenant ...".
        assert not probe.claim.endswith(".") and probe.claim[0].islower()


def test_probes_need_nothing_but_the_standard_library():
    for path in [*catalogue.HERE.glob("probes/*.py"), *(catalogue.HERE / f"{name}.py" for name in catalogue.PARTS)]:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.level == 0:
                assert node.module.split(".")[0] in sys.stdlib_module_names, path
            elif isinstance(node, ast.Import):
                assert all(name.name.split(".")[0] in sys.stdlib_module_names for name in node.names), path


def test_no_probe_sends_a_signal_but_zero():
    """killpg and SIGKILL are for the probes' own children."""
    for path in catalogue.HERE.glob("probes/*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(node, ast.Attribute)
                and node.attr in ("kill", "killpg")
                and getattr(node.value, "id", "") == "os"
            ):
                text = path.read_text()
                assert text.count("os.kill,") == text.count("os.kill") and "os.kill, pid, 0" in text, path
                assert node.attr == "kill"


def test_a_site_adds_its_own_and_leaves_no_trace(probes):
    found = catalogue.load({"motd": SITE})
    assert set(found) - set(probes) == {"site-motd"}
    assert catalogue.load({}) == probes
    assert "attest" not in sys.modules


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("import nonsense_nowhere", "motd.py in attest_probes_dir: ModuleNotFoundError"),
        ("this is no python", "SyntaxError"),
        (SITE.replace("site-motd", "gpu-device"), "there is another probe of this name"),
        (SITE.replace("site-motd", "Site_Motd"), "lower case"),
        (SITE.replace('("login",)', '("attic",)'), "contexts must be some of login"),
        (SITE.replace('"site: modes"', '""'), "name the control"),
        (SITE.replace('"""Open /etc/motd for writing."""', ""), "the attack"),
    ],
)
def test_a_bad_probe_of_a_site_is_one_clear_error(probes, text, says):
    with pytest.raises(catalogue.CatalogueError, match=says):
        catalogue.load({"motd": text})
    assert catalogue.load({}) == probes


def test_site_files(tmp_path):
    assert catalogue.site_files(None) == {}
    (tmp_path / "motd.py").write_text(SITE)
    (tmp_path / "notes.txt").write_text("no probe")
    assert catalogue.site_files(str(tmp_path)) == {"motd": SITE}
    (tmp_path / "a-b.py").write_text(SITE)
    with pytest.raises(catalogue.CatalogueError, match="a-b.py: give the file a name"):
        catalogue.site_files(str(tmp_path))
    with pytest.raises(catalogue.CatalogueError, match="no directory"):
        catalogue.site_files(str(tmp_path / "nowhere"))


def test_the_program_holds_everything_and_is_the_same_each_time():
    program = catalogue.program({"motd": SITE})
    assert program == catalogue.program({"motd": SITE})
    names = zipfile.ZipFile(io.BytesIO(base64.b64decode(program))).namelist()
    assert {"__main__.py", "attest/api.py", "attest/probes/devices.py", "attest/site/motd.py"} <= set(names)
    own = {path.stem for path in pathlib.Path(catalogue.HERE / "probes").glob("*.py")}
    assert own == {name.split("/")[2][:-3] for name in names if name.startswith("attest/probes/")}


def test_what_each_kind_of_host_owes(probes):
    owed = {kind: planning.planned(probes, kind) for kind in planning.KINDS}
    assert {one["context"] for one in owed["login"]} == {"login", "cron", "at", "user-manager", "service"}
    assert {one["context"] for one in owed["reserved"]} == set(api.CONTEXTS) - {"login", "controller"}
    assert [one["probe"] for one in owed["controller"]] == ["job-table"]
    # Every probe is owed by some kind of host, and only a reserved node is disturbed.
    assert {one["probe"] for kind in owed.values() for one in kind} == set(probes)
    assert not [one for one in owed["reserved"] if one["omitted"]]
    left_out = {one["probe"] for one in owed["compute"] if one["omitted"]}
    assert left_out == {id for id, probe in probes.items() if probe.disruptive or probe.neighbour}
    # Without an account there is no job.
    assert {one["actor"] for one in owed["reserved"] if one["context"] in api.IN_JOB} == {"a"}


def test_runs_are_one_for_each_context_and_actor_and_the_disruptive_come_last(probes):
    runs = planning.runs(planning.planned(probes, "reserved"))
    keys = [(run["context"], run["actor"]) for run in runs]
    assert len(keys) == len(set(keys))
    job = next(run["probes"] for run in runs if run["context"] == "job")
    assert job[-1] == "memory"
    assert planning.runs([{"probe": "x", "context": "job", "actor": "a", "omitted": "because"}]) == []


def test_a_selection_that_names_nothing_is_refused(probes):
    assert set(planning.selected(probes, ["gpu-device"], {})) == {"gpu-device"}
    assert planning.selected(probes, [], {"gpu-device": "no GPU is worth it"}) == probes
    for only, accepted in (["nothing"], {}), ([], {"nothing": "why"}):
        with pytest.raises(planning.SelectionError, match="there is no probe nothing"):
            planning.selected(probes, only, accepted)


def test_the_guide_is_current():
    root = pathlib.Path(__file__).resolve().parents[5]
    spec = importlib.util.spec_from_file_location("gen_attest_docs", root / "tests" / "tools" / "gen_attest_docs.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for path, text in module.outputs().items():
        assert path.read_text(encoding="utf-8") == text, "run make docs"
