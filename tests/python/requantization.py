"""Which branches of the requantization the operators of a graph have reached.

The quantized operators that end in a fixed-point multiplication are computed again in exact integer arithmetic, from
the values that LiteRT's reference kernels had in an invoke: acc * multiplier * 2^(shift - 31), the multiplier in
[2^30, 2^31). 8-bit ones round twice: the product's high half, halves up, then the shift to the right, halves away from
zero; sums of 16-bit activations (int64) round once, halves up. An operator counts only where what was computed here is
what LiteRT gave, so that the counts are those of LiteRT's own branches.
"""

import collections
import math

import numpy as np
from ai_edge_litert import schema_py_generated as schema

NAMES = {code: name for name, code in vars(schema.BuiltinOperator).items() if isinstance(code, int)}
MAX_PRODUCTS = 3_000_000  # of one operator: what numpy sums in a few milliseconds
SAME = 0
ACTIVATIONS = {0: (None, None), 1: (0, None), 2: (-1, 1), 3: (0, 6)}

# What a run must have reached at least once to say that it has reached every branch.
BRANCHES = [
    "left shifts",
    "right shifts",
    "ties of positive products",
    "ties of negative products",
    "ties of positive shifts",
    "ties of negative shifts",
    "ties of 64-bit sums",
    "saturations below",
    "saturations above",
    "lower clamps",
    "upper clamps",
]


def replay(graph, interpreter):
    """Counts per branch, of the last invoke of an interpreter that preserves all tensors; "replays" counts operators,
    "replays that differ" those whose branches are not known because LiteRT's results were others."""
    codes = [name for name, _ in graph.codes]
    total = collections.Counter()
    for operator in graph.operators:
        compute = OPERATORS.get(codes[operator.opcodeIndex])
        context = Operator(graph, interpreter, operator)
        if compute is None or not context.quantized():
            continue
        counts = collections.Counter()
        result = compute(context, counts)
        if result is None:
            continue
        if np.array_equal(result.reshape(-1), context.value(operator.outputs[0]).reshape(-1)):
            total["replays"] += 1
            total.update(counts)
        else:
            total["replays that differ"] += 1
    return {name: int(count) for name, count in total.items() if count}


class Operator:
    """An operator's values, scales and options."""

    def __init__(self, graph, interpreter, operator):
        self.graph, self.interpreter, self.operator = graph, interpreter, operator
        self.options = operator.builtinOptions

    def value(self, index):
        if index in self.graph.int4:
            return self.graph.int4[index]
        return self.interpreter.get_tensor(index)

    def input(self, i):
        """Input i as int64, less its zero point where that is one number; None where it is absent."""
        if i >= len(self.operator.inputs) or self.operator.inputs[i] < 0:
            return None
        index = self.operator.inputs[i]
        return self.value(index).astype(np.int64) - self.zero_point(index)

    def scales(self, index):
        return np.array(self.graph.tensors[index].quantization.scale, np.float32)

    def zero_point(self, index):
        points = set(self.graph.tensors[index].quantization.zeroPoint)
        return points.pop() if len(points) == 1 else 0

    def quantized(self):
        """Whether input and output are 8-bit or 16-bit integers with scales."""
        kinds = (schema.TensorType.INT8, schema.TensorType.UINT8, schema.TensorType.INT16)
        tensors = [self.graph.tensors[i] for i in (self.operator.inputs[0], self.operator.outputs[0])]
        return all(t.type in kinds and t.quantization is not None for t in tensors)

    def type(self, index):
        return self.value(index).dtype

    def store(self, scaled, counts, activation=None):
        """The output of sums at the output's scale; counts saturations of the type and clamps of the activation."""
        index = self.operator.outputs[0]
        info, zero, scale = np.iinfo(self.type(index)), self.zero_point(index), self.scales(index)[0]
        if activation is None:
            activation = getattr(self.options, "fusedActivationFunction", 0)
        bounds = [None if b is None else round_away(np.float32(b) / scale) + zero for b in ACTIVATIONS[activation]]
        low = info.min if bounds[0] is None else max(info.min, bounds[0])
        high = info.max if bounds[1] is None else min(info.max, bounds[1])
        total = scaled + zero
        counts["saturations below" if low == info.min else "lower clamps"] += (total < low).sum()
        counts["saturations above" if high == info.max else "upper clamps"] += (total > high).sum()
        return np.minimum(np.maximum(total, low), high)


def round_away(x):
    return int(math.copysign(math.floor(abs(float(x)) + 0.5), float(x)))


def fixed_point(real):
    """(multiplier, shift) of a positive real number."""
    fraction, shift = math.frexp(real)
    multiplier = round_away(fraction * (1 << 31))
    if multiplier == 1 << 31:
        multiplier, shift = multiplier // 2, shift + 1
    if shift < -31:
        return 0, 0
    return (2**31 - 1, 30) if shift > 30 else (multiplier, shift)


def wrap(x):
    """The int32 of the low 32 bits."""
    return (x + 2**31) % 2**32 - 2**31


def multiply(x, real, counts):
    """x times the positive number `real`, in the fixed-point arithmetic of 8-bit kernels."""
    multiplier, shift = fixed_point(real)
    counts["left shifts"] += shift > 0
    counts["right shifts"] += shift < 0
    product = wrap(x << max(shift, 0)) * multiplier  # below 2^62
    low = product & (2**31 - 1)
    counts["ties of positive products"] += ((low == 2**30) & (product > 0)).sum()
    counts["ties of negative products"] += ((low == 2**30) & (product < 0)).sum()
    high = (product + 2**30) >> 31
    right = max(-shift, 0)
    if right == 0:
        return high
    half = 1 << (right - 1)
    tie = (high & (2 * half - 1)) == half
    counts["ties of positive shifts"] += (tie & (high > 0)).sum()
    counts["ties of negative shifts"] += (tie & (high < 0)).sum()
    return np.sign(high) * ((np.abs(high) + half) >> right)


def multiply_wide(x, real, counts):
    """x, below 2^47, times `real` in the arithmetic of int64 sums: a multiplier of 16 bits."""
    multiplier, shift = fixed_point(real)
    counts["left shifts"] += shift > 0
    counts["right shifts"] += shift < 0
    reduced = (multiplier + (1 << 15)) >> 16 if multiplier < 0x7FFF0000 else 0x7FFF
    total = 15 - shift
    half = 1 << (total - 1)
    product = x * reduced
    counts["ties of 64-bit sums"] += ((product & (2 * half - 1)) == half).sum()
    return (product + half) >> total


def multiply_channels(op, sums, counts):
    """Sums [..., channels] of a convolution, each channel scaled as its weights say."""
    x, w, out = op.operator.inputs[0], op.operator.inputs[1], op.operator.outputs[0]
    bias = op.input(2)
    if bias is not None:
        sums = sums + op.value(op.operator.inputs[2]).astype(np.int64)
    narrow_bias = bias is not None and op.type(op.operator.inputs[2]) == np.int32
    wide = op.type(x) == np.int16 and not narrow_bias
    scales = np.broadcast_to(op.scales(w), sums.shape[-1])
    product = op.scales(x)[0] * scales if op.type(x) == np.uint8 else np.float64(op.scales(x)[0]) * scales
    real = product.astype(np.float64) / np.float64(op.scales(out)[0])
    scale = multiply_wide if wide else multiply
    return np.stack([scale(sums[..., c], real[c], counts) for c in range(sums.shape[-1])], -1)


def padded(x, op, kernel):
    """x with the zeros that the operator's padding puts around, and the kernel's reach."""
    o = op.options
    strides, dilation = (o.strideH, o.strideW), (o.dilationHFactor, o.dilationWFactor)
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilation)]
    if o.padding == SAME:
        needed = [max((-(-n // s) - 1) * s + r - n, 0) for n, s, r in zip(x.shape[1:3], strides, reach)]
        x = np.pad(x, [(0, 0), *((n // 2, n - n // 2) for n in needed), (0, 0)])
    windows = np.lib.stride_tricks.sliding_window_view(x, reach, (1, 2))
    return windows[:, :: strides[0], :: strides[1], :, :: dilation[0], :: dilation[1]]


def conv(op, counts):
    x, w = op.input(0), op.input(1)
    groups = x.shape[3] // w.shape[3]
    out_channels, depth = w.shape[0] // groups, w.shape[3]
    windows = padded(x, op, w.shape[1:3])  # [N, H, W, C, kh, kw]
    if math.prod(windows.shape[:3]) * w.size > MAX_PRODUCTS:
        return None
    sums = []
    for g in range(groups):
        taps = np.moveaxis(windows[:, :, :, g * depth : (g + 1) * depth], 3, -1)
        weights = w[g * out_channels : (g + 1) * out_channels].reshape(out_channels, -1)
        sums.append(exact_matmul(taps.reshape(*taps.shape[:3], -1), weights.T))
    return op.store(multiply_channels(op, np.concatenate(sums, -1), counts), counts)


def depthwise(op, counts):
    x, w = op.input(0), op.input(1)
    windows = padded(x, op, w.shape[1:3])
    weights = w.reshape(*w.shape[1:3], x.shape[3], -1)
    if math.prod(windows.shape[:3]) * w.size > MAX_PRODUCTS:
        return None
    sums = np.einsum("nhwcij,ijcm->nhwcm", windows, weights).reshape(*windows.shape[:3], -1)
    return op.store(multiply_channels(op, sums, counts), counts)


def exact_matmul(a, b):
    """Of integers whose sums stay below 2^53."""
    return np.rint(a.astype(np.float64) @ b.astype(np.float64)).astype(np.int64)


def scale_of(op, i):
    return op.scales(op.operator.inputs[i])[0]


def mul(op, counts):
    real = scale_of(op, 0) * scale_of(op, 1) / op.scales(op.operator.outputs[0])[0]  # in float
    return op.store(multiply(op.input(0) * op.input(1), float(real), counts), counts)


def add(op, counts, sign=1):
    wide = op.type(op.operator.inputs[0]) == np.int16
    left = 15 if wide else 20
    twice = 2 * float(max(scale_of(op, 0), scale_of(op, 1)))
    x = multiply(op.input(0) << left, float(scale_of(op, 0)) / twice, counts)
    y = multiply(op.input(1) << left, float(scale_of(op, 1)) / twice, counts)
    real = twice / float((1 << left) * op.scales(op.operator.outputs[0])[0])
    if real >= 1:  # LiteRT's shift to the right is negative then: its result is not defined
        return None
    return op.store(multiply(x + sign * y, real, counts), counts)


def sub(op, counts):
    return add(op, counts, -1)


def quantize(op, counts):
    real = float(scale_of(op, 0)) / float(op.scales(op.operator.outputs[0])[0])
    return op.store(multiply(op.input(0), real, counts), counts)


OPERATORS = {
    "CONV_2D": conv,
    "DEPTHWISE_CONV_2D": depthwise,
    "MUL": mul,
    "ADD": add,
    "SUB": sub,
    "QUANTIZE": quantize,
}
