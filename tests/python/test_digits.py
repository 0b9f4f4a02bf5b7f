"""A trained model with a ground truth: the delegate reads as many digits right as LiteRT's own kernels."""

import struct
import zlib

import numpy as np

import running


def read_png(path):
    """The pixels of an 8-bit RGB image that is not interlaced: [height, width, 3]."""
    data, position, packed = path.read_bytes(), 8, b""
    while position < len(data):
        length, kind = struct.unpack_from(">I4s", data, position)
        body = data[position + 8 : position + 8 + length]
        if kind == b"IHDR":
            width, height, depth, colour, _, _, interlaced = struct.unpack(">IIBBBBB", body)
            assert (depth, colour, interlaced) == (8, 2, 0), path
        elif kind == b"IDAT":
            packed += body
        position += 12 + length
    raw, stride = zlib.decompress(packed), 3 * width
    rows, above = [], np.zeros(stride + 3, int)
    for y in range(height):
        kind, line = raw[y * (stride + 1)], raw[y * (stride + 1) + 1 : (y + 1) * (stride + 1)]
        row = np.zeros(stride + 3, int)  # three zeros stand before the first pixel
        for x, value in enumerate(line):
            left, up, corner = row[x], above[x + 3], above[x]
            guess = left + up - corner
            nearest = min((left, up, corner), key=lambda pixel: abs(guess - pixel))
            row[x + 3] = (value + (0, left, up, (left + up) // 2, nearest)[kind]) % 256
        rows.append(row[3:])
        above = row
    return np.array(rows, np.uint8).reshape(height, width, 3)


def test_float_model_reads_as_many_digits_as_litert(load_delegate, models, evaluation):
    interpreter = running.delegated(models / "digits_float.tflite", load_delegate())
    assert running.delegate_kernels(interpreter) > 0
    labels = [int(label) for label in (evaluation / "digits" / "ground_truth.txt").read_text().split()]
    images = sorted((evaluation / "digits" / "images").glob("*.png"))
    assert len(images) == len(labels) == 500
    right = 0
    for path, label in zip(images, labels):
        image = (read_png(path).astype(np.float32) - 127.5) / 127.5
        right += int(running.run(interpreter, [image[None]])[0].argmax()) == label
    assert right == 492
