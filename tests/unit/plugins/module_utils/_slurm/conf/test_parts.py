# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.conf import (
    nodes,
    partitions,
    proposal,
    read,
    topology,
)
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.conf.version import ConfigError

from .conftest import definition


def broken(**changes):
    return {**definition("gpu1"), **changes}


def gpu(**changes):
    return [{"name": "gpu", "type": "h100", "count": 4, "file": "/dev/nvidia[0-3]", **changes}]


def test_hosts_without_their_variables_are_named_in_one_error():
    variables = {
        "gpu1": {},
        "gpu2": {"slurm_compute_node": {"cpus": 1}},
        "gpu3": {"tenancy_address_cluster": "10.0.0.3"},
    }
    with pytest.raises(ConfigError) as caught:
        nodes.collect(["gpu1", "gpu2", "gpu3"], variables)
    for part in (
        "gpu1 (slurm_compute_node, tenancy_address_cluster)",
        "gpu2 (tenancy_address_cluster)",
        "gpu3 (slurm_compute_node)",
    ):
        assert part in str(caught.value)


def test_the_inventory_name_is_the_node_name_unless_another_is_given():
    variables = {
        name: {"slurm_compute_node": node, "tenancy_address_cluster": "10.0.0.1"}
        for name, node in (("a", {"cpus": 1}), ("b", {"name": "n7"}))
    }
    assert [item["name"] for item in nodes.collect(["a", "b"], variables)] == ["a", "n7"]


def test_node_line():
    item = {
        **definition("gpu1"),
        "features": ["ib", "a b"],
        "hostname": "h",
        "options": {"CpuSpecList": "0-1"},
        "weight": 5,
    }
    assert nodes.build([item])[0].line == (
        'NodeName=gpu1 NodeAddr=172.29.20.21 NodeHostname=h CPUs=2 RealMemory=2000 Gres=gpu:h100:4 Feature="ib,a b" Weight=5 CpuSpecList=0-1'
    )


def test_cpus_from_sockets_and_natural_order():
    item = {**definition("gpu10"), "cpus": None, "sockets": 2, "cores_per_socket": 8, "threads_per_core": 2}
    built = nodes.build([item, definition("gpu2")])
    assert [(node.name, node.cpus) for node in built] == [("gpu2", 2), ("gpu10", 32)]


@pytest.mark.parametrize(
    ("item", "words"),
    [
        (broken(name="a b"), "no node name"),
        (broken(memory=1), "has no field memory"),
        (broken(real_memory=0), "real_memory must be a number above 0"),
        (broken(real_memory="lots"), "real_memory"),
        (broken(cpus=None), "cpus"),
        (broken(gres=gpu(type="")), "needs a type"),
        (broken(gres=gpu(count=8)), "counts 8 but .* names 4"),
        (broken(gres=gpu(file="")), "names no device"),
        (broken(gres=gpu(name="GPU")), "lower case"),
        (broken(gres=gpu(size=1)), "no field size"),
        (broken(gres=gpu() + gpu()), "add their counts"),
        (broken(gres=gpu(count=1, file="/dev/nvidia-caps/nvidia-cap1")), "everybody's MIG"),
        (broken(gres=gpu(file="", multiple_files="/dev/nvidia0,/dev/nvidia-caps/nvidia-cap[2-4]")), "everybody's MIG"),
        (broken(gres=gpu(count=3, file="/dev/nvidia-caps/nvidia-cap[1,3,5]")), "everybody's MIG"),
        (broken(features=["a\nNodeName=b"]), "misread"),
    ],
)
def test_nodes_that_are_refused(item, words):
    with pytest.raises(ConfigError, match=words):
        nodes.build([item])


def test_capabilities_of_an_instance_are_fine():
    item = broken(gres=gpu(count=1, file="", multiple_files="/dev/nvidia0,/dev/nvidia-caps/nvidia-cap[12,21]"))
    assert "MultipleFiles=/dev/nvidia0,/dev/nvidia-caps/nvidia-cap[12,21]" in nodes.gres_conf(
        nodes.build([item]), "off"
    )


def test_one_name_twice():
    with pytest.raises(ConfigError, match="two hosts"):
        nodes.build([definition("gpu1"), definition("gpu1")])


DEFAULTS = {"max_time": "1-00:00:00", "default_time": "00:30:00"}


@pytest.mark.parametrize(
    ("items", "words"),
    [
        ([], "no partition"),
        ([{"name": "DEFAULT", "nodes": "all"}], "no partition name"),
        ([{"name": "a", "nodes": "all"}, {"name": "a", "nodes": "all"}], "twice"),
        ([{"name": "a"}], "names no nodes"),
        ([{"name": "a", "nodes": ["gpu[1-9]"]}], r"names gpu\[3-9\]"),
        ([{"name": "a", "nodes": ["gpu[1"]}], "brackets"),
        ([{"name": "a", "gres": "gpu:b200"}], "none of those named has gres gpu:b200"),
        ([{"name": "a", "nodes": "all", "max_time": "UNLIMITED"}], "wait for ever"),
        ([{"name": "a", "nodes": "all", "max_time": "0"}], "above 0"),
        ([{"name": "a", "nodes": "all", "default_time": "2-00:00:00"}], "longer than max_time"),
        ([{"name": "a", "nodes": "all", "colour": "red"}], "no field colour"),
        ([{"name": "a", "nodes": "all", "default": True}, {"name": "b", "nodes": "all", "default": True}], "keep one"),
        ([{"name": "a", "nodes": "all", "billing_weights": {"gpu": 1}}], "no TRES"),
        ([{"name": "a", "nodes": "all", "billing_weights": {"cpu": "much"}}], "must be a number"),
    ],
)
def test_partitions_that_are_refused(items, words):
    with pytest.raises(ConfigError, match=words):
        partitions.build(items, nodes.build([definition("gpu1"), definition("gpu2")]), DEFAULTS, {})


@pytest.mark.parametrize("missing", ["max_time", "default_time"])
def test_no_partition_without_its_times(missing):
    defaults = {key: text for key, text in DEFAULTS.items() if key != missing}
    with pytest.raises(ConfigError, match=missing):
        partitions.build([{"name": "a", "nodes": "all"}], nodes.build([definition("gpu1")]), defaults, {})


@pytest.mark.parametrize(
    ("text", "expected"),
    [("90", 90), ("1:30", 2), ("01:00:00", 60), ("1-12", 2160), ("1-00:30", 1470), ("7-00:00:00", 10080), (45, 45)],
)
def test_times(text, expected):
    assert partitions.minutes("t", text) == expected


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        ({"gres/gpu": 16}, {"GRES/gpu:h100": 16}),
        ({"gres/gpu": 16, "gres/gpu:h100": 32}, {"GRES/gpu:h100": 32}),
        ({"GRES/GPU:H100": 32, "CPU": 1}, {"CPU": 1, "GRES/gpu:h100": 32}),
        ({"gres/gpu:a100": 9}, {}),
        ({"license/matlab": 3, "mem": "0.25G"}, {"Mem": "0.25G", "license/matlab": 3}),
    ],
)
def test_a_gpu_is_billed_once(weights, expected):
    assert partitions.billing("p", nodes.build([definition("gpu1")]), weights) == expected


def test_untyped_gres_keeps_its_untyped_weight():
    item = broken(gres=[{"name": "fpga", "count": 2, "file": "/dev/fpga[0-1]"}])
    assert partitions.billing("p", nodes.build([item]), {"gres/fpga": 3}) == {"GRES/fpga": 3}


def tree(*leaves):
    return nodes.build([definition(f"gpu{number}", switch=leaf) for number, leaf in enumerate(leaves, 1)])


def test_topology():
    text = topology.build(tree("leaf2", "leaf1", "leaf1"), [{"name": "spine", "switches": ["leaf1", "leaf2"]}])
    assert text.splitlines()[1:] == [
        "SwitchName=leaf1 Nodes=gpu[2-3]",
        "SwitchName=leaf2 Nodes=gpu1",
        "SwitchName=spine Switches=leaf[1-2]",
    ]


def test_no_switches_no_file():
    assert topology.build(tree("", ""), []) == ""
    assert topology.build(tree("only", "only"), []).splitlines()[1:] == ["SwitchName=only Nodes=gpu[1-2]"]


@pytest.mark.parametrize(
    ("leaves", "switches", "words"),
    [
        (("leaf1", ""), [], "gpu2 names no switch"),
        (("leaf1", "leaf2"), [], "one switch above all others"),
        (("leaf1",), [{"name": "leaf1", "switches": ["x"]}], "twice"),
        (("leaf1",), [{"name": "spine", "switches": []}], "connects nothing"),
        (("leaf1",), [{"name": "spine", "switches": ["leaf9"]}], "leaf9, which no node"),
        (
            ("leaf1",),
            [{"name": "s1", "switches": ["leaf1"]}, {"name": "s2", "switches": ["leaf1"]}],
            "below both s1 and s2",
        ),
        (("leaf1",), [{"name": "s1", "switches": ["s2"]}, {"name": "s2", "switches": ["s1"]}], "loop"),
        (("bad name",), [], "no switch name"),
    ],
)
def test_topologies_that_are_refused(leaves, switches, words):
    with pytest.raises(ConfigError, match=words):
        topology.build(tree(*leaves), switches)


REPORT = "NodeName=gpu1 CPUs=64 Boards=1 SocketsPerBoard=2 CoresPerSocket=16 ThreadsPerCore=2 RealMemory=1031789\nUpTime=0-01:00:00\n"


def test_a_proposal_can_be_used_as_it_is():
    node = proposal.propose(
        REPORT,
        ["/dev/nvidiactl", "/dev/nvidia10", *(f"/dev/nvidia{n}" for n in range(10))],
        "NVIDIA H100 80GB HBM3\n" * 11,
    )
    assert node == {
        "cpus": 64, "sockets": 2, "cores_per_socket": 16, "threads_per_core": 2, "real_memory": 1031000,
        "gres": [{"name": "gpu", "type": "h100", "count": 11, "file": "/dev/nvidia[0-10]"}],
    }  # fmt: skip
    assert nodes.build([{**node, "name": "gpu1", "address": "10.0.0.1"}])[0].cpus == 64


@pytest.mark.parametrize(
    ("seen", "promised"), [(1031789, 1031000), (24105, 24000), (2047, 2000), (10000, 10000), (50, 1)]
)
def test_memory_is_rounded_down(seen, promised):
    assert proposal.round_down(seen) == promised <= seen


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("NVIDIA A100-SXM4-80GB", "a100"),
        ("NVIDIA H200", "h200"),
        ("Tesla V100-PCIE-16GB", "v100"),
        ("NVIDIA L40S", "l40s"),
        ("", "fill-in"),
    ],
)
def test_model_names(model, name):
    assert proposal.short_name(model) == name


def test_without_a_driver_the_type_is_left_to_the_operator():
    assert proposal.propose(REPORT, ["/dev/nvidia0"])["gres"][0]["type"] == proposal.UNKNOWN_TYPE
    assert "gres" not in proposal.propose(REPORT, [])
    with pytest.raises(ConfigError, match="printed no NodeName"):
        proposal.propose("", [])


def test_reading_back():
    text = (
        "# NodeName=x Gres=gpu:1\nNodeName=DEFAULT Gres=gpu:h100:8\nNodeName=gpu[1-2] CPUs=2\n"
        "NodeName=gpu3 \\\n  Gres=mps:1,gpu:a100:4\nStateSaveLocation = /x\n"
    )
    assert read.node_gres(text) == {"gpu1": "gpu:h100:8", "gpu2": "gpu:h100:8", "gpu3": "gpu:a100:4,mps:1"}
    assert read.option(text, "StateSaveLocation") == "/x"
    assert read.option(text, "SlurmUser") is None


def test_devices_of_a_node():
    text = (
        "AutoDetect=off\nNodeName=gpu[1-2] Name=gpu Type=h100 File=/dev/nvidia[0-1]\nName=mps Count=4\n"
        "NodeName=gpu3 Name=gpu MultipleFiles=/dev/nvidia7,/dev/cap9\n"
    )
    assert read.device_files(text, "gpu1") == ["/dev/nvidia0", "/dev/nvidia1"]
    assert read.device_files(text, "gpu3") == ["/dev/nvidia7", "/dev/cap9"]
    assert len(read.device_lines(text, "gpu2")) == 2


CARD = "Model: \t\t NVIDIA {}\nIRQ:   \t\t 30\nGPU UUID: \t GPU-x\nBus Location: \t 0000:01:00.0\nDevice Minor: \t {}\n"


def test_a_node_with_two_models_is_proposed_by_what_the_driver_says_of_each_device():
    cards = [
        CARD.format("H100 80GB HBM3", 0),
        CARD.format("A100-SXM4-40GB", 1),
        CARD.format("H100 80GB HBM3", 2),
        "garbage",
    ]
    devices = ["/dev/nvidia2", "/dev/nvidia0", "/dev/nvidia1", "/dev/nvidiactl"]
    assert proposal.propose(REPORT, devices, "", cards)["gres"] == [
        {"name": "gpu", "type": "h100", "count": 2, "file": "/dev/nvidia[0,2]"},
        {"name": "gpu", "type": "a100", "count": 1, "file": "/dev/nvidia1"},
    ]
