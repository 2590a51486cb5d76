# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import shutil
import stat

import pytest
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import check, guard, trial

GRES = "NodeName=gpu1 Name=gpu Type=h100 File={0}/nvidia[0-1]\n"


@pytest.fixture
def programs(tmp_path):
    """Stand-ins for Slurm's programs: each notes how it was called and says what it is told to."""
    folder = tmp_path / "bin"
    folder.mkdir()

    def program(name, rc=0, says="", stays=0):
        path = folder / name
        path.write_text(
            f"#!/bin/sh\necho \"{name} $* SLURM_CONF=$SLURM_CONF\" >> {tmp_path}/calls\ncat <<'X'\n{says}\nX\nsleep {stays}\nexit {rc}\n"
        )
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return str(path)

    program.path = [str(folder), "/usr/bin", "/bin"]
    program.calls = lambda: (tmp_path / "calls").read_text().splitlines() if (tmp_path / "calls").exists() else []
    return program


@pytest.fixture
def stage(tmp_path):
    folder = tmp_path / "stage"
    folder.mkdir()
    (folder / "slurm.conf").write_text("SlurmUser=root\nSlurmdSpoolDir=/var/spool/slurmd\n")
    (folder / "cgroup.conf").write_text("ConstrainCores=yes\n")
    (folder / "gres.conf").write_text(GRES.format(tmp_path))
    return folder


ALL = ["slurm.conf", "cgroup.conf", "gres.conf"]


def test_a_login_node_asks_a_client(programs, stage):
    programs("scontrol")
    report = check.validate(str(stage), ALL, "", programs.path)
    assert programs.calls() == [f"scontrol show hostnames x SLURM_CONF={stage}/slurm.conf"]
    assert report.unchecked == ["cgroup.conf", "gres.conf"]
    assert report.missing == []


def test_a_compute_node_has_slurmd_read_its_files_without_a_trace(programs, stage, tmp_path):
    programs("scontrol")
    programs("slurmd")
    for number in (0, 1):
        (tmp_path / f"nvidia{number}").touch()
    check.validate(str(stage), ALL, "gpu1", programs.path)
    assert programs.calls()[1].startswith(
        f"slurmd -f {stage}/.trial/slurm.conf -G -N gpu1 SLURM_CONF={stage}/.trial/slurm.conf"
    )
    assert "/var/spool/slurmd" not in (stage / check.TRIAL / "slurm.conf").read_text()


def test_another_host_with_slurmd_uses_a_stand_in(programs, stage):
    programs("scontrol")
    programs("slurmd")
    check.validate(str(stage), ALL, "", programs.path)
    assert f"-N {check.STAND_IN}" in programs.calls()[1]
    assert f"NodeName={check.STAND_IN}" in (stage / check.TRIAL / "slurm.conf").read_text()


def test_the_programs_own_words_are_passed_on_without_the_stage(programs, stage):
    programs(
        "scontrol",
        rc=1,
        says="scontrol: error: Parsing error at unrecognized key: Bogus\nscontrol: fatal: Unable to process",
    )
    with pytest.raises(
        check.CheckFailed, match=r"scontrol refuses slurm\.conf: .*unrecognized key: Bogus / scontrol: fatal"
    ):
        check.validate(str(stage), ALL, "", programs.path)


def test_missing_devices_are_named_before_slurmd_waits_for_them(programs, stage, tmp_path):
    programs("scontrol")
    programs("slurmd")
    (tmp_path / "nvidia0").touch()
    with pytest.raises(check.CheckFailed, match=r"nvidia1 for node gpu1, which this host does not have"):
        check.validate(str(stage), ALL, "gpu1", programs.path)
    assert len(programs.calls()) == 1


@pytest.mark.parametrize(
    "says",
    [
        "slurmd-gpu1: WARNING: A line in gres.conf for GRES gpu:h100 has 4 more configured than expected in slurm.conf. Ignoring extra GRES.",
        "slurmd-gpu1: warning: Ignoring file-less GPU gpu:x100 from final GRES list",
        "slurmd: error: Invalid GRES configured on node gpu1: fpga:4",
    ],
)
def test_gpus_that_slurmd_would_drop_are_a_failure_although_it_ends_with_0(programs, stage, tmp_path, says):
    programs("scontrol")
    programs("slurmd", says=says)
    for number in (0, 1):
        (tmp_path / f"nvidia{number}").touch()
    with pytest.raises(check.CheckFailed, match="do not agree"):
        check.validate(str(stage), ALL, "gpu1", programs.path)


def test_what_is_not_installed_is_reported_not_passed_over(programs, stage):
    report = check.validate(str(stage), [*ALL, "slurmdbd.conf"], "", [programs.path[0]], controller=True)
    assert report.missing == ["scontrol", "slurmdbd", "slurmctld"]


def test_slurmdbd(programs, tmp_path):
    programs("slurmdbd", rc=1, says="slurmdbd: fatal: Could not open")
    (tmp_path / "slurmdbd.conf").write_text("x")
    with pytest.raises(check.CheckFailed, match=r"slurmdbd refuses slurmdbd\.conf"):
        check.validate(str(tmp_path), ["slurmdbd.conf"], "", programs.path)


def test_slurmdbd_is_not_asked_about_an_archive_that_comes_with_the_file(programs, tmp_path):
    programs("slurmdbd")
    stage = tmp_path / "stage"
    stage.mkdir()
    (stage / "slurmdbd.conf").write_text("StorageType=x\nArchiveDir=/srv/archive\nStoragePass=y\n")
    check.validate(str(stage), ["slurmdbd.conf"], "", programs.path)
    check.validate(str(stage), ["slurmdbd.conf"], "", programs.path, coming={"/srv/archive"})
    trial = stage / check.TRIAL_OF_SLURMDBD
    assert programs.calls() == [f"slurmdbd -V SLURM_CONF={place}/slurm.conf" for place in (stage, trial)]
    assert (trial / "slurmdbd.conf").read_text() == f"StorageType=x\nArchiveDir={trial}\nStoragePass=y\n"
    assert (trial / "slurmdbd.conf").stat().st_mode & 0o777 == 0o600


FATAL = [
    "slurmctld: error: MPI: Cannot create context",
    "slurmctld: error: _parse_next_key: Parsing error at unrecognized key: Bogus",
    "slurmctld: fatal: Could not open/read/parse cgroup.conf",
]


@pytest.mark.parametrize(
    ("lines", "rc", "running", "accepted"),
    [
        ([trial.RUNNING], -9, True, True),
        (FATAL, 1, False, False),
        # 22.05 loads the priority plugin after it has said that it runs.
        ([trial.RUNNING, "slurmctld: fatal: failed to initialize priority plugin"], 1, True, False),
        (["slurmctld: fatal: _open_ports: Unable to listen"], 1, False, None),
        ([], 97, False, None),
        ([], -9, False, None),
        (["slurmctld: still thinking"], -9, False, None),
    ],
)
def test_verdicts(lines, rc, running, accepted):
    assert trial.judge(lines, rc, running).accepted is accepted


def test_the_error_before_the_fatal_one_is_told():
    words = trial.judge(FATAL, 1, False).words
    assert "unrecognized key: Bogus" in words
    assert "cgroup.conf" in words


def test_nothing_reaches_out_of_a_trial():
    text = (
        "SlurmctldHost=ctl(10.0.0.1)\nAccountingStorageHost=db\nAccountingStorageTRES=gres/gpu\n  statesavelocation = /var/spool\n"
        "SuspendProgram=/bin/off\nSlurmctldPrimaryOnProg=/bin/x\nPrologSlurmctld=/bin/y\nJobCompLoc=/var/log/jobs\nDebugFlags=all\n"
        "PartitionName=a Nodes=gpu1 TRESBillingWeights=CPU=1,GRES/gpu:h100=2 MaxTime=1\nMaxJobCount=5\n"
    )
    result = trial.for_trial(text, "/run/x/state", "me")
    for gone in ("10.0.0.1", "db", "gres/gpu", "/var/spool", "/bin/", "/var/log", "TRESBilling"):
        assert gone not in result
    for kept in (
        "MaxJobCount=5",
        "PartitionName=a Nodes=gpu1",
        "MaxTime=1",
        "SlurmctldHost=me(127.0.0.1)",
        "StateSaveLocation=/run/x/state",
    ):
        assert kept in result


def test_a_trial_start_is_cut_off_and_leaves_nothing(programs, stage, tmp_path, monkeypatch):
    monkeypatch.setattr(trial, "_ISOLATE", "import os, sys\nos.execv(sys.argv[1], sys.argv[1:])\n")
    monkeypatch.setattr(trial, "GRACE", 0.1)
    before = set(os.listdir("/run"))
    verdict = trial.start(
        str(stage), programs("slurmctld", says=f"slurmctld: {trial.RUNNING}", stays=30), "SlurmUser=root\n"
    )
    assert verdict.accepted is True
    verdict = trial.start(
        str(stage), programs("slurmctld", rc=1, says="slurmctld: fatal: Invalid node names in partition a"), ""
    )
    assert verdict.accepted is False
    assert {name for name in os.listdir("/run") if name.startswith("tenancy-trial")} <= before
    assert all("SLURM_CONF=/var/" not in call and str(stage) not in call for call in programs.calls())


CONF = "NodeName=gpu[1-2] Gres=gpu:h100:4\nNodeName=gpu3\n"


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        (CONF, {}),
        ("NodeName=gpu1 Gres=gpu:h100:4\nNodeName=gpu2 Gres=gpu:h100:4 CPUs=9\nNodeName=gpu[3-4]\n", {}),
        ("NodeName=gpu1 Gres=gpu:h100:4\nNodeName=gpu3\n", {"gpu2": "would be removed"}),
        (
            "NodeName=gpu[1-2] Gres=gpu:h100:2\nNodeName=gpu3\n",
            dict.fromkeys(("gpu1", "gpu2"), "would change its GRES from gpu:h100:4 to gpu:h100:2"),
        ),
        (
            "NodeName=gpu[1-2] Gres=gpu:h100:4\nNodeName=gpu3 Gres=gpu:a100:1\n",
            {"gpu3": "would change its GRES from none to gpu:a100:1"},
        ),
        ("", dict.fromkeys(("gpu1", "gpu2", "gpu3"), "would be removed")),
    ],
)
def test_who_is_in_danger(new, expected):
    assert guard.threatened({"slurm.conf": CONF}, {"slurm.conf": new}) == expected


def test_other_device_files_are_a_change_of_the_gpus():
    old = {"slurm.conf": CONF, "gres.conf": "NodeName=gpu[1-2] Name=gpu File=/dev/nvidia[0-3]\n"}
    new = {
        "slurm.conf": CONF,
        "gres.conf": "NodeName=gpu1 Name=gpu File=/dev/nvidia[0-3]\nNodeName=gpu2 Name=gpu File=/dev/nvidia[4-7]\n",
    }
    assert guard.threatened(old, new) == {"gpu2": "would change its devices in gres.conf"}


def test_a_private_tmp_comes_and_goes_on_empty_nodes_only():
    private = {"slurm.conf": f"JobContainerType=job_container/tmpfs\n{CONF}"}
    for old, new in (({"slurm.conf": CONF}, private), (private, {"slurm.conf": CONF})):
        found = guard.threatened(old, new)
        assert set(found) == {"gpu1", "gpu2", "gpu3"} and all(
            "slurm_config_private_tmp" in text for text in found.values()
        )
    assert guard.threatened(private, private) == {}
    renamed = {"slurm.conf": f"NamespaceType=namespace/tmpfs\n{CONF}"}
    assert "from job_container/tmpfs to namespace/tmpfs" in guard.threatened(private, renamed)["gpu1"]
    assert guard.threatened(renamed, renamed) == {}


def test_a_refusal_names_some_nodes_and_counts_the_others():
    nodes = {f"gpu{number}": "would be removed" for number in range(2000)}
    message = guard.refusal(nodes, {node: ["7"] for node in nodes})
    assert "gpu4 would be removed" in message and "gpu5 " not in message and "and 1995 more nodes" in message


def test_a_first_configuration_threatens_nobody():
    assert guard.threatened({}, {"slurm.conf": CONF}) == {}


def test_jobs_by_node():
    said = "7|RUNNING|gpu[1-2]\n8|PENDING|\n9|COMPLETING|gpu2\n10|SUSPENDED|gpu3\n11|PENDING|gpu1\n\n"
    assert guard.jobs(said) == {"gpu1": ["7"], "gpu2": ["7", "9"], "gpu3": ["10"]}


def test_the_refusal_names_nodes_and_jobs():
    message = guard.refusal({"gpu1": "would be removed", "gpu2": "would be removed"}, {"gpu2": ["7", "9"]})
    assert message.startswith("gpu2 would be removed while jobs 7, 9 are on it")
    assert "gpu1" not in message
    assert guard.refusal({"gpu1": "would be removed"}, {}) == ""


NEW = {"slurm.conf": "NodeName=gpu3\n"}


def old(tmp_path, host="elsewhere"):
    return {"slurm.conf": f"SlurmctldHost={host}(10.0.0.1)\nStateSaveLocation={tmp_path}\n{CONF}"}


def test_an_idle_node_may_go(programs, tmp_path):
    programs("squeue", says="7|RUNNING|gpu3")
    assert guard.enforce(old(tmp_path), NEW, programs.path)[0][1:] == ["--noheader", "--all", "--format=%A|%T|%N"]


def test_a_busy_node_may_not(programs, tmp_path):
    programs("squeue", says="7|RUNNING|gpu[1-2]")
    with pytest.raises(guard.Refused, match="jobs 7 are on it"):
        guard.enforce(old(tmp_path), NEW, programs.path)


def test_a_failed_read_refuses(programs, tmp_path):
    programs("squeue", rc=1, says="slurm_load_jobs error: Unable to contact slurm controller")
    with pytest.raises(guard.Refused, match="cannot be known"):
        guard.enforce(old(tmp_path), NEW, programs.path)


def test_a_missing_squeue_refuses(programs, tmp_path):
    with pytest.raises(guard.Refused, match="without squeue"):
        guard.enforce(old(tmp_path), NEW, [programs.path[0]])


def test_only_a_controller_that_never_ran_is_free(programs, tmp_path, monkeypatch):
    monkeypatch.setattr(guard.socket, "gethostname", lambda: "ctl.example.org")
    programs("squeue", rc=1)
    state = tmp_path / "state"
    state.mkdir()
    assert guard.enforce(old(state, "ctl"), NEW, programs.path) == []
    (state / "clustername").touch()
    with pytest.raises(guard.Refused):
        guard.enforce(old(state, "ctl"), NEW, programs.path)
    # An empty directory of that name on another host proves nothing.
    (state / "clustername").unlink()
    with pytest.raises(guard.Refused):
        guard.enforce(old(state, "other"), NEW, programs.path)
    with pytest.raises(guard.Refused):
        guard.enforce(old(tmp_path / "absent", "ctl"), NEW, programs.path)


def test_nodes_and_devices_in_included_files_are_guarded(tmp_path):
    (tmp_path / "nodes").write_text("NodeName=gpu1 Gres=gpu:4\n")
    (tmp_path / "devices").write_text("NodeName=gpu2 Name=gpu File=/dev/nvidia[0-3]\n")
    before = {"slurm.conf": "Include nodes\nNodeName=gpu2 Gres=gpu:4\n", "gres.conf": "Include devices\n"}
    after = {
        "slurm.conf": "NodeName=gpu2 Gres=gpu:4\n",
        "gres.conf": "NodeName=gpu2 Name=gpu File=/dev/nvidia[4-7]\n",
        "cgroup.conf": "Include nowhere\n",
    }
    path = str(tmp_path)
    assert guard.threatened(guard.expanded(path, before), guard.expanded(path, after)) == {
        "gpu1": "would be removed",
        "gpu2": "would change its devices in gres.conf",
    }
    # A file of the change itself wins over the one on the disk.
    new = guard.expanded(path, {"slurm.conf": "Include gres.conf\n", "gres.conf": "NodeName=new\n"})
    assert guard.threatened({}, new) == {}
    assert "NodeName=new" in new["slurm.conf"]


def test_an_include_that_cannot_be_followed_refuses(tmp_path):
    with pytest.raises(guard.Refused, match=r"cannot be known which nodes.*slurm\.conf includes lost"):
        guard.expanded(str(tmp_path), {"slurm.conf": "Include lost\n"})


def test_a_trial_reads_included_files(programs, stage, tmp_path):
    programs("scontrol")
    programs("slurmd")
    (stage / "gres.conf").write_text("Include devices\n")
    (stage / "devices").write_text(GRES.format(tmp_path))
    with pytest.raises(check.CheckFailed, match="nvidia0, .*nvidia1 for node gpu1"):
        check.validate(str(stage), ALL, "gpu1", programs.path)
    (stage / "slurm.conf").write_text("Include more\n")
    (stage / "more").write_text("SlurmdSpoolDir=/var/spool/slurmd\nMaxJobCount=7\n")
    check.validate(str(stage), ALL, "", programs.path)
    text = (stage / check.TRIAL / "slurm.conf").read_text()
    assert "MaxJobCount=7" in text
    assert "/var/spool/slurmd" not in text
    (stage / "more").unlink()
    shutil.rmtree(stage / check.TRIAL)
    with pytest.raises(check.CheckFailed, match="slurm.conf includes more, which cannot be read"):
        check.validate(str(stage), ["gres.conf"], "", programs.path)
