"""A trained model with a ground truth: the delegate reads as many digits and labels right as LiteRT's own kernels."""

import struct
import zlib

import numpy as np
import pytest
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


@pytest.mark.parametrize("name, expected", [("digits_float", 492), ("digits_int8", 491)])
def test_reads_as_many_digits_as_litert(name, expected, load_delegate, models, evaluation):
    interpreter = running.delegated(models / f"{name}.tflite", load_delegate())
    assert running.delegate_kernels(interpreter) > 0
    labels = [int(label) for label in (evaluation / "digits" / "ground_truth.txt").read_text().split()]
    images = sorted((evaluation / "digits" / "images").glob("*.png"))
    assert len(images) == len(labels) == 500
    detail = interpreter.get_input_details()[0]
    right = 0
    for path, label in zip(images, labels):
        image = running.quantize((read_png(path).astype(np.float32) - 127.5) / 127.5, detail)
        right += int(running.run(interpreter, [image[None]])[0].argmax()) == label
    assert right == expected


def read_bmp(path):
    """The pixels of an uncompressed 24-bit image: [height, width, 3], RGB, the top row first."""
    data = path.read_bytes()
    offset, width, height, depth = struct.unpack_from("<10xI4xii2xH", data)
    assert depth == 24, path
    stride = (3 * width + 3) // 4 * 4
    rows = np.frombuffer(data, np.uint8, stride * abs(height), offset).reshape(abs(height), stride)
    image = rows[:, : 3 * width].reshape(abs(height), width, 3)[:, :, ::-1]
    return image if height < 0 else image[::-1]


def test_legacy_uint8_classifier_knows_the_uniform(load_delegate, models, evaluation):
    interpreter = running.delegated(models / "mobilenet_v2_1.0_224_quant.tflite", load_delegate())
    assert running.delegate_kernels(interpreter) == 1
    image = read_bmp(evaluation / "grace_hopper.bmp")
    rows, columns = (np.arange(224) * image.shape[axis] // 224 for axis in (0, 1))
    scores = running.run(interpreter, [image[rows][:, columns][None].copy()])[0]
    labels = (evaluation / "imagenet_labels.txt").read_text().splitlines()
    assert labels[int(scores.argmax())] == "military uniform"
