"""Shapes that only a run tells: the host computes them, and the delegate plans its partition in the middle of an invoke."""

import flatbuffers
import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema

import running

WIDTH, LAYERS = 64, 4


def tensor(model, name, shape, kind, data=None, signature=None):
    """Adds a tensor to the main graph; its index."""
    t = schema.TensorT()
    t.name, t.shape, t.type, t.shapeSignature = name, list(shape), kind, signature
    t.buffer = 0
    if data is not None:
        buffer = schema.BufferT()
        buffer.data = np.frombuffer(np.ascontiguousarray(data).tobytes(), np.uint8)
        model.buffers.append(buffer)
        t.buffer = len(model.buffers) - 1
    model.subgraphs[0].tensors.append(t)
    return len(model.subgraphs[0].tensors) - 1


def operator(model, code, inputs, outputs, options_type=0, options=None):
    c = schema.OperatorCodeT()
    c.builtinCode, c.deprecatedBuiltinCode, c.version = code, code, 1
    model.operatorCodes.append(c)
    op = schema.OperatorT()
    op.opcodeIndex, op.inputs, op.outputs = len(model.operatorCodes) - 1, inputs, outputs
    op.builtinOptionsType, op.builtinOptions = options_type, options
    model.subgraphs[0].operators.append(op)


def reshape_then_layers():
    """x reshaped to what the second input says, then fully connected layers over its innermost dimension."""
    model = schema.ModelT()
    model.version, model.operatorCodes, model.buffers = 3, [], [schema.BufferT()]
    graph = schema.SubGraphT()
    graph.tensors, graph.operators = [], []
    model.subgraphs = [graph]
    ops, kinds = schema.BuiltinOperator, schema.TensorType
    x = tensor(model, "x", [2, WIDTH], kinds.FLOAT32)
    shape = tensor(model, "shape", [2], kinds.INT32)
    value = tensor(model, "reshaped", [1, WIDTH], kinds.FLOAT32, signature=[-1, WIDTH])
    operator(model, ops.RESHAPE, [x, shape], [value])
    rng = np.random.default_rng(0)
    for layer in range(LAYERS):
        weights = rng.uniform(-0.1, 0.1, (WIDTH, WIDTH)).astype(np.float32)
        w = tensor(model, f"w{layer}", weights.shape, kinds.FLOAT32, weights)
        result = tensor(model, f"y{layer}", [1, WIDTH], kinds.FLOAT32, signature=[-1, WIDTH])
        operator(
            model,
            ops.FULLY_CONNECTED,
            [value, w, -1],
            [result],
            schema.BuiltinOptions.FullyConnectedOptions,
            schema.FullyConnectedOptionsT(),
        )
        value = result
    graph.inputs, graph.outputs = [x, shape], [value]
    builder = flatbuffers.Builder(1 << 20)
    builder.Finish(model.Pack(builder), file_identifier=b"TFL3")
    return bytes(builder.Output())


@pytest.mark.parametrize("fusion", ["on", "off"])
def test_partition_behind_a_dynamic_shape(fusion, load_delegate, tmp_path):
    path, explain = tmp_path / "dynamic.tflite", tmp_path / "explain.json"
    path.write_bytes(reshape_then_layers())
    plain = running.reference(path)
    interpreter = running.delegated(path, load_delegate(fusion=fusion, explain_file=explain))
    nodes = running.explanation(explain)["nodes"]
    assert [node["claimed"] for node in nodes] == [False] + [True] * LAYERS
    assert "run time" in nodes[0]["reason"]
    rng = np.random.default_rng(1)
    for rows in (2, 6, 1, 6):
        for it in (plain, interpreter):
            it.resize_tensor_input(it.get_input_details()[0]["index"], [rows // 2 or 1, min(rows, 2) * WIDTH])
            it.allocate_tensors()
        x = rng.uniform(-1, 1, (rows // 2 or 1, min(rows, 2) * WIDTH)).astype(np.float32)
        inputs = [x, np.array([rows, WIDTH], np.int32)]
        expected = running.run(plain, inputs)
        actual = running.run(interpreter, inputs)
        assert actual[0].shape == (rows, WIDTH)
        assert running.largest_difference(actual, expected) <= 1e-5
