"""Random models of one operator each, for operators that the random graphs do not grow by.

A case draws a model from a seed: `outputs` are its values, `feeds` the inputs by the tensor's index.
"""

import graphs
import numpy as np
from random_values import Chooser

INTEGERS = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32]
FLOATS = [np.float16, np.float32, np.float64]


class Case(Chooser):
    """`exact`: outputs have LiteRT's bits; otherwise floats are as near as `tolerance` of the largest. `reference`:
    compared with LiteRT's reference kernels where they have the operator, otherwise with its others. `steps`: by how
    much integers may differ."""

    def __init__(self, name, seed):
        super().__init__([seed, *name.encode()])
        self.name, self.feeds = name, {}
        self.exact, self.tolerance, self.reference, self.steps = True, 1e-6, True, 0
        outputs = CASES[name](self)
        self.outputs = outputs if isinstance(outputs, list) else [outputs]

    def shape(self, low=1, high=4, extent=6):
        return tuple(self.int(1, extent) for _ in range(self.int(low, high)))

    def values(self, shape, dtype, low=None, high=None):
        dtype = np.dtype(dtype)
        if dtype == np.bool_:
            return self.rng.random(shape) < 0.5
        if dtype.kind == "c":
            return (self.rng.normal(0, 3, shape) + 1j * self.rng.normal(0, 3, shape)).astype(dtype)
        if dtype.kind == "f":
            low, high = (-3, 3) if low is None else (low, high)
            return self.rng.uniform(low, high, shape).astype(dtype)
        low, high = (np.iinfo(dtype).min, np.iinfo(dtype).max) if low is None else (low, high)
        return self.rng.integers(low, high, shape, dtype, endpoint=True)

    def feed(self, data, scale=None, zero_point=0):
        """A value that is known at run time only."""
        data = np.asarray(data)
        value = self.g.input(data.shape, data.dtype, scale, zero_point)
        self.feeds[value.index] = data
        return value

    def input(self, shape, dtype, low=None, high=None, scale=None, zero_point=0):
        return self.feed(self.values(shape, dtype, low, high), scale, zero_point)

    def either(self, data):
        """A constant or a run-time value."""
        return self.feed(data) if self.chance(0.5) else self.g.constant(data)

    def two_of(self, dtype, low=None, high=None):
        """Two inputs that broadcast, and the result's shape."""
        shape = self.shape(0, 4)
        other = self.pick([shape, shape, (), shape[1:], tuple(self.pick([1, d]) for d in shape)])
        x, y = self.input(shape, dtype, low, high), self.input(other, dtype, low, high)
        return *self.pick([(x, y), (y, x)]), shape

    def scale(self):
        return float(np.float32(2.0 ** self.rng.uniform(-6, -3)))

    def model(self):
        return self.g.build(self.outputs)


def bitwise_xor(c):
    x, y, shape = c.two_of(c.pick(INTEGERS))
    return c.g.op("BITWISE_XOR", [x, y], shape, "BitwiseXorOptions")


def right_shift(c):
    x, y, shape = c.two_of(c.pick(INTEGERS))
    return c.g.op("RIGHT_SHIFT", [x, y], shape, "RightShiftOptions")


def right_shift_by_little(c):
    x, y, shape = c.two_of(c.pick(INTEGERS), 0, 40)
    return c.g.op("RIGHT_SHIFT", [x, y], shape, "RightShiftOptions")


def stablehlo_shift_left(c):
    dtype, shape = c.pick([np.int8, np.int16, np.int32]), c.shape()
    x, y = c.input(shape, dtype), c.input(shape, dtype, 0, 8 * np.dtype(dtype).itemsize - 1)
    return c.g.op("STABLEHLO_SHIFT_LEFT", [x, y], shape)


def stablehlo_elementwise(name):
    def case(c):
        types = INTEGERS + [np.int64, np.uint64, np.bool_] + ([] if name == "AND" else [np.float32, np.float64])
        dtype, shape = c.pick(types), c.shape(0)
        return c.g.op("STABLEHLO_" + name, [c.input(shape, dtype), c.input(shape, dtype)], shape)

    return case


def complex_part(name):
    def case(c):
        wide, shape = c.chance(0.3), c.shape(0)
        x = c.input(shape, np.complex128 if wide else np.complex64)
        return c.g.op(name, [x], shape, dtype=np.float64 if wide else np.float32)

    return case


def atan2(c):
    dtype, shape = c.pick(FLOATS), c.shape(0)
    return c.g.op("ATAN2", [c.input(shape, dtype), c.input(shape, dtype)], shape, "ATan2Options")


def add_n(c):
    dtype, shape = c.pick([np.float32, np.int32]), c.shape(extent=12)
    return c.g.op("ADD_N", [c.input(shape, dtype) for _ in range(c.int(2, 6))], shape, "AddNOptions")


def dynamic_update_slice(c):
    types = [np.float32, np.float16, np.int8, np.uint8, np.int16, np.int32, np.int64, np.bool_]
    dtype, shape = c.pick(types), c.shape(1, 5, c.pick([6, 12]))
    update = tuple(c.int(0 if c.chance(0.1) else 1, d) for d in shape)
    index = c.pick([np.int32, np.int64])
    start = c.either(np.array([c.int(-3, d + 3) for d in shape], index))
    return c.g.op("DYNAMIC_UPDATE_SLICE", [c.input(shape, dtype), c.input(update, dtype), start], shape,
                  "DynamicUpdateSliceOptions")


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


def sum_quantized(c):
    dtype, shape = c.pick([np.int8, np.uint8, np.int16]), c.shape(1, 4, 9)
    if dtype != np.uint8:  # read as uint8 by the reference of LiteRT 2.3.0; its other kernel rounds in float
        c.reference, c.steps = False, 1
    zero = 0 if dtype == np.int16 else c.int(0, 60)
    x = c.input(shape, dtype, scale=c.scale(), zero_point=zero)
    axes = sorted({c.int(0, len(shape) - 1) for _ in range(c.int(1, len(shape)))})
    keep = c.chance(0.5)
    out = tuple(1 if i in axes else d for i, d in enumerate(shape) if keep or i not in axes)
    return c.g.op("SUM", [x, c.indices(axes)], out, "ReducerOptions", 2, keepDims=keep, dtype=dtype,
                  scale=x.scale * c.pick([1, 4, 20]), zero_point=zero and c.int(0, 60))


def mul_narrowing(c):
    dtype, shape = c.pick([np.int8, np.uint8]), c.shape(1, 4)
    x, y = (c.input(shape, np.int16, scale=1 / 32768) for _ in range(2))
    return c.g.op("MUL", [x, y], shape, "MulOptions", 2, dtype=dtype, scale=1 / 128,
                  zero_point=0 if dtype == np.int8 else 128, fusedActivationFunction=c.pick([0, 0, 1]))


def div_int16(c):
    """Of operands of some size: where the quotient is tiny or huge, LiteRT shifts by impossible numbers of bits."""
    shape = c.shape()
    x_zero, y_zero = c.pick([0, 5, -1000]), c.pick([0, -7, 300])
    x = c.input(shape, np.int16, x_zero + 2**10, x_zero + 2**12, c.scale() / 256, x_zero)
    sign = c.rng.choice(np.array([-1, 1], np.int16), shape)
    y = c.feed(y_zero + sign * c.values(shape, np.int16, 2**9, 2**11), c.scale() / 256, y_zero)
    scale = x.scale / y.scale / 2 ** c.int(9, 11)
    return c.g.op("DIV", [x, y], shape, "DivOptions", 2, dtype=np.int16, scale=scale, zero_point=c.pick([0, 3]))


def dilate(c):
    types = [np.float32, np.float16, np.int8, np.uint8, np.int16, np.int32, np.int64, np.bool_, np.float64]
    dtype, shape = c.pick(types), c.shape(1, 4, 4)
    dilations = np.array([c.pick([1, 1, 2, 3]) for _ in shape], np.int32)
    out = tuple((d - 1) * int(k) + 1 for d, k in zip(shape, dilations))
    x, value = c.input(shape, dtype), c.either(c.values((), dtype))
    return c.g.op("DILATE", [x, c.g.constant(dilations), value], out)


def segment_sum(c):
    dtype, shape = c.pick([np.float32, np.int32]), c.shape(1, 3, 7)
    ids = np.cumsum([0] + [c.int(0, 1) for _ in range(shape[0] - 1)]).astype(np.int32)
    x = c.input(shape, dtype)
    return c.g.op("SEGMENT_SUM", [x, c.g.constant(ids)], (int(ids[-1]) + 1, *shape[1:]), "SegmentSumOptions")


def unsorted_segment(name):
    def case(c):
        dtype, shape, segments = c.pick([np.float32, np.int32]), c.shape(1, 4, 5), c.int(1, 6)
        batch = c.int(1, len(shape))
        ids = c.either(c.values(shape[:batch], np.int32, -1, segments - 1))
        count = c.g.constant(np.array(segments, np.int32))
        options = f"UnsortedSegment{name.title()}Options"
        x = c.input(shape, dtype)
        return c.g.op("UNSORTED_SEGMENT_" + name, [x, ids, count], (segments, *shape[batch:]), options)

    return case


def sparse_to_dense(c):
    dtype = c.pick([np.float32, np.int32, np.int64, np.int8, np.uint8])
    shape, index, count = c.shape(1, 4), c.pick([np.int32, np.int64]), c.int(1, 5)
    indices = np.stack([c.rng.integers(0, d, count) for d in shape], 1).astype(index)
    if len(shape) == 1 and c.chance(0.5):
        indices = indices[:, 0]
    x = c.input(() if c.chance(0.3) else (count,), dtype)
    size = c.g.constant(np.array(shape, c.pick([np.int32, np.int64])))
    return c.g.op("SPARSE_TO_DENSE", [c.either(indices), size, x, c.g.constant(c.values((), dtype))], shape,
                  "SparseToDenseOptions", like=x)


DIAGONALS = [np.float32, np.int64, np.int32, np.int16, np.int8, np.uint8]


def matrix_diag(c):
    shape = c.shape(1, 3)
    return c.g.op("MATRIX_DIAG", [c.input(shape, c.pick(DIAGONALS))], (*shape, shape[-1]), "MatrixDiagOptions")


def matrix_set_diag(c):
    dtype, shape = c.pick(DIAGONALS), c.shape(2, 4)
    diagonal = c.input((*shape[:-2], min(shape[-2:])), dtype)
    return c.g.op("MATRIX_SET_DIAG", [c.input(shape, dtype), diagonal], shape, "MatrixSetDiagOptions")


def bucketize(c):
    dtype, shape = c.pick([np.float32, np.float64, np.int32, np.int64]), c.shape(0)
    boundaries = np.sort(c.rng.integers(-8, 8, c.int(1, 9))).astype(np.float32) / c.pick([1, 4])
    x = c.feed((c.rng.integers(-40, 40, shape) / (4 if np.dtype(dtype).kind == "f" else 1)).astype(dtype))
    return c.g.op("BUCKETIZE", [x], shape, "BucketizeOptions", dtype=np.int32, boundaries=boundaries)


def unique(c):
    """Of a constant: the number of values is known then."""
    dtype, count = c.pick([np.float32, np.int8, np.uint8, np.int16, np.int32, np.int64]), c.int(1, 20)
    data, index = c.rng.integers(0, 9, count).astype(dtype), c.pick([np.int32, np.int64])
    values, places = c.g.op("UNIQUE", [c.g.constant(data)], [(len(set(data)),), (count,)], "UniqueOptions",
                            dtype=dtype, idxOutType=graphs.TYPES[np.dtype(index)])
    c.g.tensors[places.index].type = graphs.TYPES[np.dtype(index)]
    x = c.input((count,), index, 0, 9)
    return [c.g.op("ADD", [graphs.Value(places.index, (count,), index, None, 0), x], (count,), "AddOptions"), values]


def fake_quant(c):
    shape, low, high = c.shape(1, 4, 9), -c.rng.uniform(0, 3), c.rng.uniform(0.1, 3)
    return c.g.op("FAKE_QUANT", [c.input(shape, np.float32)], shape, "FakeQuantOptions", min=low, max=high,
                  numBits=c.pick([4, 8, 16]))


def local_response_normalization(c):
    c.exact = False
    shape = tuple(c.int(1, 6) for _ in range(3)) + (c.int(1, 24),)
    return c.g.op("LOCAL_RESPONSE_NORMALIZATION", [c.input(shape, np.float32)], shape,
                  "LocalResponseNormalizationOptions", radius=c.int(0, 6), bias=c.rng.uniform(0.5, 9),
                  alpha=c.rng.uniform(0, 4), beta=c.pick([0.5, 0.75, 1.0]))


def reduce_window(c):
    types = [np.float32, np.float64, np.int8, np.uint8, np.int16, np.int32, np.int64, np.bool_]
    function = c.int(1, 6)
    dtype = np.bool_ if function > 4 else c.pick(types[:-1])
    shape = c.shape(1, 4, 7)
    window = [c.int(1, min(d, 3)) for d in shape]
    strides = [c.int(1, 3) for _ in shape]
    dilations = [c.int(1, 1 if w == 1 else max(1, (d - 1) // (w - 1))) for d, w in zip(shape, window)]
    out = tuple((d - (w - 1) * k - 1) // s + 1 for d, w, s, k in zip(shape, window, strides, dilations))
    numbers = [c.g.constant(np.array(v, np.int64)) for v in (window, strides, dilations)]
    x, initial = c.input(shape, dtype), c.either(c.values((), dtype))
    return c.g.op("REDUCE_WINDOW", [x, initial, *numbers], out, "ReduceWindowOptions", reduceFunction=function)


def non_max_suppression(c):
    """Boxes in groups, so that many overlap."""
    count, soft = c.int(1, 40), c.chance(0.5)
    corner = c.rng.integers(0, 4, (count, 2)) + c.rng.uniform(0, 0.6, (count, 2))
    boxes = np.concatenate([corner, corner + c.rng.uniform(0.2, 1.2, (count, 2))], 1)
    boxes = boxes[:, [2, 1, 0, 3]] if c.chance(0.3) else boxes
    most = c.int(1, 20)
    numbers = [c.rng.uniform(0.1, 0.7), c.pick([0.0, 0.3, -1.0])] + ([c.pick([0.0, 0.5])] if soft else [])
    inputs = [c.feed(boxes.astype(np.float32)), c.input((count,), np.float32, 0, 1)]
    inputs += [c.g.constant(np.array(most, np.int32))] + [c.either(np.array(v, np.float32)) for v in numbers]
    version = 5 if soft else 4
    outputs = c.g.op(f"NON_MAX_SUPPRESSION_V{version}", inputs, [(most,)] + ([(most,)] if soft else []) + [()],
                     f"NonMaxSuppressionV{version}Options", dtype=np.int32)
    if soft:
        c.g.tensors[outputs[1].index].type = graphs.TYPES[np.dtype(np.float32)]
    return outputs


def hashtable_lookup(c):
    rows, count = c.int(1, 8), c.int(1, 9)
    keys = np.sort(c.rng.choice(20, rows, replace=False)).astype(np.int32)
    table = c.input((rows, *c.shape(0, 2, 4)), c.pick([np.float32, np.int32, np.uint8, np.int8]))
    lookups = c.input((count,), np.int32, 0, 20)
    values, hits = c.g.op("HASHTABLE_LOOKUP", [lookups, c.either(keys), table],
                          [(count, *table.shape[1:]), (count,)], like=table)
    c.g.tensors[hits.index].type = graphs.TYPES[np.dtype(np.uint8)]
    return [values, hits]


def embedding_lookup_sparse(c):
    rows, width, places, count = c.int(1, 8), c.int(1, 9), c.shape(1, 2, 4), c.int(1, 9)
    indices = np.stack([c.rng.integers(0, d, count) for d in places] + [np.arange(count)], 1)
    indices = indices[np.lexsort(indices.T[::-1])].astype(np.int32)
    shape = c.g.constant(np.array([*places, count], np.int32))
    inputs = [c.input((count,), np.int32, 0, rows - 1), c.feed(indices), shape]
    inputs += [c.input((count,), np.float32, 0.1, 2), c.input((rows, width), np.float32)]
    return c.g.op("EMBEDDING_LOOKUP_SPARSE", inputs, (*places, width), "EmbeddingLookupSparseOptions",
                  like=inputs[3], combiner=c.int(0, 2))


def rfft2d(c):
    """In double and rounded to float in the end; then the real part, or the magnitude."""
    c.exact = False
    lengths = [2 ** c.int(0, 5), 2 ** c.int(1, 8)]
    shape = (*c.shape(0, 2, 3), c.int(1, lengths[0] + 2), c.int(1, lengths[1] + 5))
    out = (*shape[:-2], lengths[0], lengths[1] // 2 + 1)
    x = c.g.op("RFFT2D", [c.input(shape, np.float32), c.g.constant(np.array(lengths, np.int32))], out,
               "Rfft2dOptions", dtype=np.complex64)
    return [c.g.op(name, [x], out, dtype=np.float32) for name in ("REAL", "IMAG", "COMPLEX_ABS")]


def weights_of(c, shape, form):
    """float32, or 8 bits of one scale in the hybrid forms."""
    if form == "float":
        return c.g.constant(c.values(shape, np.float32, -0.4, 0.4))  # larger ones amplify roundings
    data = c.rng.integers(-127, 128, shape).astype(np.int8)
    value = c.g.constant(data, 1 / 300, 0)
    if form == "hybrid uint8":  # holds int8 too
        c.g.tensors[value.index].type = graphs.TYPES[np.dtype(np.uint8)]
    return value


def rnn_cell(c, batch, width, units, form):
    """Weights, recurrent weights, bias and state of a cell."""
    return [weights_of(c, (units, width), form), weights_of(c, (units, units), form),
            c.g.constant(c.values((units,), np.float32)), c.g.variable((batch, units))]


def rnn_form(c):
    """Also sets the tolerance: LiteRT's sums have another order, and in the hybrid forms a step of a quantized input
    may come out differently."""
    form = c.pick(["float", "hybrid", "hybrid uint8"])
    c.exact, c.tolerance = False, 1e-5 if form == "float" else 0.02
    hybrid = {} if form == "float" else {"asymmetricQuantizeInputs": c.chance(0.5)}
    return form, {"fusedActivationFunction": c.pick([4, 1, 0 if form == "float" else 4]), **hybrid}


def rnn(c):
    form, options = rnn_form(c)
    batch, width, units = c.int(1, 3), c.int(1, 20), c.int(1, 12)
    inputs = [c.input((batch, width), np.float32), *rnn_cell(c, batch, width, units, form)]
    return c.g.op("RNN", inputs, (batch, units), "RNNOptions", 3, **options)


def sequence_rnn(c):
    form, options = rnn_form(c)
    batch, steps, width, units, time_major = c.int(1, 3), c.int(1, 4), c.int(1, 20), c.int(1, 12), c.chance(0.5)
    rows = (steps, batch) if time_major else (batch, steps)
    inputs = [c.input((*rows, width), np.float32), *rnn_cell(c, batch, width, units, form)]
    return c.g.op("UNIDIRECTIONAL_SEQUENCE_RNN", inputs, (*rows, units), "SequenceRNNOptions", 3,
                  timeMajor=time_major, **options)


def bidirectional_rnn(c):
    """Without an auxiliary input, with one for the backward cell, or with one that has weights."""
    form, options = rnn_form(c)
    batch, steps, width, time_major, merge = c.int(1, 3), c.int(1, 4), c.int(1, 20), c.chance(0.5), c.chance(0.5)
    merge &= form == "float" or not time_major  # LiteRT's hybrid kernel dies
    rows = (steps, batch) if time_major else (batch, steps)
    kind = c.pick(["none", "none", "weights"] + (["other input"] if form == "float" else []))  # dies in LiteRT
    forward, backward = c.int(1, 8), c.int(1, 8)
    inputs = [c.input((*rows, width), np.float32), *rnn_cell(c, batch, width, forward, form)]
    inputs += rnn_cell(c, batch, width, backward, form)
    inputs += [None if kind == "none" else c.input((*rows, width), np.float32)]
    inputs += [weights_of(c, (n, width), form) if kind == "weights" else None for n in (forward, backward)]
    shapes = [(*rows, forward + backward)] if merge else [(*rows, forward), (*rows, backward)]
    return c.g.op("BIDIRECTIONAL_SEQUENCE_RNN", inputs, shapes, "BidirectionalSequenceRNNOptions", 3,
                  timeMajor=time_major, mergeOutputs=merge, **options)


def svdf(c):
    form, options = rnn_form(c)
    batch, width, rank, outputs, memory = c.int(1, 3), c.int(1, 20), c.int(1, 3), c.int(1, 8), c.int(1, 9)
    filters = rank * outputs
    inputs = [c.input((batch, width), np.float32), weights_of(c, (filters, width), form),
              weights_of(c, (filters, memory), form)]
    inputs += [c.g.constant(c.values((outputs,), np.float32)) if c.chance(0.7) else None]
    inputs += [c.g.variable((batch, memory * filters))]
    return c.g.op("SVDF", inputs, (batch, outputs), "SVDFOptions", 4, rank=rank, **options)


def svdf_integer(c):
    batch, width, rank, outputs, memory = c.int(1, 3), c.int(1, 20), c.int(1, 3), c.int(1, 8), c.int(1, 9)
    filters = rank * outputs
    x = c.input((batch, width), np.int8, scale=c.scale(), zero_point=c.int(-50, 50))
    features = c.g.constant(c.values((filters, width), np.int8, -127, 127), 1 / 128, 0)
    state = c.g.variable((batch, memory * filters), np.int16, x.scale / 128 * width * 8, 0)
    time = c.g.constant(c.values((filters, memory), np.int16, -3000, 3000), 1 / 4096, 0)
    bias = c.g.constant(c.values((outputs,), np.int32, -9000, 9000), state.scale / 4096) if c.chance(0.7) else None
    scale = state.scale / 4096 * memory * rank * 4e4
    return c.g.op("SVDF", [x, features, time, bias, state], (batch, outputs), "SVDFOptions", 3, rank=rank,
                  fusedActivationFunction=1, dtype=np.int8, scale=scale, zero_point=c.int(-100, 50))


CASES = {
    "BIDIRECTIONAL_SEQUENCE_RNN": bidirectional_rnn,
    "RNN": rnn,
    "SVDF": svdf,
    "SVDF of integers": svdf_integer,
    "UNIDIRECTIONAL_SEQUENCE_RNN": sequence_rnn,
    "EMBEDDING_LOOKUP_SPARSE": embedding_lookup_sparse,
    "HASHTABLE_LOOKUP": hashtable_lookup,
    "NON_MAX_SUPPRESSION": non_max_suppression,
    "RFFT2D": rfft2d,
    "BUCKETIZE": bucketize,
    "DILATE": dilate,
    "FAKE_QUANT": fake_quant,
    "LOCAL_RESPONSE_NORMALIZATION": local_response_normalization,
    "MATRIX_DIAG": matrix_diag,
    "MATRIX_SET_DIAG": matrix_set_diag,
    "REDUCE_WINDOW": reduce_window,
    "SEGMENT_SUM": segment_sum,
    "SPARSE_TO_DENSE": sparse_to_dense,
    "UNIQUE": unique,
    **{"UNSORTED_SEGMENT_" + name: unsorted_segment(name) for name in ("MAX", "MIN", "PROD", "SUM")},
    "ADD_N": add_n,
    "ATAN2": atan2,
    "BITCAST": bitcast,
    "BITWISE_XOR": bitwise_xor,
    "BROADCAST_ARGS": broadcast_args,
    "COMPLEX_ABS": complex_part("COMPLEX_ABS"),
    "DIV of int16 with zero points": div_int16,
    "DYNAMIC_UPDATE_SLICE": dynamic_update_slice,
    "IMAG": complex_part("IMAG"),
    "MUL of int16 to 8 bits": mul_narrowing,
    "PAD with a value": pad_with_value,
    "REAL": complex_part("REAL"),
    "RIGHT_SHIFT": right_shift,
    "RIGHT_SHIFT by little": right_shift_by_little,
    "STABLEHLO_SHIFT_LEFT": stablehlo_shift_left,
    "SUM of quantized values": sum_quantized,
    **{"STABLEHLO_" + name: stablehlo_elementwise(name) for name in ("ADD", "AND", "MAXIMUM", "MINIMUM", "MULTIPLY")},
}
