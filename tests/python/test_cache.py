"""Packed weights on disk: what is opened with them computes the same, and is told to have found them."""

import gc
import json
import os
import pathlib
import subprocess
import sys

import conftest
import numpy as np
import pytest
import running
from graphs import Graph

ZOO = ["mobilenet_v1", "mobilenet_v2", "transformer"]
FURTHER = [
    "keras_mobilenet_v1_dynrange",
    "keras_mobilenet_v3_large_int8",
    "keras_mobilenet_v2_float",
    "mobilenet_v2_1.0_224_quant",
    "lstm_mnist_float",
    "resnet8_cifar10_int8",
]
if not os.environ.get("FUSELITE_MODELS"):
    FURTHER = conftest.ZOO_INTEGER + conftest.ZOO_HYBRID


def outputs_and_caches(path, delegate, explain):
    """One run's outputs, and what the explanation says of the cache: (found, made, problem) of each partition."""
    interpreter = running.delegated(path, delegate)
    outputs = running.run(interpreter, running.random_inputs(interpreter, 3))
    caches = [cache for partition in running.explanation(explain)["partitions"] for cache in partition["caches"]]
    del interpreter
    gc.collect()  # weights that the process still holds are not read
    return outputs, [(cache["found"], cache["made"], cache["problem"]) for cache in caches]


def check_model(path, load_delegate, folder, **options):
    explain = folder / "explain.json"
    cache = folder / "cache"
    expected, none = outputs_and_caches(path, load_delegate(explain_file=explain, **options), explain)
    assert not none
    options |= {"cache_dir": cache, "explain_file": explain}
    cold, written = outputs_and_caches(path, load_delegate(**options), explain)
    warm, read = outputs_and_caches(path, load_delegate(**options), explain)
    assert written
    for (found, made, problem), (again, missing, also) in zip(written, read, strict=True):
        assert (found, problem, also, missing) == (0, "", "", 0)
        assert made == again > 0
    for got in (cold, warm):
        for actual, value in zip(got, expected, strict=True):
            np.testing.assert_array_equal(actual, value)
    return cache


@pytest.mark.parametrize("name", ZOO)
@pytest.mark.parametrize("options", [{}, {"jit": "off"}, {"isa": "avx2"}, {"num_threads": 2}], ids=str)
def test_a_model_of_the_zoo_is_the_same_out_of_the_cache(tool, load_delegate, tmp_path, name, options):
    path = tmp_path / f"{name}.tflite"
    tool("zoo", name, "-o", path)
    check_model(path, load_delegate, tmp_path, **options)


@pytest.mark.parametrize("name", FURTHER)
def test_a_model_is_the_same_out_of_the_cache(networks, load_delegate, tmp_path, name):
    check_model(networks / f"{name}.tflite", load_delegate, tmp_path)


def test_another_process_maps_the_file(tool, load_delegate, delegate_path, tmp_path):
    path = tmp_path / "model.tflite"
    tool("zoo", "mobilenet_v2", "-o", path)
    cache = check_model(path, load_delegate, tmp_path)
    code = (
        "import sys; sys.path[:0] = sys.argv[1:2]; import running;"
        "from ai_edge_litert.interpreter import load_delegate;"
        "d = load_delegate(sys.argv[2], {'cache_dir': sys.argv[4]});"
        "i = running.delegated(sys.argv[3], d);"
        "print(any(sys.argv[4] in line for line in open('/proc/self/maps')))"
    )
    arguments = [pathlib.Path(__file__).parent, delegate_path, path, cache]
    shown = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], stdout=subprocess.PIPE, check=True, text=True
    ).stdout
    assert shown.split()[-1] == "True"


def multiplies_bytes():
    """Whether the machine, and FUSELITE_ISA where it is set, has dot products of bytes."""
    flags = pathlib.Path("/proc/cpuinfo").read_text().split()
    level = os.environ.get("FUSELITE_ISA", "")
    return any(name in flags for name in ("avx512_vnni", "avx_vnni", "asimddp")) and level in (
        "",
        "avxvnni",
        "avx512vnni",
        "avx512bf16",
        "amx",
    )


def test_signatures_share_one_file(tool, tmp_path):
    path, cache = tmp_path / "decoder.tflite", tmp_path / "cache"
    tool("zoo", "decoder", "-o", path)
    command = ["generate", path, "--tokens=1,2,3", "--steps=4", "--no-limit"]
    expected, cold, warm = (
        tool(*command, *more).splitlines()[0] for more in ([], ["--cache_dir", cache], ["--cache_dir", cache])
    )
    assert expected == cold == warm
    # Where nothing multiplies bytes, several rows take weights as wide as their products.
    bound = 1.3 if multiplies_bytes() else 2.7
    assert [file.stat().st_size < bound * path.stat().st_size for file in cache.iterdir()] == [True]


def test_shapes_share_one_file(tool, load_delegate, tmp_path):
    path, cache = tmp_path / "model.tflite", tmp_path / "cache"
    tool("zoo", "mobilenet_v2", "-o", path)
    for batch in (1, 3):
        interpreter = running.delegated(path, load_delegate(cache_dir=cache), [[batch, 224, 224, 3]])
        del interpreter
        gc.collect()
    assert len(list(cache.iterdir())) == 1


def test_explain_tells_of_the_cache(tool, tmp_path):
    path, cache = tmp_path / "model.tflite", tmp_path / "cache"
    tool("zoo", "mobilenet_v2", "-o", path)
    first = tool("explain", path, "--cache_dir", cache)
    assert f"packed weights were in {cache}" in first
    assert " cache: 0 of " in first
    again = tool("explain", path, "--cache_dir", cache, "--format", "json")
    cached = json.loads(again)["graphs"][0]["partitions"][0]["caches"]
    assert cached[0]["made"] == 0 < cached[0]["found"]
    refused = tool("explain", path, "--cache_dir", "/proc/nowhere")
    assert "/proc/nowhere: cannot be made: No such file or directory" in refused
    read = tool("explain", path, "--cache_dir", tmp_path / "none", "--cache_mode", "read")
    assert " cache: 0 of " in read
    assert not (tmp_path / "none").exists()


def test_the_log_tells_what_was_not_read(tool, tmp_path):
    path, cache = tmp_path / "model.tflite", tmp_path / "cache"
    tool("zoo", "mobilenet_v2", "-o", path)
    tool("run", path, "--cache_dir", cache)
    (file,) = cache.iterdir()
    file.write_bytes(b"nonsense")
    command = [tool.path, "run", path, "--cache_dir", cache, "--cache_mode", "read"]
    run = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, "FUSELITE_LOG": "warning"})
    assert run.stderr.startswith("fuselite: warning: packed weights are not read: ") and str(file) in run.stderr
    assert run.stderr.count("\n") == 1


@pytest.mark.parametrize("order", [("ssse3", "avx2"), ("avx2", "ssse3")], ids=" ".join)
@pytest.mark.parametrize("threads", [1, 4])
def test_instruction_sets_share_no_weights_in_another_order(load_delegate, tmp_path, order, threads):
    """Panels of as many channels, in vectors of other lengths: in one process, and in one folder."""
    g, rng = Graph(), np.random.default_rng(2)
    x = g.input((1, 512))
    outputs = []
    for width in (36, 65, 68, 100, 135):
        weights = g.constant(rng.uniform(-1, 1, (width, 512)).astype(np.float32))
        outputs.append(g.op("FULLY_CONNECTED", [x, weights, None], (1, width), "FullyConnectedOptions"))
    path = tmp_path / "layers.tflite"
    path.write_bytes(g.build(outputs))
    inputs = [rng.uniform(-1, 1, (1, 512)).astype(np.float32)]
    expected = running.run(running.reference(path), inputs)
    alive = []
    for jit in ("off", "on"):
        for isa in order:
            delegate = load_delegate(isa=isa, jit=jit, num_threads=threads, cache_dir=tmp_path / "cache")
            alive.append(running.delegated(path, delegate))
            for actual, value in zip(running.run(alive[-1], inputs), expected, strict=True):
                np.testing.assert_allclose(actual, value, atol=1e-4)
