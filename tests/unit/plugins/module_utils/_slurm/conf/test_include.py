# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.gpuops.tenancy.plugins.module_utils._slurm.conf import include, read
from hypothesis import given
from hypothesis import strategies as st

TOP = "/etc/slurm/slurm.conf"


def expand(files):
    def reader(path):
        if path not in files:
            raise FileNotFoundError(2, "No such file or directory", path)
        if isinstance(files[path], OSError):
            raise files[path]
        return files[path]

    return include.expand(TOP, reader)


def nodes(**files):
    return sorted(read.node_gres(expand({TOP: files.pop("top"), **{f"/etc/slurm/{k}": v for k, v in files.items()}})))


@pytest.mark.parametrize(
    "line",
    [
        "Include nodes",
        "include nodes",
        "INCLUDE\tnodes   # all of them",
        "Include /etc/slurm/nodes",
        "Include \\\nnodes",
        "Include nodes MaxJobCount=5",
    ],
)
def test_an_included_file_is_seen(line):
    assert nodes(top=f"NodeName=a\n{line}\n", nodes="NodeName=b[1-2] Gres=gpu:4") == ["a", "b1", "b2"]


@pytest.mark.parametrize("line", ["# Include nodes", "IncludeX nodes", "Include=nodes", "Epilog=/x # Include nodes"])
def test_what_only_looks_like_it_is_left_alone(line):
    assert nodes(top=f"NodeName=a\n{line}\n") == ["a"]


def test_defaults_reach_into_and_out_of_a_file_and_the_rest_of_the_line_counts():
    files = {
        TOP: "NodeName=DEFAULT Gres=gpu:2\nInclude n1 NodeName=c\nNodeName=d\n",
        "/etc/slurm/n1": "NodeName=a\nNodeName=DEFAULT Gres=gpu:4\nNodeName=b",
    }
    assert read.node_gres(expand(files)) == {"a": "gpu:2", "b": "gpu:4", "c": "gpu:4", "d": "gpu:4"}


def test_the_name_of_the_cluster_in_a_name():
    assert nodes(top="ClusterName=demo\nInclude nodes-%c\n", **{"nodes-demo": "NodeName=a"}) == ["a"]
    assert nodes(top="Include first\nInclude nodes-%c\n", first="ClusterName=demo", **{"nodes-demo": "NodeName=a"}) == [
        "a"
    ]
    with pytest.raises(include.IncludeError, match="no ClusterName stands before"):
        nodes(top="Include nodes-%c\nClusterName=demo\n", **{"nodes-demo": "NodeName=a"})


def test_a_relative_name_in_a_folder_is_looked_for_where_either_release_does():
    inner = {"d/all": "Include rack"}
    assert nodes(top="Include d/all", rack="NodeName=a", **inner) == ["a"]
    assert nodes(top="Include d/all", **inner, **{"d/rack": "NodeName=b"}) == ["b"]
    assert nodes(top="Include d/all", rack="NodeName=c", **inner, **{"d/rack": "NodeName=c"}) == ["c"]
    with pytest.raises(include.IncludeError, match="/etc/slurm/d/rack or /etc/slurm/rack, depending on the release"):
        nodes(top="Include d/all", rack="NodeName=a", **inner, **{"d/rack": "NodeName=b"})


@pytest.mark.parametrize(
    ("top", "files", "says"),
    [
        ("Include nodes\n", {}, "includes nodes, which cannot be read"),
        ("Include *.conf\n", {"a.conf": "NodeName=a"}, "cannot be read"),
        ('Include "nodes"\n', {"nodes": "NodeName=a"}, "cannot be read"),
        ("Include nodes\n", {"nodes": PermissionError(13, "Permission denied")}, "Permission denied"),
        ("Include nodes\n", {"nodes": IsADirectoryError(21, "Is a directory")}, "Is a directory"),
        ("Include slurm.conf\n", {}, "includes itself"),
        ("Include a\n", {"a": "Include b", "b": "Include a"}, "includes itself"),
    ],
)
def test_what_cannot_be_followed_is_an_error_and_never_nothing(top, files, says):
    with pytest.raises(include.IncludeError, match=says):
        nodes(top=top, **files)


lines = st.lists(
    st.sampled_from(["NodeName=a Gres=gpu:1", "NodeName=b[1-3]", "NodeName=DEFAULT Gres=gpu:2", "# x", ""])
)


@given(st.lists(lines, min_size=1, max_size=5))
def test_in_how_many_files_it_lies_makes_no_difference(parts):
    files = {TOP: ""}
    for number, part in enumerate(parts):
        files[f"/etc/slurm/part{number}"] = "\n".join(part)
        files[TOP] += f"include part{number}\n"
    whole = "\n".join("\n".join(part) for part in parts)
    assert read.node_gres(expand(files)) == read.node_gres(whole)
