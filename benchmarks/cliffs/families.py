"""Functions that make an operator of a family: they add it to a draw's graph and give its output, or None."""

import graphs
import numpy as np
from draw import BOOL, FLOAT, INT8, INT16, INT32, MAX_ELEMENTS, QUANTIZED, UINT8

SAME, VALID = 0, 1
UNIT = {INT8: (1 / 256, -128), UINT8: (1 / 256, 0), INT16: (1 / 32768, 0)}
SIGNED_UNIT = {INT8: (1 / 128, 0), UINT8: (1 / 128, 128), INT16: (1 / 32768, 0)}


def unary(name, options=None, version=1, output=None, **fields):
    def make(d, dtype):
        x = d.input(d.shape(), dtype)
        fixed = {}
        if output and dtype in QUANTIZED:
            scale, zero = output[dtype]
            fixed = {"dtype": dtype, "scale": scale, "zero_point": zero}
        return d.g.op(name, [x], x.shape, options, version, **fixed, **fields)

    return make


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
        rescales = dtype in QUANTIZED and name not in ("MAXIMUM", "MINIMUM")
        y = d.second(broadcast(d, x.shape), dtype, None if rescales else x.scale)
        operands = [x, y] if d.rng.random() < 0.8 else [y, x]
        if result is not None:
            return d.g.op(name, operands, x.shape, options, version, dtype=result)
        # DIV's results mean something where the quotient of the scales is above 64.
        scale = {"scale": x.scale * (0.2 if name == "DIV" else 2.1), "zero_point": x.zero_point} if rescales else {}
        return d.g.op(name, operands, x.shape, options, version, like=x, **scale)

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
    """PADV2's value is a third operand."""

    def make(d, dtype):
        x = d.input(d.image(), dtype)
        limit = min(3, min(x.shape[1:3]) - 1)
        amounts = [[0, 0], *d.rng.integers(0, limit + 1, (2, 2)).tolist(), [0, 0]]
        whole = tuple(size + a + b for size, (a, b) in zip(x.shape, amounts))
        operands = [x, d.g.constant(np.array(amounts, np.int32))]
        if name == "PADV2":
            operands.append(d.g.constant(np.ones((), dtype), x.scale, x.zero_point))
        options = {"PADV2": "PadV2Options", "MIRROR_PAD": "MirrorPadOptions"}.get(name, "PadOptions")
        return d.g.op(name, operands, whole, options, 2)

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
    depth = d.g.constant(np.array(classes, np.int32))
    operands = [indices, depth, d.g.constant(np.ones((), dtype)), d.g.constant(np.zeros((), dtype))]
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
        axis = d.pick([0, len(x.shape) - 1, len(x.shape) // 2])
        rest = x.shape[:axis] + x.shape[axis + 1 :]
        return d.g.op(name, [x, d.ints(axis)], rest, options, 2, dtype=INT32, outputType=graphs.TYPES[INT32])

    return make


def reduce(name, version=2):
    def make(d, dtype):
        x = d.input(d.shape(), dtype)
        rank = len(x.shape)
        axes = d.pick([[rank - 1], [0], list(range(rank))[1:-1] or [0], list(range(rank)), [rank // 2]])
        rest = tuple(1 if i in axes else size for i, size in enumerate(x.shape))
        return d.g.op(name, [x, d.ints(*axes)], rest, "ReducerOptions", version, keepDims=True)

    return make


def pool(name):
    def make(d, dtype):
        x = d.input(d.image(), dtype)
        k = d.pick([2, 3, min(7, *x.shape[1:3])])
        k, stride = min(k, *x.shape[1:3]), d.pick([1, 2])
        whole = (x.shape[0], *(-(-size // stride) for size in x.shape[1:3]), x.shape[3])
        if d.rng.random() < 0.2:  # over the whole image
            k, stride = x.shape[1:3], 1
            whole = (x.shape[0], 1, 1, x.shape[3])
            fields = {"filterHeight": k[0], "filterWidth": k[1], "strideW": 1, "strideH": 1, "padding": VALID}
        else:
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
        own = (2.0**-12, 0) if source == INT32 and scale else (None, 0)
        x = d.g.input(shape, source, *QUANTIZED.get(source, own))
        target = {"dtype": dtype}
        if scale and dtype in QUANTIZED:
            target.update(scale=QUANTIZED[dtype][0] * scale, zero_point=QUANTIZED[dtype][1])
        return d.g.op(name, [x], shape, options, version, **target)

    return make


def bits(name, options):
    def make(d, dtype):
        x = d.g.input(d.shape(), dtype)
        y = d.g.input(broadcast(d, x.shape), dtype)
        return d.g.op(name, [x, y], x.shape, options)

    return make


def add_n(d, dtype):
    shape = d.shape()
    return d.g.op("ADD_N", [d.input(shape, dtype) for _ in range(d.pick([2, 3, 5]))], shape, "AddNOptions")


def atan2(d, dtype):
    shape = d.shape()
    return d.g.op("ATAN2", [d.input(shape, dtype), d.input(shape, dtype)], shape, "ATan2Options")


def fill(d, dtype):
    shape = d.shape()
    return d.g.op("FILL", [d.ints(*shape), d.g.input((), dtype)], shape, "FillOptions", 2, dtype=dtype)


def split_v(d, dtype):
    shape, sizes = list(d.shape()), [d.size(1, 40) for _ in range(d.pick([2, 3]))]
    axis = d.pick(range(len(shape)))
    shape[axis] = sum(sizes)
    if np.prod(shape) > 4 * MAX_ELEMENTS:
        return None
    pieces = [tuple(size if i == axis else s for i, s in enumerate(shape)) for size in sizes]
    x, where = d.input(shape, dtype), d.g.constant(np.array(axis, np.int32))
    return d.g.op("SPLIT_V", [x, d.ints(*sizes), where], pieces, "SplitVOptions", 2, numSplits=len(sizes))


def reverse_sequence(d, dtype):
    batch, length, inner = d.size(1, 32), d.size(2, 200), d.size(1, 64)
    lengths = d.g.constant(d.rng.integers(1, length + 1, batch).astype(np.int32))
    x = d.input((batch, length, inner), dtype)
    fields = {"seqDim": 1, "batchDim": 0}
    return d.g.op("REVERSE_SEQUENCE", [x, lengths], x.shape, "ReverseSequenceOptions", **fields)


def scatter_nd(d, dtype):
    count, inner, rows = d.size(1, 500), d.size(1, 200), d.size(1, 500)
    updates = d.input((count, inner), dtype)
    operands = [d.g.constant(d.rng.integers(0, rows, (count, 1)).astype(np.int32)), updates, d.ints(rows, inner)]
    return d.g.op("SCATTER_ND", operands, (rows, inner), "ScatterNdOptions", like=updates)


def embedding_lookup(d, dtype):
    count, rows, inner = d.size(1, 200), d.size(2, 2000), d.size(4, 300)
    table = d.g.constant(d.rng.uniform(-1, 1, (rows, inner)).astype(dtype))
    return d.g.op("EMBEDDING_LOOKUP", [d.indices(count, rows), table], (count, inner), like=table)


def dynamic_update_slice(d, dtype):
    x = d.input(d.shape(), dtype)
    start = [int(d.rng.integers(0, (size + 1) // 2)) for size in x.shape]
    update = d.input(tuple(max(1, (size - s) // 2) for size, s in zip(x.shape, start)), dtype)
    operands = [x, update, d.ints(*start)]
    return d.g.op("DYNAMIC_UPDATE_SLICE", operands, x.shape, "DynamicUpdateSliceOptions")


def matrix_diag(d, dtype):
    shape = (d.size(1, 16), d.size(2, 200))
    return d.g.op("MATRIX_DIAG", [d.g.input(shape, dtype)], (*shape, shape[-1]), "MatrixDiagOptions")


def segments(name, options):
    """SEGMENT_SUM's ids are in order; the others have a number of segments."""

    def make(d, dtype):
        rows, inner, count = d.size(2, 2000), d.size(1, 200), d.size(1, 64)
        ids = d.rng.integers(0, count, rows).astype(np.int32)
        if name == "SEGMENT_SUM":
            ids = np.sort(ids)
            count = int(ids[-1]) + 1
        operands = [d.g.input((rows, inner), dtype), d.g.constant(ids)]
        if name != "SEGMENT_SUM":
            operands.append(d.g.constant(np.array(count, np.int32)))
        return d.g.op(name, operands, (count, inner), options)

    return make


def local_response_normalization(d, dtype):
    x = d.input(d.image(), dtype)
    fields = {"radius": 5, "bias": 1.0, "alpha": 1e-4, "beta": 0.75}
    return d.g.op("LOCAL_RESPONSE_NORMALIZATION", [x], x.shape, "LocalResponseNormalizationOptions", **fields)
