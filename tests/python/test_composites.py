"""STABLEHLO_COMPOSITE: known names as one step, other names as the nodes of their decomposition; in both hosts."""

import graphs
import numpy as np
import own_interpreter
import pytest
import running
from flatbuffers import flexbuffers

NAN_FREE_MASK = -1e9


class Body(graphs.Graph):
    """A decomposition: its inputs are its first tensors and named by their places, as converters write them."""

    def __init__(self, *shapes, named=True):
        super().__init__()
        self.ends = [self.input(shape) for shape in shapes]
        for place, end in enumerate(self.ends):
            self.tensors[end.index].name = f"body_arg{place}" if named else f"end_{place}"

    def binary(self, name, a, b, shape=None):
        return self.op(name, [a, b], shape or a.shape, f"{name.capitalize()}Options")


def composite(graph, name, inputs, shapes, subgraph, **attributes):
    return graph.op(
        "STABLEHLO_COMPOSITE",
        inputs,
        shapes,
        "StableHLOCompositeOptions",
        name=name,
        decompositionSubgraphIndex=subgraph,
        compositeAttributes=np.frombuffer(flexbuffers.Dumps(attributes), np.uint8),
    )


def check(model, values, load_delegate, delegate_path, tmp_path, tolerance=1e-6, **options):
    """The explanation in LiteRT, whose own kernels every host agrees with."""
    path, explain = tmp_path / "model.tflite", tmp_path / "explain.json"
    path.write_bytes(model)
    expected = running.run(running.reference(path), values)
    results = [running.run(running.delegated(path, load_delegate(explain_file=explain, **options)), values)]
    for delegate in (None, own_interpreter.Delegate(delegate_path, **options)):
        results.append(own_interpreter.Interpreter(path, delegate).run(values))
    for result in results:
        assert running.largest_difference(result, expected) <= tolerance
    return running.explanation(explain)


def random_values(*shapes):
    rng = np.random.default_rng(3)
    return [rng.uniform(-1, 1, shape).astype(np.float32) for shape in shapes]


def whole(explained):
    return all(node["claimed"] for node in explained["nodes"]) and len(explained["partitions"]) == 1


def difference_body(shape=(2, 3), named=True):
    """a - b, twice: not the same with its inputs exchanged."""
    body = Body(shape, shape, named=named)
    first = body.binary("SUB", *body.ends)
    return body, [body.binary("SUB", first, body.ends[1])]


@pytest.mark.parametrize("fusion", ["on", "off"])
def test_decomposition_takes_the_place_of_the_node(fusion, load_delegate, delegate_path, tmp_path):
    graph = graphs.Graph()
    x = graph.input((2, 3))
    constant = graph.constant(np.arange(6, dtype=np.float32).reshape(2, 3))
    first = composite(graph, "test.difference", [x, constant], (2, 3), 1)
    second = composite(graph, "test.difference", [constant, first], (2, 3), 1)
    model = graph.build([second, first], others=[difference_body()])
    explained = check(model, random_values((2, 3)), load_delegate, delegate_path, tmp_path, fusion=fusion)
    assert whole(explained)


def test_composites_nest(load_delegate, delegate_path, tmp_path):
    outer = Body((2, 3))
    squared = outer.binary("MUL", outer.ends[0], outer.ends[0])
    inner = composite(outer, "test.difference", [squared, outer.ends[0]], (2, 3), 1)
    graph = graphs.Graph()
    made = composite(graph, "test.outer", [graph.input((2, 3))], (2, 3), 2)
    model = graph.build([made], others=[difference_body(), (outer, [inner])])
    assert whole(check(model, random_values((2, 3)), load_delegate, delegate_path, tmp_path))


def test_outputs_are_told_apart_by_shape(load_delegate, delegate_path, tmp_path):
    body = Body((2, 3))
    shape = body.constant(np.array([6], np.int32))
    flat = body.op("RESHAPE", [body.ends[0], shape], (6,))
    doubled = body.binary("ADD", body.ends[0], body.ends[0])
    graph = graphs.Graph()
    outputs = composite(graph, "test.two", [graph.input((2, 3))], [(2, 3), (6,)], 1)
    model = graph.build(outputs, others=[(body, [doubled, flat])])
    assert whole(check(model, random_values((2, 3)), load_delegate, delegate_path, tmp_path))


def test_outputs_alike_are_the_hosts(load_delegate, delegate_path, tmp_path):
    body = Body((2, 3))
    doubled = body.binary("ADD", body.ends[0], body.ends[0])
    squared = body.binary("MUL", body.ends[0], body.ends[0])
    graph = graphs.Graph()
    outputs = composite(graph, "test.two", [graph.input((2, 3))], [(2, 3), (2, 3)], 1)
    model = graph.build(outputs, others=[(body, [squared, doubled])])
    explained = check(model, random_values((2, 3)), load_delegate, delegate_path, tmp_path)
    assert "order of the outputs" in explained["nodes"][0]["reason"]


def test_inputs_elsewhere_are_the_hosts(load_delegate, delegate_path, tmp_path):
    body, outputs = difference_body()
    late = body.input((2, 3))  # behind the others' results
    result = body.binary("ADD", outputs[0], late)
    graph = graphs.Graph()
    inputs = [graph.input((2, 3)) for _ in range(3)]
    made = composite(graph, "test.late", inputs, (2, 3), 1)
    model = graph.build([made], others=[(body, [result])])
    explained = check(model, random_values(*[(2, 3)] * 3), load_delegate, delegate_path, tmp_path)
    assert "are not its first 3 tensors" in explained["nodes"][0]["reason"]


def test_inputs_alike_without_names_are_the_hosts(load_delegate, delegate_path, tmp_path):
    graph = graphs.Graph()
    made = composite(graph, "test.difference", [graph.input((2, 3)), graph.input((2, 3))], (2, 3), 1)
    model = graph.build([made], others=[difference_body(named=False)])
    explained = check(model, random_values((2, 3), (2, 3)), load_delegate, delegate_path, tmp_path)
    assert "order of the inputs" in explained["nodes"][0]["reason"]


def test_what_nobody_computes_leaves_the_composite_to_the_host(load_delegate, delegate_path, tmp_path):
    graph = graphs.Graph()
    made = composite(graph, "test.difference", [graph.input((2, 3)), graph.input((2, 3))], (2, 3), 1)
    model = graph.build([made], others=[difference_body()])
    explained = check(
        model, random_values((2, 3), (2, 3)), load_delegate, delegate_path, tmp_path, ops_deny="STABLEHLO_COMPOSITE"
    )
    assert explained["nodes"][0]["reason"] == "the option ops_deny names this operator"


def rms_norm_body(shape, epsilon):
    body = Body(shape, shape[-1:])
    squares = body.binary("MUL", body.ends[0], body.ends[0])
    axis = body.constant(np.array([len(shape) - 1], np.int32))
    mean = body.op("MEAN", [squares, axis], (*shape[:-1], 1), "ReducerOptions", keepDims=True)
    shifted = body.binary("ADD", mean, body.constant(np.array(epsilon, np.float32)))
    normal = body.binary("MUL", body.ends[0], body.op("RSQRT", [shifted], shifted.shape))
    return body, [body.binary("MUL", normal, body.ends[1])]


@pytest.mark.parametrize("shape", [(1, 5, 64), (2, 3, 4, 7)])
@pytest.mark.parametrize("fusion", ["on", "off"])
def test_rms_norm_is_one_step(shape, fusion, load_delegate, delegate_path, tmp_path):
    graph = graphs.Graph()
    x, weights = graph.input(shape), graph.constant(random_values(shape[-1:])[0] + 1)
    made = composite(graph, "odml.rms_norm", [x, weights], shape, 1, epsilon=1e-5)
    model = graph.build([made], others=[rms_norm_body(shape, 1e-5)])
    explained = check(model, random_values(shape), load_delegate, delegate_path, tmp_path, 4e-6, fusion=fusion)
    assert whole(explained)
    assert [step["ops"] for step in explained["partitions"][0]["steps"]] == ["FUSELITE_LAYER_NORM"]


def attention_body(queries, keys, heads, key_heads, depth, scale):
    """As the converter writes it: [batch, row, head, channel]."""
    group = heads // key_heads
    cache = (1, keys, key_heads, depth)
    body = Body((1, queries, heads, depth), cache, cache, (1, 1, queries, keys))
    q, k, v, mask = body.ends
    inner = body.constant(np.array([0, 2, 1, 3], np.int32))

    def turned(x):
        return body.op("TRANSPOSE", [x, inner], (x.shape[0], x.shape[2], x.shape[1], x.shape[3]))

    def reshaped(x, shape):
        return body.op("RESHAPE", [x, body.constant(np.array(shape, np.int32))], shape)

    def repeated(x):
        apart = reshaped(turned(x), (1, key_heads, 1, keys, depth))
        shape = (1, key_heads, group, keys, depth)
        copies = body.op("BROADCAST_TO", [apart, body.constant(np.array(shape, np.int32))], shape, version=2)
        return reshaped(copies, (heads, keys, depth))

    scaled = body.binary("MUL", q, body.constant(np.array(scale, np.float32)))
    rows = reshaped(turned(scaled), (heads, queries, depth))
    scores = body.op("BATCH_MATMUL", [rows, repeated(k)], (heads, queries, keys), "BatchMatMulOptions", adjY=True)
    masked = body.binary("ADD", scores, mask, (1, heads, queries, keys))
    weights = body.op("SOFTMAX", [masked], masked.shape, "SoftmaxOptions", beta=1.0)
    flat = reshaped(weights, (heads, queries, keys))
    means = body.op("BATCH_MATMUL", [flat, repeated(v)], (heads, queries, depth), "BatchMatMulOptions")
    return body, [turned(reshaped(means, (1, heads, queries, depth)))]


@pytest.mark.parametrize("name", ["odml.scaled_dot_product_attention", "test.attention"])
@pytest.mark.parametrize("queries, heads, key_heads", [(1, 4, 2), (9, 6, 3), (40, 4, 1), (3, 5, 5)])
def test_attention_over_a_cache(name, queries, heads, key_heads, load_delegate, delegate_path, tmp_path):
    keys, depth, scale = 50, 24, 0.25
    cache = (1, keys, key_heads, depth)
    shapes = [(1, queries, heads, depth), cache, cache, (1, 1, queries, keys)]
    graph = graphs.Graph()
    inputs = [graph.input(shape) for shape in shapes]
    made = composite(graph, name, inputs, shapes[0], 1, scale=scale)
    model = graph.build([made], others=[attention_body(queries, keys, heads, key_heads, depth, scale)])
    values = random_values(*shapes)
    seen = np.arange(keys)[None] <= 7 + np.arange(queries)[:, None]
    values[3] = np.where(seen, 0, NAN_FREE_MASK).astype(np.float32).reshape(shapes[3])
    explained = check(model, values, load_delegate, delegate_path, tmp_path, 4e-6)
    assert whole(explained)
    if name.startswith("odml"):
        assert [step["ops"] for step in explained["partitions"][0]["steps"]] == ["FUSELITE_ATTENTION"]
