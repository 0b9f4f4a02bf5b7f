"""Digits that are drawn, and a network that reads them: one convolution with random filters, whose features a dense layer
weighs as least squares on drawn examples has it. In floats, and in integers of both forms."""

import graphs
import numpy as np

SIZE, FILTERS, RIDGE = 16, 12, 10.0
# Seven rows of five pixels for each digit.
GLYPHS = """
0E11131519110E 040C040404040E 0E11010204081F 1F02040201110E 02060A121F0202
1F101E0101110E 0608101E11110E 1F010204080808 0E11110E11110E 0E11110F01020C
"""


def draw(count, seed):
    """(images [count, SIZE, SIZE, 1] within [-1, 1], labels): digits of twice the glyphs' size at any place, in noise."""
    rng = np.random.default_rng(seed)
    rows = np.frombuffer(bytes.fromhex("".join(GLYPHS.split())), np.uint8).reshape(10, 7)
    glyphs = np.unpackbits(rows[..., None], axis=2)[..., 3:].repeat(2, axis=1).repeat(2, axis=2)
    labels = rng.integers(0, 10, count)
    images = rng.normal(0, 0.25, (count, SIZE, SIZE))
    for image, label in zip(images, labels):
        glyph = glyphs[label]
        y, x = (rng.integers(0, SIZE - length + 1) for length in glyph.shape)
        image[y : y + glyph.shape[0], x : x + glyph.shape[1]] += rng.uniform(0.5, 1) * glyph
    return np.clip(images - 0.25, -1, 1).astype(np.float32)[..., None], labels


def features(images, filters):
    """ReLU of 3x3 filters [FILTERS, 3, 3, 1], stride 2, without padding: [count, 7, 7, FILTERS]."""
    windows = np.lib.stride_tricks.sliding_window_view(images[..., 0], (3, 3), axis=(1, 2))[:, ::2, ::2]
    return np.maximum(np.einsum("nyxij,fij->nyxf", windows, filters[..., 0]), 0).astype(np.float32)


def train():
    """(filters, dense weights [10, inputs], bias [10], the largest feature and score)."""
    filters = np.random.default_rng(1).normal(0, 0.5, (FILTERS, 3, 3, 1)).astype(np.float32)
    images, labels = draw(3000, 2)
    x = features(images, filters).reshape(len(images), -1)
    rows, wanted = np.column_stack([x, np.ones(len(x))]), np.eye(10)[labels]
    solution = np.linalg.solve(rows.T @ rows + RIDGE * np.eye(rows.shape[1]), rows.T @ wanted).T.astype(np.float32)
    weights, bias = np.ascontiguousarray(solution[:, :-1]), np.ascontiguousarray(solution[:, -1])
    return filters, weights, bias, x.max(), np.abs(x @ weights.T + bias).max()


def network(dtype):
    """The bytes of a model of this type: float32, int8 (a scale for each filter) or uint8 (one for all)."""
    filters, weights, bias, largest, score = train()
    g = graphs.Graph()
    if dtype == np.float32:
        image = g.input((1, SIZE, SIZE, 1))
        layers = [g.constant(w) for w in (filters, np.zeros(FILTERS, np.float32), weights, bias)]
        quantized = [{}, {}]
    else:
        zero = 128 if dtype == np.uint8 else 0
        image = g.input((1, SIZE, SIZE, 1), dtype, 2 / 255, zero)
        quantized = [{"scale": float(largest) / 255, "zero_point": zero - 128}, {"scale": float(score) / 127, "zero_point": zero}]
        layers = _quantized(g, filters, np.zeros(FILTERS), image.scale, dtype)
        layers += _quantized(g, weights, bias, quantized[0]["scale"], dtype)
    conv = g.op(
        "CONV_2D",
        [image, *layers[:2]],
        (1, 7, 7, FILTERS),
        "Conv2DOptions",
        dtype=dtype,
        padding=1,
        strideW=2,
        strideH=2,
        dilationWFactor=1,
        dilationHFactor=1,
        fusedActivationFunction=1,
        **quantized[0],
    )
    scores = g.op("FULLY_CONNECTED", [conv, *layers[2:]], (1, 10), "FullyConnectedOptions", dtype=dtype, **quantized[1])
    return g.build([scores])


def _quantized(g, weights, bias, input_scale, dtype):
    """[weights, bias] as constants of 8 and 32 bits."""
    rows = np.abs(weights).reshape(len(weights), -1).max(axis=1)
    of_channels = dtype == np.int8 and weights.ndim == 4
    scales = (rows if of_channels else np.full(len(rows), rows.max())) / 127
    zero = 128 if dtype == np.uint8 else 0
    codes = np.round(weights / scales.reshape(-1, *[1] * (weights.ndim - 1))) + zero
    sums = np.round(bias / (scales * input_scale)).astype(np.int32)
    scale = [float(s) for s in scales] if of_channels else float(scales[0])
    bias_scale = [float(s * input_scale) for s in scales] if of_channels else float(scales[0] * input_scale)
    return [g.constant(codes.astype(dtype), scale, zero), g.constant(sums, bias_scale)]
