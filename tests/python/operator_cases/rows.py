"""Operators that look at windows, rows or axes, in every type that they take."""

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from operator_cases.operands import numbers
from operator_cases.typed import QUANTIZED, apply, given, quantization, tensor_type

ANY = "float32 bool int8 uint8 int16 int32 int64".split()


def pool(name, kinds):
    def case(c):
        c.exact, c.tolerance = False, 1e-5
        kind = c.pick(kinds.split())
        n, h, w, k = c.int(1, 2), c.int(3, 9), c.int(3, 9), c.int(1, 17)
        size, stride, padding = c.int(1, 3), c.int(1, 2), c.int(0, 1)
        out = [-(-d // stride) if padding == 0 else (d - size) // stride + 1 for d in (h, w)]
        scales = quantization(c, kind)
        return apply(
            c,
            name,
            [given(c, (n, h, w, k), kind, **scales)],
            (n, *out, k),
            kind,
            "Pool2DOptions",
            {"int8": 2, "int16": 3}.get(kind, 1),
            scales,
            padding=padding,
            strideW=stride,
            strideH=stride,
            filterWidth=size,
            filterHeight=size,
            fusedActivationFunction=c.pick([0, 1, 3]),
        )

    return case


def reduction(name, kinds, version=2):
    def case(c):
        c.exact, c.tolerance = False, 1e-5
        kind, shape, keep = c.pick(kinds.split()), c.shape(1, 4, 5), c.chance(0.5)
        axes = sorted({c.int(0, len(shape) - 1) for _ in range(c.int(1, len(shape)))})
        out = tuple(1 if i in axes else d for i, d in enumerate(shape) if keep or i not in axes)
        scales = quantization(c, kind)
        x = given(c, shape, kind, 0.8 if name == "REDUCE_PROD" else -3, 1.3 if name == "REDUCE_PROD" else 3, **scales)
        if kind == "uint8" and name == "SUM":
            c.reference, c.steps = False, 1
        result = scales if name.startswith("REDUCE_M") else quantization(c, kind)
        return apply(
            c,
            name,
            [x, numbers(c, axes)],
            out,
            kind,
            "ReducerOptions",
            version if kind in QUANTIZED else 1,
            result,
            keepDims=keep,
        )

    return case


def arg(name):
    def case(c):
        kind, index = c.pick("float32 int8 uint8 int32 bool".split()), c.pick(["int32", "int64"])
        shape = c.shape(1, 4)
        axis = c.int(0, len(shape) - 1)
        out = shape[:axis] + shape[axis + 1 :]
        x = given(c, shape, kind, -9, 9, **quantization(c, kind))
        options = "ArgMaxOptions" if name == "ARG_MAX" else "ArgMinOptions"
        return c.g.op(
            name,
            [x, c.g.constant(np.array(axis, np.int32))],
            out,
            options,
            2 if kind == "int8" else 1,
            dtype=index,
            outputType=tensor_type(index),
        )

    return case


def normalized(name, kinds, results):
    """SOFTMAX and its kin: the result's scale and zero point are what LiteRT demands."""

    def case(c):
        c.exact, c.tolerance = False, 1e-5
        kind, *other = c.pick([k.split(":") for k in kinds.split()])
        c.tolerance = 2e-3 if kind == "float16" else c.tolerance
        result = other[0] if other else kind
        shape = (*c.shape(0, 3, 4), c.int(1, 33))
        x = given(c, shape, kind, -3, 3, **quantization(c, kind))
        quantized = dict(zip(("scale", "zero_point"), results[result])) if result in results else {}
        fields = {
            "SOFTMAX": {"options": "SoftmaxOptions", "beta": c.pick([1.0, 0.5])},
            "L2_NORMALIZATION": {"options": "L2NormOptions"},
        }.get(name, {"options": "LogSoftmaxOptions"})
        version = 3 if result == "int16" else 2 if kind == "int8" else 1
        return apply(c, name, [x], shape, result, version=version, quantized=quantized, **fields)

    return case


def cast(c):
    kinds = "float32 float64 float16 bool int8 uint8 int16 uint16 int32 uint32 int64 complex64 bfloat16".split()
    source, target = c.pick(kinds), c.pick(kinds[:-1])
    shape = c.shape()
    x = given(c, shape, source, 0 if target.startswith("u") else -9, 9)
    return apply(c, "CAST", [x], shape, target, "CastOptions")


def quantize(c):
    kinds = """float32:int8 float32:uint8 float32:int16 int8:int8 int8:uint8 uint8:int8 uint8:uint8 int16:int8
    int16:int16 int16:int32 int32:int8 int32:int16 int8:int16 uint8:int16 float32:int4 float32:uint4"""
    source, target = c.pick([k.split(":") for k in kinds.split()])
    shape = c.shape(1, 4)
    scales = {"scale": c.scale() / 2**12, "zero_point": 0} if source == "int32" else quantization(c, source)
    if source == "int32":
        x = c.feed(c.values(shape, np.int32, -(2**16), 2**16), **scales)
    else:
        x = given(c, shape, source, -3, 3, **scales)
    if target in ("int4", "uint4"):
        code = getattr(schema.TensorType, target.upper())
        fields = {"scale": 0.5, "zero_point": 0 if target == "int4" else 8}
        y = c.g.op("QUANTIZE", [x], shape, "QuantizeOptions", dtype=np.int8, tensor_type=code, **fields)
        return c.g.op("DEQUANTIZE", [y], shape, "DequantizeOptions", dtype=np.float32)
    result = {"scale": scales["scale"] * 2, "zero_point": 0} if target == "int32" else quantization(c, target)
    return apply(c, "QUANTIZE", [x], shape, target, "QuantizeOptions", quantized=result)


def dequantize(c):
    kind, shape = c.pick("int8 uint8 int16 float16 int4 int2".split()), c.shape(1, 4)
    if kind == "int4":
        x = c.g.constant_int4(c.rng.integers(-8, 8, shape).astype(np.int8), c.scale())
    elif kind == "int2":
        x = c.input(shape, np.float32, -2, 1)
        x = c.g.op("CAST", [x], shape, "CastOptions", dtype=np.int8, scale=0.5, tensor_type=schema.TensorType.INT2)
    else:
        x = given(c, shape, kind, **quantization(c, kind))
    return c.g.op("DEQUANTIZE", [x], shape, "DequantizeOptions", 2 if kind != "uint8" else 1, dtype=np.float32)


def top_k(c):
    kind = c.pick("float32 int8 uint8 int16 int32 int64".split())
    shape = c.shape(1, 3)
    count = c.int(1, shape[-1])
    out = (*shape[:-1], count)
    x = given(c, shape, kind, -99, 99, **quantization(c, kind))
    values, places = c.g.op("TOPK_V2", [x, numbers(c, count)], [out, out], "TopKV2Options")
    c.g.tensors[places.index].type = tensor_type("int32")
    return [values, places]


def where(c):
    kind = c.pick("bool float32 int8 uint8 int32 uint32 int64".split())
    x = given(c, c.shape(1, 4), kind, 0, 2)
    data = c.feeds[x.index]
    data.flat[0] = 1  # what is nowhere LiteRT's Python cannot read
    return c.g.op("WHERE", [x], (int((data != 0).sum()), data.ndim), "WhereOptions", dtype=np.int64)


def gather(c):
    kind, shape = c.pick(ANY), c.shape(1, 4)
    axis, count = c.int(0, len(shape) - 1), c.shape(0, 2)
    index = c.pick(["int16", "int32", "int64"])
    places = c.either(c.values(count, np.dtype(index), 0, shape[axis] - 1))
    return apply(
        c,
        "GATHER",
        [given(c, shape, kind), places],
        shape[:axis] + count + shape[axis + 1 :],
        kind,
        "GatherOptions",
        4 if index == "int16" else 1,
        axis=axis,
    )


def concatenation(c):
    kind, shape = c.pick(ANY + ["uint32", "float16"]), c.shape(1, 4)
    axis = c.int(0, len(shape) - 1)
    sizes = [c.int(0 if c.chance(0.1) else 1, 4) for _ in range(c.int(1, 4))]
    parts = [given(c, shape[:axis] + (s,) + shape[axis + 1 :], kind) for s in sizes]
    return apply(
        c,
        "CONCATENATION",
        parts,
        shape[:axis] + (sum(sizes),) + shape[axis + 1 :],
        kind,
        "ConcatenationOptions",
        axis=c.pick([axis, axis - len(shape)]),
    )


def pack(c):
    kind, shape, count = c.pick([k for k in ANY if k != "bool"] + ["uint32"]), c.shape(0, 4), c.int(1, 4)
    axis = c.int(0, len(shape))
    out = shape[:axis] + (count,) + shape[axis:]
    return apply(
        c,
        "PACK",
        [given(c, shape, kind) for _ in range(count)],
        out,
        kind,
        "PackOptions",
        valuesCount=count,
        axis=c.pick([axis, axis - len(out)]),
    )


def unpack(c):
    kind, shape = c.pick([k for k in ANY if k != "int64"] + ["float16", "bfloat16"]), c.shape(1, 4)
    axis = c.int(0, len(shape) - 1)
    out, x = shape[:axis] + shape[axis + 1 :], given(c, shape, kind)
    short = {"tensor_type": schema.TensorType.BFLOAT16} if kind == "bfloat16" else {}
    rows = c.g.op("UNPACK", [x], [out] * shape[axis], "UnpackOptions", num=shape[axis], axis=axis, **short)
    return [c.g.op("CAST", [row], out, "CastOptions", dtype=np.float32) for row in rows] if short else rows


def squeeze(c):
    kind, shape = c.pick(ANY), c.shape(0, 3)
    ones = sorted({c.int(0, len(shape)) for _ in range(c.int(0, 2))}, reverse=True)
    wide = list(shape)
    for place in ones:
        wide.insert(place, 1)
    out = tuple(d for d in wide if d != 1)
    return apply(c, "SQUEEZE", [given(c, tuple(wide), kind)], out, kind, "SqueezeOptions", squeezeDims=[])


def rank(c):
    x = given(c, c.shape(0, 5), c.pick(ANY))
    return c.g.op("RANK", [x], (), "RankOptions", dtype=np.int32)


def depth(to_depth):
    def case(c):
        kind, block = c.pick("float32 int8 uint8 int32 int64".split()), c.int(1, 3)
        n, h, w, k = c.int(1, 2), c.int(1, 4), c.int(1, 4), c.int(1, 4)
        flat, deep = (n, h * block, w * block, k), (n, h, w, k * block * block)
        name, shape, out = ("SPACE_TO_DEPTH", flat, deep) if to_depth else ("DEPTH_TO_SPACE", deep, flat)
        options = "SpaceToDepthOptions" if to_depth else "DepthToSpaceOptions"
        return apply(c, name, [given(c, shape, kind)], out, kind, options, blockSize=block)

    return case


def reverse_sequence(c):
    kind, shape = c.pick("float32 uint8 int16 int32 int64".split()), c.shape(2, 4)
    batch, along = [int(d) for d in c.rng.permutation(len(shape))[:2]]
    lengths = c.either(c.values((shape[batch],), np.dtype(c.pick(["int32", "int64"])), 0, shape[along]))
    return apply(
        c,
        "REVERSE_SEQUENCE",
        [given(c, shape, kind), lengths],
        shape,
        kind,
        "ReverseSequenceOptions",
        seqDim=along,
        batchDim=batch,
    )


def embedding_lookup(c):
    kind, rows = c.pick("float32 int8 uint8".split()), c.int(1, 9)
    shape = (rows, *c.shape(1, 2, 6))
    data, ids = c.g.constant(c.values(shape, np.dtype(kind))), c.either(c.values((c.int(1, 6),), np.int32, 0, rows - 1))
    return c.g.op("EMBEDDING_LOOKUP", [ids, data], (*ids.shape, *shape[1:]), like=data)


def scatter_nd(c):
    kind, shape, count = c.pick("int32 int64 int8 uint8 bool float32".split()), c.shape(1, 3), c.int(1, 4)
    index = np.stack([c.rng.integers(0, d, count) for d in shape], 1).astype(np.int32)
    if kind == "bool":
        index = np.unique(index, axis=0)
    return apply(
        c, "SCATTER_ND", [c.feed(index), given(c, (len(index),), kind), numbers(c, shape)], shape, kind, "ScatterNdOptions"
    )


def resize_bilinear(c):
    kind = c.pick("float32 uint8 int8 int16".split())
    c.exact, c.tolerance = False, 1e-5
    n, h, w, k = (c.int(1, 5) for _ in range(4))
    size, scales = [c.int(1, 9), c.int(1, 9)], quantization(c, kind)
    half = c.chance(0.5)
    return apply(
        c,
        "RESIZE_BILINEAR",
        [given(c, (n, h, w, k), kind, **scales), numbers(c, size)],
        (n, *size, k),
        kind,
        "ResizeBilinearOptions",
        3,
        scales,
        halfPixelCenters=half,
        alignCorners=not half and c.chance(0.5),
    )


def cumsum(c):
    kind, shape = c.pick("float32 int32 int64".split()), c.shape(1, 4)
    c.exact, c.tolerance = False, 1e-5
    axis = c.g.constant(np.array(c.int(-len(shape), len(shape) - 1), np.int32))
    return apply(
        c, "CUMSUM", [given(c, shape, kind), axis], shape, kind, "CumsumOptions", reverse=c.chance(0.5), exclusive=c.chance(0.5)
    )


def range_of_int64(c):
    start, delta, count = c.int(-5, 5), c.pick([1, 2, -3]), c.int(1, 9)
    operands = [numbers(c, v, np.int64) for v in (start, start + delta * count, delta)]
    return c.g.op("RANGE", operands, (count,), "RangeOptions", 2, dtype=np.int64)


def densify(c):
    """Of a matrix whose rows are dense and whose columns are given by their places."""
    kind, shape = c.pick(["float32", "float16", "int8"]), (c.int(1, 6), c.int(1, 9))
    data = c.values(shape, np.float32) * (c.rng.random(shape) < 0.4)
    data[0, 0] = 1
    places = [np.flatnonzero(row) for row in data]
    numbers = np.where(data == 0, 0, np.clip(np.round(data * 30), 1, 127)) if kind == "int8" else data
    value = c.g.constant(numbers[data != 0].astype(kind), *([0.02, 0] if kind == "int8" else []))
    tensor = c.g.tensors[value.index]
    tensor.shape = list(shape)
    sparsity = schema.SparsityParametersT()
    sparsity.traversalOrder = [0, 1]
    rows, columns = schema.DimensionMetadataT(), schema.DimensionMetadataT()
    rows.format, rows.denseSize = schema.DimensionType.DENSE, shape[0]
    columns.format = schema.DimensionType.SPARSE_CSR
    for field, values in (("arraySegments", np.cumsum([0] + [len(p) for p in places])), ("arrayIndices", np.concatenate(places))):
        vector = schema.Int32VectorT()
        vector.values = [int(v) for v in values]
        setattr(columns, field, vector)
        setattr(columns, field + "Type", schema.SparseIndexVector.Int32Vector)
    sparsity.dimMetadata = [rows, columns]
    tensor.sparsity = sparsity
    y = c.g.op("DENSIFY", [value], shape, "DensifyOptions")
    if kind != "float32":
        y = c.g.op("DEQUANTIZE", [y], shape, "DequantizeOptions", 2, dtype=np.float32)
    return c.g.op("MUL", [y, c.input(shape, np.float32)], shape, "MulOptions")


SOFTMAX = {"int8": (1 / 256, -128), "uint8": (1 / 256, 0), "int16": (1 / 32768, 0)}
INTEGERS = "int32 int64 int8 uint8 int16"
CASES = {
    "ARG_MAX by type": arg("ARG_MAX"),
    "ARG_MIN by type": arg("ARG_MIN"),
    "AVERAGE_POOL_2D": pool("AVERAGE_POOL_2D", "float32 int8 uint8 int16"),
    "CAST": cast,
    "CONCATENATION": concatenation,
    "CUMSUM by type": cumsum,
    "DENSIFY": densify,
    "DEPTH_TO_SPACE": depth(False),
    "DEQUANTIZE": dequantize,
    "EMBEDDING_LOOKUP": embedding_lookup,
    "GATHER": gather,
    "L2_NORMALIZATION": normalized("L2_NORMALIZATION", "float32 int8 uint8", {"int8": (1 / 128, 0), "uint8": (1 / 128, 128)}),
    "L2_POOL_2D": pool("L2_POOL_2D", "float32"),
    "LOG_SOFTMAX": normalized("LOG_SOFTMAX", "float32 int8 uint8", {"int8": (16 / 256, 127), "uint8": (16 / 256, 255)}),
    "MAX_POOL_2D": pool("MAX_POOL_2D", "float32 int8 uint8 int16"),
    "MEAN by type": reduction("MEAN", "int32 int64 int8 uint8 int16"),
    "PACK": pack,
    "QUANTIZE": quantize,
    "RANGE of int64": range_of_int64,
    "RANK": rank,
    "REDUCE_ALL": reduction("REDUCE_ALL", "bool"),
    "REDUCE_ANY": reduction("REDUCE_ANY", "bool"),
    "REDUCE_MAX by type": reduction("REDUCE_MAX", INTEGERS + " bool"),
    "REDUCE_MIN by type": reduction("REDUCE_MIN", INTEGERS + " bool"),
    "REDUCE_PROD by type": reduction("REDUCE_PROD", "int32 int64 int8 int16 float32 bool"),
    "RESIZE_BILINEAR by type": resize_bilinear,
    "REVERSE_SEQUENCE": reverse_sequence,
    "SCATTER_ND by type": scatter_nd,
    "SOFTMAX": normalized("SOFTMAX", "float32 int8 int8:int16 uint8 uint8:int16 int16 float16", SOFTMAX),
    "SPACE_TO_DEPTH": depth(True),
    "SQUEEZE": squeeze,
    "SUM by type": reduction("SUM", "int64 bool"),
    "TOPK_V2 by type": top_k,
    "UNPACK": unpack,
    "WHERE by type": where,
}
