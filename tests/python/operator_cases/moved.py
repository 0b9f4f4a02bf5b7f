"""Operators that only move values, in every type for which LiteRT has a kernel."""

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from operator_cases.operands import index_type, numbers
from operator_cases.typed import apply, given

PADDED = "float32 float16 bfloat16 uint8 int8 int16 int32 int64 bool"


def packed(c, shape):
    """Constants of 4 bits."""
    return c.g.constant_int4(c.rng.integers(-8, 8, shape).astype(np.int8), 0.5)


def moved(c, name, inputs, shape, kind, options, version=1, **fields):
    """Values of 4 bits come back as floats, since Python reads none."""
    if kind != "int4":
        return apply(c, name, inputs, shape, kind, options, version, **fields)
    y = c.g.op(name, inputs, shape, options, version, dtype=np.int8, scale=0.5, tensor_type=schema.TensorType.INT4, **fields)
    return c.g.op("DEQUANTIZE", [y], shape, "DequantizeOptions", dtype=np.float32)


def values_of(c, shape, kind):
    return packed(c, shape) if kind == "int4" else given(c, shape, kind)


def pad(name):
    def case(c):
        kind, shape = c.pick(PADDED.split()), c.shape(1, 4)
        pads = [[c.int(0, 2), c.int(0, 2)] for _ in shape]
        out = tuple(d + a + b for d, (a, b) in zip(shape, pads))
        short = c.either(np.array(pads, c.pick([np.int8, np.int16])))
        inputs = [given(c, shape, kind), c.pick([numbers(c, pads, index_type(c)), short])]
        if name == "PADV2":
            inputs.append(given(c, (), kind))
        return apply(c, name, inputs, out, kind, "PadOptions" if name == "PAD" else "PadV2Options")

    return case


def reverse(c):
    kind, shape = c.pick(PADDED.split()), c.shape(1, 4)
    axes = numbers(c, [c.int(0, len(shape) - 1)])
    return apply(c, "REVERSE_V2", [given(c, shape, kind), axes], shape, kind, "ReverseV2Options", 3)


def nearest(c):
    kind = c.pick("float32 float16 bfloat16 int8 uint8 int16 uint16 int32 uint32 bool".split())
    n, h, w, k = (c.int(1, 5) for _ in range(4))
    size, half = [c.int(1, 9), c.int(1, 9)], c.chance(0.5)
    return apply(
        c,
        "RESIZE_NEAREST_NEIGHBOR",
        [given(c, (n, h, w, k), kind), numbers(c, size)],
        (n, *size, k),
        kind,
        "ResizeNearestNeighborOptions",
        3,
        halfPixelCenters=half,
        alignCorners=not half and c.chance(0.5),
    )


def split(sizes_given):
    def case(c):
        kind, shape = c.pick("float32 uint8 int8 int16 int32 int64".split()), list(c.shape(1, 4, 3))
        axis, parts = c.int(0, len(shape) - 1), c.int(2, 3)
        sizes = [c.int(1, 3) if sizes_given else shape[axis] for _ in range(parts)]
        shape[axis] = sum(sizes)
        outs = [tuple(size if i == axis else d for i, d in enumerate(shape)) for size in sizes]
        x, place = given(c, tuple(shape), kind), numbers(c, axis)
        inputs = [x, numbers(c, sizes, index_type(c)), place] if sizes_given else [place, x]
        name = "SPLIT_V" if sizes_given else "SPLIT"
        options = "SplitVOptions" if sizes_given else "SplitOptions"
        return c.g.op(name, inputs, outs, options, 2, like=x, numSplits=parts)

    return case


def one_hot(c):
    kind, shape, depth = c.pick("float32 int32 int64 int8 uint8 bool".split()), c.shape(1, 3), c.int(1, 5)
    indices = c.input(shape, c.pick([np.int32, np.int64]), -1, depth)
    inputs = [indices, numbers(c, depth), given(c, (), kind), given(c, (), kind)]
    return apply(c, "ONE_HOT", inputs, (*shape, depth), kind, "OneHotOptions", axis=-1)


def gather(c):
    kind, shape = c.pick("float16 bfloat16 int4 bool".split()), (*c.shape(1, 3), 2 * c.int(1, 3))
    axis, index = c.int(0, len(shape) - 2), c.pick([np.int16, np.int32, np.int64])
    places = c.either(c.values((c.int(1, 4),), index, 0, shape[axis] - 1))
    out = (*shape[:axis], *places.shape, *shape[axis + 1 :])
    return moved(c, "GATHER", [values_of(c, shape, kind), places], out, kind, "GatherOptions", 8, axis=axis)


def gather_nd(c):
    kind, shape = c.pick(PADDED.split()), c.shape(1, 4)
    depth, count = c.int(1, len(shape)), c.int(1, 4)
    places = np.stack([c.rng.integers(0, d, count) for d in shape[:depth]], 1)
    places = c.either(places.astype(c.pick([np.int16, np.int32, np.int64])))
    return apply(c, "GATHER_ND", [given(c, shape, kind), places], (count, *shape[depth:]), kind, "GatherNdOptions", 5)


def concatenation(c):
    """Along an axis before which no two parts share a byte, or after."""
    kind, shape = c.pick(["bfloat16", "int4"]), c.shape(1, 4)
    axis = c.int(0, len(shape) - 1)
    parts = [values_of(c, (*shape[:axis], c.int(1, 4), *shape[axis + 1 :]), kind) for _ in range(c.int(1, 4))]
    out = (*shape[:axis], sum(p.shape[axis] for p in parts), *shape[axis + 1 :])
    return moved(c, "CONCATENATION", parts, out, kind, "ConcatenationOptions", axis=axis)


def top_k(c):
    """With positions of 16 bits."""
    kind, shape = c.pick("float32 int8 uint8 int16 int32 int64".split()), c.shape(1, 3)
    count = c.int(1, shape[-1])
    out = (*shape[:-1], count)
    x = given(c, shape, kind, -99, 99)
    values, places = c.g.op("TOPK_V2", [x, numbers(c, count, c.pick([np.int16, np.int32]))], [out, out], "TopKV2Options", 3)
    c.g.tensors[places.index].type = schema.TensorType.INT16
    return [values, places]


CASES = {
    f"{name} in every type": case
    for name, case in {
        "CONCATENATION": concatenation,
        "GATHER": gather,
        "GATHER_ND": gather_nd,
        "ONE_HOT": one_hot,
        "PAD": pad("PAD"),
        "PADV2": pad("PADV2"),
        "RESIZE_NEAREST_NEIGHBOR": nearest,
        "REVERSE_V2": reverse,
        "SPLIT": split(False),
        "SPLIT_V": split(True),
        "TOPK_V2": top_k,
    }.items()
}
