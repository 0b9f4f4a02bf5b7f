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


def options_of(**values):
    builder = flexbuffers.Builder()
    with builder.Map():
        for name, value in sorted(values.items()):
            (builder.Bool if isinstance(value, bool) else builder.Int)(name, value)
    return bytes(builder.Finish())


def spectrogram(graph, samples, window, stride, squared):
    count, channels = samples.shape
    frames = 0 if count < window else 1 + (count - window) // stride
    bins = (1 << (window - 1).bit_length()) // 2 + 1
    options = options_of(window_size=window, stride=stride, magnitude_squared=squared)
    return graph.op("AudioSpectrogram", [samples], (channels, frames, bins), custom_options=options)


def close_to_litert(path, values, load_delegate, delegate_path, explain):
    """All three ways, to the rounding of doubles that were summed up in another order."""
    expected = running.run(running.reference(path), values)
    results = [running.run(running.delegated(path, load_delegate(explain_file=explain)), values)]
    for delegate in (None, own_interpreter.Delegate(delegate_path)):
        results.append(own_interpreter.Interpreter(path, delegate).run(values))
    for outputs in results:
        for output, wanted in zip(outputs, expected):
            assert output.shape == wanted.shape
            scale = max(1.0, np.abs(wanted).max(initial=0))
            np.testing.assert_allclose(output, wanted, rtol=1e-6, atol=1e-6 * scale)


@pytest.mark.parametrize("seed", range(12))
def test_speech_front_end(seed, load_delegate, delegate_path, tmp_path):
    """Samples to a spectrogram to its coefficients, with a constant rate or one that a run gives."""
    rng = np.random.default_rng(seed)
    window, stride = int(rng.integers(2, 600)), int(rng.integers(1, 700))
    count, channels = int(rng.integers(1, 4000)), int(rng.integers(1, 4))
    filters = int(rng.integers(1, 50))
    graph = graphs.Graph()
    samples = graph.input((count, channels))
    squared = bool(rng.integers(4))
    power = spectrogram(graph, samples, window, stride, squared)
    values = [rng.uniform(-1, 1, samples.shape).astype(np.float32)]
    rate = np.array([16000], np.int32)
    if rng.integers(2):
        rate_tensor = graph.input((1,), np.int32)
        values.append(rate)
    else:
        rate_tensor = graph.constant(rate)
    coefficients = int(rng.integers(1, filters + 1))
    # One in six asks for frequencies beyond the last bin.
    options = options_of(
        upper_frequency_limit=int(rng.choice([4000, 4000, 7999, 900, 6000, 20000])),
        lower_frequency_limit=int(rng.integers(0, 400)),
        filterbank_channel_count=filters,
        dct_coefficient_count=coefficients,
    )
    y = graph.op("Mfcc", [power, rate_tensor], (*power.shape[:2], coefficients), custom_options=options)
    path, explain = tmp_path / "model.tflite", tmp_path / "explain.json"
    path.write_bytes(graph.build([power, y]))
    close_to_litert(path, values, load_delegate, delegate_path, explain)
    assert [node["claimed"] for node in running.explanation(explain)["nodes"]] == [True, True]


@pytest.mark.parametrize("window, stride", [(1, 1), (16, 0), (0, 4)])
def test_a_spectrogram_that_litert_refuses(window, stride, load_delegate, tmp_path):
    graph = graphs.Graph()
    samples = graph.input((64, 1))
    options = options_of(window_size=window, stride=stride, magnitude_squared=True)
    path, explain = tmp_path / "model.tflite", tmp_path / "explain.json"
    path.write_bytes(graph.build([graph.op("AudioSpectrogram", [samples], (1, 4, 9), custom_options=options)]))
    with pytest.raises(RuntimeError):
        running.reference(path)
    with pytest.raises(RuntimeError):
        running.delegated(path, load_delegate(explain_file=explain))
    (node,) = running.explanation(explain)["nodes"]
    assert not node["claimed"] and "a window of" in node["reason"]


def test_coefficients_of_an_impossible_rate(load_delegate, delegate_path, tmp_path):
    graph = graphs.Graph()
    power, rate = graph.input((1, 3, 9)), graph.input((1,), np.int32)
    options = options_of(
        upper_frequency_limit=4000, lower_frequency_limit=20, filterbank_channel_count=4, dct_coefficient_count=3
    )
    path = tmp_path / "model.tflite"
    path.write_bytes(graph.build([graph.op("Mfcc", [power, rate], (1, 3, 3), custom_options=options)]))
    values = [np.ones(power.shape, np.float32), np.array([0], np.int32)]
    for made in (running.reference(path), running.delegated(path, load_delegate())):
        with pytest.raises(RuntimeError):
            running.run(made, values)
    with pytest.raises(Exception, match="a sample rate of 0"):
        own_interpreter.Interpreter(path, own_interpreter.Delegate(delegate_path)).run(values)


def verifier(seed):
    """NumericVerify with random parameters; values that are off by up to four steps of the quantization."""
    rng = np.random.default_rng(seed)
    dtype = rng.choice([np.int8, np.uint8, np.int16, np.float16])
    scale = None if dtype == np.float16 else float(np.float32(rng.uniform(0.01, 0.5)))
    zero_point = 0 if dtype in (np.float16, np.int16) else int(rng.integers(0, 20))
    shape = tuple(rng.integers(1, 5, int(rng.integers(1, 4))))
    graph = graphs.Graph()
    x, wanted = graph.input(shape, dtype, scale, zero_point), graph.input(shape)
    options = {"tolerance": float(rng.choice([0.01, 1.0, 3.0, 5.0])), "log_if_failed": bool(rng.integers(2))}
    y = graph.op("NumericVerify", [x, wanted], shape, dtype=np.float32, custom_options=bytes(flexbuffers.Dumps(options)))
    values = rng.integers(-100, 100, shape).astype(dtype)
    real = values.astype(np.float32) if scale is None else scale * (values.astype(np.float32) - zero_point)
    return graph.build([y]), [values, (real + (scale or 0) * rng.uniform(-4, 4, shape)).astype(np.float32)]


@pytest.mark.parametrize("seed", range(40))
def test_numeric_verify(seed, load_delegate, delegate_path, tmp_path):
    """Fails where LiteRT's fails, which says no more than that."""
    model, values = verifier(seed)
    path, explain = tmp_path / "model.tflite", tmp_path / "explain.json"
    path.write_bytes(model)
    made = running.delegated(path, load_delegate(explain_file=explain))
    assert [node["claimed"] for node in running.explanation(explain)["nodes"]] == [True]
    runs = [
        lambda: running.run(made, values),
        lambda: own_interpreter.Interpreter(path).run(values),
        lambda: own_interpreter.Interpreter(path, own_interpreter.Delegate(delegate_path)).run(values),
    ]
    try:
        expected = running.run(running.reference(path), values)
    except RuntimeError:
        for run in runs:
            with pytest.raises((RuntimeError, own_interpreter.Error), match="is off by"):
                run()
        return
    for run in runs:
        np.testing.assert_array_equal(run(), expected)
