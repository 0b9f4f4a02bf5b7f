"""Scales far from what trained networks have, as networks without training bring them: claimed, and LiteRT's bits."""

import graphs
import numpy as np
import own_interpreter
import pytest
import running

SCALES = [(4.7e-8, 2.3e-8), (1e-6, 1e-7), (3e-5, 1e-4), (1e-3, 30.0), (4.7e-10, 1e-3), (0.05, 0.04)]


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("scales", SCALES, ids=str)
def test_hard_swish(scales, dtype, load_delegate):
    info = np.iinfo(dtype)
    values = np.arange(info.min, info.max + 1).astype(dtype).reshape(1, 256)
    zero_points = (info.min + 100, info.min + 7)
    check("HARD_SWISH", {}, values, scales, zero_points, load_delegate)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("scale", [15.9, 16.0, 22.8, 31.9, 32.5, 1000.0])
@pytest.mark.parametrize("name", ["SOFTMAX", "LOG_SOFTMAX"])
def test_softmax(name, scale, dtype, load_delegate):
    info = np.iinfo(dtype)
    values = np.random.default_rng(1).integers(info.min, info.max + 1, (40, 33)).astype(dtype)
    values[:, 5] = values[:, 7] = info.max - 1
    fields, out = ({"beta": 1.0}, (1 / 256, info.min)) if name == "SOFTMAX" else ({}, (16 / 256, info.max))
    check(name, fields, values, (scale, out[0]), (info.min + 100, out[1]), load_delegate)


def product(name, dtype):
    """A product of five channels, of which one has a scale of 0, as converters give it to weights that are all 0."""
    rng = np.random.default_rng(3)
    scales = np.float32([0.01, 0, 0.02, 0.005, 0.01])
    shapes = {
        "CONV_2D": (5, 2, 2, 3),
        "DEPTHWISE_CONV_2D": (1, 2, 2, 5),
        "TRANSPOSE_CONV": (5, 2, 2, 3),
        "FULLY_CONNECTED": (5, 3),
    }
    axis = 3 if name == "DEPTHWISE_CONV_2D" else 0
    depth = 5 if name == "DEPTHWISE_CONV_2D" else 3
    g = graphs.Graph()
    x = g.input((4, 3) if name == "FULLY_CONNECTED" else (1, 4, 4, depth), dtype, 0.05, 0)
    weights = rng.integers(-127, 128, shapes[name]).astype(np.int8)
    weights[(slice(None),) * axis + (1,)] = 0
    w = g.constant(weights, scales, 0, axis)
    wide = np.int32 if dtype == np.int8 else np.int64
    b = g.constant(rng.integers(-999, 999, 5).astype(wide), scales * np.float32(0.05), 0, 0)
    out = {"dtype": dtype, "scale": 0.1, "zero_point": 0}
    strides = {"padding": 0, "strideH": 1, "strideW": 1}
    if name == "FULLY_CONNECTED":
        return g.build([g.op(name, [x, w, b], (4, 5), "FullyConnectedOptions", 5, **out)])
    if name == "TRANSPOSE_CONV":
        shape = g.constant(np.int32([1, 4, 4, 5]))
        return g.build([g.op(name, [shape, w, x, b], (1, 4, 4, 5), "TransposeConvOptions", 3, **out, **strides)])
    options = "Conv2DOptions" if name == "CONV_2D" else "DepthwiseConv2DOptions"
    more = {"dilationHFactor": 1, "dilationWFactor": 1} | ({"depthMultiplier": 1} if name == "DEPTHWISE_CONV_2D" else {})
    return g.build([g.op(name, [x, w, b], (1, 4, 4, 5), options, 5, **out, **strides, **more)])


@pytest.mark.parametrize("dtype", [np.int8, np.int16])
@pytest.mark.parametrize("name", ["CONV_2D", "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV", "FULLY_CONNECTED"])
def test_channels_of_scale_zero(name, dtype, load_delegate):
    model = bytes(product(name, dtype))
    shape = (4, 3) if name == "FULLY_CONNECTED" else (1, 4, 4, 5 if name == "DEPTHWISE_CONV_2D" else 3)
    info = np.iinfo(dtype)
    values = np.random.default_rng(4).integers(info.min, info.max + 1, shape).astype(dtype)
    compare(model, values, load_delegate)


def check(name, fields, values, scales, zero_points, load_delegate):
    g = graphs.Graph()
    x = g.input(values.shape, values.dtype, scales[0], zero_points[0])
    options = "SoftmaxOptions" if fields else None
    y = g.op(name, [x], values.shape, options, dtype=values.dtype, scale=scales[1], zero_point=zero_points[1], **fields)
    compare(bytes(g.build([y])), values, load_delegate)


def compare(model, values, load_delegate):
    expected = running.run(running.interpret(model), [values])[0]
    delegated = running.interpret(model, [load_delegate()])
    assert running.delegate_kernels(delegated) == 1
    np.testing.assert_array_equal(running.run(delegated, [values])[0], expected)
    np.testing.assert_array_equal(own_interpreter.Interpreter(model).run([values])[0], expected)
