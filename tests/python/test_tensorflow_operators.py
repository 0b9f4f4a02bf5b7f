"""TensorFlow's operators that converters leave in models, which LiteRT alone refuses, in both hosts."""

import math

import graphs
import numpy as np
import own_interpreter
import pytest
import running
from ai_edge_litert import interpreter as litert
from flatbuffers import flexbuffers


def varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out + bytes([value]))


def field(number, content):
    return varint(number << 3 | 2) + varint(len(content)) + content


def attribute(value):
    """An AttrValue: a list of whole numbers, a number, a text or a flag."""
    if isinstance(value, list):
        return field(1, field(3, b"".join(varint(v) for v in value)))
    if isinstance(value, bool):
        return varint(5 << 3) + varint(value)
    if isinstance(value, int):
        return varint(3 << 3) + varint(value)
    return field(2, value.encode())


def node_def(op, **attributes):
    node = field(1, b"node") + field(2, op.encode())
    for name, value in attributes.items():
        node += field(5, field(1, name.encode()) + field(2, attribute(value)))
    builder = flexbuffers.Builder()
    with builder.Vector():
        builder.String(op)
        builder.String(node.decode("latin-1") if node.isascii() else node)
    return bytes(builder.Finish())


def run_everywhere(model, values, load_delegate, delegate_path, tmp_path):
    path, explain = tmp_path / "model.tflite", tmp_path / "explain.json"
    path.write_bytes(model)
    made = running.delegated(path, load_delegate(explain_file=explain))
    assert all(node["claimed"] for node in running.explanation(explain)["nodes"])
    results = [running.run(made, values)]
    for delegate in (None, own_interpreter.Delegate(delegate_path)):
        results.append(own_interpreter.Interpreter(path, delegate).run(values))
    return [outputs[0] for outputs in results]


def test_erf_and_gelu(load_delegate, delegate_path, tmp_path):
    rng = np.random.default_rng(0)
    graph = graphs.Graph()
    x = graph.input((3, 40))
    scaled = graph.op("MUL", [x, graph.constant(np.float32(math.sqrt(0.5)))], x.shape)
    erf = graph.op("FlexErf", [scaled], x.shape, custom_options=node_def("Erf"))
    grown = graph.op("ADD", [erf, graph.constant(np.float32(1))], x.shape)
    product = graph.op("MUL", [x, grown], x.shape)
    y = graph.op("MUL", [product, graph.constant(np.float32(0.5))], x.shape)
    value = rng.uniform(-6, 6, x.shape).astype(np.float32)
    expected = 0.5 * value * (1 + np.vectorize(math.erf)(value.astype(np.float64) * math.sqrt(0.5)))
    for made in run_everywhere(graph.build([y]), [value], load_delegate, delegate_path, tmp_path):
        assert np.abs(made - expected).max() < 2e-6


def test_litert_alone_refuses_them(tmp_path):
    graph = graphs.Graph()
    x = graph.input((4,))
    path = tmp_path / "model.tflite"
    path.write_bytes(graph.build([graph.op("FlexErf", [x], x.shape, custom_options=node_def("Erf"))]))
    with pytest.raises(RuntimeError, match="Select TensorFlow op"):
        litert.Interpreter(str(path)).allocate_tensors()


def test_the_verdict_names_what_others_need(tmp_path, load_delegate):
    graph = graphs.Graph()
    x = graph.input((4,))
    path, explain = tmp_path / "model.tflite", tmp_path / "explain.json"
    path.write_bytes(graph.build([graph.op("FlexBetainc", [x], x.shape, custom_options=node_def("Betainc"))]))
    with pytest.raises(RuntimeError, match="Select TensorFlow op"):
        running.delegated(path, load_delegate(explain_file=explain))
    [node] = running.explanation(explain)["nodes"]
    assert node["reason"] == "TensorFlow's operator is not implemented; the host needs its Flex delegate"


def test_softsign(load_delegate, delegate_path, tmp_path):
    graph = graphs.Graph()
    x = graph.input((2, 7))
    y = graph.op("FlexSoftsign", [x], x.shape, custom_options=node_def("Softsign"))
    value = np.linspace(-9, 9, 14, dtype=np.float32).reshape(x.shape)
    for made in run_everywhere(graph.build([y]), [value], load_delegate, delegate_path, tmp_path):
        assert np.array_equal(made, value / (np.abs(value) + 1))


def softplus(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def selu(x):
    return 1.0507009873554805 * np.where(x < 0, 1.6732632423543772 * np.expm1(x), x)


FUNCTIONS = {
    "Acos": np.arccos,
    "Acosh": np.arccosh,
    "Asin": np.arcsin,
    "Asinh": np.arcsinh,
    "Atan": np.arctan,
    "Atanh": np.arctanh,
    "Cosh": np.cosh,
    "Erfc": np.vectorize(math.erfc),
    "Expm1": np.expm1,
    "Inv": np.reciprocal,
    "IsFinite": np.isfinite,
    "IsInf": np.isinf,
    "IsNan": np.isnan,
    "Log1p": np.log1p,
    "Reciprocal": np.reciprocal,
    "Selu": selu,
    "Sinh": np.sinh,
    "Softplus": softplus,
    "Tan": np.tan,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name, load_delegate, delegate_path, tmp_path):
    rng = np.random.default_rng(5)
    graph = graphs.Graph()
    x = graph.input((3, 67))
    dtype = np.bool_ if name.startswith("Is") else np.float32
    y = graph.op("Flex" + name, [x], x.shape, dtype=dtype, custom_options=node_def(name, T="float"))
    value = rng.normal(0, 2, x.shape).astype(np.float32)
    value[0, :6] = [0, -0.0, np.inf, -np.inf, np.nan, 1]
    with np.errstate(all="ignore"):
        expected = FUNCTIONS[name](value.astype(np.float64)).astype(dtype)
    for made in run_everywhere(graph.build([y]), [value], load_delegate, delegate_path, tmp_path):
        assert made.dtype == dtype
        np.testing.assert_allclose(made, expected, rtol=5e-7, atol=1e-37)


@pytest.mark.parametrize("quantized", [False, True])
def test_splits_with_long_sizes(quantized, load_delegate, delegate_path, tmp_path):
    rng = np.random.default_rng(3)
    graph = graphs.Graph()
    x = graph.input((2, 3, 8))
    sizes, axis = graph.constant(np.array([3, 5], np.int64)), graph.constant(np.int32(2))
    options = node_def("SplitV", num_split=2, T="float")
    if quantized:
        small = graph.op("QUANTIZE", [x], x.shape, dtype=np.int8, scale=0.01, zero_point=3)
        x = graph.op("DEQUANTIZE", [small], x.shape, dtype=np.float32)
    first, second = graph.op("FlexSplitV", [x, sizes, axis], [(2, 3, 3), (2, 3, 5)], custom_options=options)
    y = graph.op("CONCATENATION", [second, first], x.shape, "ConcatenationOptions", axis=2)
    value = rng.uniform(-1, 1, x.shape).astype(np.float32)
    expected = np.concatenate([value[..., 3:], value[..., :3]], 2)
    for made in run_everywhere(graph.build([y]), [value], load_delegate, delegate_path, tmp_path):
        assert np.abs(made - expected).max() <= (0.006 if quantized else 0)


@pytest.mark.parametrize("options", [{}, {"max_partitions": 1}, {"min_nodes_per_partition": 3}])
def test_what_the_host_lacks_is_taken_however_little_it_is(options, load_delegate, tmp_path):
    graph = graphs.Graph()
    x = graph.input((2, 3))
    y = x
    for _ in range(2):
        y = graph.op("FlexErf", [graph.op("NEG", [y], x.shape)], x.shape, custom_options=node_def("Erf"))
    path = tmp_path / "model.tflite"
    path.write_bytes(graph.build([y]))
    value = np.linspace(-2, 2, 6, dtype=np.float32).reshape(x.shape)
    made = running.delegated(path, load_delegate(ops_deny="NEG", **options))
    erf = np.vectorize(math.erf)
    assert np.abs(running.run(made, [value])[0] - erf(-erf(-value))).max() < 1e-6


@pytest.mark.parametrize("name", ["Max", "Avg"])
def test_pools_of_volumes(name, load_delegate, delegate_path, tmp_path):
    rng = np.random.default_rng(1)
    graph = graphs.Graph()
    x = graph.input((1, 4, 6, 8, 5))
    window = [1, 2, 3, 2, 1]
    options = node_def(f"{name}Pool3D", ksize=window, strides=window, padding="VALID", data_format="NDHWC")
    y = graph.op(f"Flex{name}Pool3D", [x], (1, 2, 2, 4, 5), custom_options=options)
    value = rng.uniform(-1, 1, x.shape).astype(np.float32)
    parts = value.reshape(1, 2, 2, 2, 3, 4, 2, 5)
    expected = (parts.max if name == "Max" else parts.mean)((2, 4, 6))
    for made in run_everywhere(graph.build([y]), [value], load_delegate, delegate_path, tmp_path):
        assert np.abs(made - expected).max() <= (0 if name == "Max" else 1e-6)


def test_patches(load_delegate, delegate_path, tmp_path):
    rng = np.random.default_rng(2)
    graph = graphs.Graph()
    x = graph.input((1, 8, 8, 3))
    window = [1, 4, 4, 1]
    options = node_def("ExtractImagePatches", ksizes=window, strides=window, rates=[1, 1, 1, 1], padding="VALID")
    y = graph.op("FlexExtractImagePatches", [x], (1, 2, 2, 48), custom_options=options)
    value = rng.uniform(-1, 1, x.shape).astype(np.float32)
    expected = value.reshape(1, 2, 4, 2, 4, 3).transpose(0, 1, 3, 2, 4, 5).reshape(1, 2, 2, 48)
    for made in run_everywhere(graph.build([y]), [value], load_delegate, delegate_path, tmp_path):
        assert np.array_equal(made, expected)


def test_bicubic(load_delegate, delegate_path, tmp_path):
    """A line enlarged twice; the numbers are those of TensorFlow 2.19."""
    graph = graphs.Graph()
    x = graph.input((1, 1, 4, 1))
    size = graph.constant(np.array([1, 8], np.int32))
    options = node_def("ResizeBicubic", align_corners=False, half_pixel_centers=True)
    y = graph.op("FlexResizeBicubic", [x, size], (1, 1, 8, 1), custom_options=options)
    expected = [0.735294223, 1.70072985, 3.7480917, 2.875, -1.0625, -1.30534339, 1.91970801, 3.44117665]
    value = np.array([1, 4, -2, 3], np.float32).reshape(x.shape)
    for made in run_everywhere(graph.build([y]), [value], load_delegate, delegate_path, tmp_path):
        assert np.abs(made.ravel() - expected).max() < 2e-6
