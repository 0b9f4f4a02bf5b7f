"""Whole float models in both hosts: every output against LiteRT's reference kernels.

Those of FUSELITE_MODELS; where it is not set, the float networks that `fuselite zoo` writes.
"""

import os
import threading

import conftest
import model_matrix
import numpy as np
import pytest
import running

# The larger error of XNNPACK (LiteRT 2.3.0) and OpenVINO 2026.4 against LiteRT's reference kernels, on the inputs of
# seeds 0 and 1, measured once on an AVX-512 machine. The delegate may have twice that, or RANGE_BOUND of the output's
# range where that is more.
PEER_ERRORS = {
    "ad01_fp32": 3.06e-05,
    "digits_float": 9.43e-09,
    "hello_world_float": 5.07e-07,
    "keras_efficientnet_b0_float": 1.10e-07,
    "keras_mlp_float": 4.77e-07,
    "keras_mobilenet_v1_float": 4.85e-08,
    "keras_mobilenet_v2_float": 3.91e-06,
    "keras_mobilenet_v3_small_float": 2.46e-07,
    "keras_resnet50_float": 1.27e-07,
    "keras_unet_256_float": 5.67e-06,
    "keras_vit_tiny_float": 1.27e-07,
    "kws_float": 5.41e-03,
    "resnet8_cifar10_float": 8.94e-07,
    "split_concat": 0.0,
    "vww_96_float": 1.20e-07,
    "ops/attn_vec_einsum": 7.46e-08,
    "ops/k_einsum": 5.97e-08,
    "ops/l2_norm_composite": 1.50e-08,
    "ops/norm": 1.44e-06,
    "ops/rope": 0.0,
    "ops/simple_add_dynamic_shape": 0.0,
    "ops/simple_l2_norm": 1.50e-08,
    "ops/simple_log_softmax_op": 9.54e-07,
    "ops/simple_mirror_pad_reflect_op": 0.0,
    "ops/simple_reducemin_op": 0.0,
    "ops/simple_tile_op": 0.0,
    "ops/sqrt_mean_mul_ops": 5.97e-08,
}
RANGE_BOUND = 1e-5

SMALL = [
    "ad01_fp32",
    "digits_float",
    "keras_mlp_float",
    "kws_float",
    "resnet8_cifar10_float",
    "vww_96_float",
]
LARGE = [
    "keras_efficientnet_b0_float",
    "keras_mobilenet_v1_float",
    "keras_mobilenet_v2_float",
    "keras_mobilenet_v3_small_float",
    "keras_resnet50_float",
    "keras_unet_256_float",
    "keras_vit_tiny_float",
]


RESIZED, MIDDLE, SPLIT = (
    ["keras_mlp_float", "digits_float", "ad01_fp32"],
    "keras_mobilenet_v3_small_float",
    "keras_mobilenet_v1_float",
)
REPEATED = SMALL + ["keras_mobilenet_v2_float"]

if not os.environ.get("FUSELITE_MODELS"):
    SMALL, LARGE = [], conftest.ZOO_FLOAT
    PEER_ERRORS = dict.fromkeys(LARGE, 0.0)
    RESIZED, MIDDLE, SPLIT, REPEATED = ["mobilenet_v2"], "mobilenet_v2", "mobilenet_v1", LARGE


@pytest.fixture(scope="session")
def models(networks):
    return networks


@pytest.fixture(scope="session")
def expected(models):
    """expected(name, seed): inputs and outputs of LiteRT's reference kernels, computed once."""
    known = {}

    def compute(name, seed):
        if (name, seed) not in known:
            path = models / f"{name}.tflite"
            if not path.is_file():
                pytest.skip(f"{path} is not there")
            interpreter = running.reference(path)
            inputs = running.random_inputs(interpreter, seed)
            known[name, seed] = inputs, running.run(interpreter, inputs)
        return known[name, seed]

    return compute


def allowed(name, outputs):
    extent = max(float(np.ptp(o.astype(np.float64))) if o.size else 0.0 for o in outputs)
    return max(2 * PEER_ERRORS[name], RANGE_BOUND * extent)


def check(name, delegate, models, expected, seeds=(0,)):
    inputs, _ = expected(name, seeds[0])
    interpreter = running.delegated(models / f"{name}.tflite", delegate)
    for seed in seeds:
        inputs, outputs = expected(name, seed)
        actual = running.run(interpreter, inputs)
        assert running.largest_difference(actual, outputs) <= allowed(name, outputs)
    return interpreter


@pytest.mark.parametrize("name", PEER_ERRORS)
def test_outputs_are_within_the_bound(name, load_delegate, models, expected):
    check(name, load_delegate(), models, expected, seeds=(0, 1))


@pytest.mark.parametrize("name", SMALL + LARGE)
def test_outputs_are_within_the_bound_in_every_combination(name, delegate_path, models, expected):
    inputs, outputs = expected(name, 0)
    problems = []
    for host, options in model_matrix.combinations(quick=name in SMALL):
        runner = model_matrix.Runner(host, models / f"{name}.tflite", delegate_path, options)
        error = running.largest_difference(runner.run(inputs), outputs)
        if not error <= allowed(name, outputs):
            problems.append(f"{host} {options}: off by {error:g}")
    assert problems == []


@pytest.mark.parametrize("name", REPEATED)
def test_the_bits_are_the_same_on_every_run_and_thread_count(name, load_delegate, models, expected):
    inputs, _ = expected(name, 0)
    first = None
    for threads in (1, 2, 1):
        interpreter = running.delegated(models / f"{name}.tflite", load_delegate(num_threads=threads))
        for _ in range(2):
            outputs = running.run(interpreter, inputs)
            first = first or outputs
            assert all(np.array_equal(a, b) for a, b in zip(outputs, first))


@pytest.mark.parametrize("name", LARGE + SMALL)
def test_is_taken_in_one_partition(name, load_delegate, models, tmp_path):
    path = tmp_path / "explain.json"
    running.delegated(models / f"{name}.tflite", load_delegate(explain_file=path))
    graph = running.explanation(path)
    left = [(node["node"], node["op"], node["reason"]) for node in graph["nodes"] if not node["claimed"]]
    assert (left, len(graph["partitions"])) == ([], 1)
    assert graph["partitions"][0]["compiled"]


@pytest.mark.parametrize("name", RESIZED)
def test_replans_when_inputs_are_resized(name, load_delegate, models):
    path = models / f"{name}.tflite"
    shape = list(running.reference(path).get_input_details()[0]["shape"])
    interpreter = running.delegated(path, load_delegate())
    for batch in (3, 1, 5):
        plain = running.reference(path, shapes=[[batch] + shape[1:]])
        inputs = running.random_inputs(plain, batch)
        outputs = running.run(plain, inputs)
        interpreter.resize_tensor_input(interpreter.get_input_details()[0]["index"], [batch] + shape[1:])
        interpreter.allocate_tensors()
        actual = running.run(interpreter, inputs)
        assert running.largest_difference(actual, outputs) <= allowed(name, outputs)


def test_serves_several_interpreters_at_once(load_delegate, models, expected):
    name = MIDDLE
    delegate = load_delegate(num_threads=2)
    interpreters = [running.delegated(models / f"{name}.tflite", delegate) for _ in range(3)]
    failures = []

    def work(interpreter, seed):
        try:
            inputs, outputs = expected(name, seed)
            for _ in range(5):
                actual = running.run(interpreter, inputs)
                assert running.largest_difference(actual, outputs) <= allowed(name, outputs)
        except BaseException as error:
            failures.append(error)

    for seed in range(3):
        expected(name, seed)
    threads = [threading.Thread(target=work, args=(i, s)) for s, i in enumerate(interpreters)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


@pytest.mark.parametrize(
    "options",
    [{"experimental_preserve_all_tensors": True}, {"experimental_disable_delegate_clustering": True}],
)
def test_works_with_the_interpreters_switches(options, load_delegate, models, expected):
    name = MIDDLE
    inputs, outputs = expected(name, 0)
    interpreter = running.delegated(models / f"{name}.tflite", load_delegate(), **options)
    actual = running.run(interpreter, inputs)
    assert running.largest_difference(actual, outputs) <= allowed(name, outputs)


def test_writes_explanation_and_profile(load_delegate, models, expected, tmp_path):
    name = SPLIT
    explain, profile = tmp_path / "explain.txt", tmp_path / "profile.json"
    delegate = load_delegate(explain_file=explain, profile_file=profile)
    interpreter = check(name, delegate, models, expected, seeds=(0, 1))
    assert "CONV_2D" in explain.read_text()
    del interpreter, delegate
    steps = running.json.loads(profile.read_text())["partitions"][0]["steps"]
    assert steps and all(step["runs"] == 2 and step["wall_ns"] > 0 for step in steps)


def test_limits_on_partitions_are_kept(load_delegate, models):
    path = models / f"{SPLIT}.tflite"
    split = {"ops_deny": "CONV_2D"}
    many = running.delegate_kernels(running.delegated(path, load_delegate(**split)))
    assert many > 3
    limited = load_delegate(**split, max_partitions=3)
    assert running.delegate_kernels(running.delegated(path, limited)) == 3
    whole_only = load_delegate(**split, min_nodes_per_partition=20)
    assert running.delegate_kernels(running.delegated(path, whole_only)) == 0
