"""Whole quantized models in both hosts and every combination of options, against LiteRT's reference kernels: integers
to the bit.

Those of FUSELITE_MODELS; where it is not set, the forms of networks that `fuselite zoo` writes.

FUSELITE_MATRIX=full takes every combination for the larger models too, of which the default is a selection.
"""

import os
import signal
import subprocess
import sys

import conftest
import graphs
import model_matrix
import numpy as np
import own_interpreter
import pytest
import running
from ai_edge_litert import interpreter as litert

QUICK = [
    "ad01_int8",
    "digits_int8",
    "hello_world_int8",
    "keras_lstm_mnist_ptq",
    "keras_mlp_int8",
    "kws_int8",
    "mobilenet_v1_0.25_128_quant",
    "resnet8_cifar10_int8",
    "vww_96_int8",
    "ops/mul_quant",
    "ops/simple_quantized_ops",
]
LARGE = [
    "deeplabv3_mnv2_dm05_pascal_quant",
    "keras_efficientnet_b0_int8",
    "keras_mobilenet_v1_int8",
    "keras_mobilenet_v2_int8",
    "keras_mobilenet_v3_large_int8",
    "keras_unet_256_int8",
    "keras_vit_tiny_int8",
    "mobilenet_v2_1.0_224_quant",
    "movenet_single_pose_lightning_ptq",
    "ops/matmul_quant",
    "tf2_mobilenet_v2_1.0_224_ptq",
]
# Ends in float arithmetic on what the integers gave.
FLOAT_END = {"movenet_single_pose_lightning_ptq": 1e-5}
# OpenVINO 2026.4's error against LiteRT's reference kernels on the inputs of seeds 0 and 1, measured once on an AVX-512
# machine; it does not take the LSTM. XNNPACK's is measured here. The delegate may have twice the larger.
OPENVINO_ERRORS = {
    "keras_mlp_dynrange": (5.08e-3, 3.17e-3),
    "keras_mobilenet_v1_dynrange": (4.22e-4, 1.16e-3),
    "keras_vit_tiny_dynrange": (8.42e-4, 2.18e-3),
    "keras_mobilenet_v2_fp16": (2.62e-6, 1.96e-6),
    "lstm_mnist_float": (0.0, 0.0),
}
if not os.environ.get("FUSELITE_MODELS"):
    QUICK, LARGE = [], conftest.ZOO_INTEGER
    OPENVINO_ERRORS = dict.fromkeys(conftest.ZOO_HYBRID, (0.0, 0.0))
RANGE_BOUND = 1e-5  # of the output's range, where the peers' errors are smaller
ALL = QUICK + LARGE + list(OPENVINO_ERRORS)


@pytest.fixture(scope="session")
def models(networks):
    return networks


def path_of(models, name):
    path = models / f"{name}.tflite"
    if not path.is_file():
        pytest.skip(f"{path} is not there")
    return path


@pytest.fixture(scope="module")
def expected(models):
    """expected(name, seed): inputs and outputs of LiteRT's reference kernels, computed once."""
    known = {}

    def compute(name, seed):
        if (name, seed) not in known:
            interpreter = running.reference(path_of(models, name))
            inputs = running.random_inputs(interpreter, seed)
            known[name, seed] = inputs, running.run(interpreter, inputs)
        return known[name, seed]

    return compute


@pytest.fixture(scope="module")
def allowed(models, expected):
    """allowed(name, seed): how far outputs may be from the reference's."""
    known = {}

    def bound(name, seed):
        if name not in OPENVINO_ERRORS:
            return FLOAT_END.get(name, 0)
        if (name, seed) not in known:
            inputs, outputs = expected(name, seed)
            xnnpack = litert.Interpreter(str(path_of(models, name)))
            xnnpack.allocate_tensors()
            error = running.largest_difference(running.run(xnnpack, inputs), outputs)
            extent = max(float(np.ptp(output)) for output in outputs)
            known[name, seed] = max(2 * error, 2 * OPENVINO_ERRORS[name][seed], RANGE_BOUND * extent)
        return known[name, seed]

    return bound


def run_matrix(combinations, name, seeds, models, expected, allowed, delegate_path):
    """What differs, as text; and the outputs of every combination."""
    problems, results = [], []
    for host, options in combinations:
        runner = model_matrix.Runner(host, path_of(models, name), delegate_path, options)
        for seed in seeds:
            inputs, outputs = expected(name, seed)
            actual = runner.run(inputs)
            error = running.largest_difference(actual, outputs)
            if not error <= allowed(name, seed):
                problems.append(f"{host} {options}, seed {seed}: off by {error:g}, allowed {allowed(name, seed):g}")
            results.append((host, options, seed, actual))
    return problems, results


@pytest.mark.parametrize("name", QUICK + LARGE)
def test_has_the_references_bits_in_every_combination(name, models, expected, allowed, delegate_path):
    quick = name in QUICK
    combinations = model_matrix.combinations(quick)
    seeds = (0, 1, 0) if quick else (0,)
    problems, _ = run_matrix(combinations, name, seeds, models, expected, allowed, delegate_path)
    assert problems == []


@pytest.mark.parametrize("name", OPENVINO_ERRORS)
def test_float_sums_are_within_twice_the_peers_errors(name, models, expected, allowed, delegate_path):
    combinations = model_matrix.combinations(quick=name in ("keras_mlp_dynrange", "lstm_mnist_float"))
    problems, results = run_matrix(combinations, name, (0,), models, expected, allowed, delegate_path)
    bits = {}
    for host, options, seed, outputs in results:  # neither the host nor the number of threads changes a bit
        key = (*(options[key] for key in ("isa", "jit", "fusion")), seed)
        if any(not np.array_equal(a, b) for a, b in zip(outputs, bits.setdefault(key, outputs))):
            problems.append(f"{host} {options}: other bits than with another host or number of threads")
    assert problems == []


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("host", model_matrix.HOSTS)
def test_further_inputs_on_the_best_of_the_machine(host, name, models, expected, allowed, delegate_path):
    combinations = [(host, {})]
    problems, _ = run_matrix(combinations, name, (0, 1, 0), models, expected, allowed, delegate_path)
    assert problems == []


@pytest.mark.parametrize("name", ALL)
def test_our_own_interpreter_alone(name, models, expected, allowed):
    interpreter = own_interpreter.Interpreter(path_of(models, name))
    inputs, outputs = expected(name, 0)
    assert running.largest_difference(interpreter.run(inputs), outputs) <= allowed(name, 0)


@pytest.mark.parametrize("name", ALL)
def test_is_taken_in_one_partition(name, load_delegate, models, tmp_path):
    explain = tmp_path / "explain.json"
    running.delegated(path_of(models, name), load_delegate(explain_file=explain))
    graph = running.explanation(explain)
    left = [(node["node"], node["op"], node["reason"]) for node in graph["nodes"] if not node["claimed"]]
    assert (left, len(graph["partitions"])) == ([], 1)
    assert graph["partitions"][0]["compiled"]


def test_blockwise_quantization_is_left_to_the_host(delegate_path, tmp_path):
    """Where no operator takes the scales. LiteRT 2.3.0 may end the process when it allocates such a model, with or without a
    delegate."""
    graph, path, explain = graphs.Graph(), tmp_path / "model.tflite", tmp_path / "explain.json"
    blocks = graph.constant_in_blocks(np.ones((1, 64), np.int8), np.full((1, 2), 0.5, np.float16), bits=8)
    x = graph.input((1, 64), np.int8, 1.0)
    path.write_bytes(graph.build([graph.op("ADD", [x, blocks], (1, 64), "AddOptions")]))
    script = (
        "import sys; from ai_edge_litert import interpreter as l;"
        "d = l.load_delegate(sys.argv[1], {'explain_file': sys.argv[3]});"
        "l.Interpreter(sys.argv[2], experimental_delegates=[d] if sys.argv[4] == 'with' else []).allocate_tensors()"
    )
    arguments = [sys.executable, "-c", script, str(delegate_path), str(path), str(explain)]
    alone = subprocess.run([*arguments, "without"], capture_output=True, check=False).returncode
    assert subprocess.run([*arguments, "with"], capture_output=True, check=False).returncode == alone
    assert alone in (0, -signal.SIGABRT)
    nodes = running.explanation(explain)["nodes"]
    assert [(node["claimed"], "quantized in blocks" in node["reason"]) for node in nodes] == [(False, True)]
    with pytest.raises(own_interpreter.Error):
        own_interpreter.Interpreter(path)


def test_pairwise_combinations_hold_every_pair():
    def pairs(rows):
        rows = [(host, *options.items()) for host, options in rows]
        return {(a, b) for row in rows for i, a in enumerate(row) for b in row[i + 1 :]}

    assert pairs(model_matrix.pairwise()) == pairs(model_matrix.full())
    assert os.environ.get("FUSELITE_MATRIX", "") in ("", "full")
