"""Functions that make a matrix product: as in families.py."""

import graphs
import numpy as np
from draw import FLOAT, INT8, INT16, UINT8

SAME = 0


def output_of_sum(x, terms):
    return {} if x.dtype == FLOAT else {"scale": x.scale * 0.02 * 70 * terms**0.5 / 40, "zero_point": x.zero_point}


def convolution(groups=None):
    """`groups`: None for one, else the channels of each group."""

    def make(d, dtype):
        n, h, w, c = d.image()
        k, stride = d.pick([1, 1, 3, 3, 5]), d.pick([1, 1, 2])
        dilation = 2 if stride == 1 and d.rng.random() < 0.15 else 1
        if groups:
            c = max(1, c // groups) * groups
        out = c if groups else d.size(4, 512)
        if h * w * k * k * (groups or c) * out > 1_000_000_000:
            return None
        x = d.input((n, h, w, c), dtype)
        weights = d.weights((out, k, k, groups or c), dtype)
        whole = (n, -(-h // stride), -(-w // stride), out)
        fields = {"strideW": stride, "strideH": stride, "padding": SAME}
        fields |= {"dilationWFactor": dilation, "dilationHFactor": dilation}
        operands = [x, weights, d.bias(out, x, weights)]
        return d.g.op("CONV_2D", operands, whole, "Conv2DOptions", 3, **output_of_sum(x, k * k * (groups or c)), **fields)

    return make


def depthwise(d, dtype):
    n, h, w, c = d.image()
    k, stride, times = d.pick([3, 3, 5, 7]), d.pick([1, 1, 2]), d.pick([1, 1, 1, 2, 8])
    if times == 8:
        c = min(c, 3)
    dilation = 2 if stride == 1 and d.rng.random() < 0.15 else 1
    x = d.input((n, h, w, c), dtype)
    weights = d.weights((1, k, k, c * times), dtype, 3)
    whole = (n, -(-h // stride), -(-w // stride), c * times)
    fields = {"strideW": stride, "strideH": stride, "padding": SAME}
    fields |= {"dilationWFactor": dilation, "dilationHFactor": dilation}
    operands = [x, weights, d.bias(c * times, x, weights)]
    scale = output_of_sum(x, k * k)
    return d.g.op("DEPTHWISE_CONV_2D", operands, whole, "DepthwiseConv2DOptions", 3, **scale, depthMultiplier=times, **fields)


def dynamic_range(name):
    """Floats by constant 8-bit weights."""

    def make(d, dtype):
        count, inner, outer = d.pick([1, 1, 16, 128]), d.size(8, 1024), d.size(2, 1024)
        x = d.input((count, inner), dtype)
        weights = d.weights((outer, inner), INT8)
        operands = [x, weights, d.bias(outer, x, weights)]
        return d.g.op(name, operands, (count, outer), "FullyConnectedOptions", 9, asymmetricQuantizeInputs=True)

    return make


def fed(make, *what):
    """Of "weights" and "bias", those that a run gives instead of the model; with "wide weights" these are int16."""

    def fed_make(d, dtype):
        d.fed = what
        return make(d, dtype)

    return fed_make


def fully_connected(d, dtype):
    count, inner, outer = d.pick([1, 1, 1, 16, 128]), d.size(8, 2048), d.size(2, 2048)
    x = d.input((count, inner), dtype)
    weights = d.weights((outer, inner), dtype)
    operands = [x, weights, d.bias(outer, x, weights)]
    version, fields = {FLOAT: 1, UINT8: 2, INT8: 4, INT16: 7}[dtype], output_of_sum(x, inner)
    if weights.dtype == INT16:
        version, fields = 11, fields | {"quantizedBiasType": graphs.TYPES[np.dtype(np.int64)]}
    return d.g.op("FULLY_CONNECTED", operands, (count, outer), "FullyConnectedOptions", version, **fields)


def batch_matmul(d, dtype):
    batch, m, k, n = d.pick([1, 4, 12]), d.size(1, 256), d.size(2, 256), d.size(1, 256)
    left, right = bool(d.pick([0, 0, 1])), bool(d.pick([0, 1]))
    x = d.input((batch, k, m) if left else (batch, m, k), dtype)
    y = d.input((batch, n, k) if right else (batch, k, n), dtype)
    scale = {} if dtype == FLOAT else {"scale": 0.5, "zero_point": 0}
    return d.g.op("BATCH_MATMUL", [x, y], (batch, m, n), "BatchMatMulOptions", 2, adjX=left, adjY=right, **scale)


def transpose_conv(d, dtype):
    n, h, w, c = d.image()
    k, stride, out = d.pick([2, 3, 4]), d.pick([1, 2, 2]), d.size(1, 128)
    if h * w * k * k * c * out > 500_000_000:
        return None
    x = d.input((n, h, w, c), dtype)
    weights = d.weights((out, k, k, c), dtype)
    whole = (n, h * stride, w * stride, out)
    scale = output_of_sum(x, k * k * c // stride**2 + 1)
    fields = {"strideW": stride, "strideH": stride, "padding": SAME}
    operands = [d.ints(*whole), weights, x]
    return d.g.op("TRANSPOSE_CONV", operands, whole, "TransposeConvOptions", 2, like=x, **scale, **fields)


def prelu(d, dtype):
    x = d.input(d.image(), dtype)
    if dtype == FLOAT:
        alpha = d.g.constant(d.rng.uniform(0, 0.5, (1, 1, x.shape[3])).astype(np.float32))
    else:
        alpha = d.g.constant(d.rng.integers(0, 100, (1, 1, x.shape[3])).astype(dtype), 0.004, 0)
    return d.g.op("PRELU", [x, alpha], x.shape)
