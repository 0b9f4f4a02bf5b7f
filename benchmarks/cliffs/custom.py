"""Functions that make a custom operator, or one that is found in few models: as in families.py."""

import struct

import numpy as np
from draw import FLOAT, INT32
from flatbuffers import flexbuffers

SAME, VALID = 1, 2  # as MediaPipe's operators write them


def options_of(**values):
    builder = flexbuffers.Builder()
    kinds = {bool: builder.Bool, int: builder.Int, float: builder.Float}
    with builder.Map():
        for name, value in sorted(values.items()):
            kinds[type(value)](name, value)
    return bytes(builder.Finish())


def detection(regular):
    """What ends a detector: decoded boxes, of which overlapping ones are dropped."""

    def make(d, dtype):
        count, classes = d.size(10, 3000), d.size(1, 91)
        scales = {"y_scale": 10.0, "x_scale": 10.0, "h_scale": 5.0, "w_scale": 5.0}
        limits = {"nms_score_threshold": 0.3, "nms_iou_threshold": 0.6, "num_classes": classes}
        most = {"max_detections": d.size(1, 100), "max_classes_per_detection": 1, "use_regular_nms": regular}
        anchors = np.concatenate([d.rng.uniform(0, 1, (count, 2)), d.rng.uniform(0.1, 0.5, (count, 2))], 1)
        operands = [d.input((1, count, 4), dtype), d.input((1, count, classes + 1), dtype)]
        operands.append(d.g.constant(anchors.astype(np.float32)))
        options = options_of(**scales, **limits, **most, detections_per_class=100)
        return d.g.op("TFLite_Detection_PostProcess", operands, [()] * 4, dtype=FLOAT, custom_options=options)

    return make


def spectrogram(d, dtype):
    window, stride = d.pick([160, 256, 400, 480, 512, 640, 1024]), d.pick([128, 160, 256, 320])
    count = d.size(1000, 16000)
    frames = 0 if count < window else 1 + (count - window) // stride
    if frames == 0:
        return None
    bins = (1 << (window - 1).bit_length()) // 2 + 1
    options = options_of(window_size=window, stride=stride, magnitude_squared=True)
    return d.g.op("AudioSpectrogram", [d.input((count, 1), dtype)], (1, frames, bins), custom_options=options)


def mfcc(d, dtype):
    frames, bins, filters = d.size(1, 98), d.pick([129, 257, 513]), d.pick([20, 40, 64])
    coefficients = d.pick([10, 13, 40])
    frequencies = {"upper_frequency_limit": 4000, "lower_frequency_limit": 20}
    counts = {"filterbank_channel_count": filters, "dct_coefficient_count": min(filters, coefficients)}
    operands = [d.input((1, frames, bins), dtype), d.ints(16000)]
    whole = (1, frames, min(filters, coefficients))
    return d.g.op("Mfcc", operands, whole, custom_options=options_of(**frequencies, **counts))


def embedding_lookup_sparse(d, dtype):
    rows, width, places, count = d.size(2, 2000), d.size(4, 300), d.size(1, 32), d.size(1, 300)
    indices = np.stack([np.sort(d.rng.integers(0, places, count)), np.arange(count)], 1).astype(np.int32)
    operands = [d.indices(count, rows), d.g.constant(indices), d.ints(places, count)]
    operands += [d.input((count,), dtype), d.input((rows, width), dtype)]
    options = {"options": "EmbeddingLookupSparseOptions", "like": operands[4], "combiner": d.pick([0, 1, 2])}
    return d.g.op("EMBEDDING_LOOKUP_SPARSE", operands, (places, width), **options)


def lsh_projection(d, dtype):
    hashes, bits, items = d.size(1, 16), d.size(1, 16), d.size(1, 200)
    x = d.input((items, d.size(1, 40)), dtype)
    seeds = d.g.constant(d.rng.uniform(-1, 1, (hashes, bits)).astype(np.float32))
    return d.g.op("LSH_PROJECTION", [seeds, x], (hashes * bits,), "LSHProjectionOptions", dtype=INT32, type=2)


def transposed_convolution(d, dtype):
    side, channels, out, kernel = d.size(4, 64), d.size(1, 64), d.size(1, 64), d.pick([2, 3, 4])
    w = d.g.constant(d.rng.normal(0, 0.1, (out, kernel, kernel, channels)).astype(np.float32))
    b = d.g.constant(d.rng.normal(0, 0.1, out).astype(np.float32))
    whole = (1, 2 * (side - 1) + kernel, 2 * (side - 1) + kernel, out)
    options = struct.pack("<3i", VALID, 2, 2)
    x = d.input((1, side, side, channels), dtype)
    return d.g.op("Convolution2DTransposeBias", [x, w, b], whole, custom_options=options)


def pool_with_places(d, dtype):
    side, channels = 2 * d.size(2, 64), d.size(1, 64)
    options = struct.pack("<8i", SAME, 2, 2, 2, 2, 0, -1, -1)
    halves = (1, side // 2, side // 2, channels)
    x = d.input((1, side, side, channels), dtype)
    return d.g.op("MaxPoolingWithArgmax2D", [x], [halves, halves], custom_options=options)
