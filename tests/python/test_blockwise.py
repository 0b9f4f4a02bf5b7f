"""Weights quantized in blocks: FULLY_CONNECTED and EMBEDDING_LOOKUP in both hosts, as LiteRT computes them."""

import graphs
import numpy as np
import own_interpreter
import pytest
import running
from ai_edge_litert import interpreter as litert

RANGES = {8: (-127, 128), 4: (-8, 8), 2: (-2, 2)}


def weights(rng, units, depth, block, bits, scale_type=np.float16):
    low, high = RANGES[bits]
    return rng.integers(low, high, (units, depth)), rng.uniform(0.01, 0.1, (units, depth // block)).astype(scale_type)


def real(q, scales):
    return q * np.repeat(scales.astype(np.float64), q.shape[1] // scales.shape[1], axis=1)


def quantized(x):
    """Each row as LiteRT quantizes it for such weights: asymmetrically, whatever the operator says."""
    low, high = np.minimum(x.min(1, keepdims=True), 0), np.maximum(x.max(1, keepdims=True), 0)
    scale = (high - low).astype(np.float64) / 255
    zero = np.round(-128 - low / scale)
    return (np.clip(np.round(x / scale) + zero, -128, 127) - zero) * scale


def product(rows, depth, units, block, bits, bias=False, scale_type=np.float16, **options):
    """The model, and what it computes."""
    rng = np.random.default_rng(rows + depth + units)
    q, scales = weights(rng, units, depth, block, bits, scale_type)
    graph = graphs.Graph()
    operands = [graph.input((rows, depth)), graph.constant_in_blocks(q, scales, bits)]
    values = rng.uniform(-1, 1, units).astype(np.float32)
    operands.append(graph.constant(values) if bias else None)
    y = graph.op("FULLY_CONNECTED", operands, (rows, units), "FullyConnectedOptions", version=5, **options)
    return graph.build([y]), lambda x: quantized(x) @ real(q, scales).T + (values if bias else 0)


def run_all(model, values, load_delegate, delegate_path, tmp_path, **options):
    """Of each host and delegate; the explanation in LiteRT."""
    path, explain = tmp_path / "model.tflite", tmp_path / "explain.json"
    path.write_bytes(model)
    made = running.delegated(path, load_delegate(explain_file=explain, **options))
    results = [running.run(made, values)]
    for delegate in (None, own_interpreter.Delegate(delegate_path, **options)):
        results.append(own_interpreter.Interpreter(path, delegate).run(values))
    assert all(node["claimed"] for node in running.explanation(explain)["nodes"])
    return results


def plain(model, values):
    """LiteRT's own kernels: its reference resolver has none for blocks and gives nonsense."""
    made = litert.Interpreter(
        model_content=model, experimental_op_resolver_type=running.Resolver.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    )
    made.allocate_tensors()
    return running.run(made, values)


@pytest.mark.parametrize("isa", ["avx2", "scalar"])
@pytest.mark.parametrize("rows, depth, units, block", [(1, 64, 8, 32), (1, 512, 70, 64), (5, 384, 33, 128), (67, 256, 9, 256)])
@pytest.mark.parametrize("bias", [False, True])
def test_products_of_four_bits(rows, depth, units, block, bias, isa, load_delegate, delegate_path, tmp_path):
    model, compute = product(rows, depth, units, block, 4, bias)
    x = np.random.default_rng(9).uniform(-1, 2, (rows, depth)).astype(np.float32)
    expected = plain(model, [x])
    np.testing.assert_allclose(expected[0], compute(x), atol=2e-5)
    for result in run_all(model, [x], load_delegate, delegate_path, tmp_path, isa=isa):
        assert running.largest_difference(result, expected) <= 1e-5


# LiteRT's own kernels have none of these.
@pytest.mark.parametrize("bits, scale_type", [(8, np.float16), (2, np.float16), (4, np.float32), (8, np.float32)])
@pytest.mark.parametrize("rows", [1, 6])
def test_products_of_other_types(bits, scale_type, rows, load_delegate, delegate_path, tmp_path):
    model, compute = product(rows, 192, 21, 64, bits, True, scale_type)
    x = np.random.default_rng(9).uniform(-1, 2, (rows, 192)).astype(np.float32)
    for result in run_all(model, [x], load_delegate, delegate_path, tmp_path):
        np.testing.assert_allclose(result[0], compute(x), atol=1e-4 if bits == 8 else 1e-5)


@pytest.mark.parametrize("bits", [4, 2, 8])
def test_lookup(bits, load_delegate, delegate_path, tmp_path):
    q, scales = weights(np.random.default_rng(1), 10, 64, 32, bits)
    graph = graphs.Graph()
    operands = [graph.input((3,), np.int32), graph.constant_in_blocks(q, scales, bits)]
    model = graph.build([graph.op("EMBEDDING_LOOKUP", operands, (3, 64), version=4, dtype=np.float32)])
    ids = np.array([1, 9, 4], np.int32)
    expected = real(q, scales)[ids].astype(np.float32)
    if bits == 4:
        np.testing.assert_array_equal(plain(model, [ids])[0], expected)
    for result in run_all(model, [ids], load_delegate, delegate_path, tmp_path):
        np.testing.assert_array_equal(result[0], expected)


def test_other_operators_leave_them_to_the_host(load_delegate, tmp_path):
    q, scales = weights(np.random.default_rng(1), 10, 64, 32, 8)
    graph = graphs.Graph()
    codes = graph.constant_in_blocks(q, scales, 8)
    real_values = graph.op("DEQUANTIZE", [codes], (10, 64), version=6, dtype=np.float32)
    model = graph.build([graph.op("ADD", [graph.input((10, 64)), real_values], (10, 64), "AddOptions")])
    path, explain = tmp_path / "model.tflite", tmp_path / "explain.json"
    path.write_bytes(model)
    running.delegated(path, load_delegate(explain_file=explain))
    assert running.explanation(explain)["nodes"][0]["reason"] == "input 0 is quantized in blocks"
