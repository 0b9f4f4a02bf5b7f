"""The types that few models have, of operators that the other groups draw in those of most: as in families.py."""

import families
import graphs
import layers
import numpy as np
import products
import rare
from draw import BOOL, FLOAT, HALF, INT8, INT16, INT32, INT64, UINT8

DOUBLE, UINT16, UINT32, UINT64 = np.dtype("f8"), np.dtype("u2"), np.dtype("u4"), np.dtype("u8")
NUMBERS = [INT8, INT16, INT64, UINT8, UINT16, UINT32, UINT64, HALF, DOUBLE]
INTEGERS = [INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, UINT64]


def extreme(name, options):
    """With positions of int64."""

    def make(d, dtype):
        x = d.input(d.shape(), dtype)
        axis = d.pick([0, len(x.shape) - 1])
        fields = {"dtype": INT64, "outputType": graphs.TYPES[INT64]}
        return d.g.op(name, [x, d.ints(axis)], x.shape[:axis] + x.shape[axis + 1 :], options, 2, **fields)

    return make


def four_bits(make):
    """With weights of int4."""

    def make_packed(d, dtype):
        def weights(shape, _, axis=0):
            values = d.rng.integers(-7, 8, shape).astype(np.int8)
            return d.g.constant_int4(values, d.rng.uniform(0.1, 0.3, shape[axis]), axis)

        d.weights = weights
        return make(d, dtype)

    return make_packed


def prelu(d, dtype):
    x = d.input(d.image(), dtype)
    alpha = d.g.constant(d.rng.integers(0, 100, (1, 1, x.shape[3])).astype(np.int8), 0.004, 0)
    return d.g.op("PRELU", [x, alpha], x.shape)


def sums_of_products(d, dtype):
    """BATCH_MATMUL of bytes to int32."""
    batch, m, k, n = d.pick([1, 4]), d.size(1, 128), d.size(2, 256), d.size(1, 128)
    operands = [d.g.input(shape, dtype, 0.05, 0) for shape in ((batch, m, k), (batch, k, n))]
    y = d.g.op("BATCH_MATMUL", operands, (batch, m, n), "BatchMatMulOptions", 4, dtype=INT32)
    graphs.quantize(d.g.tensors[y.index], 0.0025, 0)
    return y


def shifted(d, dtype):
    shape = d.shape()
    return d.g.op("STABLEHLO_SHIFT_LEFT", [d.g.input(shape, dtype), d.g.input(shape, dtype)], shape)


def rows_of(d, dtype):
    """STABLEHLO_GATHER of rows, as jax.numpy.take has it."""
    rows, inner, count = d.size(2, 2000), d.size(1, 200), d.size(1, 200)
    x, places = d.input((rows, inner), dtype), d.g.constant(d.rng.integers(0, rows, (count, 1)).astype(np.int32))
    fields = {"offsetDims": [1], "collapsedSliceDims": [0], "startIndexMap": [0], "indexVectorDim": 1}
    fields |= {"sliceSizes": [1, inner], "indicesAreSorted": False}
    return d.g.op("STABLEHLO_GATHER", [x, places], (count, inner), "StablehloGatherOptions", **fields)


def scattered(d, dtype):
    """STABLEHLO_SCATTER of rows that are added."""
    rows, inner, count = d.size(2, 500), d.size(1, 200), d.size(1, 200)
    x, updates = d.input((rows, inner), dtype), d.input((count, inner), dtype)
    places = d.g.constant(d.rng.integers(0, rows, (count, 1)).astype(np.int32))
    other = graphs.Graph()
    pair = [other.input((), dtype), other.input((), dtype)]
    d.others = [(other, [other.op("STABLEHLO_ADD", pair, ())])]
    fields = {"updateWindowDims": [1], "insertedWindowDims": [0], "scatterDimsToOperandDims": [0]}
    fields |= {"indexVectorDim": 1, "updateComputationSubgraphIndex": 1}
    return d.g.op("STABLEHLO_SCATTER", [x, places, updates], x.shape, "StablehloScatterOptions", **fields)


def soft_boxes(d, dtype):
    count, most = d.size(10, 1000), d.size(1, 100)
    corner = d.rng.uniform(0, 4, (count, 2))
    sides = np.concatenate([corner, corner + d.rng.uniform(0.2, 1.2, (count, 2))], 1).astype(np.float32)
    numbers = [d.g.constant(np.array(most, np.int32))] + [d.g.constant(np.array(v, np.float32)) for v in (0.5, 0.1, 0.3)]
    operands = [d.g.constant(sides), d.input((count,), dtype), *numbers]
    outputs = d.g.op("NON_MAX_SUPPRESSION_V5", operands, [(most,), (most,), ()], "NonMaxSuppressionV5Options", dtype=INT32)
    d.g.tensors[outputs[1].index].type = graphs.TYPES[FLOAT]
    return outputs


def other_bits(d, dtype):
    x = d.g.input(d.shape(), dtype)
    return d.g.op("BITCAST", [x], x.shape, "BitcastOptions", dtype={4: INT32, 2: INT16}[dtype.itemsize])


def shuffled_weights(d, dtype):
    """FULLY_CONNECTED by weights in blocks of 4 x 16."""
    rows, depth, units = d.pick([1, 4]), 16 * d.size(1, 64), 4 * d.size(1, 256)
    weights = d.g.constant(d.rng.integers(0, 256, (units, depth)).astype(np.uint8), 0.01, 128)
    bias = d.g.constant(d.rng.integers(-1000, 1000, units).astype(np.int32), 0.0002, 0)
    fields = {"dtype": INT16, "scale": 0.002, "zero_point": 0, "weightsFormat": 1}
    operands, shapes = [d.g.input((rows, depth), dtype, 0.02, 128), weights, bias], [(rows, units), (rows, depth)]
    outputs = d.g.op("FULLY_CONNECTED", operands, shapes, "FullyConnectedOptions", 2, **fields)
    d.g.tensors[outputs[1].index].type = graphs.TYPES[UINT8]
    return outputs


def rare_types():
    yield "ABS", [INT32], families.unary("ABS", version=2)
    yield "NEG", [INT8, INT16, HALF], families.unary("NEG", version=2)
    yield "SIGN", [DOUBLE], families.unary("SIGN", version=2)
    for name in ("FLOOR", "ROUND", "LOGISTIC", "TANH", "SIN", "COS"):
        yield name, [HALF], families.unary(name, version=2)
    yield "GELU", [HALF], families.unary("GELU", "GeluOptions", 2)
    yield "SOFTMAX", [HALF], families.rows("SOFTMAX", "SoftmaxOptions", beta=1.0)
    for name, options in {"ADD": "AddOptions", "SUB": "SubOptions", "MUL": "MulOptions", "DIV": "DivOptions"}.items():
        yield name, [HALF] + ([INT8, INT16] if name == "DIV" else []), families.binary(name, options, 5)
    yield "MUL", [UINT32], families.binary("MUL", "MulOptions", 7)
    for name in ("MAXIMUM", "MINIMUM"):
        yield name, [HALF], families.binary(name, "MaximumMinimumOptions", 4)
    yield "SQUARED_DIFFERENCE", [HALF], families.binary("SQUARED_DIFFERENCE", version=2)
    yield "FLOOR_MOD", [INT64], families.binary("FLOOR_MOD", version=2)
    for name in ("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL"):
        yield name, [HALF], families.binary(name, version=4, result=BOOL)
    yield "ATAN2", [DOUBLE, HALF], families.atan2
    for name, options in (("ARG_MAX", "ArgMaxOptions"), ("ARG_MIN", "ArgMinOptions")):
        yield name, [FLOAT, INT8, UINT8, INT32, BOOL], extreme(name, options)
    for name in ("BITWISE_XOR", "RIGHT_SHIFT"):
        options = {"BITWISE_XOR": "BitwiseXorOptions", "RIGHT_SHIFT": "RightShiftOptions"}[name]
        yield name, [UINT8, INT16, UINT16, UINT32], families.bits(name, options)
    yield "REDUCE_PROD", [INT8, UINT8, INT16], families.reduce("REDUCE_PROD")
    yield "REDUCE_MAX", [BOOL], families.reduce("REDUCE_MAX")
    yield "RESIZE_NEAREST_NEIGHBOR", [HALF, INT32], families.resize("RESIZE_NEAREST_NEIGHBOR", "ResizeNearestNeighborOptions")
    for name, make in (("CONCATENATION", families.concatenation), ("GATHER", families.gather), ("UNPACK", families.unpack)):
        yield name, [HALF], make
    yield "GATHER_ND", [HALF, BOOL], families.gather_nd
    yield "PAD", [HALF, BOOL], families.pad("PAD")
    yield "REVERSE_V2", [INT8, HALF], families.reverse
    yield "SPLIT", [INT64], families.split
    yield "ONE_HOT", [INT8, UINT8, BOOL], families.one_hot
    yield "SPARSE_TO_DENSE", [INT64, INT8, UINT8], rare.sparse_to_dense
    yield "SCATTER_ND", [BOOL], families.scatter_nd
    yield "WHERE", [INT8, UINT8, INT64], rare.where
    yield "UNIQUE", [INT8, UINT8, INT16, INT64], rare.unique
    yield "RANGE", [INT64], rare.range_of
    yield "PRELU", [INT16], prelu
    yield "BATCH_MATMUL", [INT8], sums_of_products
    for name, make in (("CONV_2D", products.convolution()), ("DEPTHWISE_CONV_2D", products.depthwise)):
        yield name, [INT8, INT16], four_bits(make)
    yield "CONV_2D", [FLOAT], four_bits(layers.convolution(hybrid=True))
    yield "FULLY_CONNECTED", [INT16], four_bits(products.fully_connected)
    for name in ("ADD", "MULTIPLY", "MAXIMUM", "MINIMUM"):
        yield "STABLEHLO_" + name, NUMBERS, rare.stablehlo("STABLEHLO_" + name)
    yield "STABLEHLO_AND", [*INTEGERS, BOOL], rare.stablehlo("STABLEHLO_AND")
    yield "STABLEHLO_SHIFT_LEFT", [INT8, INT16, INT32], shifted
    yield "STABLEHLO_REDUCE_WINDOW", [DOUBLE, UINT8, INT16, INT64], rare.windows
    yield "STABLEHLO_GATHER", [FLOAT, INT8, INT32, INT64], rows_of
    yield "STABLEHLO_SCATTER", [FLOAT, INT8, INT32, INT64], scattered
    yield "NON_MAX_SUPPRESSION_V5", [FLOAT], soft_boxes
    yield "BITCAST", [FLOAT, HALF], other_bits
    yield "GELU", [HALF], families.unary("GELU", "GeluOptions", 2, approximate=True)
    yield "FULLY_CONNECTED", [UINT8], shuffled_weights
