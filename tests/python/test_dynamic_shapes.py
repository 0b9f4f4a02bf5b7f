"""Shapes that only a run tells: the delegate plans what follows them in the middle of an invoke."""

import flatbuffers
import graphs
import numpy as np
import pytest
import running
from ai_edge_litert import schema_py_generated as schema

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
    graph = running.explanation(explain)
    assert [node["claimed"] for node in graph["nodes"]] == [True] * (1 + LAYERS)
    assert [partition["waiting_nodes"] for partition in graph["partitions"]] == [[0]]
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


def first_rows():
    """Layers, the first rows of what they give (as many as the second input says), layers."""
    g, rng = graphs.Graph(), np.random.default_rng(0)
    x, rows = g.input((8, WIDTH)), g.input((1,), np.int32)

    def layers(value):
        for _ in range(LAYERS):
            weights = g.constant(rng.uniform(-0.1, 0.1, (WIDTH, WIDTH)).astype(np.float32))
            value = g.op("FULLY_CONNECTED", [value, weights, None], value.shape, "FullyConnectedOptions")
        return value

    width, zeros = g.constant(np.array([WIDTH], np.int32)), g.constant(np.zeros(2, np.int32))
    size = g.op("CONCATENATION", [rows, width], (2,), "ConcatenationOptions", axis=0)
    part = g.op("SLICE", [layers(x), zeros, size], (1, WIDTH), "SliceOptions")
    g.tensors[part.index].shapeSignature = [-1, WIDTH]
    return g.build([layers(part)])


def test_shapes_seen_before_are_kept(load_delegate, tmp_path):
    path, explain = tmp_path / "rows.tflite", tmp_path / "explain.json"
    path.write_bytes(first_rows())
    plain, interpreter = running.reference(path), running.delegated(path, load_delegate(explain_file=explain))
    x = np.random.default_rng(1).uniform(-1, 1, (8, WIDTH)).astype(np.float32)

    def run(rows):
        inputs = [x, np.array([rows], np.int32)]
        expected, actual = running.run(plain, inputs), running.run(interpreter, inputs)
        assert actual[0].shape == (rows, WIDTH)
        assert running.largest_difference(actual, expected) <= 1e-5

    for rows in (3, 8, 1):
        run(rows)
    graph = running.explanation(explain)
    assert [node["reason"] for node in graph["nodes"] if not node["claimed"]] == []
    [partition] = graph["partitions"]
    [waiting] = partition["waiting_nodes"]
    assert graph["nodes"][waiting]["op"] == "SLICE"
    assert len(partition["steps"]) == 2 * LAYERS + 2  # the last shapes' alone
    explain.unlink()
    for rows in (8, 3, 1, 3):
        run(rows)
    assert not explain.exists()  # nothing was compiled
    run(5)
    assert explain.exists()


def test_no_rows(load_delegate, tmp_path):
    """Before there were any: where there is memory already, LiteRT shows no dynamic tensor without elements, its own
    neither."""
    path = tmp_path / "rows.tflite"
    path.write_bytes(first_rows())
    interpreter = running.delegated(path, load_delegate())
    x = np.ones((8, WIDTH), np.float32)
    for rows in (0, 0, 3):
        assert running.run(interpreter, [x, np.array([rows], np.int32)])[0].shape == (rows, WIDTH)


@pytest.mark.parametrize("operator", ["WHERE", "UNIQUE"])
def test_shapes_that_large_values_decide_are_kept(operator, load_delegate, tmp_path):
    """What was made for so many results serves other values that give as many."""
    g, size = graphs.Graph(), 300
    x = g.input((size,), np.int32)
    if operator == "WHERE":
        results = [g.op("WHERE", [x], (1, 1), "WhereOptions", dtype=np.int64)]
    else:
        results = g.op("UNIQUE", [x], [(1,), (size,)], "UniqueOptions", idxOutType=graphs.TYPES[np.dtype(np.int32)])
    g.tensors[results[0].index].shapeSignature = [-1] * len(results[0].shape)
    path, explain = tmp_path / "values.tflite", tmp_path / "explain.json"
    path.write_bytes(g.build(results))
    plain, interpreter = running.reference(path), running.delegated(path, load_delegate(explain_file=explain))
    rng = np.random.default_rng(2)

    def run(count):
        values = np.zeros(size, np.int32)
        values[rng.choice(size, count, replace=False)] = rng.permutation(np.arange(1, count + 1, dtype=np.int32))
        expected, actual = running.run(plain, [values]), running.run(interpreter, [values])
        assert all(np.array_equal(a, e) for a, e in zip(actual, expected, strict=True))

    for count in (17, 200, 1):
        run(count)
    explain.unlink()
    for count in (200, 17, 17, 1, 200):
        run(count)
    assert not explain.exists()  # nothing was compiled
    run(18)
    assert explain.exists()
