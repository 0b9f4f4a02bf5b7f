"""What cases of one operator in many types have in common: values by the type's name, and how LiteRT quantizes them."""

import graphs
import numpy as np
from ai_edge_litert import schema_py_generated as schema

NAMES = {
    "float32": np.float32,
    "float64": np.float64,
    "float16": np.float16,
    "bool": np.bool_,
    "int8": np.int8,
    "uint8": np.uint8,
    "int16": np.int16,
    "uint16": np.uint16,
    "int32": np.int32,
    "uint32": np.uint32,
    "int64": np.int64,
    "uint64": np.uint64,
    "complex64": np.complex64,
}
QUANTIZED = ("int8", "uint8", "int16")


def zero_point(c, name):
    return 0 if name == "int16" else c.int(np.iinfo(NAMES[name]).min // 2, np.iinfo(NAMES[name]).max // 2)


def quantization(c, name, scale=None):
    """The keywords of a value of the type."""
    if name not in QUANTIZED:
        return {}
    factor = 1 / 256 if name == "int16" else 1
    return {"scale": scale or c.scale() * factor, "zero_point": zero_point(c, name)}


def given(c, shape, name, low=-3, high=3, fixed=False, **quantized):
    """A value of the run, or now and then a constant (not where it is `fixed`); of real numbers from low to high."""
    if name == "bfloat16":
        x = c.input(shape, np.float32, low, high)
        return c.g.op("CAST", [x], shape, "CastOptions", dtype=np.float16, tensor_type=schema.TensorType.BFLOAT16)
    dtype = np.dtype(NAMES[name])
    if name in QUANTIZED and quantized:
        scale, zero = quantized["scale"], quantized["zero_point"]
        limits = np.iinfo(dtype)
        data = np.clip(np.round(c.rng.uniform(low, high, shape) / scale) + zero, limits.min, limits.max).astype(dtype)
        return c.feed(data, scale, zero)
    if dtype.kind in "iu":
        low, high = max(int(low), np.iinfo(dtype).min), min(int(high), np.iinfo(dtype).max)
        return c.feed(c.values(shape, dtype, low, high))
    return c.feed(c.values(shape, dtype, *(() if dtype.kind in "bc" else (low, high))))


def apply(c, name, inputs, shape, result, options=None, version=1, quantized=None, **fields):
    """One operator, and the way back from a type that numpy does not have."""
    if result == "bfloat16":
        y = c.g.op(name, inputs, shape, options, version, dtype=np.float16, tensor_type=schema.TensorType.BFLOAT16, **fields)
        return c.g.op("CAST", [y], shape, "CastOptions", dtype=np.float32)
    return c.g.op(name, inputs, shape, options, version, dtype=NAMES[result], **(quantized or {}), **fields)


def tensor_type(name):
    return graphs.TYPES[np.dtype(NAMES[name])]
