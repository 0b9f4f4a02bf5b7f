"""Functions that make an operator which few nets have: as in families.py."""

import graphs
import numpy as np
from draw import BOOL, FLOAT, INT32, INT64

SAME = 0
COMPLEX = np.dtype("c8")


def _volume(d):
    return d.pick([1, 1, 2]), d.size(2, 24), *[d.size(4, 64)] * 2, d.size(1, 64)


def convolution_3d(d, dtype):
    n, depth, h, w, c = _volume(d)
    k, stride, out = d.pick([1, 3, 3]), d.pick([1, 1, 2]), d.size(1, 128)
    if n * depth * h * w * k**3 * c * out > 300_000_000:
        return None
    x = d.input((n, depth, h, w, c), dtype)
    operands = [x, d.weights((k, k, k, c, out), dtype), d.bias(out, x, None)]
    whole = (n, *(-(-size // stride) for size in (depth, h, w)), out)
    fields = {"strideD": stride, "strideW": stride, "strideH": stride, "padding": SAME}
    fields |= {"dilationDFactor": 1, "dilationWFactor": 1, "dilationHFactor": 1}
    return d.g.op("CONV_3D", operands, whole, "Conv3DOptions", **fields)


def transpose_conv_3d(d, dtype):
    n, depth, h, w, c = _volume(d)
    k, stride, out = d.pick([2, 3]), d.pick([1, 2]), d.size(1, 64)
    whole = (n, depth * stride, h * stride, w * stride, out)
    if n * depth * h * w * k**3 * c * out > 300_000_000 or np.prod(whole) > 4_000_000:
        return None
    x = d.input((n, depth, h, w, c), dtype)
    operands = [d.ints(*whole), d.weights((k, k, k, out, c), dtype), x]
    fields = {"strideD": stride, "strideW": stride, "strideH": stride, "padding": SAME}
    fields |= {"dilationDFactor": 1, "dilationWFactor": 1, "dilationHFactor": 1}
    return d.g.op("CONV_3D_TRANSPOSE", operands, whole, "Conv3DOptions", like=x, **fields)


def where(d, dtype, shape=None):
    """The number of results depends on values."""
    x = d.input(shape or d.shape(), dtype)
    y = d.g.op("WHERE", [x], (1, len(x.shape)), "WhereOptions", dtype=INT64)
    d.g.tensors[y.index].shapeSignature = [-1, len(x.shape)]
    return y


def unique(d, dtype):
    x = d.input((d.size(4, 5000),), dtype)
    y, places = d.g.op("UNIQUE", [x], [(1,), x.shape], "UniqueOptions", idxOutType=graphs.TYPES[INT32])
    d.g.tensors[y.index].shapeSignature = [-1]
    d.g.tensors[places.index].type, d.g.tensors[places.index].quantization = graphs.TYPES[INT32], None
    return [y, places]


def same_bytes(name, options, change):
    """Another shape of the same values; `change` of a draw and a shape."""

    def make(d, dtype):
        x = d.input(d.shape(), dtype)
        whole, operands, fields = change(d, x.shape)
        return d.g.op(name, [x, *operands], whole, options, **fields)

    return make


def flat(d, shape):
    size = int(np.prod(shape))
    return (size,), [d.ints(size)], {"newShape": [size]}


def one_more(d, shape):
    axis = d.pick(range(len(shape)))
    return shape[:axis] + (1,) + shape[axis:], [d.ints(axis)], {}


def gather_of_batches(d, dtype):
    batch, length, inner, count = d.size(1, 32), d.size(2, 300), d.size(1, 64), d.size(1, 100)
    places = d.g.constant(d.rng.integers(0, length, (batch, count)).astype(np.int32))
    x, fields = d.input((batch, length, inner), dtype), {"axis": 1, "batchDims": 1}
    return d.g.op("GATHER", [x, places], (batch, count, inner), "GatherOptions", 2, **fields)


def sparse_to_dense(d, dtype):
    count, rows, columns = d.size(1, 500), d.size(2, 500), d.size(1, 200)
    places = np.sort(d.rng.choice(rows * columns, min(count, rows * columns), replace=False))
    indices = np.stack(np.divmod(places, columns), 1).astype(np.int32)
    values, zero = d.input((len(places),), dtype), d.g.constant(np.zeros((), dtype))
    operands = [d.g.constant(indices), d.ints(rows, columns), values, zero]
    return d.g.op("SPARSE_TO_DENSE", operands, (rows, columns), "SparseToDenseOptions", like=values)


def dilate(d, dtype):
    x = d.input(d.image(), dtype)
    times = (1, d.pick([1, 2, 3]), 2, 1)
    whole = tuple((size - 1) * t + 1 for size, t in zip(x.shape, times))
    return d.g.op("DILATE", [x, d.ints(*times), d.g.constant(np.zeros((), dtype))], whole, "DilateOptions")


def rfft2d(d, dtype):
    n, h, w = d.size(1, 16), d.pick([1, 4, 16, 32]), d.pick([16, 64, 128, 256, 512])
    x = d.input((n, h, w), dtype)
    return d.g.op("RFFT2D", [x, d.ints(h, w)], (n, h, w // 2 + 1), "Rfft2dOptions", dtype=COMPLEX)


def cumulative_buckets(d, dtype):
    bounds = np.sort(d.rng.uniform(-1, 1, d.size(2, 64))).astype(np.float32).tolist()
    x = d.input(d.shape(), dtype)
    return d.g.op("BUCKETIZE", [x], x.shape, "BucketizeOptions", dtype=INT32, boundaries=bounds)


def matrix_set_diag(d, dtype):
    n, size = d.size(1, 16), d.size(2, 200)
    x = d.input((n, size, size), dtype)
    return d.g.op("MATRIX_SET_DIAG", [x, d.input((n, size), dtype)], x.shape, "MatrixSetDiagOptions")


def hashtable_lookup(d, dtype):
    rows, inner, count = d.size(2, 2000), d.size(1, 200), d.size(1, 200)
    keys = np.arange(rows, dtype=np.int32)
    operands = [d.indices(count, rows), d.g.constant(keys), d.input((rows, inner), dtype)]
    values, hits = d.g.op("HASHTABLE_LOOKUP", operands, [(count, inner), (count,)], like=operands[2])
    d.g.tensors[hits.index].type, d.g.tensors[hits.index].quantization = graphs.TYPES[np.dtype("u1")], None
    return [values, hits]


def embedding_of_bytes(d, dtype):
    count, rows, inner = d.size(1, 200), d.size(2, 2000), d.size(4, 300)
    table = d.g.constant(d.rng.integers(-127, 128, (rows, inner)).astype(np.int8), 0.02, 0)
    return d.g.op("EMBEDDING_LOOKUP", [d.indices(count, rows), table], (count, inner), version=3, dtype=FLOAT)


def boxes(d, dtype):
    count, most = d.size(10, 2000), d.size(1, 100)
    corner = d.rng.uniform(0, 4, (count, 2))
    sides = np.concatenate([corner, corner + d.rng.uniform(0.2, 1.2, (count, 2))], 1).astype(np.float32)
    numbers = [d.g.constant(np.array(most, np.int32))] + [d.g.constant(np.array(v, np.float32)) for v in (0.5, 0.1)]
    operands = [d.g.constant(sides), d.input((count,), dtype), *numbers]
    return d.g.op("NON_MAX_SUPPRESSION_V4", operands, [(most,), ()], "NonMaxSuppressionV4Options", dtype=INT32)


def range_of(d, dtype):
    count = d.size(200, 20000)
    operands = [d.g.constant(np.array(v, dtype)) for v in (0, count, 1)]
    operands[0] = d.g.input((), dtype)
    y = d.g.op("RANGE", operands, (1,), "RangeOptions", dtype=dtype)
    d.g.tensors[y.index].shapeSignature = [-1]
    return y


def stablehlo(name):
    def make(d, dtype):
        shape = d.shape()
        return d.g.op(name, [d.input(shape, dtype), d.input(shape, dtype)], shape)

    return make


def stablehlo_pad(d, dtype):
    x, zero = d.input(d.image(), dtype), d.g.constant(np.zeros((), dtype))
    whole = (x.shape[0], x.shape[1] + 2, x.shape[2] + 2, x.shape[3])
    edges = {"edgePaddingLow": [0, 1, 1, 0], "edgePaddingHigh": [0, 1, 1, 0], "interiorPadding": [0] * 4}
    return d.g.op("STABLEHLO_PAD", [x, zero], whole, "StablehloPadOptions", **edges)


def windows(d, dtype):
    """Sums or maxima of windows of an image, whose function is another subgraph."""
    x, zero, k = d.input(d.image(), dtype), d.g.constant(np.zeros((), dtype)), d.pick([2, 3])
    stride = d.pick([1, 2])
    whole = (x.shape[0], *((size - k) // stride + 1 for size in x.shape[1:3]), x.shape[3])
    other = graphs.Graph()
    pair = [other.input((), dtype), other.input((), dtype)]
    d.others = [(other, [other.op(d.pick(["STABLEHLO_ADD", "STABLEHLO_MAXIMUM"]), pair, ())])]
    fields = {"windowDimensions": [1, k, k, 1], "windowStrides": [1, stride, stride, 1], "padding": [0] * 8}
    fields |= {"baseDilations": [1] * 4, "windowDilations": [1] * 4, "bodySubgraphIndex": 1}
    return d.g.op("STABLEHLO_REDUCE_WINDOW", [x, zero], whole, "StablehloReduceWindowOptions", **fields)


def complex_part(name):
    def make(d, dtype):
        x = d.g.input(d.shape(), COMPLEX)
        return d.g.op(name, [x], x.shape, dtype=dtype)

    return make


def choose_repeated(d, dtype):
    """SELECT_V2 whose values repeat, too."""
    from families import broadcast

    shape = d.shape()
    operands = [d.input(shape, BOOL), d.input(shape, dtype), d.input(broadcast(d, shape), dtype)]
    return d.g.op("SELECT_V2", operands, shape, like=operands[1])
