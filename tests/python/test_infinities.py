"""What becomes of results beyond float32: the largest number, as in LiteRT's own kernels, or infinity, as in XNNPACK.

docs/design.md, Numerics, says where it is which. Finite results and NaN are those of both hosts everywhere.
"""

import graphs
import numpy as np
import pytest
import running

VALUES = np.array([[3e38, -3e38, np.inf, -np.inf, np.nan, 1.5]], np.float32)
SHAPE = VALUES.shape
LARGEST = np.finfo(np.float32).max
OPTIONS = [{}, {"fusion": "off"}, {"jit": "off"}, {"jit": "off", "fusion": "off"}, {"isa": "avx2"}, {"isa": "scalar"}]


def constant(g, value):
    return g.constant(np.full(SHAPE, value, np.float32))


def layer(g, x):
    """Each value twice. Zeros of the weights meet no infinity: it would be NaN in every sum."""
    weights, bias = g.constant(np.eye(SHAPE[1], dtype=np.float32) * 2), g.constant(np.zeros(SHAPE[1], np.float32))
    return g.op("FULLY_CONNECTED", [x, weights, bias], SHAPE, "FullyConnectedOptions")


ELEMENTWISE = {
    "ADD": lambda g, x: g.op("ADD", [x, x], SHAPE, "AddOptions"),
    "SUB": lambda g, x: g.op("SUB", [x, constant(g, -3e38)], SHAPE, "SubOptions"),
    "MUL": lambda g, x: g.op("MUL", [x, constant(g, 2)], SHAPE, "MulOptions"),
    "DIV": lambda g, x: g.op("DIV", [x, constant(g, 0.5)], SHAPE, "DivOptions"),
}
FUSED = {
    "NEG, SUB": lambda g, x: g.op("SUB", [x, g.op("NEG", [x], SHAPE)], SHAPE, "SubOptions"),
    "MUL, ABS": lambda g, x: g.op("ABS", [g.op("MUL", [x, constant(g, 2)], SHAPE, "MulOptions")], SHAPE),
    "FULLY_CONNECTED": layer,
    "FULLY_CONNECTED, ABS": lambda g, x: g.op("ABS", [layer(g, x)], SHAPE),
    "FULLY_CONNECTED, RELU": lambda g, x: g.op("RELU", [layer(g, x)], SHAPE),
}


def outputs_of(build, values, resolver, delegates=()):
    g = graphs.Graph()
    model = g.build([build(g, g.input(SHAPE))])
    return running.run(running.interpret(model, delegates, resolver), [values])[0]


def with_infinities(values):
    return np.where(np.abs(values) == LARGEST, np.copysign(np.inf, values), values)


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise_results_alone_are_the_largest_numbers_of_litert(name, load_delegate):
    expected = outputs_of(ELEMENTWISE[name], VALUES, running.Resolver.BUILTIN_REF)
    assert np.abs(expected[0, 0]) == LARGEST
    for options in OPTIONS:
        actual = outputs_of(ELEMENTWISE[name], VALUES, running.Resolver.BUILTIN_REF, [load_delegate(**options)])
        np.testing.assert_array_equal(actual, expected, err_msg=str(options))


@pytest.mark.parametrize("name", FUSED)
def test_products_and_fused_results_are_the_largest_number_or_infinite(name, load_delegate):
    values = np.array([[3e38, -3e38, 1, -1, 0, 1.5]], np.float32)
    expected = outputs_of(FUSED[name], values, running.Resolver.BUILTIN_REF)
    assert np.abs(expected[0, 0]) == LARGEST
    for options in OPTIONS:
        actual = outputs_of(FUSED[name], values, running.Resolver.BUILTIN_REF, [load_delegate(**options)])
        np.testing.assert_array_equal(with_infinities(actual), with_infinities(expected), err_msg=str(options))


def test_the_default_host_leaves_infinities():
    """XNNPACK, which LiteRT's interpreter runs by default: what the products follow."""
    for build in (ELEMENTWISE["MUL"], layer):
        assert np.all(np.isposinf(outputs_of(build, np.full(SHAPE, 3e38, np.float32), running.Resolver.AUTO)))


@pytest.mark.parametrize("name", {**ELEMENTWISE, **FUSED})
def test_nan_stays_nan(name, load_delegate):
    build = {**ELEMENTWISE, **FUSED}[name]
    for options in OPTIONS:
        actual = outputs_of(build, np.full(SHAPE, np.nan, np.float32), running.Resolver.BUILTIN_REF, [load_delegate(**options)])
        expected = outputs_of(build, np.full(SHAPE, np.nan, np.float32), running.Resolver.BUILTIN_REF)
        np.testing.assert_array_equal(actual, expected, err_msg=str(options))
