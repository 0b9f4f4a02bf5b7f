"""Cases that were cliffs once: shapes that nets have and random draws seldom meet. They are measured with every seed."""

import graphs
import numpy as np
from case import Case
from cells import rnn, svdf
from draw import BOOL, FLOAT, HALF, INT8, INT16, INT32, INT64, UINT8, Draw
from families import SIGNED_UNIT, UNIT
from products import SAME, output_of_sum
from rare import complex_part, stablehlo_pad, where


def _scaled(dtype, table):
    return {"dtype": dtype, "scale": table[dtype][0], "zero_point": table[dtype][1]} if dtype in table else {}


def pair(name, options, x_shape, y_shape, dtype=FLOAT):
    """The second operand repeats, be it by a last dimension of 1."""

    def make(d):
        x = d.input(x_shape, dtype)
        scale = {} if dtype == FLOAT else {"scale": x.scale * 2.1, "zero_point": x.zero_point}
        return d.g.op(name, [x, d.input(y_shape, dtype)], x_shape, options, 2, like=x, **scale)

    return make


def reduction(name, shape, axis, dtype):
    def make(d):
        rest = tuple(1 if i == axis else size for i, size in enumerate(shape))
        return d.g.op(name, [d.input(shape, dtype), d.ints(axis)], rest, "ReducerOptions", 2, keepDims=True)

    return make


def along_rows(name, options, shape, dtype, table, version=2, **fields):
    def make(d):
        return d.g.op(name, [d.input(shape, dtype)], shape, options, version, **_scaled(dtype, table), **fields)

    return make


def unfolded(shape, block, dtype):
    def make(d):
        n, h, w, c = shape
        output, x = (n, h * block, w * block, c // block**2), d.input(shape, dtype)
        return d.g.op("DEPTH_TO_SPACE", [x], output, "DepthToSpaceOptions", 1, like=x, blockSize=block)

    return make


def convolution(shape, kernel, out, dtype):
    def make(d):
        x = d.input(shape, dtype)
        weights = d.weights((out, kernel, kernel, shape[3]), dtype)
        fields = {"strideW": 1, "strideH": 1, "padding": SAME, "dilationWFactor": 1, "dilationHFactor": 1}
        fields |= output_of_sum(x, kernel * kernel * shape[3])
        operands = [x, weights, d.bias(out, x, weights)]
        return d.g.op("CONV_2D", operands, (*shape[:3], out), "Conv2DOptions", 3, **fields)

    return make


def depthwise(shape, kernel, times, dtype, weights_dtype=None):
    def make(d):
        x, out = d.input(shape, dtype), shape[3] * times
        weights = d.weights((1, kernel, kernel, out), weights_dtype or dtype, 3)
        fields = {"strideW": 1, "strideH": 1, "padding": SAME, "dilationWFactor": 1, "dilationHFactor": 1}
        fields |= output_of_sum(x, kernel * kernel) | {"depthMultiplier": times}
        operands, version = [x, weights, d.bias(out, x, weights)], 6 if weights_dtype else 3
        return d.g.op("DEPTHWISE_CONV_2D", operands, (*shape[:3], out), "DepthwiseConv2DOptions", version, **fields)

    return make


def matrices(batch, m, k, n, dtype, **adjoint):
    def make(d):
        x = d.input((batch, m, k), dtype)
        y = d.input((batch, n, k) if adjoint.get("adjY") else (batch, k, n), dtype)
        scale = {} if dtype == FLOAT else {"scale": 0.5, "zero_point": 0}
        return d.g.op("BATCH_MATMUL", [x, y], (batch, m, n), "BatchMatMulOptions", 2, **scale, **adjoint)

    return make


def moved(name, options, shape, parameter, whole, dtype, version=2):
    def make(d):
        return d.g.op(name, [d.input(shape, dtype), d.ints(*parameter)], whole, options, version)

    return make


def transpose(shape, order, dtype):
    return moved("TRANSPOSE", None, shape, order, tuple(shape[i] for i in order), dtype)


def tile(shape, times, dtype):
    return moved("TILE", "TileOptions", shape, times, tuple(np.multiply(shape, times).tolist()), dtype, 3)


def bilinear(shape, height, width, dtype):
    return moved("RESIZE_BILINEAR", "ResizeBilinearOptions", shape, (height, width), (shape[0], height, width, shape[3]), dtype)


def sums_before(shape, axis, dtype):
    def make(d):
        where = d.g.constant(np.array(axis, np.int32))
        return d.g.op("CUMSUM", [d.input(shape, dtype), where], shape, "CumsumOptions")

    return make


def joined(shape, parts, axis, dtype):
    def make(d):
        whole = shape[:axis] + (shape[axis] * parts,) + shape[axis + 1 :]
        operands = [d.input(shape, dtype) for _ in range(parts)]
        return d.g.op("CONCATENATION", operands, whole, "ConcatenationOptions", axis=axis)

    return make


def least_of_rows(shape):
    def make(d):
        operands = [d.input(shape, FLOAT), d.ints(len(shape) - 1)]
        return d.g.op("ARG_MIN", operands, shape[:-1], "ArgMinOptions", 2, dtype=INT32, outputType=graphs.TYPES[INT32])

    return make


def second_of(shape, other, dtype):
    """SELECT_V2 whose second value repeats."""

    def make(d):
        operands = [d.input(shape, BOOL), d.input(shape, dtype), d.input(other, dtype)]
        return d.g.op("SELECT_V2", operands, shape, like=operands[1])

    return make


def compared(name, x_shape, y_shape, dtype):
    def make(d):
        return d.g.op(name, [d.input(x_shape, dtype), d.input(y_shape, dtype)], x_shape, version=2, dtype=BOOL)

    return make


def volume(shape, kernel, out):
    def make(d):
        x, weights = d.input(shape, FLOAT), d.weights((*[kernel] * 3, shape[4], out), FLOAT)
        fields = {"strideD": 1, "strideW": 1, "strideH": 1, "padding": SAME}
        fields |= {"dilationDFactor": 1, "dilationWFactor": 1, "dilationHFactor": 1}
        operands = [x, weights, d.bias(out, x, weights)]
        return d.g.op("CONV_3D", operands, (*shape[:4], out), "Conv3DOptions", **fields)

    return make


def raised(shape, kernel, stride, out):
    """TRANSPOSE_CONV with dynamic range."""

    def make(d):
        x, weights = d.input(shape, FLOAT), d.weights((out, kernel, kernel, shape[3]), INT8)
        whole = (shape[0], shape[1] * stride, shape[2] * stride, out)
        fields = {"strideW": stride, "strideH": stride, "padding": SAME}
        return d.g.op("TRANSPOSE_CONV", [d.ints(*whole), weights, x], whole, "TransposeConvOptions", 2, like=x, **fields)

    return make


def raised_line(length, depth, kernel, stride, out):
    """TRANSPOSE_CONV along a column."""

    def make(d):
        x, weights = d.input((1, length, 1, depth), FLOAT), d.weights((out, kernel, 1, depth), FLOAT)
        whole = (1, length * stride, 1, out)
        fields = {"strideW": 1, "strideH": stride, "padding": SAME}
        return d.g.op("TRANSPOSE_CONV", [d.ints(*whole), weights, x], whole, "TransposeConvOptions", like=x, **fields)

    return make


def stablehlo(name, shape, dtype):
    return lambda d: d.g.op(name, [d.input(shape, dtype), d.input(shape, dtype)], shape)


def unpaired_sum(name, dtype, x_scale, y_scale):
    """Bytes whose scales no pair of floats rounds alike."""

    def make(d):
        zero = 3 if dtype == INT8 else 120
        x, y = (d.g.input((1, 56, 56, 24), dtype, scale, zero) for scale in (x_scale, y_scale))
        options = name.capitalize() + "Options"
        return d.g.op(name, [x, y], x.shape, options, 2, like=x, scale=float(np.float32(x_scale)) * 2.1, zero_point=zero)

    return make


def plain(name, shape, options=None):
    return lambda d: d.g.op(name, [d.input(shape, FLOAT)], shape, options)


def counted(count):
    """RANGE from a value that a run gives."""

    def make(d):
        start, limit, step = d.input((), INT32), *(d.g.constant(np.array(v, np.int32)) for v in (count, 1))
        y = d.g.op("RANGE", [start, limit, step], (1,), "RangeOptions", dtype=INT32)
        d.g.tensors[y.index].shapeSignature = [-1]
        return y

    return make


def raised_volume(shape, kernel, stride, out):
    def make(d):
        whole = (shape[0], *(size * stride for size in shape[1:4]), out)
        operands = [d.ints(*whole), d.weights((*[kernel] * 3, out, shape[4]), FLOAT), d.input(shape, FLOAT)]
        fields = {"strideD": stride, "strideW": stride, "strideH": stride, "padding": SAME}
        fields |= {"dilationDFactor": 1, "dilationWFactor": 1, "dilationHFactor": 1}
        return d.g.op("CONV_3D_TRANSPOSE", operands, whole, "Conv3DOptions", like=operands[2], **fields)

    return make


def buckets(shape, count):
    def make(d):
        bounds = np.sort(d.rng.uniform(-1, 1, count)).astype(np.float32).tolist()
        return d.g.op("BUCKETIZE", [d.input(shape, FLOAT)], shape, "BucketizeOptions", dtype=INT32, boundaries=bounds)

    return make


def truth_of_halves(shape):
    return lambda d: d.g.op("CAST", [d.g.input(shape, HALF)], shape, "CastOptions", dtype=BOOL)


def spectrum(n, height, width):
    def make(d):
        operands, whole = [d.input((n, height, width), FLOAT), d.ints(height, width)], (n, height, width // 2 + 1)
        return d.g.op("RFFT2D", operands, whole, "Rfft2dOptions", dtype=np.dtype("c8"))

    return make


def angle(shape):
    return lambda d: d.g.op("ATAN2", [d.input(shape, FLOAT), d.input(shape, FLOAT)], shape, "ATan2Options")


def table():
    """(operator, function) of each case."""
    # The steps of a group normalization as PyTorch's converter writes it, on images and behind a layer.
    for group in ((16, 4, 32, 1), (1, 8, 4, 784)):
        for name in ("ADD", "SUB", "MUL"):
            options = name.capitalize() + "Options"
            yield name, pair(name, options, group, (*group[:2], 1, 1))
        yield "SQUARED_DIFFERENCE", pair("SQUARED_DIFFERENCE", None, group, (*group[:2], 1, 1))
    yield "MUL", pair("MUL", "MulOptions", (1, 4, 32, 1), (1, 4, 32, 1))
    yield "ADD", pair("ADD", "AddOptions", (64, 64, 1), (64, 1, 1), INT8)
    yield "ADD", pair("ADD", "AddOptions", (127, 4, 8), (127, 1, 8), UINT8)
    yield "SUB", pair("SUB", "SubOptions", (198, 7, 3), (1, 7, 1), UINT8)
    for name in ("REDUCE_MAX", "REDUCE_MIN", "SUM", "MEAN"):
        for dtype in (FLOAT, INT8, INT32) if name in ("SUM", "MEAN") else (FLOAT, INT8, UINT8, INT16, INT64):
            yield name, reduction(name, (1, 56, 56, 24), 0, dtype)
            yield name, reduction(name, (128, 128, 1), 2, dtype)
    yield "SOFTMAX", along_rows("SOFTMAX", "SoftmaxOptions", (1, 64, 64, 1), UINT8, UNIT, beta=1.0)
    yield "SOFTMAX", along_rows("SOFTMAX", "SoftmaxOptions", (8400, 2), INT8, UNIT, beta=1.0)
    yield "SOFTMAX", along_rows("SOFTMAX", "SoftmaxOptions", (8400, 16), HALF, UNIT, beta=1.0)
    yield "LOG_SOFTMAX", along_rows("LOG_SOFTMAX", None, (128, 128, 1), UINT8, {UINT8: (16 / 256, 255)})
    yield "L2_NORMALIZATION", along_rows("L2_NORMALIZATION", "L2NormOptions", (1, 64, 64, 1), INT8, SIGNED_UNIT)
    for out in (4, 16, 64):
        yield "CONV_2D", convolution((1, 64, 64, 3), 1, out, UINT8)
    for dtype in (UINT8, INT8):
        yield "DEPTHWISE_CONV_2D", depthwise((1, 64, 64, 1), 3, 8, dtype)
        yield "DEPTHWISE_CONV_2D", depthwise((1, 128, 128, 1), 5, 8, dtype)
    for shape, out in (((1, 61, 60, 15), 15), ((1, 25, 28, 8), 8), ((1, 27, 27, 9), 6)):
        yield "CONV_2D", convolution(shape, 3, out, FLOAT)
    yield "BATCH_MATMUL", matrices(12, 15, 2, 2, FLOAT, adjY=True)
    yield "BATCH_MATMUL", matrices(12, 17, 12, 2, INT8)
    for n in (16, 197):
        yield "BATCH_MATMUL", matrices(12, 1, 64, n, INT16, adjY=True)
        yield "BATCH_MATMUL", matrices(12, 1, 64, n, INT16)
    yield "BATCH_MATMUL", matrices(12, 80, 12, 1, INT16)
    yield "ARG_MIN", least_of_rows((1, 160, 230, 14))
    yield "ATAN2", angle((1, 56, 56, 24))
    yield "ATAN2", angle((7,))
    yield "FLOOR_MOD", pair("FLOOR_MOD", None, (12, 128, 128), (1, 1, 128))
    for shape, times in (((1, 128, 128, 1), (1, 1, 1, 3)), ((2000, 2), (1, 2)), ((1, 20, 20, 3), (1, 2, 2, 1))):
        for dtype in (FLOAT, INT8):
            yield "TILE", tile(shape, times, dtype)
    yield "TILE", tile((1, 45, 44, 256), (3, 2, 3, 2), INT8)
    yield "TILE", tile((1, 36, 35, 143), (2, 3, 2, 2), FLOAT)
    orders = [((64, 64, 64), (1, 2, 0)), ((64, 64, 64), (2, 1, 0)), ((1, 20, 20, 255), (0, 3, 1, 2))]
    for shape, order in [*orders, ((1, 56, 56, 24), (3, 1, 2, 0))]:
        for dtype in (FLOAT, INT8, INT16):
            yield "TRANSPOSE", transpose(shape, order, dtype)
    for side in (64, 224):
        yield "TRANSPOSE", transpose((side, side, 3), (1, 0, 2), INT8)
    yield "CUMSUM", sums_before((10, 187, 4, 8), 2, FLOAT)
    for shape, axis in (((2000, 2), 1), ((2000, 2), 0), ((12, 128, 128), 1), ((1, 1000), 1)):
        for dtype in (FLOAT, INT32, INT64):
            yield "CUMSUM", sums_before(shape, axis, dtype)
    for shape, height, width in (((1, 8, 8, 3), 16, 16), ((1, 7, 7, 16), 14, 14), ((1, 7, 7, 960), 3, 3)):
        for dtype in (FLOAT, INT8, UINT8):
            yield "RESIZE_BILINEAR", bilinear(shape, height, width, dtype)
    yield "SELECT_V2", second_of((1, 8400, 4), (1, 1, 4), INT64)
    yield "NOT_EQUAL", compared("NOT_EQUAL", (1, 158, 158, 6), (1, 158, 158, 1), FLOAT)
    yield "MINIMUM", pair("MINIMUM", "MaximumMinimumOptions", (10, 10, 20, 12, 13), (1, 10, 1, 1, 13))
    yield "CONV_3D", volume((1, 8, 28, 28, 16), 3, 32)
    yield "CONV_3D", volume((2, 13, 15, 15, 4), 1, 115)
    yield "TRANSPOSE_CONV", raised((1, 22, 22, 238), 4, 4, 33)
    yield "TRANSPOSE_CONV", raised_line(80, 203, 3, 2, 3)
    yield "TRANSPOSE_CONV", raised_line(999, 128, 16, 8, 1)  # a decoder of sound
    for dtype in (BOOL, FLOAT, INT32):
        for shape in ((1, 40, 39, 28), (83, 54, 1), (8400, 16)):
            yield "WHERE", lambda d, dtype=dtype, shape=shape: where(d, dtype, shape)
    for approximate in (False, True):
        yield "GELU", along_rows("GELU", "GeluOptions", (1, 197, 192), HALF, {}, 3, approximate=approximate)
    for block in (2, 3):
        yield "DEPTH_TO_SPACE", unfolded((1, 43, 43, block * block), block, UINT8)
    for hybrid in (False, True):
        yield "UNIDIRECTIONAL_SEQUENCE_RNN", lambda d, hybrid=hybrid: rnn(True, hybrid)(d, FLOAT)
        yield "SVDF", lambda d, hybrid=hybrid: svdf(hybrid)(d, FLOAT)
    for name in ("REAL", "IMAG"):
        yield name, lambda d, name=name: complex_part(name)(d, FLOAT)
    for name, shape in (("STABLEHLO_ADD", (66, 2, 2, 6, 8)), ("STABLEHLO_MULTIPLY", (1, 112, 112, 16))):
        for dtype in (FLOAT, INT8, INT32):
            yield name, stablehlo(name, shape, dtype)
    for dtype in (FLOAT, INT8, INT32):
        yield "STABLEHLO_PAD", lambda d, dtype=dtype: stablehlo_pad(d, dtype)
    yield "ADD", unpaired_sum("ADD", INT8, 0.06383153051137924, 0.04268733784556389)  # ten pairs are wrong
    yield "SUB", unpaired_sum("SUB", UINT8, 0.060917142778635025, 0.04631495103240013)
    for name in ("SIN", "COS"):
        yield name, plain(name, (1, 64, 64, 3))
    yield "RANGE", counted(207)
    for shape, kernel, stride in (((1, 4, 12, 12, 64), 3, 2), ((1, 8, 16, 16, 32), 2, 2)):
        yield "CONV_3D_TRANSPOSE", raised_volume(shape, kernel, stride, 1)
    for times in (2, 3):
        yield "DEPTHWISE_CONV_2D", depthwise((1, 77, 77, 60), 1, times, FLOAT, INT8)
    yield "BUCKETIZE", buckets((4000,), 300)
    yield "CAST", truth_of_halves((3000,))
    yield "REDUCE_MIN", reduction("REDUCE_MIN", (1, 8400, 4), 2, INT16)
    yield "SUM", reduction("SUM", (2000, 2), 1, INT32)
    yield "REDUCE_MAX", reduction("REDUCE_MAX", (1, 112, 112, 16), 2, INT8)
    yield "RFFT2D", spectrum(7, 16, 64)
    for shape, axis in (((1, 8400, 4), 2), ((1, 400, 1), 2), ((7,), 0), ((12, 128, 128), 0)):
        yield "CONCATENATION", joined(shape, 2, axis, INT64)


def found_operators(describe):
    for place, (name, make) in enumerate(table()):
        draw = Draw(np.random.default_rng([0, place]))
        output = make(draw)
        yield Case(name, describe(draw.g), draw.g.build([output]), integers=(1, 100))
