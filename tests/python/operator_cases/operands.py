"""Operators whose axes, sizes, shapes or numbers of elements are values: constants, or known at run time only.

Something is computed of each result, so that what follows a shape that depends on values is tried too.
"""

import graphs
import numpy as np

TYPES = [np.float32, np.int8, np.int32, np.uint8, np.int64, np.int16]


def then(c, value):
    """A chain behind the result, for the types that it is for."""
    if value.dtype == np.float32:
        value = c.g.op("ABS", [c.g.op("NEG", [value], value.shape)], value.shape)
    elif value.dtype == np.int32:
        value = c.g.op("ADD", [value, value], value.shape, "AddOptions")
    flat = int(np.prod(value.shape))
    return c.g.op("RESHAPE", [value, c.g.constant(np.array([-1], np.int32))], (flat,), "ReshapeOptions", newShape=[-1])


def numbers(c, values, dtype=np.int32):
    """An operand: a constant, one of the run, or one that is computed."""
    data = np.array(values, dtype)
    kind = c.int(0, 2)
    if kind == 0 or not data.size:
        return c.g.constant(data)
    if kind == 1:
        return c.feed(data)
    return c.g.op("ADD", [c.feed(data - 1), c.g.constant(np.ones(data.shape, dtype))], data.shape, "AddOptions")


def index_type(c):
    return c.pick([np.int32, np.int64])


def reshape(c):
    shape = c.shape(1, 4)
    known = tuple(int(d) for d in c.rng.permutation(shape))
    to = list(known)
    if c.chance(0.5):
        to[c.int(0, len(to) - 1)] = -1
    return then(c, c.g.op("RESHAPE", [c.input(shape, c.pick(TYPES)), numbers(c, to)], known))


def slice_(c):
    shape, index = c.shape(1, 4), index_type(c)
    begin = [c.int(0, d - 1) for d in shape]
    size = [c.int(1, d - b) for d, b in zip(shape, begin)]
    given = [-1 if s == d - b and c.chance(0.5) else s for s, d, b in zip(size, shape, begin)]
    x = c.input(shape, c.pick(TYPES))
    return then(c, c.g.op("SLICE", [x, numbers(c, begin, index), numbers(c, given, index)], tuple(size), "SliceOptions"))


def strided_slice(c):
    shape = c.shape(1, 4)
    strides = [c.pick([1, 1, 2, -1]) for _ in shape]
    begin = [d - 1 if s < 0 else c.int(0, d - 1) for d, s in zip(shape, strides)]
    end = [c.int(-1, b - 1) if s < 0 else c.int(b + 1, d) for d, b, s in zip(shape, begin, strides)]
    mask = sum(1 << i for i, e in enumerate(end) if e == -1) & sum(1 << i for i, s in enumerate(strides) if s < 0)
    out = tuple(len(range(b, e, s)) for b, e, s in zip(begin, end, strides))
    x, parts = c.input(shape, c.pick(TYPES)), [numbers(c, v) for v in (begin, end, strides)]
    return then(c, c.g.op("STRIDED_SLICE", [x, *parts], out, "StridedSliceOptions", endMask=mask))


def row_of_sequence(c):
    """x[:, i] and the like: the shape is known, the place is not."""
    shape = c.shape(2, 4)
    axis = c.int(0, len(shape) - 1)
    row = c.int(-shape[axis], shape[axis] - 1)
    others = (1 << axis) - 1
    begin, end = [0] * (axis + 1), [0] * (axis + 1)
    begin[axis], end[axis] = row, row + 1
    out = shape[:axis] + shape[axis + 1 :]
    x, parts = c.input(shape, c.pick(TYPES)), [numbers(c, v) for v in (begin, end)]
    strides = c.g.constant(np.ones(axis + 1, np.int32))
    return then(
        c,
        c.g.op(
            "STRIDED_SLICE",
            [x, *parts, strides],
            out,
            "StridedSliceOptions",
            beginMask=others,
            endMask=others,
            shrinkAxisMask=1 << axis,
        ),
    )


def slice_from(c):
    """Of a size that is known."""
    shape = c.shape(1, 4)
    begin = [c.int(0, d - 1) for d in shape]
    size = [c.int(1, d - b) for d, b in zip(shape, begin)]
    x = c.input(shape, c.pick(TYPES))
    return then(c, c.g.op("SLICE", [x, numbers(c, begin), c.indices(size)], tuple(size), "SliceOptions"))


def pad(name):
    def case(c):
        shape = c.shape(1, 4)
        mirror = name == "MIRROR_PAD"
        dtype = c.pick([np.float32, np.int32] if name != "PADV2" else TYPES)
        pads = [[c.int(0, min(2, d - 1) if mirror else 2) for _ in range(2)] for d in shape]
        out = tuple(d + a + b for d, (a, b) in zip(shape, pads))
        inputs = [c.input(shape, dtype), numbers(c, pads, index_type(c))]
        if name == "PADV2":
            inputs.append(c.g.constant(c.values((1,), dtype)))
        options = {"PAD": "PadOptions", "PADV2": "PadV2Options", "MIRROR_PAD": "MirrorPadOptions"}[name]
        return then(c, c.g.op(name, inputs, out, options, **({"mode": c.int(0, 1)} if mirror else {})))

    return case


def tile(c):
    shape = c.shape(1, 4, 4)
    counts = [c.int(1, 3) for _ in shape]
    out = tuple(d * n for d, n in zip(shape, counts))
    return then(c, c.g.op("TILE", [c.input(shape, c.pick(TYPES)), numbers(c, counts, index_type(c))], out, "TileOptions"))


def transpose(c):
    shape = c.shape(1, 5, 5)
    order = c.rng.permutation(len(shape))
    out = tuple(shape[i] for i in order)
    return then(c, c.g.op("TRANSPOSE", [c.input(shape, c.pick(TYPES)), numbers(c, order)], out, "TransposeOptions"))


def reduction(name, dtypes):
    def case(c):
        c.exact = False
        shape, dtype, keep = c.shape(1, 4, 5), c.pick(dtypes), c.chance(0.5)
        axes = sorted({c.int(0, len(shape) - 1) for _ in range(c.int(1, len(shape)))})
        out = tuple(1 if i in axes else d for i, d in enumerate(shape) if keep or i not in axes)
        given = [a - len(shape) if c.chance(0.3) else a for a in axes]
        small = (-4, 4) if np.dtype(dtype).kind == "i" else ()
        x = c.input(shape, dtype, *small)
        return then(c, c.g.op(name, [x, numbers(c, given)], out, "ReducerOptions", keepDims=keep))

    return case


def arg_extreme(c):
    shape = c.shape(1, 4)
    axis = c.int(0, len(shape) - 1)
    out = shape[:axis] + shape[axis + 1 :]
    name = c.pick(["ARG_MAX", "ARG_MIN"])
    x, place = c.input(shape, c.pick([np.float32, np.int32, np.int8])), numbers(c, [axis])
    y = c.g.op(
        name,
        [x, place],
        out,
        "ArgMaxOptions" if name == "ARG_MAX" else "ArgMinOptions",
        dtype=np.int32,
        outputType=graphs.TYPES[np.dtype(np.int32)],
    )
    return then(c, y)


def split(c):
    shape, parts = list(c.shape(1, 4, 3)), c.int(2, 3)
    axis = c.int(0, len(shape) - 1)
    out = tuple(shape)
    shape[axis] *= parts
    x, place = c.input(tuple(shape), c.pick([np.float32, np.int32, np.int8])), numbers(c, axis)
    return [then(c, y) for y in c.g.op("SPLIT", [place, x], [out] * parts, "SplitOptions", like=x, numSplits=parts)]


def split_v(c):
    shape, sizes = list(c.shape(1, 4, 3)), [c.int(1, 3) for _ in range(c.int(2, 3))]
    axis = c.int(0, len(shape) - 1)
    shape[axis] = sum(sizes)
    outs = [tuple(size if i == axis else d for i, d in enumerate(shape)) for size in sizes]
    x = c.input(tuple(shape), c.pick([np.float32, np.int32]))
    inputs = [x, numbers(c, sizes), numbers(c, axis)]
    return [then(c, y) for y in c.g.op("SPLIT_V", inputs, outs, "SplitVOptions", like=x, numSplits=len(sizes))]


def expand_dims(c):
    shape = c.shape(1, 4)
    axis = c.int(0, len(shape))
    out = shape[:axis] + (1,) + shape[axis:]
    return then(c, c.g.op("EXPAND_DIMS", [c.input(shape, c.pick(TYPES)), numbers(c, axis)], out, "ExpandDimsOptions"))


def broadcast_to(c):
    out = c.shape(1, 4)
    shape = tuple(c.pick([1, d]) for d in out)[c.int(0, 1) * (len(out) > 1) :]
    x = c.input(shape, c.pick([np.float32, np.int32, np.int8]))
    return then(c, c.g.op("BROADCAST_TO", [x, numbers(c, out, index_type(c))], out, "BroadcastToOptions", 2))


def fill(c):
    shape, dtype = c.shape(1, 4), c.pick([np.float32, np.int32, np.int64])
    x = c.input((), dtype)
    return then(c, c.g.op("FILL", [numbers(c, shape, index_type(c)), x], shape, "FillOptions", like=x))


def range_(c):
    dtype = c.pick([np.int32, np.float32])
    start, delta, count = c.int(-5, 5), c.pick([1, 2, -3]), c.int(1, 9)
    operands = [numbers(c, v, np.int32) for v in (start, start + delta * count, delta)]
    if dtype == np.float32:
        operands = [c.either(np.array(v, np.float32)) for v in (start, start + delta * count, delta)]
    return then(c, c.g.op("RANGE", operands, (count,), "RangeOptions", dtype=dtype))


def one_hot(c):
    shape, depth, axis = c.shape(1, 3), c.int(1, 5), c.pick([-1, 0])
    out = (*shape, depth) if axis == -1 else (depth, *shape)
    indices = c.input(shape, np.int32, -1, depth)
    values = [c.g.constant(np.array(v, np.float32)) for v in (1.5, -0.5)]
    return then(c, c.g.op("ONE_HOT", [indices, numbers(c, depth), *values], out, "OneHotOptions", dtype=np.float32, axis=axis))


def top_k(c):
    shape = c.shape(1, 3)
    count = c.int(1, shape[-1])
    out = (*shape[:-1], count)
    values, places = c.g.op("TOPK_V2", [c.input(shape, np.float32), numbers(c, count)], [out, out], "TopKV2Options")
    c.g.tensors[places.index].type = graphs.TYPES[np.dtype(np.int32)]
    return [then(c, values), places]


def resize(name):
    def case(c):
        c.exact, c.tolerance = False, 1e-5
        n, h, w, k = (c.int(1, 5) for _ in range(4))
        size = [c.int(1, 9), c.int(1, 9)]
        x = c.input((n, h, w, k), np.float32)
        options = {"RESIZE_BILINEAR": "ResizeBilinearOptions", "RESIZE_NEAREST_NEIGHBOR": "ResizeNearestNeighborOptions"}
        return then(c, c.g.op(name, [x, numbers(c, size)], (n, *size, k), options[name], 3, halfPixelCenters=True))

    return case


def cumsum(c):
    c.exact, c.tolerance = False, 1e-5
    shape = c.shape(1, 4)
    axis = numbers(c, c.int(0, len(shape) - 1))
    return then(c, c.g.op("CUMSUM", [c.input(shape, np.float32), axis], shape, "CumsumOptions", reverse=c.chance(0.5)))


def reverse(c):
    shape = c.shape(1, 4)
    x = c.input(shape, c.pick([np.float32, np.int32, np.uint8]))
    return then(c, c.g.op("REVERSE_V2", [x, numbers(c, [c.int(0, len(shape) - 1)])], shape, "ReverseV2Options"))


def batches(to_batch):
    def case(c):
        block, pads = [c.int(1, 3), c.int(1, 3)], [[c.int(0, 1), c.int(0, 1)] for _ in range(2)]
        small = [c.int(1, 3), c.int(1, 3)]
        space = [s * b - sum(p) for s, b, p in zip(small, block, pads)]
        if min(space) < 1:
            pads, space = [[0, 0], [0, 0]], [s * b for s, b in zip(small, block)]
        n, k = c.int(1, 2), c.int(1, 4)
        whole, split_up = (n, *space, k), (n * block[0] * block[1], *small, k)
        shape, out = (whole, split_up) if to_batch else (split_up, whole)
        name = "SPACE_TO_BATCH_ND" if to_batch else "BATCH_TO_SPACE_ND"
        options = "SpaceToBatchNDOptions" if to_batch else "BatchToSpaceNDOptions"
        x = c.input(shape, np.float32)
        return then(c, c.g.op(name, [x, numbers(c, block), numbers(c, pads)], out, options))

    return case


def transpose_conv(c):
    c.exact, c.tolerance = False, 1e-5
    n, h, w, inputs, outputs = c.int(1, 2), c.int(1, 5), c.int(1, 5), c.int(1, 8), c.int(1, 8)
    kernel, stride = c.int(1, 3), c.int(1, 2)
    out = (n, h * stride, w * stride, outputs)
    weights = c.g.constant(c.values((outputs, kernel, kernel, inputs), np.float32))
    x = c.input((n, h, w, inputs), np.float32)
    return then(
        c,
        c.g.op(
            "TRANSPOSE_CONV",
            [numbers(c, out), weights, x],
            out,
            "TransposeConvOptions",
            like=x,
            padding=0,
            strideH=stride,
            strideW=stride,
        ),
    )


def where(c):
    data = c.values(c.shape(1, 4), np.bool_)
    data.flat[0] = True
    y = c.g.op("WHERE", [c.feed(data)], (int(data.sum()), data.ndim), "WhereOptions", dtype=np.int64)
    rows = c.g.op("GATHER_ND", [c.input(data.shape, np.float32), y], (int(data.sum()),), "GatherNdOptions", dtype=np.float32)
    return [y, then(c, rows)]


def unique(c):
    data = c.rng.integers(0, 9, c.int(1, 20)).astype(c.pick([np.int32, np.float32]))
    values, places = c.g.op(
        "UNIQUE",
        [c.feed(data)],
        [(len(set(data)),), data.shape],
        "UniqueOptions",
        dtype=data.dtype,
        idxOutType=graphs.TYPES[np.dtype(np.int32)],
    )
    c.g.tensors[places.index].type = graphs.TYPES[np.dtype(np.int32)]
    return [then(c, values), places]


def scatter_nd(c):
    shape, count = c.shape(1, 3), c.int(1, 4)
    index = np.stack([c.rng.integers(0, d, count) for d in shape], 1).astype(np.int32)
    return then(
        c,
        c.g.op(
            "SCATTER_ND",
            [c.feed(index), c.input((count,), np.float32), numbers(c, shape)],
            shape,
            "ScatterNdOptions",
            dtype=np.float32,
        ),
    )


def segment_sum(c):
    shape = c.shape(1, 3, 7)
    ids = np.cumsum([0] + [c.int(0, 1) for _ in range(shape[0] - 1)]).astype(np.int32)
    out = (int(ids[-1]) + 1, *shape[1:])
    return then(c, c.g.op("SEGMENT_SUM", [c.input(shape, np.float32), c.feed(ids)], out, "SegmentSumOptions"))


def known_again(c):
    """A shape that depends on values, whose own shape is computed further on."""
    count = c.int(1, 9)
    x = c.input((count, 4), np.float32)
    y = c.g.op(
        "SLICE",
        [x, c.g.constant(np.array([0, 0], np.int32)), c.feed(np.array([c.int(1, count), 4], np.int32))],
        (1, 4),
        "SliceOptions",
    )
    c.g.tensors[y.index].shapeSignature = [-1, 4]  # LiteRT takes shapes without -1 from the file
    shape = c.g.op("SHAPE", [y], (2,), "ShapeOptions", dtype=np.int32, outType=graphs.TYPES[np.dtype(np.int32)])
    ones = c.g.op("FILL", [shape, c.g.constant(np.array(1.5, np.float32))], (1, 4), "FillOptions", dtype=np.float32)
    return [c.g.op("MUL", [y, ones], (1, 4), "MulOptions"), shape]


FLOAT_AND_INT = [np.float32, np.int32]
CASES = {
    f"{name} by values": case
    for name, case in {
        "ARG_MAX": arg_extreme,
        "BATCH_TO_SPACE_ND": batches(False),
        "BROADCAST_TO": broadcast_to,
        "CUMSUM": cumsum,
        "EXPAND_DIMS": expand_dims,
        "FILL": fill,
        "MEAN": reduction("MEAN", [np.float32]),
        "MIRROR_PAD": pad("MIRROR_PAD"),
        "ONE_HOT": one_hot,
        "PAD": pad("PAD"),
        "PADV2": pad("PADV2"),
        "RANGE": range_,
        "REDUCE_MAX": reduction("REDUCE_MAX", FLOAT_AND_INT),
        "REDUCE_MIN": reduction("REDUCE_MIN", FLOAT_AND_INT),
        "REDUCE_PROD": reduction("REDUCE_PROD", [np.float32]),
        "RESHAPE": reshape,
        "RESIZE_BILINEAR": resize("RESIZE_BILINEAR"),
        "RESIZE_NEAREST_NEIGHBOR": resize("RESIZE_NEAREST_NEIGHBOR"),
        "REVERSE_V2": reverse,
        "SCATTER_ND": scatter_nd,
        "SEGMENT_SUM": segment_sum,
        "SHAPE": known_again,
        "SLICE": slice_,
        "SLICE of a known size": slice_from,
        "SPACE_TO_BATCH_ND": batches(True),
        "SPLIT": split,
        "SPLIT_V": split_v,
        "STRIDED_SLICE": strided_slice,
        "STRIDED_SLICE of one index": row_of_sequence,
        "SUM": reduction("SUM", FLOAT_AND_INT),
        "TILE": tile,
        "TOPK_V2": top_k,
        "TRANSPOSE": transpose,
        "TRANSPOSE_CONV": transpose_conv,
        "UNIQUE": unique,
        "WHERE": where,
    }.items()
}
