"""Graphs that are larger than networks are: they open, in a time that grows as they do, and have LiteRT's values."""

import time

import numpy as np
import pytest
import running
from graphs import Graph


def chain(layer, link, length):
    """`length` operators behind a layer, or behind the input."""
    g = Graph()
    x = g.input((1, 12, 12, 16))
    if layer == "DEPTHWISE_CONV_2D":
        weights = g.constant(np.full((1, 7, 7, 16), 0.02, np.float32))
        bias = g.constant(np.zeros(16, np.float32))
        options = dict(strideH=1, strideW=1, dilationHFactor=1, dilationWFactor=1, depthMultiplier=1, padding=0)
        x = g.op(layer, [x, weights, bias], (1, 12, 12, 16), "DepthwiseConv2DOptions", **options)
    for _ in range(length):
        if link == "TANH":
            x = g.op("TANH", [x], (1, 12, 12, 16))
        else:
            operand = g.constant(np.full((16,), 0.999, np.float32))
            x = g.op(link, [x, operand], (1, 12, 12, 16), f"{link.title()}Options")
    return g.build([x])


@pytest.mark.parametrize("layer, link", [("DEPTHWISE_CONV_2D", "TANH"), (None, "TANH"), (None, "MUL"), (None, "ADD")])
def test_long_chains_open(layer, link, load_delegate):
    content = chain(layer, link, 1500)
    started = time.monotonic()
    interpreter = running.interpret(content, [load_delegate(num_threads=1)])
    opened = time.monotonic() - started
    inputs = running.random_inputs(interpreter, 7)
    (actual,) = running.run(interpreter, inputs)
    (expected,) = running.run(running.interpret(content), inputs)
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)
    # 0.1 s; quadratic time, which it was, had taken 1 to 30.
    assert opened < 20, f"opening took {opened:.1f} s"


@pytest.mark.parametrize("dtype", [np.float32, np.int8])
def test_windows_of_many_runs_open(dtype, load_delegate):
    """Each column of a dilated filter is code of its own where code is emitted for the window."""
    g, taps, rng = Graph(), 1400, np.random.default_rng(5)
    scales = (0.02, 3) if dtype == np.int8 else ()
    x = g.input((1, 1, 2 * taps + 100, 15), dtype, *scales)
    if dtype == np.int8:
        weights = g.constant(rng.integers(-127, 128, (32, 1, taps, 15)).astype(np.int8), np.full(32, 0.01), np.zeros(32, int), 0)
        bias = g.constant(np.zeros(32, np.int32), np.full(32, 0.0002), np.zeros(32, int), 0)
        output = dict(dtype=np.int8, scale=4.0, zero_point=0)
    else:
        weights = g.constant(rng.uniform(-0.1, 0.1, (32, 1, taps, 15)).astype(np.float32))
        bias, output = g.constant(np.zeros(32, np.float32)), {}
    options = dict(strideH=1, strideW=1, dilationHFactor=1, dilationWFactor=2, padding=1, **output)
    y = g.op("CONV_2D", [x, weights, bias], (1, 1, 102, 32), "Conv2DOptions", **options)
    content = g.build([y])
    interpreter = running.interpret(content, [load_delegate(num_threads=1)])
    inputs = running.random_inputs(interpreter, 7)
    (actual,) = running.run(interpreter, inputs)
    (expected,) = running.run(running.interpret(content), inputs)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=0 if dtype == np.int8 else 1e-3)
