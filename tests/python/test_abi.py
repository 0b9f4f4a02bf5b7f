"""What our declaration of TensorFlow Lite's structs reads in a real LiteRT, compared with what LiteRT itself says.

A probe (abi_probe/) is loaded as a delegate and writes down the graph that it sees. Tensors, operators and their
operands are compared with LiteRT's Python interface; the operators' parameters with the file, read by flatc
through our schema, so that the schema is checked as well.

Paths come from the environment: FUSELITE_BUILD (a build folder), FUSELITE_MODELS (a folder of .tflite files; where it is
not set, networks that `fuselite zoo` writes).
"""

import json
import os
import pathlib
import re
import shutil
import subprocess

import numpy as np
import pytest

litert = pytest.importorskip("ai_edge_litert.interpreter", reason="LiteRT (ai-edge-litert) is not installed")

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCHEMA = ROOT / "interpreter" / "schema" / "tflite.fbs"
PROBE = pathlib.Path(os.environ.get("FUSELITE_BUILD", ROOT / "build" / "release")) / "tests/python/abi_probe.so"

pytestmark = pytest.mark.skipif(not PROBE.exists(), reason=f"{PROBE} is not built")

NAMES = ["vww_96_float", "resnet8_cifar10_int8", "mobilenet_v1_0.25_128_quant", "kws_float", "digits_float"]
WITH_SUMS = ["resnet8_cifar10_float", "digits_float"]
if not os.environ.get("FUSELITE_MODELS"):
    NAMES = ["mobilenet_v1", "mobilenet_v1_uint8", "mobilenet_v2_int8", "transformer_int8"]
    WITH_SUMS = ["mobilenet_v2", "transformer"]
TYPES = {np.float32: 1, np.int32: 2, np.uint8: 3, np.int64: 4, np.bool_: 6, np.int16: 7, np.int8: 9}


@pytest.fixture
def model(name, networks):
    return networks / f"{name}.tflite"


def open_model(model, delegates=(), threads=2):
    interpreter = litert.Interpreter(
        str(model),
        experimental_delegates=list(delegates),
        num_threads=threads,
        experimental_op_resolver_type=litert.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
    )
    interpreter.allocate_tensors()
    return interpreter


def probe(model, path, claim="none"):
    """The interpreter with the probe applied, and the probe's lines: (kind, number or None, {key: value})."""
    delegate = litert.load_delegate(str(PROBE), {"output": str(path), "claim": claim})
    interpreter = open_model(model, [delegate])
    lines = []
    for line in path.read_text().splitlines():
        line, _, tensor_name = line.partition(" name=")
        words = line.split()
        number = int(words[1]) if words[1].isdigit() else None
        values = dict(word.split("=", 1) for word in words if "=" in word)
        lines.append((words[0], number, {**values, "name": tensor_name}))
    return interpreter, lines


def ints(text):
    return [int(x) for x in text.split(",")] if text not in ("", "null") else []


def operator_names():
    """Code to name, from the schema."""
    body = re.search(r"enum BuiltinOperator : int \{(.*?)\}", SCHEMA.read_text(), re.S).group(1)
    return {int(code): name for name, code in re.findall(r"(\w+) = (\d+)", body)}


@pytest.mark.parametrize("name", NAMES)
def test_tensors_are_read_as_litert_says(model, tmp_path):
    _, lines = probe(model, tmp_path / "graph.txt")
    tensors = {number: values for kind, number, values in lines if kind == "tensor"}
    details = open_model(model).get_tensor_details()
    assert len(details) > 10
    for detail in details:
        seen = tensors[detail["index"]]
        assert seen["name"] == detail["name"]
        assert int(seen["type"]) == TYPES[detail["dtype"]]
        assert ints(seen["dims"]) == list(detail["shape"])
        count = int(np.prod(detail["shape"], dtype=np.int64))
        assert int(seen["bytes"]) == count * np.dtype(detail["dtype"]).itemsize
        quantization = detail["quantization_parameters"]
        scales = [np.float32(x) for x in seen.get("scales", "").split(",") if x]
        assert scales == list(quantization["scales"])
        assert ints(seen.get("zero_points", "")) == list(quantization["zero_points"])
        if len(scales) > 1:
            assert int(seen["axis"]) == quantization["quantized_dimension"]
        scale, zero_point = detail["quantization"]
        assert np.float32(seen["scale"]) == np.float32(scale)
        assert int(seen["zero_point"]) == zero_point


@pytest.mark.parametrize("name", NAMES)
def test_nodes_are_read_as_litert_says(model, tmp_path):
    _, lines = probe(model, tmp_path / "graph.txt")
    nodes = [(number, values) for kind, number, values in lines if kind == "node"]
    names = operator_names()
    details = open_model(model)._get_ops_details()
    assert len(nodes) == len(details) > 5
    for (number, seen), detail in zip(nodes, details):
        assert number == detail["index"]
        assert names[int(seen["code"])] == detail["op_name"]
        assert ints(seen["inputs"]) == list(detail["inputs"])
        assert ints(seen["outputs"]) == list(detail["outputs"])
    context = next(values for kind, _, values in lines if kind == "context")
    assert int(context["threads"]) == 2


ACTIVATIONS = ["NONE", "RELU", "RELU_N1_TO_1", "RELU6", "TANH", "SIGN_BIT"]


def expected_params(name, options, seen):
    """The probe's words for the options that flatc read."""
    padding = {"SAME": "1", "VALID": "2"}
    activation = str(ACTIVATIONS.index(options.get("fused_activation_function", "NONE")))
    stride = f"{options.get('stride_w')},{options.get('stride_h')}"
    if name == "CONV_2D":
        words = {
            "padding": padding[options["padding"]],
            "stride": stride,
            "activation": activation,
            "dilation": f"{options['dilation_w_factor']},{options['dilation_h_factor']}",
        }
    elif name == "DEPTHWISE_CONV_2D":
        words = {
            "padding": padding[options["padding"]],
            "stride": stride,
            "activation": activation,
            "multiplier": str(options["depth_multiplier"]),
        }
    elif name in ("AVERAGE_POOL_2D", "MAX_POOL_2D"):
        words = {
            "padding": padding[options["padding"]],
            "stride": stride,
            "activation": activation,
            "filter": f"{options['filter_width']},{options['filter_height']}",
        }
    elif name == "FULLY_CONNECTED":
        words = {"activation": activation, "format": "0", "keep_num_dims": str(int(options["keep_num_dims"]))}
    elif name == "SOFTMAX":
        words = {"beta": f"{options['beta']:g}"}
    elif name == "ADD":
        words = {"activation": activation}
    else:
        return None
    return {key: (value, seen.get(key)) for key, value in words.items()}


@pytest.mark.parametrize("name", NAMES)
def test_parameters_are_the_files(model, tmp_path):
    flatc = shutil.which("flatc")
    assert flatc, "flatc is a dependency of the build"
    copy = tmp_path / "model.tflite"
    shutil.copy(model, copy)
    subprocess.run(
        [flatc, "--json", "--strict-json", "--defaults-json", "-o", tmp_path, SCHEMA, "--", copy], check=True, capture_output=True
    )
    file = json.loads((tmp_path / "model.json").read_text(errors="replace"))
    _, lines = probe(model, tmp_path / "graph.txt")
    nodes = [values for kind, _, values in lines if kind == "node"]
    names = operator_names()
    operators = file["subgraphs"][0]["operators"]
    assert len(operators) == len(nodes)
    checked = 0
    for operator, seen in zip(operators, nodes):
        code = file["operator_codes"][operator["opcode_index"]]
        assert int(seen["version"]) == code["version"]
        expected = expected_params(names[int(seen["code"])], operator.get("builtin_options", {}), seen)
        if expected is not None:
            assert all(a == b for a, b in expected.values()), (operator, expected)
            checked += 1
    assert checked >= 3


@pytest.mark.parametrize("name", WITH_SUMS)
def test_claimed_nodes_are_computed_here(model, tmp_path):
    interpreter, lines = probe(model, tmp_path / "graph.txt", claim="add")
    partitions = [values for kind, _, values in lines if kind == "partition"]
    plain = open_model(model)
    adds = {op["index"]: op for op in plain._get_ops_details() if op["op_name"] == "ADD"}
    claimed = [index for partition in partitions for index in ints(partition["nodes"])]
    assert claimed and set(claimed) <= set(adds)
    for partition in partitions:
        outputs = ints(partition["outputs"])
        assert outputs == [t for index in ints(partition["nodes"]) for t in adds[index]["outputs"]]
    assert "DELEGATE" in [op["op_name"] for op in interpreter._get_ops_details()]

    random = np.random.default_rng(7)
    detail = plain.get_input_details()[0]
    value = random.standard_normal(detail["shape"]).astype(np.float32)
    results = []
    for each in (plain, interpreter):
        each.set_tensor(detail["index"], value)
        each.invoke()
        results.append(each.get_tensor(each.get_output_details()[0]["index"]))
    assert np.isfinite(results[0]).all()
    np.testing.assert_allclose(results[1], results[0], rtol=1e-6, atol=1e-6)
