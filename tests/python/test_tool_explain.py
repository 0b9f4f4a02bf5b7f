"""`fuselite explain`: what it says of each node, and of what could not be compiled."""

import json
import re
import subprocess

import pytest


def nodes_of(ranges):
    """{3, 4, 5, 7} of "3-5 7", as explain writes nodes."""
    ends = [part.split("-") for part in re.split("[ ,]+", ranges.strip())]
    return {node for end in ends for node in range(int(end[0]), int(end[-1]) + 1)}


def test_explain_names_each_node_of_a_partition(tool, networks):
    paths = [path for path in sorted(networks.rglob("*.tflite")) if path.stat().st_size < 100_000_000]
    partitions = 0
    for path in paths:
        # Nothing is said of files that are refused.
        text = subprocess.run([tool.path, "explain", path], capture_output=True, text=True, check=False).stdout
        for block in re.split(r"^partition \d+: ", text, flags=re.M)[1:]:
            head, *lines = re.split(r"^graph", block, flags=re.M)[0].splitlines()
            if "compiled in" not in head:
                continue
            partitions += 1
            named = set()
            for line in lines:
                step = re.match(r" +\d+ +(\d[\d -]*?)  +\S", line)
                for ranges in [step[1]] if step else re.findall(r"\bnodes? (\d[\d, -]*)", line):
                    named |= nodes_of(ranges)
                places = re.search(r"\((?:step|node)s? ([^)]*)\)$", line)
                places = places[1].split(", ") if places else []
                assert len(places) == len(set(places)), (path, line)
            assert nodes_of(re.search(r"\((.*?)\)", head)[1]) <= named, path
    assert partitions >= min(len(paths), 10)


def test_explain_says_what_the_budget_refused(tool):
    arguments = ("explain", "zoo:mobilenet_v1", "--max_memory", 1)
    reason = re.search("some partitions could not be compiled: (.*max_memory allows 1 B)", tool(*arguments, status=1))[1]
    text = subprocess.run([tool.path, *map(str, arguments)], capture_output=True, text=True, check=False).stdout
    assert f" M multiply-adds, could not be compiled: {reason}\n" in text
    work = re.search(r"[\d.]+ M multiply-adds", tool("explain", "zoo:mobilenet_v1"))[0]
    assert work in text, "what is beyond the budget counts, too"


@pytest.mark.parametrize("limit", [("--max_memory", "64K"), ("--max_multiply_adds", "1M")])
def test_explain_is_a_gate_for_models(tool, tmp_path, limit):
    for form, begin in (("text", "fuselite: isa"), ("json", "{"), ("dot", "digraph")):
        refused = subprocess.run(
            [tool.path, "explain", "zoo:mobilenet_v1", "--format", form, *limit], capture_output=True, text=True, check=False
        )
        assert refused.returncode == 1 and refused.stdout.lstrip().startswith(begin), refused.stdout[:100]
        assert re.fullmatch(r"fuselite: zoo:mobilenet_v1: .* and " + limit[0][2:] + r" allows .*\n", refused.stderr)
    page = tmp_path / "graph.html"
    tool("explain", "zoo:mobilenet_v1", *limit, "--html", page, "--profile_runs", 2, status=1)
    assert "CONV_2D" in page.read_text()
    plan = tmp_path / "plan.txt"
    tool("explain", "zoo:mobilenet_v1", *limit, "-o", plan, status=1)
    assert "could not be compiled" in plan.read_text()
    # One of several signatures is enough.
    assert limit[0][2:] in tool("explain", "zoo:decoder_small", *limit, status=1)
    tool("explain", "zoo:mobilenet_v1", "--max_memory", "1G", "--max_multiply_adds", "1e12")


def test_a_picture_is_written_beside_what_else_is_asked_for(tool, tmp_path):
    page, plan = tmp_path / "graph.html", tmp_path / "plan.json"
    assert tool("explain", "zoo:keyword", "--html", page) == ""
    assert "<svg" in page.read_text()
    page.unlink()
    assert json.loads(tool("explain", "zoo:keyword", "--html", page, "--format", "json"))["graphs"] and page.is_file()
    page.unlink()
    assert tool("explain", "zoo:keyword", "--html", page, "--format", "json", "-o", plan) == ""
    assert json.loads(plan.read_text())["graphs"] and page.is_file()


def test_shapes_that_do_not_fit_are_said_plainly(tool):
    refused = tool("explain", "zoo:mobilenet_v1", "--shape", "2,2", status=1)
    assert "--shape [2,2] does not fit input 'image', which is float32 [1,224,224,3]" in refused
    large = tool("explain", "zoo:mobilenet_v1", "--shape", "900,224,224,3", "--max_memory", 10**6, status=1)
    assert "with --shape [900,224,224,3] for input 'image', which is float32 [1,224,224,3]: " in large
    assert "max_memory allows 1 MB" in large and "--shape says" not in large
    both = ("--input_layer=image", "--input_layer_shape=1,224,224,3", "--shape", "image:1,224,224,3")
    assert "input 'image' is given two shapes" in tool("explain", "zoo:mobilenet_v1", *both, status=2)


@pytest.mark.parametrize(
    "shape", [("--shape", "1,16"), ("--shape", "tokens:1,16"), ("--input_layer=tokens", "--input_layer_shape=1,16")]
)
def test_shapes_leave_no_signature_unexplained(tool, shape):
    graphs = json.loads(tool("explain", "zoo:decoder_small", "--format", "json", *shape))["graphs"]
    plain = json.loads(tool("explain", "zoo:decoder_small", "--format", "json"))["graphs"]
    assert len(graphs) > 1 and all(partition["compiled"] for graph in graphs for partition in graph["partitions"])
    assert graphs[1]["nodes"] == plain[1]["nodes"], "what decodes a token has its own shape"
    assert graphs[0]["nodes"] != plain[0]["nodes"]
