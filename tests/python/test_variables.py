"""Resource variables: held by the delegate where all their users are its own, and in our own interpreter."""

import graphs
import numpy as np
import own_interpreter
import pytest
import running
from ai_edge_litert import schema_py_generated as schema

SHAPE, RUNS = (1, 8), 3


class Stateful(graphs.Graph):
    def handle(self, name="state"):
        return self.op(
            "VAR_HANDLE",
            [],
            (),
            "VarHandleOptions",
            dtype=np.int32,
            tensor_type=schema.TensorType.RESOURCE,
            container="",
            sharedName=name,
        )

    def read(self, handle, dtype=np.float32):
        return self.op("READ_VARIABLE", [handle], SHAPE, dtype=dtype)

    def assign(self, handle, value):
        self.op("ASSIGN_VARIABLE", [handle, value], [])

    def call_once(self, subgraph=1):
        self.op("CALL_ONCE", [], [], "CallOnceOptions", dtype=np.float32, initSubgraphIndex=subgraph)


def initializer(*names):
    graph = Stateful()
    for i, name in enumerate(names):
        graph.assign(graph.handle(name), graph.constant(np.full(SHAPE, i + 0.5, np.float32)))
    return graph, []


def running_sum():
    graph = Stateful()
    x = graph.input(SHAPE)
    graph.call_once()
    handle = graph.handle()
    total = graph.op("ADD", [graph.read(handle), x], SHAPE, "AddOptions")
    graph.assign(handle, total)
    return graph, [graph.op("COS", [total], SHAPE)]


def old_and_new():
    """What is read before an assignment stays what it was."""
    graph = Stateful()
    x = graph.input(SHAPE)
    graph.call_once()
    handle, other = graph.handle(), graph.handle("other")
    old = graph.read(handle)
    graph.assign(handle, x)
    shape = graph.constant(np.array([8, 1], np.int32))
    moved = graph.op("RESHAPE", [old, shape], (8, 1))
    new = graph.read(handle)
    graph.assign(other, old)
    both = graph.op("CONCATENATION", [new, graph.read(other)], (2, 8), "ConcatenationOptions", axis=0)
    return graph, [moved, both]


def run_all(made, values):
    return [[output.copy() for output in made(value)] for value in values]


def check(model, load_delegate, delegate_path, tmp_path, **options):
    """Runs one after the other in both hosts as in LiteRT; the explanation in LiteRT."""
    path, explain = tmp_path / "model.tflite", tmp_path / "explain.json"
    path.write_bytes(model)
    rng = np.random.default_rng(0)
    values = [[rng.uniform(-1, 1, SHAPE).astype(np.float32)] for _ in range(RUNS)]
    plain = running.reference(path)
    expected = run_all(lambda value: running.run(plain, value), values)
    made = running.delegated(path, load_delegate(explain_file=explain, **options))
    results = [run_all(lambda value: running.run(made, value), values)]
    for delegate in (None, own_interpreter.Delegate(delegate_path, **options)):
        own = own_interpreter.Interpreter(path, delegate)
        results.append(run_all(own.run, values))
    for result in results:
        for actual, wanted in zip(result, expected, strict=True):
            assert running.largest_difference(actual, wanted) <= 1e-6
    return running.explanation(explain)


@pytest.mark.parametrize("fusion", ["on", "off"])
@pytest.mark.parametrize("build", [running_sum, old_and_new])
def test_state_splits_no_graph(build, fusion, load_delegate, delegate_path, tmp_path):
    graph, outputs = build()
    model = graph.build(outputs, others=[initializer("state", "other")])
    explained = check(model, load_delegate, delegate_path, tmp_path, fusion=fusion)
    assert all(node["claimed"] for node in explained["nodes"])
    assert len(explained["partitions"]) == 1


def test_partitions_share_the_state(load_delegate, delegate_path, tmp_path):
    graph, outputs = running_sum()
    model = graph.build(outputs, others=[initializer("state")])
    explained = check(model, load_delegate, delegate_path, tmp_path, ops_deny="ADD")
    assert {node["op"] for node in explained["nodes"] if not node["claimed"]} <= {"ADD", "COS"}


def test_one_user_left_to_the_host_leaves_it_all(load_delegate, delegate_path, tmp_path):
    graph, outputs = running_sum()
    model = graph.build(outputs, others=[initializer("state")])
    explained = check(model, load_delegate, delegate_path, tmp_path, ops_deny="READ_VARIABLE")
    reasons = {node["op"]: node["reason"] for node in explained["nodes"]}
    assert "uses the variables too" in reasons["ASSIGN_VARIABLE"] and "uses the variables too" in reasons["CALL_ONCE"]


def test_variables_of_other_subgraphs_are_left_to_the_host(load_delegate, delegate_path, tmp_path):
    graph, outputs = running_sum()
    third = Stateful()
    third.inputs.append(third._tensor(SHAPE, np.float32, None, 0))
    value = third.read(third.handle())
    model = graph.build(outputs, others=[initializer("state"), (third, [value])])
    explained = check(model, load_delegate, delegate_path, tmp_path)
    reasons = {node["op"]: node["reason"] for node in explained["nodes"]}
    assert "graph 2 uses the same variables" in reasons["READ_VARIABLE"]
