"""Cases for the operators of docs/operators.md in their types: shapes that nets have, and seeded random ones."""

import cells
import custom
import graphs
import layers
import numpy as np
import rare
from case import Case
from cut import TYPES
from draw import BOOL, FLOAT, HALF, INT8, INT16, INT32, INT64, UINT8, Draw
from families import (
    SIGNED_UNIT,
    UNIT,
    add_n,
    atan2,
    batches,
    binary,
    bits,
    broadcast_to,
    choose,
    concatenation,
    conversion,
    cumsum,
    depth,
    dynamic_update_slice,
    embedding_lookup,
    extreme,
    fill,
    gather,
    gather_nd,
    local_response_normalization,
    matrix_diag,
    one_hot,
    pack,
    pad,
    pool,
    reduce,
    resize,
    reverse,
    reverse_sequence,
    rows,
    scatter_nd,
    segments,
    slice_,
    split,
    split_v,
    strided_slice,
    tile,
    top_k,
    transpose,
    unary,
    unpack,
)
from products import (
    batch_matmul,
    convolution,
    depthwise,
    dynamic_range,
    fed,
    fully_connected,
    prelu,
    transpose_conv,
)
from rare_types import rare_types

WIDTHS = [FLOAT, INT8, UINT8, INT16, INT32, INT64, BOOL, HALF, *(np.dtype(t) for t in ("f8", "u2", "u4", "u8"))]
REAL = [FLOAT, INT8, UINT8, INT16]
BYTES = [FLOAT, INT8, UINT8]
MOVED = [FLOAT, INT8, UINT8, INT16, INT32, INT64]
ARITHMETIC = {"ADD": "AddOptions", "SUB": "SubOptions", "MUL": "MulOptions"}
COMPARISONS = ["EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL"]
# Those that tables of 16-bit values compute too.
LOOKED_UP = {"ABS": [INT8, INT16], "NEG": [INT32, INT64], "EXP": [INT8, INT16], "LOG": [INT8, INT16]}
LOOKED_UP |= {"RSQRT": [INT8, INT16], "SQRT": [INT8, INT16], "SIGN": [INT32]}


def functions():
    for name in ("ABS", "NEG", "CEIL", "FLOOR", "ROUND", "SQRT", "RSQRT", "SQUARE", "EXP", "LOG", "SIN", "COS", "SIGN"):
        yield name, [FLOAT, *LOOKED_UP.get(name, [])], unary(name, version=2 if name in LOOKED_UP else 1)
    for name in ("RELU", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1", "HARD_SWISH", "ELU"):
        types = {"RELU": REAL, "RELU6": REAL, "ELU": [FLOAT, INT8]}.get(name, BYTES)
        yield name, types, unary(name, version=1 if name in ("HARD_SWISH", "RELU_0_TO_1", "ELU") else 2)
    yield "LOGISTIC", REAL, unary("LOGISTIC", version=3, output=UNIT)
    yield "TANH", REAL, unary("TANH", version=3, output=SIGNED_UNIT)
    yield "GELU", REAL, unary("GELU", "GeluOptions", 2)
    yield "GELU", [FLOAT], unary("GELU", "GeluOptions", 2, approximate=True)
    yield "LEAKY_RELU", REAL, unary("LEAKY_RELU", "LeakyReluOptions", 2, alpha=0.1)
    yield "PRELU", BYTES, prelu
    yield "LOGICAL_NOT", [BOOL], unary("LOGICAL_NOT")
    yield "ZEROS_LIKE", [FLOAT, INT32, INT64], unary("ZEROS_LIKE")
    yield "FAKE_QUANT", [FLOAT], unary("FAKE_QUANT", "FakeQuantOptions", min=-1.0, max=1.0, numBits=8)


def pairs():
    for name, options in ARITHMETIC.items():
        yield name, MOVED, binary(name, options, 2)
    yield "DIV", [FLOAT, INT32, UINT8], binary("DIV", "DivOptions", 2)
    for name in ("MAXIMUM", "MINIMUM"):
        yield name, MOVED, binary(name, "MaximumMinimumOptions", 2)
    for name in ("FLOOR_DIV", "FLOOR_MOD"):
        yield name, [FLOAT, INT8, INT16, INT32], binary(name, version=2)
    yield "SQUARED_DIFFERENCE", [FLOAT, INT8, INT32], binary("SQUARED_DIFFERENCE", version=2)
    yield "POW", [FLOAT, INT32], binary("POW")
    for name in COMPARISONS:
        yield name, MOVED, binary(name, version=2, result=BOOL)
    for name in ("LOGICAL_AND", "LOGICAL_OR"):
        yield name, [BOOL], binary(name)
    for name in ("SELECT", "SELECT_V2"):
        yield name, MOVED, choose(name)
    yield "BITWISE_XOR", [INT8, INT32], bits("BITWISE_XOR", "BitwiseXorOptions")
    yield "RIGHT_SHIFT", [INT8, INT32], bits("RIGHT_SHIFT", "RightShiftOptions")
    yield "ADD_N", [FLOAT, INT32], add_n
    yield "ATAN2", [FLOAT], atan2


def reductions():
    sums = {"SUM": REAL + [INT32, INT64], "MEAN": REAL + [INT32, INT64], "REDUCE_PROD": [FLOAT, INT32, INT64]}
    for name in ("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD"):
        yield name, sums.get(name, MOVED), reduce(name)
    for name in ("REDUCE_ANY", "REDUCE_ALL"):
        yield name, [BOOL], reduce(name, 1)
    for name in ("AVERAGE_POOL_2D", "MAX_POOL_2D"):
        yield name, REAL, pool(name)
    yield "L2_POOL_2D", [FLOAT], pool("L2_POOL_2D")
    for name, options in (("ARG_MAX", "ArgMaxOptions"), ("ARG_MIN", "ArgMinOptions")):
        yield name, BYTES + [INT32], extreme(name, options)
    yield "SOFTMAX", REAL, rows("SOFTMAX", "SoftmaxOptions", UNIT, 511, 2, beta=1.0)
    yield "LOG_SOFTMAX", BYTES, rows("LOG_SOFTMAX", None, {INT8: (16 / 256, 127), UINT8: (16 / 256, 255)}, 511, 2)
    yield "L2_NORMALIZATION", BYTES, rows("L2_NORMALIZATION", "L2NormOptions", SIGNED_UNIT, version=2)
    yield "LOCAL_RESPONSE_NORMALIZATION", [FLOAT], local_response_normalization
    yield "CUMSUM", [FLOAT, INT32, INT64], cumsum
    yield "TOPK_V2", [FLOAT, INT8, UINT8, INT16, INT32, INT64], top_k
    yield "SEGMENT_SUM", [FLOAT, INT32], segments("SEGMENT_SUM", "SegmentSumOptions")
    for name in ("Sum", "Max", "Min", "Prod"):
        yield (
            "UNSORTED_SEGMENT_" + name.upper(),
            [FLOAT, INT32],
            segments("UNSORTED_SEGMENT_" + name.upper(), f"UnsortedSegment{name}Options"),
        )


def conversions():
    for source in (INT8, UINT8, INT16, INT32, HALF):
        yield "DEQUANTIZE", [FLOAT], conversion("DEQUANTIZE", "DequantizeOptions", source, source == INT32, 2)
    quantized = {FLOAT: [INT8, UINT8, INT16], INT8: [INT8, UINT8, INT16], UINT8: [INT8, UINT8], INT16: [INT8, INT16, INT32]}
    quantized[INT32] = [INT8, INT16]
    for source, targets in quantized.items():
        yield "QUANTIZE", targets, conversion("QUANTIZE", "QuantizeOptions", source, 1.5, 2)
    for source in (FLOAT, INT32, INT64, UINT8, BOOL, INT8, INT16, HALF):
        yield "CAST", [t for t in (FLOAT, INT32, INT64, UINT8, BOOL, HALF) if t != source], conversion("CAST", None, source)


def movers():
    yield "TRANSPOSE", WIDTHS[:7], transpose
    yield "CONCATENATION", WIDTHS[:7], concatenation
    yield "PACK", MOVED, pack
    yield "UNPACK", [FLOAT, INT8, UINT8, INT16, INT32], unpack
    yield "SPLIT", [FLOAT, INT8, UINT8, INT16, INT32], split
    yield "SPLIT_V", [FLOAT, INT8, UINT8, INT16, INT32, INT64], split_v
    for name in ("PAD", "PADV2"):
        yield name, MOVED, pad(name)
    yield "MIRROR_PAD", [FLOAT, INT8, UINT8, INT32, INT64], pad("MIRROR_PAD")
    yield "TILE", [FLOAT, INT8, UINT8, INT32, INT64, BOOL], tile
    yield "BROADCAST_TO", WIDTHS[:7], broadcast_to
    yield "DEPTH_TO_SPACE", [FLOAT, INT8, UINT8, INT32, INT64], depth("DEPTH_TO_SPACE", "DepthToSpaceOptions")
    yield "SPACE_TO_DEPTH", [FLOAT, INT8, UINT8, INT32, INT64], depth("SPACE_TO_DEPTH", "SpaceToDepthOptions")
    for name in ("SPACE_TO_BATCH_ND", "BATCH_TO_SPACE_ND"):
        yield name, [FLOAT, INT8, UINT8, INT16, INT32, INT64], batches(name, None)
    yield "SLICE", WIDTHS[:7], slice_
    yield "STRIDED_SLICE", WIDTHS[:7], strided_slice
    yield "REVERSE_V2", [FLOAT, UINT8, INT16, INT32, INT64, BOOL], reverse
    yield "REVERSE_SEQUENCE", [FLOAT, UINT8, INT16, INT32, INT64], reverse_sequence
    yield "GATHER", WIDTHS[:7], gather
    yield "GATHER_ND", [FLOAT, INT8, UINT8, INT16, INT32, INT64], gather_nd
    yield "SCATTER_ND", [FLOAT, INT8, UINT8, INT32, INT64], scatter_nd
    yield "EMBEDDING_LOOKUP", [FLOAT], embedding_lookup
    yield "DYNAMIC_UPDATE_SLICE", [FLOAT, INT8, INT32, INT64], dynamic_update_slice
    yield "MATRIX_DIAG", MOVED, matrix_diag
    yield "FILL", [FLOAT, INT32, INT64, BOOL], fill
    yield "ONE_HOT", [FLOAT, INT32, INT64], one_hot
    yield "RESIZE_BILINEAR", REAL, resize("RESIZE_BILINEAR", "ResizeBilinearOptions")
    yield "RESIZE_NEAREST_NEIGHBOR", REAL, resize("RESIZE_NEAREST_NEIGHBOR", "ResizeNearestNeighborOptions")


def products():
    yield "CONV_2D", REAL, convolution()
    for channels in (1, 4, 8, 16, 32):
        yield "CONV_2D", [FLOAT, INT8], convolution(channels)
    yield "DEPTHWISE_CONV_2D", REAL, depthwise
    yield "FULLY_CONNECTED", REAL, fully_connected
    yield "FULLY_CONNECTED", [FLOAT], dynamic_range("FULLY_CONNECTED")
    yield "BATCH_MATMUL", [FLOAT, INT8, INT16], batch_matmul
    yield "TRANSPOSE_CONV", REAL, transpose_conv


def rare_operators():
    yield "CONV_3D", [FLOAT], rare.convolution_3d
    yield "CONV_3D_TRANSPOSE", [FLOAT], rare.transpose_conv_3d
    yield "WHERE", [BOOL, FLOAT, INT32], rare.where
    yield "UNIQUE", [FLOAT, INT32], rare.unique
    yield "RESHAPE", [FLOAT, INT8], rare.same_bytes("RESHAPE", "ReshapeOptions", rare.flat)
    yield "EXPAND_DIMS", [FLOAT], rare.same_bytes("EXPAND_DIMS", "ExpandDimsOptions", rare.one_more)
    yield "GATHER", MOVED, rare.gather_of_batches
    yield "SELECT_V2", MOVED, rare.choose_repeated
    yield "SPARSE_TO_DENSE", [FLOAT, INT32], rare.sparse_to_dense
    yield "DILATE", [FLOAT, INT8, INT32], rare.dilate
    yield "RFFT2D", [FLOAT], rare.rfft2d
    yield "BUCKETIZE", [FLOAT], rare.cumulative_buckets
    yield "MATRIX_SET_DIAG", MOVED, rare.matrix_set_diag
    yield "HASHTABLE_LOOKUP", [FLOAT, INT32], rare.hashtable_lookup
    yield "EMBEDDING_LOOKUP", [INT8], rare.embedding_of_bytes
    yield "NON_MAX_SUPPRESSION_V4", [FLOAT], rare.boxes
    yield "RANGE", [FLOAT, INT32], rare.range_of
    for name in ("ADD", "MULTIPLY", "MAXIMUM", "MINIMUM"):
        yield "STABLEHLO_" + name, [FLOAT, INT8, INT32], rare.stablehlo("STABLEHLO_" + name)
    yield "STABLEHLO_PAD", [FLOAT, INT8, INT32], rare.stablehlo_pad
    yield "STABLEHLO_REDUCE_WINDOW", [FLOAT, INT8, INT32], rare.windows
    for name in ("COMPLEX_ABS", "REAL", "IMAG"):
        yield name, [FLOAT], rare.complex_part(name)


def recurrent():
    for hybrid in (False, True):
        yield "LSTM", [FLOAT], cells.lstm(False, hybrid)
        yield "UNIDIRECTIONAL_SEQUENCE_LSTM", [FLOAT], cells.lstm(True, hybrid)
        yield "UNIDIRECTIONAL_SEQUENCE_LSTM", [FLOAT], cells.lstm(True, hybrid, whole=True)
        yield "RNN", [FLOAT], cells.rnn(False, hybrid)
        yield "UNIDIRECTIONAL_SEQUENCE_RNN", [FLOAT], cells.rnn(True, hybrid)
        yield "SVDF", [FLOAT], cells.svdf(hybrid)
    yield "LSTM", [FLOAT, UINT8], cells.basic_lstm
    for whole in (False, True):
        yield "UNIDIRECTIONAL_SEQUENCE_LSTM", [INT8], cells.lstm_of_bytes(whole)
    yield "SVDF", [INT8], cells.svdf_of_bytes
    yield "BIDIRECTIONAL_SEQUENCE_RNN", [FLOAT], cells.bidirectional_rnn
    yield "BIDIRECTIONAL_SEQUENCE_LSTM", [FLOAT], cells.bidirectional_lstm


def customs():
    for regular in (False, True):
        yield "TFLite_Detection_PostProcess", [FLOAT], custom.detection(regular)
    yield "AudioSpectrogram", [FLOAT], custom.spectrogram
    yield "Mfcc", [FLOAT], custom.mfcc
    yield "Convolution2DTransposeBias", [FLOAT], custom.transposed_convolution
    yield "MaxPoolingWithArgmax2D", [FLOAT], custom.pool_with_places
    yield "EMBEDDING_LOOKUP_SPARSE", [FLOAT], custom.embedding_lookup_sparse
    yield "LSH_PROJECTION", [FLOAT, INT32], custom.lsh_projection


def unusual_layers():
    yield "CONV_2D", [FLOAT, INT8], layers.convolution()
    yield "CONV_2D", [FLOAT, INT8], layers.convolution(grouped=True)
    yield "DEPTHWISE_CONV_2D", [FLOAT, INT8], layers.depthwise()
    yield "TRANSPOSE_CONV", [FLOAT, INT8], layers.transpose_conv()
    yield "FULLY_CONNECTED", [FLOAT, INT8], layers.dense()
    yield "BATCH_MATMUL", [FLOAT, INT8], layers.matrices
    yield "CONV_2D", [FLOAT], layers.convolution(hybrid=True)
    yield "DEPTHWISE_CONV_2D", [FLOAT], layers.depthwise(hybrid=True)
    yield "TRANSPOSE_CONV", [FLOAT], layers.transpose_conv(hybrid=True)
    yield "FULLY_CONNECTED", [FLOAT], layers.dense(hybrid=True)
    yield "FULLY_CONNECTED", [FLOAT], layers.dense(hybrid=True, bits=4)
    yield "FULLY_CONNECTED", [INT8], layers.dense(bits=4)
    yield "BATCH_MATMUL", [FLOAT], layers.matrices_of_bytes


def fed_layers():
    """Layers whose weights or biases a run gives."""
    plain = [("CONV_2D", convolution()), ("DEPTHWISE_CONV_2D", depthwise)]
    plain += [("FULLY_CONNECTED", fully_connected), ("TRANSPOSE_CONV", transpose_conv)]
    for what in (("weights",), ("bias",), ("weights", "bias")):
        for name, make in plain:
            if name != "TRANSPOSE_CONV" or what == ("weights",):
                yield name, REAL, fed(make, *what)
    yield "FULLY_CONNECTED", [INT16], fed(fully_connected, "weights", "wide weights")
    hybrid = [("CONV_2D", layers.convolution(hybrid=True)), ("DEPTHWISE_CONV_2D", layers.depthwise(hybrid=True))]
    hybrid += [("FULLY_CONNECTED", layers.dense(hybrid=True)), ("TRANSPOSE_CONV", layers.transpose_conv(hybrid=True))]
    for name, make in hybrid:
        yield name, [FLOAT], fed(make, "weights")
    yield "CONV_2D", [FLOAT, INT8], fed(layers.convolution(grouped=True), "weights")


GROUPS = (functions, pairs, reductions, conversions, movers, products, rare_operators, recurrent, unusual_layers)
GROUPS += (fed_layers, rare_types, customs)


def table():
    """(group, operator, types, function) of everything that is drawn."""
    for group in GROUPS:
        for name, types, make in group():
            yield group.__name__, name, types, make


def random_operators(seed, count, groups=()):
    """`count` cases for each line of the table and each of its types; the same for the same seed. `groups`: of these alone."""
    for place, (group, name, types, make) in enumerate(table()):
        for dtype in types if not groups or group in groups else ():
            for i in range(count):
                draw = Draw(np.random.default_rng([seed, place, WIDTHS.index(dtype), i]))
                output = make(draw, dtype)
                if output is None:
                    continue
                outputs = output if isinstance(output, list) else [output]
                text = describe(draw.g) + "".join(f" run-time {what}" for what in draw.fed)
                yield Case(name, text, draw.g.build(outputs, others=draw.others), integers=(1, 100))


def describe(graph):
    """Types and shapes of the operands, and the parameters."""
    operator = graph.operators[0]
    words = []
    for index in [*operator.inputs, -1, *operator.outputs[:1]]:
        tensor = graph.tensors[index]
        values = graph.buffers[tensor.buffer].data if tensor.buffer else None
        text = "->" if index < 0 else f"{TYPES[tensor.type]}:" + "x".join(map(str, tensor.shape))
        if index >= 0 and values is not None and tensor.type == graphs.TYPES[INT32] and len(values) <= 64:
            text = "[" + ",".join(map(str, np.frombuffer(values.tobytes(), np.int32))) + "]"
        words.append(text)
    fields = vars(operator.builtinOptions) if operator.builtinOptions else {}
    shown = {k: f"{len(v)} values" if isinstance(v, list) and len(v) > 8 else v for k, v in fields.items() if v}
    return " ".join(words + [f"{k}={v}" for k, v in shown.items() if k not in ("keepDims", "padding")])
