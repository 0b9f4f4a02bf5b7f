"""`fuselite benchmark`, run as a person runs it."""

import csv
import json
import os
import pty
import re
import subprocess

import numpy as np
import pytest
from graphs import Graph


def test_benchmark_prints_the_lines_that_scripts_parse(tool, mobilenet, tmp_path):
    result = tmp_path / "result.json"
    flags = ["--num_threads=1", "--num_runs=3", "--min_secs=0", "--warmup_min_secs=0", f"--result_file_path={result}"]
    text = tool("benchmark", f"--graph={mobilenet}", *flags, "--delegate=both")
    for pattern in (
        r"^STARTING!$",
        r"^Loaded model .*mobilenet_v2\.tflite$",
        r"^The input model file size \(MB\): \d+\.\d+$",
        r"^Initialized session in \d+\.\d+ms\.$",
        r"^Running benchmark for at least 3 iterations and at least 0 seconds but terminate if exceeding 150 seconds\.$",
        r"^count=3 first=\d+ curr=\d+ min=\d+ max=\d+ avg=\S+ std=\d+ p5=\d+ median=\d+ p95=\d+$",
        r"^Inference timings in us: Init: \d+, First inference: \d+, Warmup \(avg\): \S+, Inference \(avg\): \S+$",
        r"^Memory footprint delta from the start of the tool \(MB\): init=\S+ overall=\S+$",
        r"^Explicitly applied FUSELITE delegate, and the model graph will be completely executed by the delegate\.$",
        r"^Ratio \(reference / delegate\): \d+\.\d+$",
    ):
        assert re.search(pattern, text, re.M), pattern
    results = json.loads(result.read_text())
    assert results["ratio"] > 1
    assert results["delegate"]["runs"] == 3


def test_benchmark_takes_input_layers(tool, mobilenet, tmp_path):
    quick = ["--num_runs=1", "--min_secs=0", "--warmup_runs=0"]
    image = np.random.default_rng(0).uniform(-1, 1, (2, 224, 224, 3)).astype(np.float32)
    np.save(tmp_path / "image.npy", image)
    image.tofile(tmp_path / "image.bin")
    results = []
    for file in ("image.npy", "image.bin"):
        out = tmp_path / f"{file}.out"
        tool(
            "benchmark",
            mobilenet,
            *quick,
            "--input_layer=image",
            "--input_layer_shape=2,224,224,3",
            f"--input_layer_value_files=image:{tmp_path / file}",
            f"--output_filepath={out}",
        )
        results.append(np.fromfile(out, np.float32))
    assert results[0].shape == (2000,) and np.ptp(results[0]) > 0
    np.testing.assert_array_equal(*results)
    tool("benchmark", mobilenet, *quick, "--input_layer_value_range=image,0,255")
    (tmp_path / "short.bin").write_bytes(b"0" * 10)
    short = f"--input_layer_value_files=image:{tmp_path / 'short.bin'}"
    message = tool("benchmark", mobilenet, *quick, short, status=1)
    assert "short.bin: has 10 bytes, but input 'image' is float32 [1,224,224,3]: 602112 bytes" in message


def test_benchmark_watches_the_memory(tool, mobilenet):
    flags = ["--num_runs=3", "--min_secs=0", "--warmup_runs=0"]
    watch = ["--report_peak_memory_footprint=true", "--memory_footprint_check_interval_ms=5"]
    text = tool("benchmark", mobilenet, *flags, *watch)
    peak = re.search(r"^Overall peak memory footprint \(MB\) via periodic monitoring: (\S+)$", text, re.M)
    assert 5 < float(peak[1]) < 2000
    assert "periodic monitoring" not in tool("benchmark", mobilenet, *flags)


def test_benchmark_profiles_the_steps(tool, mobilenet, tmp_path):
    file = tmp_path / "profile.csv"
    flags = ["--num_runs=3", "--min_secs=0", "--enable_op_profiling=true"]
    text = tool("benchmark", mobilenet, *flags)
    assert "Run Order" in text and "Top by Computation Time" in text and "Summary by node type" in text
    assert "CONV_2D" in text
    tool("benchmark", mobilenet, *flags, "--op_profiling_output_mode=csv", f"--op_profiling_output_file={file}")
    lines = file.read_text().splitlines()
    assert lines[0].startswith("node type, start, first, avg_ms") and len(lines) > 20


def test_names_with_commas_are_one_field_of_the_profile(tool, tmp_path):
    """Kernels of large batches say so behind a comma: "conv f32 4x16 avx2 jit, 4 images at a time"."""
    file = tmp_path / "profile.csv"
    batch = ["--shape", "32,64,64,3", "--num_threads=1", "--num_runs=1", "--min_secs=0", "--warmup_runs=0"]
    tool("benchmark", "zoo:mobilenet_v1", *batch, f"--profiling_output_csv_file={file}")
    rows = list(csv.reader(file.read_text().splitlines()))
    assert len(rows) > 20 and {len(row) for row in rows} == {9}


def test_benchmark_takes_the_flags_of_benchmark_model(tool, tmp_path):
    quick = ["zoo:transformer", "--num_runs=1", "--min_secs=0", "--warmup_runs=0"]
    profile = tmp_path / "profile.csv"
    # A flag given twice counts as it is given last.
    text = tool("benchmark", *quick, "--num_runs=3", "--enable_op_profiling=true", f"--profiling_output_csv_file={profile}")
    assert re.search(r"^count=3 ", text, re.M)
    assert profile.read_text().startswith("node type, ")
    signatures = tool("benchmark", *quick, "--list_signatures=true")
    assert "contains 1 signature key(s)" in signatures
    assert "-> Signature Key: serving_default, Inputs: tokens, Outputs: output" in signatures
    assert "count=1" in tool("benchmark", *quick, "--signature_to_run_for=serving_default")
    # An empty value takes nothing from what follows.
    assert "count=1" in tool("benchmark", "--signature_to_run_for=", "--output_prefix=", "--input_layer=", *quick)
    ignored = tool("benchmark", *quick, "--use_gpu=false", "--use_xnnpack=true", warns=True)
    assert sorted(ignored.splitlines()) == [
        f"fuselite: {flag} has no meaning here and is ignored" for flag in ("--use_gpu", "--use_xnnpack")
    ]


def test_a_progress_bar_goes_before_anything_is_printed(tool):
    """On a terminal: erased, so that no line is printed beside it; never full before the end."""
    tool_path, (parent, child) = tool.path, pty.openpty()
    arguments = ["benchmark", "zoo:transformer", "--num_runs=1", "--min_secs=2", "--warmup_runs=0"]
    with subprocess.Popen([tool_path, *arguments], stdout=child, stderr=child) as process:
        os.close(child)
        seen = b""
        while True:
            try:
                seen += os.read(parent, 4096)
            except OSError:  # the terminal's other end is closed
                break
    os.close(parent)
    assert process.returncode == 0
    bars = re.findall(rb"measuring \[[#.]+\] +(\d+)%", seen)
    assert bars, seen
    assert int(bars[0]) < 90
    assert re.search(rb"\r\x1b\[Kcount=", seen)


def test_benchmark_prints_a_roofline(tool, tmp_path):
    result = tmp_path / "result.json"
    out = tool(
        "benchmark",
        "zoo:transformer",
        "--roofline",
        "--num_threads=1",
        "--num_runs=3",
        "--min_secs=0",
        "--result_file_path",
        result,
    )
    assert re.search(
        r"^Measured peaks of 1 thread: float \d+\.\d GFLOP/s, (bf16 \d+\.\d GFLOP/s, )?int8 \S+ GOP/s; copying \d", out, re.M
    )
    assert re.search(r"^ +us +% +GOP/s +GB/s +bound by +% of peak +lost us +operators +kernel$", out, re.M)
    told = json.loads(result.read_text())["delegate"]["roofline"]
    steps = told["steps"]
    assert {step["bound"] for step in steps} <= {"float", "memory"} and all(step["us"] > 0 for step in steps)
    assert any("FULLY_CONNECTED" in step["ops"] and step["operations"] > 1e6 for step in steps)
    assert 0 < told["least_us"] <= sum(step["us"] for step in steps) <= told["run_us"] + 1
    for name in ("between the steps", "the run"):
        assert re.search(rf"^ *[\d.]+ +[\d.]+ +[\d.]+ +[\d.]+ +[\d.]+ +{name}$", out, re.M)


def test_a_roofline_counts_the_rows_that_are_looked_up(tool, tmp_path):
    g = Graph()
    table = g.constant(np.zeros((10000, 16), np.float32))
    rows = g.op("GATHER", [table, g.input((8,), np.int32)], (8, 16), "GatherOptions", axis=0)
    model, result = tmp_path / "gather.tflite", tmp_path / "result.json"
    model.write_bytes(g.build([rows]))
    tool("benchmark", model, "--roofline", "--num_runs=3", "--min_secs=0", "--result_file_path", result)
    (step,) = json.loads(result.read_text())["delegate"]["roofline"]["steps"]
    assert step["bytes"] == 8 * 4 + 2 * 8 * 16 * 4  # indices, and rows read and written


@pytest.mark.parametrize("without", ["--delegate=off", "--use_fuselite=false"])
@pytest.mark.parametrize("flag", ["--roofline", "--require_full_delegation=true"])
def test_what_is_about_the_delegate_is_refused_without_it(tool, without, flag):
    refused = tool("benchmark", "zoo:keyword", flag, without, status=2)
    assert f"{flag.partition('=')[0]}: no fuselite delegate is applied here" in refused


def test_nothing_is_compared_with_itself(tool, delegate_path):
    both = ["zoo:keyword", "--delegate=both", "--use_fuselite=false", "--num_runs=1", "--min_secs=0", "--warmup_runs=0"]
    assert "--delegate=both: no delegate is applied here to compare" in tool("benchmark", *both, status=2)
    assert "Ratio" in tool("benchmark", *both, "--external_delegate_path", delegate_path)


@pytest.mark.parametrize("instead", ["--dry_run=true", "--list_signatures=true"])
@pytest.mark.parametrize("flag", ["--output_filepath=x", "--op_profiling_output_file=x", "--roofline"])
def test_files_of_a_run_are_refused_where_nothing_is_run(tool, instead, flag):
    message = f"{flag.partition('=')[0]}: nothing is run with {instead}"
    assert message in tool("benchmark", "zoo:keyword", instead, flag, status=2)


def test_benchmark_can_require_full_delegation(tool):
    refused = ["--require_full_delegation=true", "--ops_deny=SOFTMAX", "--dry_run=true"]
    assert "fuselite explain says why" in tool("benchmark", "zoo:mobilenet_v1", *refused, status=1)
    tool("benchmark", "zoo:mobilenet_v1", "--require_full_delegation=true", "--dry_run=true")
