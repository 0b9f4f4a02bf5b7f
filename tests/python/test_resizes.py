"""Inputs that are resized after the delegate has claimed the graph: what LiteRT takes is computed, never refused late."""

import pathlib
import subprocess
import sys

import graphs
import numpy as np
import pytest
import running

RUN = pathlib.Path(__file__).with_name("resizes_run.py")


def test_single_operators(delegate_path):
    run = subprocess.run(
        [sys.executable, RUN, "--count", "2", "--delegate", delegate_path], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr
    taken = int(run.stdout.splitlines()[-1].split()[0])
    assert taken > 3000


DEPTH, COLUMNS, SCALE = 8, 5, 0.01


def hybrid_batch_matmul(x_shape, batches, asymmetric):
    """float32 by constant int8 of so many batches; the model and the weights."""
    g = graphs.Graph()
    x = g.input(x_shape)
    weights = np.random.default_rng(0).integers(-127, 128, (*batches, DEPTH, COLUMNS)).astype(np.int8)
    out = (*np.broadcast_shapes(x_shape[:-2], batches), x_shape[-2], COLUMNS)
    y = g.op(
        "BATCH_MATMUL",
        [x, g.constant(weights, SCALE, 0)],
        out,
        "BatchMatMulOptions",
        4,
        asymmetricQuantizeInputs=asymmetric,
    )
    return bytes(g.build([y])), weights


def by_rows(x, weights, asymmetric):
    """The product where each row of x is quantized by its own scale."""
    x = x.astype(np.float64)
    if asymmetric:
        low, high = np.minimum(x.min(-1, keepdims=True), 0), np.maximum(x.max(-1, keepdims=True), 0)
        scale = (high - low) / 255
        zero = np.round(-128 - low / scale)
        codes = np.clip(np.round(x / scale) + zero, -128, 127) - zero
    else:
        scale = np.abs(x).max(-1, keepdims=True) / 127
        codes = np.round(x / scale)
    return np.matmul(codes, weights.astype(np.float64)) * scale * SCALE


@pytest.mark.parametrize("asymmetric", [False, True])
@pytest.mark.parametrize(
    ("before", "batches", "after"),
    [
        ((1, 3, 4, DEPTH), (), (2, 3, 4, DEPTH)),
        ((1, 3, 4, DEPTH), (1, 1), (5, 3, 4, DEPTH)),
        ((1, 3, 4, DEPTH), (1, 3), (2, 3, 1, DEPTH)),
        ((1, 1, 4, DEPTH), (3,), (2, 1, 4, DEPTH)),
        ((1, 1, 4, DEPTH), (1, 3), (2, 3, 4, DEPTH)),
        ((1, 1, 2, 4, DEPTH), (2,), (3, 2, 2, 4, DEPTH)),
        ((1, 3, 4, DEPTH), (), (0, 3, 4, DEPTH)),
    ],
    ids=str,
)
def test_hybrid_products_of_several_batches(before, batches, after, asymmetric, load_delegate, tmp_path):
    """LiteRT's own kernels take the scales of other rows where more than one batch dimension is above 1; XNNPACK, its
    default, does not."""
    model, weights = hybrid_batch_matmul(before, batches, asymmetric)
    explain = tmp_path / "explain.json"
    interpreter = running.interpret(model, [load_delegate(explain_file=explain)])
    assert [node["claimed"] for node in running.explanation(explain)["nodes"]] == [True]
    rng, [detail] = np.random.default_rng(1), interpreter.get_input_details()
    for shape in (before, after, before):
        interpreter.resize_tensor_input(detail["index"], list(shape))
        interpreter.allocate_tensors()
        x = (rng.uniform(-1, 1, shape) * rng.uniform(0.1, 3, (*shape[:-1], 1))).astype(np.float32)
        [actual] = running.run(interpreter, [x])
        expected = by_rows(x, weights, asymmetric) if x.size else np.zeros((*after[:-1], COLUMNS))
        assert actual.shape == expected.shape
        np.testing.assert_allclose(actual, expected, rtol=0, atol=2e-5)
        if sum(d > 1 for d in actual.shape[:-2]) < 2 and x.size:
            plain = running.interpret(model)
            plain.resize_tensor_input(plain.get_input_details()[0]["index"], list(shape))
            plain.allocate_tensors()
            np.testing.assert_allclose(actual, running.run(plain, [x])[0], rtol=0, atol=2e-5)
