"""Operators that sum: reductions, windows, segments, transforms, convolutions of volumes."""

import numpy as np


def sum_quantized(c):
    dtype, shape = c.pick([np.int8, np.uint8, np.int16]), c.shape(1, 4, 9)
    if dtype != np.uint8:  # read as uint8 by the reference of LiteRT 2.3.0; its other kernel rounds in float
        c.reference, c.steps = False, 1
    zero = 0 if dtype == np.int16 else c.int(0, 60)
    x = c.input(shape, dtype, scale=c.scale(), zero_point=zero)
    axes = sorted({c.int(0, len(shape) - 1) for _ in range(c.int(1, len(shape)))})
    keep = c.chance(0.5)
    out = tuple(1 if i in axes else d for i, d in enumerate(shape) if keep or i not in axes)
    return c.g.op(
        "SUM",
        [x, c.indices(axes)],
        out,
        "ReducerOptions",
        2,
        keepDims=keep,
        dtype=dtype,
        scale=x.scale * c.pick([1, 4, 20]),
        zero_point=zero and c.int(0, 60),
    )


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


def local_response_normalization(c):
    c.exact = False
    shape = tuple(c.int(1, 6) for _ in range(3)) + (c.int(1, 24),)
    return c.g.op(
        "LOCAL_RESPONSE_NORMALIZATION",
        [c.input(shape, np.float32)],
        shape,
        "LocalResponseNormalizationOptions",
        radius=c.int(0, 6),
        bias=c.rng.uniform(0.5, 9),
        alpha=c.rng.uniform(0, 4),
        beta=c.pick([0.5, 0.75, 1.0]),
    )


def rfft2d(c):
    """In double and rounded to float in the end; then the real part, or the magnitude."""
    c.exact = False
    lengths = [2 ** c.int(0, 5), 2 ** c.int(1, 8)]
    shape = (*c.shape(0, 2, 3), c.int(1, lengths[0] + 2), c.int(1, lengths[1] + 5))
    out = (*shape[:-2], lengths[0], lengths[1] // 2 + 1)
    x = c.g.op(
        "RFFT2D",
        [c.input(shape, np.float32), c.g.constant(np.array(lengths, np.int32))],
        out,
        "Rfft2dOptions",
        dtype=np.complex64,
    )
    return [c.g.op(name, [x], out, dtype=np.float32) for name in ("REAL", "IMAG", "COMPLEX_ABS")]


def conv_3d(transposed):
    def case(c):
        c.exact, c.tolerance = False, 1e-5
        n, inputs, outputs, padding = c.int(1, 2), c.int(1, 5), c.int(1, 5), c.int(0, 1)
        volume = [c.int(3, 6) for _ in range(3)]
        kernel = [c.int(1, 3) for _ in range(3)]
        stride = [c.int(1, 2) for _ in range(3)]
        dilation = [c.pick([1, 1, 2]) if d >= 5 else 1 for d in volume]
        reach = [(k - 1) * f + 1 for k, f in zip(kernel, dilation)]
        small = [-(-d // s) if padding == 0 else (d - r) // s + 1 for d, s, r in zip(volume, stride, reach)]
        bias = [c.g.constant(c.values((outputs,), np.float32))] if c.chance(0.7) else []
        options = dict(zip(["strideD", "strideH", "strideW"], stride))
        options |= dict(zip(["dilationDFactor", "dilationHFactor", "dilationWFactor"], dilation))
        options |= {"padding": padding, "fusedActivationFunction": c.pick([0, 1, 3])}
        if transposed:
            filters = c.g.constant(c.values((*kernel, outputs, inputs), np.float32))
            x = c.input((n, *small, inputs), np.float32)
            shape = (n, *volume, outputs)
            return c.g.op("CONV_3D_TRANSPOSE", [c.indices(shape), filters, x, *bias], shape, "Conv3DOptions", like=x, **options)
        filters = c.g.constant(c.values((*kernel, inputs, outputs), np.float32))
        x = c.input((n, *volume, inputs), np.float32)
        return c.g.op("CONV_3D", [x, filters, *bias], (n, *small, outputs), "Conv3DOptions", **options)

    return case


CASES = {
    "CONV_3D": conv_3d(False),
    "CONV_3D_TRANSPOSE": conv_3d(True),
    "LOCAL_RESPONSE_NORMALIZATION": local_response_normalization,
    "REDUCE_WINDOW": reduce_window,
    "RFFT2D": rfft2d,
    "SEGMENT_SUM": segment_sum,
    "SUM of quantized values": sum_quantized,
    **{"UNSORTED_SEGMENT_" + name: unsorted_segment(name) for name in ("MAX", "MIN", "PROD", "SUM")},
}
