"""Cases for the operators of docs/operators.md in their types: shapes that nets have, and seeded random ones."""

import graphs
import numpy as np
from case import Case

FLOAT, INT8, UINT8, INT16 = np.dtype("f4"), np.dtype("i1"), np.dtype("u1"), np.dtype("i2")
INT32, INT64, BOOL = np.dtype("i4"), np.dtype("i8"), np.dtype("?")
QUANTIZED = {INT8: (0.05, 3), UINT8: (0.05, 120), INT16: (2.0**-12, 0)}
SAME = 0
MAPS = [(1, 112, 112, 16), (1, 56, 56, 24), (1, 28, 28, 192), (1, 14, 14, 116), (1, 7, 7, 960), (1, 64, 64, 3)]
ROWS = [(1, 128, 768), (12, 128, 128), (1, 1000), (8400, 16), (1, 197, 192)]
MAX_ELEMENTS = 600_000


class Draw:
    """Random choices, and a graph that one operator is added to."""

    def __init__(self, rng):
        self.rng, self.g = rng, graphs.Graph()

    def pick(self, options):
        return options[int(self.rng.integers(len(options)))]

    def size(self, low, high):
        """Small sizes are as likely as large ones."""
        return int(round(np.exp(self.rng.uniform(np.log(low), np.log(high)))))

    def image(self):
        if self.rng.random() < 0.5:
            return self.pick(MAPS)
        side = self.size(4, 160)
        return 1, side, max(1, side + self.pick([-1, 0, 0, 3])), min(self.size(1, 512), MAX_ELEMENTS // side**2 + 1)

    def shape(self):
        kind = self.rng.random()
        if kind < 0.4:
            return self.image()
        if kind < 0.7:
            return self.pick(ROWS)
        sizes = [self.size(1, 200) for _ in range(self.pick([2, 3, 3, 4, 5]))]
        while np.prod(sizes) > MAX_ELEMENTS:
            sizes[sizes.index(max(sizes))] //= 2
        return tuple(sizes)

    def input(self, shape, dtype, scale=None, zero_point=None):
        own = QUANTIZED.get(dtype, (None, 0))
        return self.g.input(shape, dtype, scale or own[0], own[1] if zero_point is None else zero_point)

    def ints(self, *values):
        return self.g.constant(np.array(values, np.int32))

    def weights(self, shape, dtype, axis=0):
        if dtype == FLOAT:
            return self.g.constant(self.rng.normal(0, 0.1, shape).astype(np.float32))
        if dtype == UINT8:
            return self.g.constant(self.rng.integers(0, 256, shape).astype(np.uint8), 0.02, 125)
        scales = self.rng.uniform(0.01, 0.03, shape[axis])
        return self.g.constant(self.rng.integers(-127, 128, shape).astype(np.int8), scales, 0, axis)

    def bias(self, channels, x, weights):
        if x.dtype == FLOAT:
            return self.g.constant(np.zeros(channels, np.float32))
        wide = np.int64 if x.dtype == INT16 else np.int32
        return self.g.constant(np.zeros(channels, wide), np.float32(x.scale) * np.atleast_1d(weights.scale), 0)

    def indices(self, count, limit):
        return self.g.constant(self.rng.integers(0, limit, count).astype(np.int32))


# --- Families. Each adds its operator to the draw's graph and gives the output.


def unary(name, options=None, version=1, output=None, **fields):
    def make(d, dtype):
        x = d.input(d.shape(), dtype)
        fixed = {}
        if output and dtype in QUANTIZED:
            scale, zero = output[dtype]
            fixed = {"dtype": dtype, "scale": scale, "zero_point": zero}
        return d.g.op(name, [x], x.shape, options, version, **fixed, **fields)

    return make


UNIT = {INT8: (1 / 256, -128), UINT8: (1 / 256, 0), INT16: (1 / 32768, 0)}
SIGNED_UNIT = {INT8: (1 / 128, 0), UINT8: (1 / 128, 128), INT16: (1 / 32768, 0)}


def broadcast(d, shape):
    """The same shape, a scalar, or some dimensions of size 1."""
    kind = d.pick(["same", "same", "channel", "scalar", "some"])
    if kind == "same":
        return shape
    if kind == "scalar":
        return (1,) * len(shape)
    if kind == "channel":
        return (1,) * (len(shape) - 1) + shape[-1:]
    return tuple(size if d.rng.random() < 0.5 else 1 for size in shape)


def binary(name, options=None, version=1, result=None):
    def make(d, dtype):
        x = d.input(d.shape(), dtype)
        y = d.input(broadcast(d, x.shape), dtype, QUANTIZED[dtype][0] * 0.75 if dtype in (INT8, UINT8) else None)
        if result is not None:
            return d.g.op(name, [x, y], x.shape, options, version, dtype=result)
        scale = {"scale": x.scale * 2, "zero_point": x.zero_point} if dtype in (INT8, UINT8) else {}
        return d.g.op(name, [x, y], x.shape, options, version, **scale)

    return make


def choose(name):
    def make(d, dtype):
        shape = d.shape()
        condition = shape if name == "SELECT" else broadcast(d, shape)
        operands = [d.input(condition, BOOL)] + [d.input(shape, dtype) for _ in range(2)]
        return d.g.op(name, operands, shape, like=operands[1])

    return make


def transpose(d, dtype):
    x = d.input(d.shape(), dtype)
    order = d.rng.permutation(len(x.shape))
    return d.g.op("TRANSPOSE", [x, d.ints(*order)], tuple(x.shape[i] for i in order), version=2)


def concatenation(d, dtype):
    shape = d.shape()
    axis = d.pick(range(len(shape)))
    parts = [d.input(shape, dtype) for _ in range(d.pick([2, 2, 3]))]
    whole = shape[:axis] + (shape[axis] * len(parts),) + shape[axis + 1 :]
    return d.g.op("CONCATENATION", parts, whole, "ConcatenationOptions", axis=axis)


def pack(d, dtype):
    shape = d.shape()[:4]
    axis = d.pick(range(len(shape) + 1))
    parts = [d.input(shape, dtype) for _ in range(d.pick([2, 3, 4]))]
    whole = shape[:axis] + (len(parts),) + shape[axis:]
    return d.g.op("PACK", parts, whole, "PackOptions", 2, valuesCount=len(parts), axis=axis)


def unpack(d, dtype):
    shape = d.shape()[:4] + (d.pick([2, 3, 4]),)
    axis = d.pick(range(len(shape)))
    shape = shape[:axis] + shape[-1:] + shape[axis:-1]
    x = d.input(shape, dtype)
    rest = shape[:axis] + shape[axis + 1 :]
    return d.g.op("UNPACK", [x], [rest] * shape[axis], "UnpackOptions", 2, num=shape[axis], axis=axis)


def split(d, dtype):
    shape, parts = list(d.shape()), d.pick([2, 3, 4])
    axis = d.pick(range(len(shape)))
    shape[axis] *= parts
    x = d.input(shape, dtype)
    piece = tuple(size // parts if i == axis else size for i, size in enumerate(shape))
    return d.g.op("SPLIT", [d.ints(axis), x], [piece] * parts, "SplitOptions", 2, numSplits=parts, like=x)


def pad(name):
    def make(d, dtype):
        x = d.input(d.image(), dtype)
        limit = min(3, min(x.shape[1:3]) - 1)
        amounts = [[0, 0], *d.rng.integers(0, limit + 1, (2, 2)).tolist(), [0, 0]]
        whole = tuple(size + a + b for size, (a, b) in zip(x.shape, amounts))
        options = "MirrorPadOptions" if name == "MIRROR_PAD" else "PadOptions"
        return d.g.op(name, [x, d.g.constant(np.array(amounts, np.int32))], whole, options, 2)

    return make


def tile(d, dtype):
    x = d.input(d.shape(), dtype)
    times = [d.pick([1, 1, 2, 3]) for _ in x.shape]
    return d.g.op("TILE", [x, d.ints(*times)], tuple(a * b for a, b in zip(x.shape, times)), "TileOptions", 3)


def broadcast_to(d, dtype):
    whole = d.shape()
    x = d.input(broadcast(d, whole), dtype)
    return d.g.op("BROADCAST_TO", [x, d.ints(*whole)], whole, version=3)


def depth(name, options):
    def make(d, dtype):
        b = d.pick([2, 2, 3, 4])
        n, h, w, c = d.image()
        deep, wide = (n, h // b + 1, w // b + 1, c * b * b), (n, (h // b + 1) * b, (w // b + 1) * b, c)
        source, target = (deep, wide) if name == "DEPTH_TO_SPACE" else (wide, deep)
        return d.g.op(name, [d.input(source, dtype)], target, options, blockSize=b)

    return make


def batches(name, options):
    def make(d, dtype):
        b = d.pick([2, 2, 3])
        n, h, w, c = d.image()
        h, w = h // b + 1, w // b + 1
        many, one = (n * b * b, h, w, c), (n, h * b, w * b, c)
        source, target = (many, one) if name == "BATCH_TO_SPACE_ND" else (one, many)
        crops = d.g.constant(np.zeros((2, 2), np.int32))
        return d.g.op(name, [d.input(source, dtype), d.ints(b, b), crops], target, options, 2)

    return make


def slice_(d, dtype):
    x = d.input(d.shape(), dtype)
    begin = [int(d.rng.integers(0, (size + 1) // 2)) for size in x.shape]
    size = [int(d.rng.integers(max(1, (s - b) // 2), s - b + 1)) for b, s in zip(begin, x.shape)]
    return d.g.op("SLICE", [x, d.ints(*begin), d.ints(*size)], tuple(size), "SliceOptions", 2)


def strided_slice(d, dtype):
    x = d.input(d.shape()[-4:], dtype)
    steps = [d.pick([1, 1, 2, 3, -1]) for _ in x.shape]
    begin = [0 if step > 0 else size - 1 for step, size in zip(steps, x.shape)]
    sizes = tuple(-(-size // abs(step)) for step, size in zip(steps, x.shape))
    masks = sum(1 << i for i in range(len(steps)))
    operands = [x, d.ints(*begin), d.ints(*x.shape), d.ints(*steps)]
    return d.g.op("STRIDED_SLICE", operands, sizes, "StridedSliceOptions", 2, beginMask=masks, endMask=masks)


def reverse(d, dtype):
    x = d.input(d.shape(), dtype)
    return d.g.op("REVERSE_V2", [x, d.ints(d.pick(range(len(x.shape))))], x.shape, "ReverseV2Options", 3)


def gather(d, dtype):
    x = d.input(d.shape(), dtype)
    axis, count = d.pick(range(len(x.shape))), d.size(1, 200)
    whole = x.shape[:axis] + (count,) + x.shape[axis + 1 :]
    if np.prod(whole) > 4 * MAX_ELEMENTS:
        return None
    return d.g.op("GATHER", [x, d.indices(count, x.shape[axis])], whole, "GatherOptions", 2, axis=axis)


def gather_nd(d, dtype):
    x = d.input(d.shape(), dtype)
    count = d.size(1, 500)
    places = d.g.constant(np.stack([d.rng.integers(0, size, count) for size in x.shape[:2]], 1).astype(np.int32))
    return d.g.op("GATHER_ND", [x, places], (count, *x.shape[2:]), "GatherNdOptions", 2)


def one_hot(d, dtype):
    count, classes = d.size(10, 2000), d.size(2, 200)
    indices = d.g.input((count,), INT32)
    operands = [indices, d.ints(classes), d.g.constant(np.ones((), dtype)), d.g.constant(np.zeros((), dtype))]
    operands[1] = d.g.constant(np.array(classes, np.int32))
    return d.g.op("ONE_HOT", operands, (count, classes), "OneHotOptions", dtype=dtype, axis=-1)


def cumsum(d, dtype):
    x = d.input(d.shape(), dtype)
    axis = d.g.constant(np.array(d.pick(range(len(x.shape))), np.int32))
    return d.g.op("CUMSUM", [x, axis], x.shape, "CumsumOptions")


def top_k(d, dtype):
    x = d.input(d.pick([(1, 1000), (1, 8400), (100, 91), (1, 20000)]), dtype)
    k = d.pick([1, 5, 10, 50])
    values, _ = d.g.op("TOPK_V2", [x, d.ints(k)], [(*x.shape[:-1], k)] * 2, "TopKV2Options", 2)
    d.g.tensors[-1].type, d.g.tensors[-1].quantization = graphs.schema.TensorType.INT32, None
    return values


def extreme(name, options):
    def make(d, dtype):
        x = d.input(d.shape(), dtype)
        axis = d.pick([0, len(x.shape) - 1])
        rest = x.shape[:axis] + x.shape[axis + 1 :]
        return d.g.op(name, [x, d.ints(axis)], rest, options, 2, dtype=INT32, outputType=graphs.TYPES[INT32])

    return make


def reduce(name, version=2):
    def make(d, dtype):
        x = d.input(d.shape(), dtype)
        rank = len(x.shape)
        axes = d.pick([[rank - 1], [0], list(range(rank))[1:-1] or [0], list(range(rank))])
        rest = tuple(1 if i in axes else size for i, size in enumerate(x.shape))
        return d.g.op(name, [x, d.ints(*axes)], rest, "ReducerOptions", version, keepDims=True)

    return make


def pool(name):
    def make(d, dtype):
        x = d.input(d.image(), dtype)
        k = d.pick([2, 3, min(7, *x.shape[1:3])])
        k, stride = min(k, *x.shape[1:3]), d.pick([1, 2])
        whole = (x.shape[0], *(-(-size // stride) for size in x.shape[1:3]), x.shape[3])
        fields = {"filterWidth": k, "filterHeight": k, "strideW": stride, "strideH": stride, "padding": SAME}
        return d.g.op(name, [x], whole, "Pool2DOptions", 2, **fields)

    return make


def resize(name, options):
    def make(d, dtype):
        x = d.input(d.image(), dtype)
        whole = [max(1, int(size * d.pick([2, 2, 4, 0.5, 1.6]))) for size in x.shape[1:3]]
        while np.prod(whole) * x.shape[3] > 4 * MAX_ELEMENTS:
            whole = [size // 2 for size in whole]
        corners = bool(d.pick([0, 0, 1]))
        halves = not corners and bool(d.pick([0, 1]))
        shape = (x.shape[0], *whole, x.shape[3])
        return d.g.op(name, [x, d.ints(*whole)], shape, options, 3, alignCorners=corners, halfPixelCenters=halves)

    return make


def rows(name, options=None, output=None, longest=100_000, version=1, **fields):
    """Along the last dimension."""

    def make(d, dtype):
        shape = d.shape()
        shape = shape[:-1] + (min(shape[-1], longest if dtype != FLOAT else 100_000),)
        x = d.input(shape, dtype)
        fixed = {}
        if output and dtype in QUANTIZED:
            fixed = {"dtype": dtype, "scale": output[dtype][0], "zero_point": output[dtype][1]}
        return d.g.op(name, [x], shape, options, version, **fixed, **fields)

    return make


def conversion(name, options, source, scale=None, version=1):
    def make(d, dtype):
        shape = d.shape()
        x = d.g.input(shape, source, *QUANTIZED.get(source, (None, 0)))
        target = {"dtype": dtype}
        if scale and dtype in QUANTIZED:
            target.update(scale=QUANTIZED[dtype][0] * scale, zero_point=QUANTIZED[dtype][1])
        return d.g.op(name, [x], shape, options, version, **target)

    return make


def output_of_sum(x, terms):
    return {} if x.dtype == FLOAT else {"scale": x.scale * 0.02 * 70 * terms**0.5 / 40, "zero_point": x.zero_point}


def convolution(groups=None):
    """`groups`: None for one, else the channels of each group."""

    def make(d, dtype):
        n, h, w, c = d.image()
        k, stride = d.pick([1, 1, 3, 3, 5]), d.pick([1, 1, 2])
        if groups:
            c = max(1, c // groups) * groups
        out = c if groups else d.size(4, 512)
        if h * w * k * k * (groups or c) * out > 1_000_000_000:
            return None
        x = d.input((n, h, w, c), dtype)
        weights = d.weights((out, k, k, groups or c), dtype)
        whole = (n, -(-h // stride), -(-w // stride), out)
        fields = {"strideW": stride, "strideH": stride, "padding": SAME, "dilationWFactor": 1, "dilationHFactor": 1}
        operands = [x, weights, d.bias(out, x, weights)]
        return d.g.op(
            "CONV_2D", operands, whole, "Conv2DOptions", 3, **output_of_sum(x, k * k * (groups or c)), **fields
        )

    return make


def depthwise(d, dtype):
    n, h, w, c = d.image()
    k, stride, times = d.pick([3, 3, 5, 7]), d.pick([1, 1, 2]), d.pick([1, 1, 1, 2, 8])
    if times == 8:
        c = min(c, 3)
    x = d.input((n, h, w, c), dtype)
    weights = d.weights((1, k, k, c * times), dtype, 3)
    whole = (n, -(-h // stride), -(-w // stride), c * times)
    fields = {"strideW": stride, "strideH": stride, "padding": SAME, "dilationWFactor": 1, "dilationHFactor": 1}
    operands = [x, weights, d.bias(c * times, x, weights)]
    scale = output_of_sum(x, k * k)
    return d.g.op(
        "DEPTHWISE_CONV_2D", operands, whole, "DepthwiseConv2DOptions", 3, **scale, depthMultiplier=times, **fields
    )


def fully_connected(d, dtype):
    count, inner, outer = d.pick([1, 1, 1, 16, 128]), d.size(8, 2048), d.size(2, 2048)
    x = d.input((count, inner), dtype)
    weights = d.weights((outer, inner), dtype)
    operands = [x, weights, d.bias(outer, x, weights)]
    version = {FLOAT: 1, UINT8: 2, INT8: 4, INT16: 7}[dtype]
    return d.g.op(
        "FULLY_CONNECTED", operands, (count, outer), "FullyConnectedOptions", version, **output_of_sum(x, inner)
    )


def batch_matmul(d, dtype):
    batch, m, k, n = d.pick([1, 4, 12]), d.size(1, 256), d.size(8, 256), d.size(8, 256)
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


WIDTHS = [FLOAT, INT8, UINT8, INT16, INT32, INT64, BOOL]
REAL = [FLOAT, INT8, UINT8, INT16]
BYTES = [FLOAT, INT8, UINT8]
ARITHMETIC = {"ADD": "AddOptions", "SUB": "SubOptions", "MUL": "MulOptions", "DIV": "DivOptions"}
COMPARISONS = ["EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL"]


def table():
    """(operator, types, function) of everything that is drawn."""
    for name in ("ABS", "NEG", "CEIL", "FLOOR", "ROUND", "SQRT", "RSQRT", "SQUARE", "EXP", "LOG", "SIN", "COS", "SIGN"):
        yield name, [FLOAT], unary(name)
    for name in ("RELU", "RELU6", "RELU_N1_TO_1", "HARD_SWISH", "ELU"):
        yield name, BYTES if name != "ELU" else [FLOAT, INT8], unary(name, version=1 if name == "HARD_SWISH" else 2)
    yield "LOGISTIC", REAL, unary("LOGISTIC", version=3, output=UNIT)
    yield "TANH", REAL, unary("TANH", version=3, output=SIGNED_UNIT)
    yield "GELU", BYTES, unary("GELU", "GeluOptions", 2)
    yield "LEAKY_RELU", REAL, unary("LEAKY_RELU", "LeakyReluOptions", 2, alpha=0.1)
    yield "PRELU", BYTES, prelu
    for name, options in ARITHMETIC.items():
        yield name, [FLOAT, INT8, UINT8, INT32] if name != "DIV" else [FLOAT, INT32, UINT8], binary(name, options, 2)
    for name in ("MAXIMUM", "MINIMUM"):
        yield name, [FLOAT, INT32, INT64], binary(name, "MaximumMinimumOptions", 2)
    for name in ("FLOOR_DIV", "FLOOR_MOD", "SQUARED_DIFFERENCE"):
        yield name, [FLOAT, INT32], binary(name, version=2 if name == "FLOOR_DIV" else 1)
    yield "POW", [FLOAT, INT32], binary("POW")
    for name in COMPARISONS:
        yield name, [FLOAT, INT8, UINT8, INT32, INT64], binary(name, version=2, result=BOOL)
    for name in ("LOGICAL_AND", "LOGICAL_OR"):
        yield name, [BOOL], binary(name)
    yield "LOGICAL_NOT", [BOOL], unary("LOGICAL_NOT")
    for name in ("SELECT", "SELECT_V2"):
        yield name, [FLOAT, INT8, UINT8, INT16, INT32, INT64], choose(name)
    yield from movers()
    yield from products()
    for name in ("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD"):
        yield name, {"SUM": [FLOAT, INT32], "REDUCE_PROD": [FLOAT, INT32]}.get(name, BYTES + [INT32]), reduce(name)
    yield "REDUCE_ANY", [BOOL], reduce("REDUCE_ANY", 1)
    for name in ("AVERAGE_POOL_2D", "MAX_POOL_2D"):
        yield name, REAL, pool(name)
    for name, options in (("ARG_MAX", "ArgMaxOptions"), ("ARG_MIN", "ArgMinOptions")):
        yield name, BYTES + [INT32], extreme(name, options)
    yield "SOFTMAX", BYTES, rows("SOFTMAX", "SoftmaxOptions", UNIT, 511, 2, beta=1.0)
    yield "LOG_SOFTMAX", [FLOAT, INT8], rows("LOG_SOFTMAX", None, {INT8: (16 / 256, 127)}, 511, 2)
    yield "L2_NORMALIZATION", BYTES, rows("L2_NORMALIZATION", "L2NormOptions", SIGNED_UNIT, version=2)
    yield "CUMSUM", [FLOAT, INT32, INT64], cumsum
    yield "TOPK_V2", [FLOAT, INT8, UINT8, INT32], top_k
    for source in (INT8, UINT8, INT16):
        yield "DEQUANTIZE", [FLOAT], conversion("DEQUANTIZE", "DequantizeOptions", source, version=2)
    for source in (FLOAT, INT8, UINT8, INT16):
        yield "QUANTIZE", [INT8, UINT8] if source != INT16 else [INT16], conversion(
            "QUANTIZE", "QuantizeOptions", source, 1.5, 2
        )
    for source in (FLOAT, INT32, INT64, UINT8, BOOL):
        yield "CAST", [t for t in (FLOAT, INT32, INT64, UINT8, BOOL) if t != source], conversion("CAST", None, source)


def movers():
    yield "TRANSPOSE", WIDTHS, transpose
    yield "CONCATENATION", WIDTHS, concatenation
    yield "PACK", [FLOAT, INT8, UINT8, INT16, INT32, INT64], pack
    yield "UNPACK", [FLOAT, INT8, UINT8, INT32], unpack
    yield "SPLIT", [FLOAT, INT8, UINT8, INT16, INT32], split
    yield "PAD", [FLOAT, INT8, UINT8, INT32, INT64], pad("PAD")
    yield "MIRROR_PAD", [FLOAT, INT8, UINT8, INT32, INT64], pad("MIRROR_PAD")
    yield "TILE", [FLOAT, INT8, UINT8, INT32, INT64, BOOL], tile
    yield "BROADCAST_TO", [FLOAT, INT8, UINT8, INT16, INT32, INT64, BOOL], broadcast_to
    yield "DEPTH_TO_SPACE", [FLOAT, INT8, UINT8, INT32, INT64], depth("DEPTH_TO_SPACE", "DepthToSpaceOptions")
    yield "SPACE_TO_DEPTH", [FLOAT, INT8, UINT8, INT32, INT64], depth("SPACE_TO_DEPTH", "SpaceToDepthOptions")
    for name in ("SPACE_TO_BATCH_ND", "BATCH_TO_SPACE_ND"):
        yield name, [FLOAT, INT8, UINT8, INT32, INT64], batches(name, None)
    yield "SLICE", WIDTHS, slice_
    yield "STRIDED_SLICE", [FLOAT, INT8, UINT8, INT16, INT32, INT64, BOOL], strided_slice
    yield "REVERSE_V2", [FLOAT, UINT8, INT16, INT32, INT64, BOOL], reverse
    yield "GATHER", [FLOAT, INT8, UINT8, INT16, INT32, INT64, BOOL], gather
    yield "GATHER_ND", [FLOAT, INT8, UINT8, INT32, INT64], gather_nd
    yield "ONE_HOT", [FLOAT, INT32, INT64], one_hot
    yield "RESIZE_BILINEAR", REAL, resize("RESIZE_BILINEAR", "ResizeBilinearOptions")
    yield "RESIZE_NEAREST_NEIGHBOR", REAL, resize("RESIZE_NEAREST_NEIGHBOR", "ResizeNearestNeighborOptions")


def products():
    yield "CONV_2D", REAL, convolution()
    for channels in (1, 4, 8, 16, 32):
        yield "CONV_2D", [FLOAT, INT8], convolution(channels)
    yield "DEPTHWISE_CONV_2D", REAL, depthwise
    yield "FULLY_CONNECTED", REAL, fully_connected
    yield "BATCH_MATMUL", [FLOAT, INT8], batch_matmul
    yield "TRANSPOSE_CONV", BYTES, transpose_conv


def random_operators(seed, count):
    """`count` cases for each line of the table and each of its types; the same for the same seed."""
    for place, (name, types, make) in enumerate(table()):
        for dtype in types:
            for i in range(count):
                draw = Draw(np.random.default_rng([seed, place, WIDTHS.index(dtype), i]))
                output = make(draw, dtype)
                if output is None:
                    continue
                outputs = output if isinstance(output, list) else [output]
                yield Case(name, describe(draw.g), draw.g.build(outputs))


def describe(graph):
    """Types and shapes of the operands, and the parameters."""
    operator = graph.operators[0]
    types = {code: np.dtype(dtype).name for dtype, code in graphs.TYPES.items()}
    words = []
    for index in [*operator.inputs, -1, *operator.outputs[:1]]:
        tensor = graph.tensors[index]
        values = graph.buffers[tensor.buffer].data if tensor.buffer else None
        text = "->" if index < 0 else f"{types[tensor.type]}:" + "x".join(map(str, tensor.shape))
        if index >= 0 and values is not None and tensor.type == graphs.TYPES[INT32] and len(values) <= 64:
            text = "[" + ",".join(map(str, np.frombuffer(values.tobytes(), np.int32))) + "]"
        words.append(text)
    fields = vars(operator.builtinOptions) if operator.builtinOptions else {}
    return " ".join(words + [f"{k}={v}" for k, v in fields.items() if v and k not in ("keepDims", "padding")])
