"""Operators that compute each element from those at its place."""

import numpy as np

from operator_cases.case import INTEGERS
from operator_cases.typed import apply, given


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
    kind, shape = c.pick("float16 float32 float64 bfloat16".split()), c.shape(0)
    return apply(c, "ATAN2", [given(c, shape, kind), given(c, shape, kind)], shape, kind, "ATan2Options")


def add_n(c):
    dtype, shape = c.pick([np.float32, np.int32]), c.shape(extent=12)
    return c.g.op("ADD_N", [c.input(shape, dtype) for _ in range(c.int(2, 6))], shape, "AddNOptions")


def mul_narrowing(c):
    dtype, shape = c.pick([np.int8, np.uint8]), c.shape(1, 4)
    x, y = (c.input(shape, np.int16, scale=1 / 32768) for _ in range(2))
    return c.g.op(
        "MUL",
        [x, y],
        shape,
        "MulOptions",
        2,
        dtype=dtype,
        scale=1 / 128,
        zero_point=0 if dtype == np.int8 else 128,
        fusedActivationFunction=c.pick([0, 0, 1]),
    )


def div_int16(c):
    shape = c.shape()
    x_zero, y_zero = c.pick([0, 5, -1000]), c.pick([0, -7, 300])
    x = c.input(shape, np.int16, x_zero - 2**12, x_zero + 2**12, c.scale() / 256, x_zero)
    sign = c.rng.choice(np.array([-1, 1], np.int16), shape)
    y = c.feed(y_zero + sign * c.values(shape, np.int16, 1, 2**11), c.scale() / 256, y_zero)
    scale = x.scale / y.scale / 2 ** c.int(-4, 26)
    return c.g.op("DIV", [x, y], shape, "DivOptions", 2, dtype=np.int16, scale=scale, zero_point=c.pick([0, 3]))


def bucketize(c):
    dtype, shape = c.pick([np.float32, np.float64, np.int32, np.int64]), c.shape(0)
    boundaries = np.sort(c.rng.integers(-8, 8, c.int(1, 9))).astype(np.float32) / c.pick([1, 4])
    x = c.feed((c.rng.integers(-40, 40, shape) / (4 if np.dtype(dtype).kind == "f" else 1)).astype(dtype))
    return c.g.op("BUCKETIZE", [x], shape, "BucketizeOptions", dtype=np.int32, boundaries=boundaries)


def fake_quant(c):
    shape, low, high = c.shape(1, 4, 9), -c.rng.uniform(0, 3), c.rng.uniform(0.1, 3)
    return c.g.op(
        "FAKE_QUANT", [c.input(shape, np.float32)], shape, "FakeQuantOptions", min=low, max=high, numBits=c.pick([4, 8, 16])
    )


CASES = {
    "ADD_N": add_n,
    "ATAN2": atan2,
    "BITWISE_XOR": bitwise_xor,
    "BUCKETIZE": bucketize,
    "COMPLEX_ABS": complex_part("COMPLEX_ABS"),
    "DIV of int16 with zero points": div_int16,
    "FAKE_QUANT": fake_quant,
    "IMAG": complex_part("IMAG"),
    "MUL of int16 to 8 bits": mul_narrowing,
    "REAL": complex_part("REAL"),
    "RIGHT_SHIFT by little": right_shift_by_little,
    "RIGHT_SHIFT": right_shift,
    "STABLEHLO_SHIFT_LEFT": stablehlo_shift_left,
    **{"STABLEHLO_" + name: stablehlo_elementwise(name) for name in ("ADD", "AND", "MAXIMUM", "MINIMUM", "MULTIPLY")},
}
