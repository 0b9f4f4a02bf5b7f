"""Custom operators that deployed models carry, against LiteRT, in both hosts."""

import struct

import graphs
import numpy as np
import own_interpreter
import pytest
import running
from ai_edge_litert import interpreter as litert
from flatbuffers import flexbuffers

BOXES, CLASSES = 200, 7


def detector(seed):
    """TFLite_Detection_PostProcess with random parameters, and inputs with many overlaps."""
    rng = np.random.default_rng(seed)
    quantized, background, regular = (bool(rng.integers(2)) for _ in range(3))
    builder = flexbuffers.Builder()
    with builder.Map():
        builder.Int("max_detections", int(rng.integers(1, 30)))
        builder.Int("max_classes_per_detection", 1 if rng.integers(2) else int(rng.integers(1, 4)))
        if rng.integers(2):
            builder.Int("detections_per_class", int(rng.integers(1, 40)))
        if regular or rng.integers(2):
            builder.Bool("use_regular_nms", regular)
        builder.Float("nms_score_threshold", float(rng.choice([0.0, 0.3, 0.9])))
        builder.Float("nms_iou_threshold", float(rng.choice([0.2, 0.6, 1.0])))
        builder.Int("num_classes", CLASSES)
        for name, scale in (("y_scale", 10.0), ("x_scale", 10.0), ("h_scale", 5.0), ("w_scale", 5.0)):
            builder.Float(name, scale)
    graph = graphs.Graph()
    labels = CLASSES + background
    anchors = np.concatenate([rng.uniform(0, 1, (BOXES, 2)), rng.uniform(0.1, 0.5, (BOXES, 2))], 1)
    if quantized:
        encodings = graph.input((1, BOXES, 4), np.uint8, 0.05, 130)
        scores = graph.input((1, BOXES, labels), np.uint8, 1 / 256, 0)
        boxes = graph.constant(np.round(anchors * 200).astype(np.uint8), 0.005, 0)
        values = [rng.integers(0, 256, (1, BOXES, n)).astype(np.uint8) for n in (4, labels)]
    else:
        encodings, scores = graph.input((1, BOXES, 4)), graph.input((1, BOXES, labels))
        boxes = graph.constant(anchors.astype(np.float32))
        values = [rng.uniform(-2, 2, (1, BOXES, 4)).astype(np.float32)]
        # Equal scores among them: the first one wins.
        values.append(np.round(rng.uniform(0, 1, (1, BOXES, labels)), 2).astype(np.float32))
    outputs = graph.op(
        "TFLite_Detection_PostProcess",
        [encodings, scores, boxes],
        [(), (), (), ()],
        dtype=np.float32,
        custom_options=bytes(builder.Finish()),
    )
    return graph.build(outputs), values




@pytest.mark.parametrize("seed", range(40))
def test_detection(seed, load_delegate, delegate_path, tmp_path):
    model, values = detector(seed)
    path, explain = tmp_path / "model.tflite", tmp_path / "explain.json"
    path.write_bytes(model)
    expected = running.run(running.reference(path), values)
    made = running.delegated(path, load_delegate(explain_file=explain))
    assert [node["claimed"] for node in running.explanation(explain)["nodes"]] == [True]
    actual = [running.run(made, values)]
    for delegate in (None, own_interpreter.Delegate(delegate_path)):
        actual.append(own_interpreter.Interpreter(path, delegate).run(values))
    count = int(expected[3][0])
    per_box = expected[1].shape[1]
    for outputs in actual:
        assert [o.shape for o in outputs] == [e.shape for e in expected]
        assert outputs[3][0] == count
        # With several classes for a box the rows of one without a class are undefined in LiteRT.
        rows = min(count, per_box) if per_box else 0
        for o, e in zip(outputs[:3], expected[:3]):
            defined = slice(0, rows)
            assert np.array_equal(o[0][defined], e[0][defined])


def with_xnnpack(path):
    made = litert.Interpreter(str(path))
    made.allocate_tensors()
    return made


def compare(model, values, bound, load_delegate, delegate_path, tmp_path):
    path = tmp_path / "model.tflite"
    path.write_bytes(model)
    expected = running.run(with_xnnpack(path), values)
    results = [running.run(running.delegated(path, load_delegate()), values)]
    for delegate in (None, own_interpreter.Delegate(delegate_path)):
        results.append(own_interpreter.Interpreter(path, delegate).run(values))
    for outputs in results:
        assert running.largest_difference(outputs, expected) <= bound


@pytest.mark.parametrize("padding", [1, 2])
@pytest.mark.parametrize("size, filters, stride", [((5, 6), (3, 2), 2), ((4, 4), (2, 2), 2), ((3, 5), (3, 3), 1)])
def test_transposed_convolution_with_bias(padding, size, filters, stride, load_delegate, delegate_path, tmp_path):
    rng = np.random.default_rng(padding)
    graph = graphs.Graph()
    x = graph.input((1, *size, 8))
    w = graph.constant(rng.uniform(-1, 1, (6, *filters, 8)).astype(np.float32))
    b = graph.constant(rng.uniform(-1, 1, 6).astype(np.float32))
    cut = [max(0, f - (n - 1) % stride - 1) if padding == 1 else 0 for n, f in zip(size, filters)]
    out = [stride * (n - 1) + f - c for n, f, c in zip(size, filters, cut)]
    options = struct.pack("<3i", padding, stride, stride)
    y = graph.op("Convolution2DTransposeBias", [x, w, b], (1, *out, 6), custom_options=options)
    values = [rng.uniform(-1, 1, x.shape).astype(np.float32)]
    compare(graph.build([y]), values, 1e-5, load_delegate, delegate_path, tmp_path)


def test_pool_with_argmax_and_its_way_back(load_delegate, delegate_path, tmp_path):
    rng = np.random.default_rng(0)
    graph = graphs.Graph()
    x = graph.input((1, 8, 6, 5))
    options = struct.pack("<8i", 1, 2, 2, 2, 2, 0, -1, -1)
    pooled, taps = graph.op("MaxPoolingWithArgmax2D", [x], [(1, 4, 3, 5), (1, 4, 3, 5)], custom_options=options)
    back = struct.pack("<8i", 2, 2, 2, 2, 2, 0, -1, -1)
    y = graph.op("MaxUnpooling2D", [pooled, taps], (1, 8, 6, 5), custom_options=back)
    values = [rng.uniform(-1, 1, x.shape).astype(np.float32)]
    compare(graph.build([pooled, y]), values, 0, load_delegate, delegate_path, tmp_path)
