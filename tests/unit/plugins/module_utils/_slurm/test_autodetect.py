# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm import autodetect


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("AutoDetect=off\nNodeName=gpu1 Name=gpu File=/dev/nvidia0\n", []),
        ("NodeName=gpu1 Name=gpu File=/dev/nvidia0\n", []),
        ("AutoDetect=nvml\n", ["nvml"]),
        ("AutoDetect=off\nNodeName=gpu[1-2] Name=gpu Type=h100 Count=4 AutoDetect=nvml\n", ["nvml"]),
        ("AutoDetect=nvml\nNodeName=gpu1 Name=gpu File=/dev/nvidia0 AutoDetect=off\n", []),
        ("AutoDetect=off\nNodeName=gpu9 Name=gpu Count=4 AutoDetect=nvml\n", []),
    ],
)
def test_how_a_nodes_devices_are_to_be_found(text, found):
    assert autodetect.methods(text, "gpu1") == found


def test_without_the_plugin_it_says_what_to_install(tmp_path):
    plugins = tmp_path / "lib" / "slurm"
    plugins.mkdir(parents=True)
    (plugins / "gres_gpu.so").touch()
    conf = f"PluginDir={plugins}:/no/such\n"
    assert autodetect.directories(conf, []) == [str(plugins)]
    assert "slurm-wlm-nvml-plugin" in autodetect.missing(["nvml"], [str(plugins)])
    (plugins / "gpu_nvml.so").touch()
    assert autodetect.missing(["nvml"], [str(plugins)]) == ""
    assert "gpu_rsmi.so" in autodetect.missing(["nvml", "rsmi"], [str(plugins)])
    assert autodetect.missing([], []) == ""


def test_plugins_are_looked_for_beside_slurmd(tmp_path):
    for place in ("lib/slurm", "sbin"):
        (tmp_path / place).mkdir(parents=True)
    (tmp_path / "lib/slurm/gres_gpu.so").touch()
    program = tmp_path / "sbin/slurmd"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert autodetect.directories("", [str(tmp_path / "sbin")])[0] == str(tmp_path / "lib/slurm")
