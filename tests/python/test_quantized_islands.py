"""Floats between bytes, as PyTorch's quantizer leaves them: residuals, and attention over caches of 8 bits."""

import graphs
import numpy as np
import pytest
import running

BYTES = {"dtype": np.int8, "scale": 0.04, "zero_point": -3}


def real(graph, x):
    return graph.op("DEQUANTIZE", [x], x.shape, "DequantizeOptions", dtype=np.float32)


def in_bytes(graph, x, **how):
    return graph.op("QUANTIZE", [x], x.shape, "QuantizeOptions", **(how or BYTES))


def residuals(activation):
    """Three sums in a row, of which each is a term of the next in float."""
    graph = graphs.Graph()
    terms = [graph.input((2, 5, 7, 24), np.int8, 0.02 + 0.01 * i, i) for i in range(4)]
    total, sums = real(graph, terms[0]), []
    for term in terms[1:]:
        total = graph.op("ADD", [total, real(graph, term)], total.shape, "AddOptions", fusedActivationFunction=activation)
        sums.append(in_bytes(graph, total))
    return graph.build(sums)


def attention(queries, positions=96, heads=3, channels=24):
    graph = graphs.Graph()
    order = graph.constant(np.array([0, 2, 1, 3], np.int32))
    q, rows = graph.input((1, heads, queries, channels)), graph.input((1, queries, heads, channels))
    mask, updated = graph.input((1, 1, queries, positions)), []
    for _ in range(2):
        cache = graph.input((1, positions, heads, channels), **BYTES)
        start = graph.constant(np.array([0, 5, 0, 0], np.int32))
        operands = [cache, in_bytes(graph, rows), start]
        updated.append(graph.op("DYNAMIC_UPDATE_SLICE", operands, cache.shape, "DynamicUpdateSliceOptions"))
    by_heads = [
        graph.op("TRANSPOSE", [real(graph, cache), order], (1, heads, positions, channels), "TransposeOptions")
        for cache in updated
    ]
    scores = (1, heads, queries, positions)
    x = graph.op("BATCH_MATMUL", [q, by_heads[0]], scores, "BatchMatMulOptions", adjY=True)
    x = graph.op("ADD", [x, mask], scores, "AddOptions")
    x = graph.op("SOFTMAX", [x], scores, "SoftmaxOptions", beta=1.0)
    return graph.build([graph.op("BATCH_MATMUL", [x, by_heads[1]], q.shape, "BatchMatMulOptions"), *updated])


def run_both(model, load_delegate, tmp_path, change=None):
    """What LiteRT's reference gives, the delegate, and the operators of the delegate's steps."""
    path, explain = tmp_path / "model.tflite", tmp_path / "explain.json"
    path.write_bytes(model)
    expected = running.reference(path)
    inputs = running.random_inputs(expected, 3)
    if change:
        change(inputs)
    actual = running.delegated(path, load_delegate(explain_file=explain))
    steps = [step["ops"] for part in running.explanation(explain)["partitions"] for step in part["steps"]]
    return running.run(expected, inputs), running.run(actual, inputs), steps


@pytest.mark.parametrize("activation", [0, 1, 3])
def test_residuals_have_the_bits_of_the_reference(activation, load_delegate, tmp_path):
    expected, actual, steps = run_both(residuals(activation), load_delegate, tmp_path)
    for left, right in zip(expected, actual, strict=True):
        np.testing.assert_array_equal(left, right)
    assert steps == ["FUSELITE_DEQUANTIZED_SUM"] * 3


@pytest.mark.parametrize("queries", [1, 20])
def test_attention_reads_caches_of_bytes(queries, load_delegate, tmp_path):
    def hide(inputs):
        inputs[2][..., 40:] = -1e9  # what is not filled yet

    expected, actual, steps = run_both(attention(queries), load_delegate, tmp_path, hide)
    np.testing.assert_allclose(actual[0], expected[0], atol=1e-5)
    for left, right in zip(expected[1:], actual[1:], strict=True):
        np.testing.assert_array_equal(left, right)
    assert "DEQUANTIZE" not in steps
    assert "FUSELITE_ATTENTION" in steps
