"""Functions that make layers of less usual shapes: lines, large filters, strides of 3, dilations, odd channels, batches."""

import numpy as np
from draw import FLOAT, INT8
from products import output_of_sum

SAME, VALID = 0, 1


class _Shape:
    """An image, and a window over it."""

    def __init__(self, d):
        kind = d.pick(["line", "large", "strided", "odd", "dilated", "batch", "flat"])
        side = d.size(7, 80)
        self.n, self.h, self.w, self.c = 1, side, max(1, side + d.pick([-1, 0, 0, 3])), d.size(3, 256)
        self.kernel, self.stride, self.dilation = (3, 3), (1, 1), (1, 1)
        if kind == "line":
            self.h, self.w = d.size(20, 1000), 1
            self.kernel, self.stride = (d.pick([3, 5, 9, 15, 31]), 1), (d.pick([1, 1, 2]), 1)
            if d.rng.random() < 0.5:
                self.h, self.w, self.kernel, self.stride = self.w, self.h, self.kernel[::-1], self.stride[::-1]
        elif kind == "large":
            self.kernel = d.pick([(7, 7), (9, 9), (11, 11), (7, 1), (1, 7), (3, 5)])
            self.stride = (d.pick([1, 2, 4]),) * 2
        elif kind == "strided":
            self.kernel, self.stride = d.pick([(3, 3), (5, 5), (2, 2), (1, 1)]), d.pick([(3, 3), (2, 2), (2, 1)])
        elif kind == "odd":
            self.h, self.w, self.c = 2 * (self.h // 2) + 1, 2 * (self.w // 2) + 1, d.pick([1, 3, 5, 7, 9, 17, 33, 67, 129])
        elif kind == "dilated":
            self.dilation = (d.pick([2, 4, 6]),) * 2
        elif kind == "batch":
            self.n = d.pick([2, 3, 4])
        else:
            self.kernel = (1, 1)
        self.padding = d.pick([SAME, SAME, VALID])
        if self.padding == VALID and (self._out(0) < 1 or self._out(1) < 1):
            self.padding = SAME

    def _out(self, axis):
        size = (self.h, self.w)[axis]
        if self.padding == SAME:
            return -(-size // self.stride[axis])
        return (size - (self.kernel[axis] - 1) * self.dilation[axis] - 1) // self.stride[axis] + 1

    def out(self, channels):
        return self.n, self._out(0), self._out(1), channels

    def fields(self):
        strides = {"strideH": self.stride[0], "strideW": self.stride[1], "padding": self.padding}
        return strides | {"dilationHFactor": self.dilation[0], "dilationWFactor": self.dilation[1]}


def _weights(d, shape, dtype, hybrid, axis=0):
    return d.weights(shape, INT8 if hybrid else dtype, axis)


def convolution(hybrid=False, grouped=False):
    def make(d, dtype):
        s, out = _Shape(d), d.size(3, 256)
        depth = s.c
        if grouped:
            depth, groups = d.pick([2, 4, 5, 8, 12, 16, 24]), d.pick([2, 4, 8, 16])
            s.c, out = depth * groups, groups * d.pick([depth, depth, 2 * depth])
        if np.prod(s.out(out)) * np.prod(s.kernel) * depth > 150_000_000:
            return None
        x, weights = d.input((s.n, s.h, s.w, s.c), dtype), _weights(d, (out, *s.kernel, depth), dtype, hybrid)
        scale = output_of_sum(x, int(np.prod(s.kernel)) * depth)
        operands = [x, weights, d.bias(out, x, weights)]
        return d.g.op("CONV_2D", operands, s.out(out), "Conv2DOptions", 5 if hybrid else 3, **scale, **s.fields())

    return make


def depthwise(hybrid=False):
    def make(d, dtype):
        s, times = _Shape(d), d.pick([1, 1, 1, 1, 2, 3])
        out = s.c * times
        x, weights = d.input((s.n, s.h, s.w, s.c), dtype), _weights(d, (1, *s.kernel, out), dtype, hybrid, 3)
        scale = output_of_sum(x, int(np.prod(s.kernel)))
        operands = [x, weights, d.bias(out, x, weights)]
        options, version = "DepthwiseConv2DOptions", 6 if hybrid else 3
        return d.g.op("DEPTHWISE_CONV_2D", operands, s.out(out), options, version, depthMultiplier=times, **scale, **s.fields())

    return make


def transpose_conv(hybrid=False):
    def make(d, dtype):
        side, c, out = d.size(4, 64), d.size(3, 256), d.pick([1, 2, 3, 5, 16, 33, 64, 128])
        h, w = d.pick([(side, side), (side, side + 3), (1, 8 * side), (8 * side, 1)])
        k, stride = d.pick([(3, 2), (4, 2), (2, 2), (5, 3), (4, 4), (16, 8), (3, 1)])
        kernel, strides = (k if h > 1 else 1, k if w > 1 else 1), (stride if h > 1 else 1, stride if w > 1 else 1)
        if h * w * np.prod(kernel) * c * out > 150_000_000:
            return None
        n = d.pick([1, 1, 1, 2])
        x, weights = d.input((n, h, w, c), dtype), _weights(d, (out, *kernel, c), dtype, hybrid)
        whole = (n, h * strides[0], w * strides[1], out)
        scale = output_of_sum(x, int(np.prod(kernel)) * c // int(np.prod(strides)) + 1)
        fields = {"strideH": strides[0], "strideW": strides[1], "padding": SAME}
        operands = [d.ints(*whole), weights, x]
        return d.g.op("TRANSPOSE_CONV", operands, whole, "TransposeConvOptions", 2, like=x, **scale, **fields)

    return make


def dense(hybrid=False, bits=8):
    """A fully connected layer of a few or an odd number of rows and units."""

    def make(d, dtype):
        rows, inner, units = (
            d.pick([1, 2, 3, 5, 7, 31, 64, 100]),
            2 * d.size(2, 512),
            d.pick([1, 2, 3, 5, 10, 17, 100, 257, 1000]),
        )
        x = d.input((rows, inner), dtype)
        if bits == 4:
            values = d.rng.integers(-7, 8, (units, inner)).astype(np.int8)
            weights = d.g.constant_int4(values, d.rng.uniform(0.1, 0.3, units))
        else:
            weights = _weights(d, (units, inner), dtype, hybrid)
        version = 9 if hybrid else {FLOAT: 1}.get(dtype, 4)
        fields = {"asymmetricQuantizeInputs": True} if hybrid else {}
        operands = [x, weights, d.bias(units, x, weights)]
        scale = output_of_sum(x, inner)
        return d.g.op("FULLY_CONNECTED", operands, (rows, units), "FullyConnectedOptions", version, **scale, **fields)

    return make


def matrices(d, dtype):
    """Of many dimensions, by a constant, or by matrices that repeat for each batch; few or odd rows and columns."""
    few = [1, 2, 3, 4, 5, 7, 9, 15, 17, 31, 64, 100]
    m, k, n = d.pick(few), d.size(2, 256), d.pick(few)
    batch = d.pick([(1,), (4,), (2, 3), (1, 12)])
    other = d.pick([batch, batch, batch[:-1] + (1,), "constant"])
    right = bool(d.pick([0, 1]))
    x, shape = d.input((*batch, m, k), dtype), (n, k) if right else (k, n)
    if other == "constant":
        y = (
            d.weights((*(1 for _ in batch), *shape), dtype)
            if dtype == FLOAT
            else d.g.constant(d.rng.integers(-127, 128, (*(1 for _ in batch), *shape)).astype(dtype), 0.02, 0)
        )
    else:
        y = d.input((*other, *shape), dtype)
    scale = {} if dtype == FLOAT else {"scale": 0.5, "zero_point": 0}
    return d.g.op("BATCH_MATMUL", [x, y], (*batch, m, n), "BatchMatMulOptions", 2, **scale, adjY=right)


def matrices_of_bytes(d, dtype):
    """Floats by constant 8-bit matrices."""
    batch, m, k, n = d.pick([1, 4]), d.pick([1, 3, 16, 64]), d.size(8, 256), d.size(2, 256)
    y = d.g.constant(d.rng.integers(-127, 128, (batch, n, k)).astype(np.int8), 0.02, 0)
    fields = {"adjY": True, "asymmetricQuantizeInputs": True}
    x = d.input((batch, m, k), dtype)
    return d.g.op("BATCH_MATMUL", [x, y], (batch, m, n), "BatchMatMulOptions", 4, **fields)
