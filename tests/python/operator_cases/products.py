"""Sums of products in every type: convolutions, dense layers, batched products."""

import numpy as np

from operator_cases.typed import apply, given, quantization, tensor_type, zero_point

# Input, weights and bias; what the result is of, where it is not of the input's type.
CONVOLVED = """float32 float32 float32; int8 int8 int32; int8 int4 int32; uint8 uint8 int32; int16 int8 int64;
int16 int8 int32; int16 int4 int64; int16 int4 int32; float32 int8 float32; float32 int4 float32"""
# LiteRT reads packed weights beside int16 as if they were bytes, and refuses other biases there.
DEPTHWISE = """float32 float32 float32; int8 int8 int32; int8 int4 int32; uint8 uint8 int32; int16 int8 int64;
float32 int8 float32"""
DENSE = (
    CONVOLVED
    + """; int16 int16 int64; int16 int16 int32; uint8 uint8 int32 int16; int8 int2 int32;
int16 int2 int64; int16 int2 int32; float32 int2 float32"""
)
MULTIPLIED = "float32 float32; int8 int8; int8 int8 int32; int16 int16; int16 int8; float32 int8"


def one_of(c, rows):
    return c.pick([row.split() for row in rows.split(";")])


def operand(c, shape, kind):
    """The input; its rows are quantized when it runs where the weights alone are integers."""
    return given(c, shape, kind, -3, 3, **quantization(c, kind))


def weights_of(c, shape, kind, of, axis=0):
    """Of one scale or one for each output; uint8 of one scale and a zero point."""
    if kind == "float32":
        return c.g.constant(c.values(shape, np.float32, -1, 1))
    if kind == "uint8":
        return c.g.constant(c.values(shape, np.uint8), c.scale(), c.int(90, 160))
    many = (c.chance(0.5) or of == "channels") and not (of == "int16" and kind == "int16") and axis is not None
    scales = np.array([c.scale() / 8 for _ in range(shape[axis or 0] if many else 1)], np.float32)
    if kind == "int4":
        return c.g.constant_int4(c.rng.integers(-7, 8, shape).astype(np.int8), scales * 16, axis or 0)
    if kind == "int2":
        return c.g.constant_int4(c.rng.integers(-2, 2, shape).astype(np.int8), scales * 64, axis or 0, 2)
    limit = 127 if kind == "int8" else 3000
    return c.g.constant(c.rng.integers(-limit, limit + 1, shape).astype(kind), scales, 0, axis or 0)


def bias_of(c, units, kind, x, w, scaled=True):
    """Converters give a scale of 0 where they know none; LiteRT takes it as long as an output's step is much larger."""
    if kind == "float32":
        return c.g.constant(c.values((units,), np.float32, -1, 1))
    tensor = c.g.tensors[w.index].quantization.scale
    scales = np.array([np.float32(x.scale) * np.float32(s) for s in tensor], np.float32)
    if not scaled:
        scales[:] = 0
    return c.g.constant(c.rng.integers(-9999, 10000, units).astype(kind), scales, 0)


def result_of(c, kind, x, w, depth):
    """As large as sums of so many products are."""
    if kind == "float32":
        return {}
    largest = max(c.g.tensors[w.index].quantization.scale)
    step = {"int16": 2**12, "int8": 32, "uint8": 32}[kind]
    return {"scale": float(np.float32(x.scale * 80 * largest * 80 * np.sqrt(depth) / step)), "zero_point": zero_point(c, kind)}


def bias_type(kind):
    """Which kind of bias LiteRT reads behind int16 values; it takes int64 where the field says nothing."""
    return {"quantizedBiasType": tensor_type(kind)} if kind != "float32" else {}


def tolerate(c, x, w):
    c.exact = False
    c.tolerance = 1e-5 if w == "float32" else 0.03 if x == "float32" else c.tolerance


def conv_2d(c):
    x_kind, w_kind, b_kind = one_of(c, CONVOLVED)
    tolerate(c, x_kind, w_kind)
    n, h, w, inputs, outputs, k = c.int(1, 2), c.int(3, 9), c.int(3, 9), c.int(1, 17), c.int(1, 17), c.int(1, 3)
    if w_kind == "int4":
        inputs, outputs = 2 * inputs, 2 * outputs
    padding, stride = c.int(0, 1), c.int(1, 2)
    out = [-(-d // stride) if padding == 0 else (d - k) // stride + 1 for d in (h, w)]
    x = operand(c, (n, h, w, inputs), x_kind)
    filters = weights_of(c, (outputs, k, k, inputs), w_kind, x_kind)
    scaled = x_kind not in ("int8", "uint8") or c.chance(0.9)
    bias = bias_of(c, outputs, b_kind, x, filters, scaled)
    return apply(
        c,
        "CONV_2D",
        [x, filters, bias],
        (n, *out, outputs),
        x_kind,
        "Conv2DOptions",
        8 if b_kind != "float32" else 1,
        result_of(c, x_kind, x, filters, k * k * inputs),
        padding=padding,
        strideW=stride,
        strideH=stride,
        fusedActivationFunction=c.pick([0, 1, 3]),
        **bias_type(b_kind),
    )


def depthwise_conv_2d(c):
    x_kind, w_kind, b_kind = one_of(c, DEPTHWISE)
    tolerate(c, x_kind, w_kind)
    n, h, w, inputs, factor, k = c.int(1, 2), c.int(3, 9), c.int(3, 9), 2 * c.int(1, 9), c.int(1, 2), c.int(1, 3)
    padding, stride, outputs = c.int(0, 1), c.int(1, 2), inputs * factor
    out = [-(-d // stride) if padding == 0 else (d - k) // stride + 1 for d in (h, w)]
    x = operand(c, (n, h, w, inputs), x_kind)
    # LiteRT wants a scale for each channel beside float32 values.
    filters = weights_of(c, (1, k, k, outputs), w_kind, "channels" if x_kind == "float32" else x_kind, 3)
    bias = bias_of(c, outputs, b_kind, x, filters)
    return apply(
        c,
        "DEPTHWISE_CONV_2D",
        [x, filters, bias],
        (n, *out, outputs),
        x_kind,
        "DepthwiseConv2DOptions",
        4 if b_kind != "float32" else 1,
        result_of(c, x_kind, x, filters, k * k),
        padding=padding,
        strideW=stride,
        strideH=stride,
        depthMultiplier=factor,
        fusedActivationFunction=c.pick([0, 1, 3]),
    )


def fully_connected(c):
    x_kind, w_kind, b_kind, *other = one_of(c, DENSE)
    tolerate(c, x_kind, w_kind)
    rows, depth, units = c.int(1, 9), 2 * c.int(1, 40), c.int(1, 33)
    x = operand(c, (rows, depth), x_kind)
    w = weights_of(c, (units, depth), w_kind, x_kind)
    bias = bias_of(c, units, b_kind, x, w)
    kind = other[0] if other else x_kind
    result = result_of(c, kind, x, w, depth)
    if kind == "int16":
        result["zero_point"] = 0
    return apply(
        c,
        "FULLY_CONNECTED",
        [x, w, bias],
        (rows, units),
        kind,
        "FullyConnectedOptions",
        2 if other else 11 if b_kind != "float32" else 1,
        result,
        fusedActivationFunction=c.pick([0, 0, 1, 3]),
        **bias_type(b_kind),
    )


def shuffled_fully_connected(c):
    """By weights in blocks of 4 x 16; zero points are 128, whatever the model says. The second output is the input, shuffled."""
    rows, depth, units = c.pick([1, 4]), 16 * c.int(1, 5), 4 * c.int(1, 5)
    x = c.input((rows, depth), np.uint8, scale=c.scale(), zero_point=c.int(100, 150))
    w = weights_of(c, (units, depth), "uint8", "uint8")
    result = result_of(c, "int16", x, w, depth) | {"zero_point": 0}
    y, shuffled = c.g.op(
        "FULLY_CONNECTED",
        [x, w, bias_of(c, units, "int32", x, w)],
        [(rows, units), (rows, depth)],
        "FullyConnectedOptions",
        2,
        np.int16,
        **result,
        weightsFormat=1,
        fusedActivationFunction=c.pick([0, 0, 1, 3]),
    )
    c.g.tensors[shuffled.index].type = tensor_type("uint8")
    return [y, shuffled]


def batch_matmul(c):
    x_kind, w_kind, *other = one_of(c, MULTIPLIED)
    tolerate(c, x_kind, w_kind)
    batch, rows, depth, units = c.shape(0, 2, 3), c.int(1, 9), c.int(1, 33), c.int(1, 17)
    adj_x, adj_y = c.chance(0.3), c.chance(0.3)
    hybrid = x_kind == "float32" != w_kind
    if hybrid:
        batch, adj_x = (c.int(1, 3),), False
    x = operand(c, (*batch, *((depth, rows) if adj_x else (rows, depth))), x_kind)
    shape = (*batch, *((units, depth) if adj_y else (depth, units)))
    if c.chance(0.5) or hybrid:
        y = (
            weights_of(c, shape, w_kind, x_kind, None)
            if w_kind != "int16"
            else c.g.constant(c.values(shape, np.int16, -9000, 9000), c.scale() / 256, 0)
        )
    else:
        y = operand(c, shape, w_kind)
        if w_kind == "int8" and x_kind == "int16":
            c.g.tensors[y.index].quantization.zeroPoint = [0]
    kind = other[0] if other else x_kind
    for value in (x, y) if kind == "int32" else ():  # whose zero points LiteRT does not heed there
        c.g.tensors[value.index].quantization.zeroPoint = [0] * len(c.g.tensors[value.index].quantization.scale)
    result = {} if kind in ("float32", "int32") else result_of(c, kind, x, y, depth)
    if kind == "int32":
        result = {
            "scale": float(np.float32(x.scale * y.scale if np.isscalar(y.scale) else x.scale * y.scale[0])),
            "zero_point": 0,
        }
    return apply(
        c,
        "BATCH_MATMUL",
        [x, y],
        (*batch, rows, units),
        kind,
        "BatchMatMulOptions",
        {"float32": 1, "int16": 3}.get(x_kind, 2),
        result,
        adjX=adj_x,
        adjY=adj_y,
    )


def transpose_conv(c):
    x_kind, w_kind, *bias = one_of(c, "int8 int8 int32; uint8 uint8 int32; int16 int8 int64; float32 int8")
    tolerate(c, x_kind, w_kind)
    n, h, w, inputs, outputs = c.int(1, 2), c.int(1, 5), c.int(1, 5), c.int(1, 8), c.int(1, 8)
    kernel, stride = c.int(1, 3), c.int(1, 2)
    shape = (n, h * stride, w * stride, outputs)
    x = operand(c, (n, h, w, inputs), x_kind)
    filters = weights_of(c, (outputs, kernel, kernel, inputs), w_kind, "channels" if x_kind == "float32" else x_kind)
    biases = [bias_of(c, outputs, bias[0], x, filters)] if bias and c.chance(0.5) else []
    return apply(
        c,
        "TRANSPOSE_CONV",
        [c.indices(shape), filters, x, *biases],
        shape,
        x_kind,
        "TransposeConvOptions",
        3 if biases else 2,
        result_of(c, x_kind, x, filters, kernel * kernel * inputs),
        padding=0,
        strideW=stride,
        strideH=stride,
    )


CASES = {
    "BATCH_MATMUL": batch_matmul,
    "CONV_2D": conv_2d,
    "DEPTHWISE_CONV_2D": depthwise_conv_2d,
    "FULLY_CONNECTED": fully_connected,
    "FULLY_CONNECTED, shuffled": shuffled_fully_connected,
    "TRANSPOSE_CONV by type": transpose_conv,
}
