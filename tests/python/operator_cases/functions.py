"""Functions of one element or two, in every type that they take."""

import numpy as np

from operator_cases.typed import QUANTIZED, apply, given, quantization

# What LiteRT demands of the result's scale and zero point.
FIXED = {
    "LOGISTIC": {"int8": (1 / 256, -128), "uint8": (1 / 256, 0), "int16": (1 / 32768, 0)},
    "TANH": {"int8": (1 / 128, 0), "uint8": (1 / 128, 128), "int16": (1 / 32768, 0)},
}
UNARY = {
    "ABS": "float32 int32 int8 int16",
    "CEIL": "float32",
    "COS": "float32 float16",
    "ELU": "float32 int8",
    "EXP": "float32 int8 int16",
    "FLOOR": "float32 float16 bfloat16",
    "GELU": "float32 int8 uint8 int16 float16",
    "HARD_SWISH": "float32 int8 uint8",
    "LEAKY_RELU": "float32 int8 uint8 int16",
    "LOG": "float32 int8 int16",
    "LOGICAL_NOT": "bool",
    "LOGISTIC": "float32 int8 uint8 int16 float16 bfloat16",
    "NEG": "float32 int32 int64 int8 int16 float16 bfloat16",
    "RELU": "float32 int8 uint8 int16",
    "RELU6": "float32 int8 uint8 int16",
    "RELU_0_TO_1": "float32 int8 uint8",
    "RELU_N1_TO_1": "float32 int8 uint8",
    "ROUND": "float32 float16 bfloat16",
    "RSQRT": "float32 int8 int16",
    "SIGN": "float32 int32 float64",
    "SIN": "float32 float16",
    "SQRT": "float32 int8 int16",
    "SQUARE": "float32",
    "TANH": "float32 int8 uint8 int16 float16 bfloat16",
    "ZEROS_LIKE": "float32 int32 int64",
}
POSITIVE = ("LOG", "RSQRT", "SQRT")
KEEPS_SCALE = ("NEG",)
OF_ONE_VERSION = ("ELU", "HARD_SWISH", "NEG", "PRELU", "RELU_0_TO_1", "RELU_N1_TO_1")
BINARY = {
    "ADD": "float32 int32 int64 int8 uint8 int16 float16",
    "DIV": "float32 int32 int8 uint8",
    "FLOOR_DIV": "float32 int32 int16 int8",
    "FLOOR_MOD": "float32 int32 int64 int16 int8",
    "LOGICAL_AND": "bool",
    "LOGICAL_OR": "bool",
    "MAXIMUM": "float32 int32 int64 int8 uint8 int16 float16 bfloat16",
    "MINIMUM": "float32 int32 int64 int8 uint8 int16 float16 bfloat16",
    "MUL": "float32 int32 int64 int8 uint8 int16 uint32 float16 complex64",
    "POW": "float32 int32",
    "PRELU": "float32 int8 uint8",
    "SQUARED_DIFFERENCE": "float32 int32 int8",
    "SUB": "float32 int32 int64 int8 uint8 int16",
}
FUSED = {"ADD": "AddOptions", "DIV": "DivOptions", "MUL": "MulOptions", "SUB": "SubOptions"}
COMPARISONS = ("EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL", "NOT_EQUAL")
COMPARED = "float32 int32 int64 int16 int8 uint8 float16"


def unary(name):
    def case(c):
        c.exact, c.tolerance = False, 1e-5
        kind, shape = c.pick(UNARY[name].split()), c.shape(1, 4)
        c.tolerance = {"float16": 2e-3, "bfloat16": 1e-2}.get(kind, c.tolerance)
        fields, scales = {}, quantization(c, kind)
        result = dict(scales) if name in KEEPS_SCALE else quantization(c, kind)
        if kind in FIXED.get(name, ()):
            result = dict(zip(("scale", "zero_point"), FIXED[name][kind]))
            scales = {"scale": 2.0**-12, "zero_point": 0} if kind == "int16" else scales
        if name in POSITIVE and kind in QUANTIZED:
            scales["zero_point"] = np.iinfo(kind).min if kind == "int8" else 0
        if name == "LEAKY_RELU":
            fields = {"options": "LeakyReluOptions", "alpha": c.pick([0.1, 0.5, 1.5])}
        if name == "GELU":
            fields = {"options": "GeluOptions", "approximate": c.chance(0.5)}
        low = 0.2 if name in POSITIVE else -4
        x = given(c, shape, kind, low, 4, **scales)
        version = 2 if kind in QUANTIZED and name not in OF_ONE_VERSION else 1
        return apply(c, name, [x], shape, kind, version=version, quantized=result, **fields)

    return case


def shapes(c, rank=4):
    shape = c.shape(1, rank)
    other = c.pick([shape, shape, (), shape[1:], tuple(c.pick([1, d]) for d in shape)])
    return c.pick([(shape, other), (other, shape)]), shape


def binary(name):
    def case(c):
        c.exact, c.tolerance = False, 1e-5
        kind = c.pick(BINARY[name].split())
        c.tolerance = {"float16": 2e-3, "bfloat16": 1e-2}.get(kind, c.tolerance)
        (first, second), shape = shapes(c)
        if name in ("LOGICAL_AND", "LOGICAL_OR"):
            second = shape if first == shape and second == () else second
        if name == "PRELU":
            first, second = shape, (1,) * (len(shape) - 1) + shape[-1:]
        same = quantization(c, kind)
        keeps = name in ("MAXIMUM", "MINIMUM", "FLOOR_MOD", "FLOOR_DIV")
        scales = [same if keeps else quantization(c, kind) for _ in range(3)]
        if keeps and name.startswith("FLOOR"):
            scales = [{}] * 3
        divides = name in ("DIV", "FLOOR_DIV", "FLOOR_MOD")
        x = given(c, first, kind, 0 if name == "POW" else -4, 4, **scales[0])
        y = given(c, second, kind, 1 if divides or name == "POW" else -4, 5, **scales[1])
        fields = {"fusedActivationFunction": c.pick([0, 0, 1, 3])} if name in FUSED and kind != "complex64" else {}
        if fields and kind in ("int64", "uint32"):
            fields = {"fusedActivationFunction": 0}
        version = 2 if kind in QUANTIZED and name not in OF_ONE_VERSION else 1
        if name == "DIV" and kind in QUANTIZED:  # steps above 1/128 are shifts by more than 31 bits in LiteRT
            scales[2]["scale"] = scales[0]["scale"] / scales[1]["scale"] / 2 ** c.int(-2, 26)
        return apply(c, name, [x, y], shape, kind, FUSED.get(name), version, scales[2], **fields)

    return case


def comparison(name):
    def case(c):
        kinds = COMPARED + (" bool" if name in ("EQUAL", "NOT_EQUAL") else " bfloat16" if name in ("LESS", "GREATER") else "")
        kind = c.pick(kinds.split())
        (first, second), shape = shapes(c)
        scales = quantization(c, kind)
        x, y = (given(c, s, kind, -3, 3, **scales) for s in (first, second))
        return c.g.op(name, [x, y], shape, version=2 if kind in QUANTIZED else 1, dtype=np.bool_)

    return case


def prelu_int16(c):
    shape = c.shape(2, 4)
    x = given(c, shape, "int16", **quantization(c, "int16"))
    alpha = c.g.constant(c.values((1,) * (len(shape) - 1) + shape[-1:], np.int8), c.scale(), 0)
    return c.g.op("PRELU", [x, alpha], shape, dtype=np.int16, **quantization(c, "int16"))


def select(name):
    def case(c):
        kind, shape = c.pick("float32 bool int8 uint8 int16 int32 int64 uint32".split()), c.shape(1, 4)
        condition = shape if name == "SELECT" else c.pick([shape, shape[-1:], (), tuple(c.pick([1, d]) for d in shape)])
        other = shape if name == "SELECT" else c.pick([shape, shape[-1:], ()])
        options = "SelectOptions" if name == "SELECT" else "SelectV2Options"
        inputs = [given(c, s, k) for s, k in ((condition, "bool"), (shape, kind), (other, kind))]
        return apply(c, name, inputs, shape, kind, options)

    return case


def stablehlo_half(name):
    def case(c):
        shape = c.shape(0)
        return apply(c, "STABLEHLO_" + name, [given(c, shape, "float16") for _ in range(2)], shape, "float16")

    return case


CASES = {
    **{f"{name} by type": unary(name) for name in UNARY},
    **{f"{name} by type": binary(name) for name in BINARY},
    **{f"{name} by type": comparison(name) for name in COMPARISONS},
    "PRELU of int16": prelu_int16,
    "SELECT": select("SELECT"),
    "SELECT_V2": select("SELECT_V2"),
    **{f"STABLEHLO_{name} of float16": stablehlo_half(name) for name in ("ADD", "MAXIMUM", "MINIMUM", "MULTIPLY")},
}
