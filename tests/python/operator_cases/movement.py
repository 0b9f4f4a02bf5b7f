"""Operators that place elements."""

import numpy as np

from operator_cases.case import INTEGERS


def dynamic_update_slice(c):
    types = [np.float32, np.float16, np.int8, np.uint8, np.int16, np.int32, np.int64, np.bool_]
    dtype, shape = c.pick(types), c.shape(1, 5, c.pick([6, 12]))
    update = tuple(c.int(0 if c.chance(0.1) else 1, d) for d in shape)
    index = c.pick([np.int32, np.int64])
    start = c.either(np.array([c.int(-3, d + 3) for d in shape], index))
    return c.g.op(
        "DYNAMIC_UPDATE_SLICE", [c.input(shape, dtype), c.input(update, dtype), start], shape, "DynamicUpdateSliceOptions"
    )


def bitcast(c):
    source, target = c.pick(INTEGERS + [np.float32, np.int64]), c.pick(INTEGERS + [np.float32, np.int64])
    a, b = np.dtype(source).itemsize, np.dtype(target).itemsize
    shape = c.shape(0, 3)
    x = c.input(shape + ((b // a,) if b > a else ()), source, *((-9, 9) if source == np.float32 else ()))
    return c.g.op("BITCAST", [x], shape + ((a // b,) if a > b else ()), "BitcastOptions", dtype=target)


def broadcast_args(c):
    dtype = c.pick([np.int32, np.int64])
    full = [c.int(1, 5) for _ in range(c.int(1, 5))]
    parts = [[c.pick([1, d]) for d in full], [d for d in full][c.int(0, len(full) - 1) :]]
    x, y = c.pick([parts, parts[::-1]])
    return c.g.op("BROADCAST_ARGS", [c.feed(np.array(x, dtype)), c.either(np.array(y, dtype))], (len(full),))


def pad_with_value(c):
    dtype, shape = c.pick([np.float32, np.int32, np.int64, np.int8, np.uint8, np.int16]), c.shape(1, 4)
    quantized = dtype in (np.int8, np.uint8, np.int16)
    scale, zero = (c.scale(), 0 if dtype == np.int16 else c.int(0, 100)) if quantized else (None, 0)
    paddings = np.array([[c.int(0, 3), c.int(0, 3)] for _ in shape], np.int32)
    value = c.g.constant(c.values((), dtype), scale, zero)
    out = tuple(d + int(p.sum()) for d, p in zip(shape, paddings))
    x = c.input(shape, dtype, scale=scale, zero_point=zero)
    return c.g.op("PAD", [x, c.g.constant(paddings), value], out, "PadOptions", 2, like=x)


def dilate(c):
    types = [np.float32, np.float16, np.int8, np.uint8, np.int16, np.int32, np.int64, np.bool_, np.float64]
    dtype, shape = c.pick(types), c.shape(1, 4, 4)
    dilations = np.array([c.pick([1, 1, 2, 3]) for _ in shape], np.int32)
    out = tuple((d - 1) * int(k) + 1 for d, k in zip(shape, dilations))
    x, value = c.input(shape, dtype), c.either(c.values((), dtype))
    return c.g.op("DILATE", [x, c.g.constant(dilations), value], out)


def sparse_to_dense(c):
    dtype = c.pick([np.float32, np.int32, np.int64, np.int8, np.uint8])
    shape, index, count = c.shape(1, 4), c.pick([np.int32, np.int64]), c.int(1, 5)
    indices = np.stack([c.rng.integers(0, d, count) for d in shape], 1).astype(index)
    if len(shape) == 1 and c.chance(0.5):
        indices = indices[:, 0]
    x = c.input(() if c.chance(0.3) else (count,), dtype)
    size = c.g.constant(np.array(shape, c.pick([np.int32, np.int64])))
    return c.g.op(
        "SPARSE_TO_DENSE", [c.either(indices), size, x, c.g.constant(c.values((), dtype))], shape, "SparseToDenseOptions", like=x
    )


DIAGONALS = [np.float32, np.int64, np.int32, np.int16, np.int8, np.uint8]


def matrix_diag(c):
    shape = c.shape(1, 3)
    return c.g.op("MATRIX_DIAG", [c.input(shape, c.pick(DIAGONALS))], (*shape, shape[-1]), "MatrixDiagOptions")


def matrix_set_diag(c):
    dtype, shape = c.pick(DIAGONALS), c.shape(2, 4)
    diagonal = c.input((*shape[:-2], min(shape[-2:])), dtype)
    return c.g.op("MATRIX_SET_DIAG", [c.input(shape, dtype), diagonal], shape, "MatrixSetDiagOptions")


def stablehlo_pad(c):
    dtype, shape = c.pick([np.float32, np.int8, np.uint8, np.int16, np.int32, np.int64]), c.shape(1, 4, 5)
    interior = [c.pick([0, 0, 1, 2]) for _ in shape]
    inside = [(d - 1) * (k + 1) + 1 for d, k in zip(shape, interior)]
    low, high = ([c.int(-(d // 3), 2) for d in inside] for _ in range(2))
    out = tuple(d + a + b for d, a, b in zip(inside, low, high))
    x, value = c.input(shape, dtype), c.either(c.values((), dtype))
    return c.g.op(
        "STABLEHLO_PAD",
        [x, value],
        out,
        "StablehloPadOptions",
        edgePaddingLow=low,
        edgePaddingHigh=high,
        interiorPadding=interior,
    )


def stablehlo_gather(c):
    """Slices at indices that may lie outside."""
    dtype, shape = c.pick([np.float32, np.int8, np.int16, np.int32, np.int64]), c.shape(1, 4, 5)
    rank = len(shape)
    sizes = [c.int(1, d) for d in shape]
    collapsed = [d for d in range(rank) if sizes[d] == 1 and c.chance(0.7)]
    kept = [s for d, s in enumerate(sizes) if d not in collapsed]
    mapped = [int(d) for d in c.rng.permutation(rank)[: c.int(1, rank)]]
    batch = list(c.shape(0, 2, 3))
    axis = c.int(0, len(batch))
    indices = batch[:axis] + [len(mapped)] + batch[axis:]
    out_rank = len(batch) + len(kept)
    offset = sorted(int(d) for d in c.rng.permutation(out_rank)[: len(kept)])
    left = {True: list(kept), False: list(batch)}
    out = tuple(left[d in offset].pop(0) for d in range(out_rank))
    starts = c.either(c.values(tuple(indices), c.pick([np.int32, np.int64]), -2, 6))
    return c.g.op(
        "STABLEHLO_GATHER",
        [c.input(shape, dtype), starts],
        out,
        "StablehloGatherOptions",
        offsetDims=offset,
        collapsedSliceDims=collapsed,
        startIndexMap=mapped,
        indexVectorDim=axis,
        sliceSizes=sizes,
        indicesAreSorted=False,
    )


CASES = {
    "STABLEHLO_GATHER": stablehlo_gather,
    "BITCAST": bitcast,
    "BROADCAST_ARGS": broadcast_args,
    "DILATE": dilate,
    "DYNAMIC_UPDATE_SLICE": dynamic_update_slice,
    "MATRIX_DIAG": matrix_diag,
    "MATRIX_SET_DIAG": matrix_set_diag,
    "PAD with a value": pad_with_value,
    "SPARSE_TO_DENSE": sparse_to_dense,
    "STABLEHLO_PAD": stablehlo_pad,
}
