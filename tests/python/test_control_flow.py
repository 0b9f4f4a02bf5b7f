"""Loops and branches: the delegate in LiteRT and in our own interpreter, and our interpreter alone, against LiteRT."""

import json
import re

import graphs
import loops
import numpy as np
import own_interpreter
import pytest
import running
from ai_edge_litert import interpreter as litert
from loops import branch, next_of, nothing_but_loops, value

STEPS = 5


def loop(shapes, body, limit=STEPS):
    return loops.loop(shapes, body, limit)


def lstm():
    return loops.lstm(STEPS, 2, 9, 7)


def gru():
    return loops.gru(STEPS, 1, 9, 7)


def growing():
    return loops.growing(STEPS)


LONG = 37  # more turns than rows that are multiplied at once


def long_lstm():
    return loops.lstm(LONG, 1, 9, 7)


def long_gru():
    return loops.gru(LONG, 2, 9, 7)


def product_of_a_row():
    """As Keras writes it: the row and the state are multiplied by weights of their own."""
    rng = np.random.default_rng(3)

    def body(g, count, x, h):
        of_row = loops.dense(g, loops.row_of(g, x, count), loops.weights_of(rng, 7, 9))
        return x, g.op("TANH", [loops.plus(g, of_row, loops.dense(g, h, loops.weights_of(rng, 7, 7)))], h.shape)

    return loop([((LONG, 1, 9), np.float32), ((1, 7), np.float32)], body, LONG)


def product_of_integers():
    """Whose rows are multiplied ahead, to the bit."""
    rng = np.random.default_rng(4)

    def body(g, count, x, h):
        row = g.op("QUANTIZE", [loops.row_of(g, x, count)], (1, 9), dtype=np.int8, scale=0.01, zero_point=3)
        weights = g.constant(rng.integers(-127, 128, (7, 9)).astype(np.int8), 0.02)
        y = g.op("FULLY_CONNECTED", [row, weights, None], (1, 7), "FullyConnectedOptions", dtype=np.int8, scale=0.1)
        return x, loops.plus(g, h, g.op("DEQUANTIZE", [y], (1, 7), dtype=np.float32))

    return loop([((LONG, 1, 9), np.float32), ((1, 7), np.float32)], body, LONG)


def hybrid_product():
    """By weights of int8, of rows that are quantized one by one."""
    rng = np.random.default_rng(5)

    def body(g, count, x, h):
        weights = g.constant(rng.integers(-127, 128, (7, 9)).astype(np.int8), 0.02)
        y = g.op("FULLY_CONNECTED", [loops.row_of(g, x, count), weights, None], (1, 7), "FullyConnectedOptions")
        return x, loops.plus(g, h, y)

    return loop([((LONG, 1, 9), np.float32), ((1, 7), np.float32)], body, LONG)


def rows_that_the_body_writes():
    """Each turn multiplies a row that the one before has written."""
    rng = np.random.default_rng(6)

    def body(g, count, x, h):
        y = loops.plus(g, h, loops.dense(g, loops.row_of(g, x, count), loops.weights_of(rng, 9, 9)))
        row = g.op("RESHAPE", [g.op("TANH", [y], (1, 9)), value(g, np.int32([1, 1, 9]))], (1, 1, 9))
        start = g.op(
            "PACK", [next_of(g, count), value(g, np.int32(0)), value(g, np.int32(0))], (3,), "PackOptions", valuesCount=3
        )
        return g.op("DYNAMIC_UPDATE_SLICE", [x, row, start], x.shape), y

    return loop([((LONG, 1, 9), np.float32), ((1, 9), np.float32)], body, LONG)


def given_twice():
    shape = (3, 4)

    def body(g, count, a, b, c, d):
        both = g.op("ADD", [c, d], shape, "AddOptions")
        return a, b, both, both

    return loop([(shape, np.float32)] * 4, body)


def constant_in_the_body():
    def body(g, count, a, b):
        return g.constant(np.arange(4, dtype=np.float32)), g.op("ADD", [a, b], (4,), "AddOptions")

    return loop([((4,), np.float32)] * 2, body)


def alike_for_a_while():
    """Two counters that are equal for the first turns."""

    def body(g, count, other, a):
        limited = g.op("MINIMUM", [next_of(g, other), value(g, np.int32(2))], ())
        as_float = g.op("CAST", [limited], (), "CastOptions", dtype=np.float32)
        return limited, g.op("ADD", [a, as_float], (4,), "AddOptions")

    return loop([((), np.int32), ((4,), np.float32)], body)


def handed_down():
    """What one turn is given, the next one has in another place."""

    def body(g, count, a, b):
        return g.op("EXP", [g.op("NEG", [b], (4,))], (4,)), a

    return loop([((4,), np.float32)] * 2, body)


def handed_on(shape=(3, 4), limit=STEPS):
    """A value that the body hands on unchanged, which nodes behind the loop read: one of ours and another loop."""

    def inputs(g):
        return [g.input((), np.int32), g.input(shape), g.input(shape)]

    def body(name):
        g = graphs.Graph()
        count, kept, changed = inputs(g)
        return g, [next_of(g, count), kept, g.op(name, [loops.plus(g, kept, changed)], shape)]

    g = graphs.Graph()
    x, y = g.op("NEG", [g.input(shape)], shape), g.input(shape)
    first = loops.loop_of(g, [value(g, np.int32(0)), x, y], 1, 2)
    second = loops.loop_of(g, [value(g, np.int32(0)), *first[1:]], 1, 3)
    outputs = [g.op("EXP", [second[1]], shape), loops.plus(g, first[1], second[2])]
    return g.build(outputs, others=[loops.below(inputs, limit), body("TANH"), body("ABS")])


def handed_on_by_no_turn():
    return handed_on(limit=0)


def handed_on_beside_open_shapes(shape=(3, 4)):
    """A value that the body hands on unchanged, and one whose shape the host does not know ahead."""

    def inputs(g):
        return [g.input((), np.int32), g.input(shape), g.input(shape), g.input((2,), np.int32)]

    inner = graphs.Graph()
    count, kept, changed, dims = inputs(inner)
    reshaped = inner.op("RESHAPE", [loops.plus(inner, kept, changed), dims], shape)
    g = graphs.Graph()
    first = [value(g, np.int32(0)), g.input(shape), g.input(shape), value(g, np.int32(shape))]
    results = loops.loop_of(g, first, 1, 2)
    outputs = [g.op("NEG", [results[1]], shape), results[2]]
    return g.build(outputs, others=[loops.below(inputs, STEPS), (inner, [next_of(inner, count), kept, reshaped, dims])])


def same_sums():
    """States that are equal in every turn, and which nothing tells apart."""

    def body(g, count, a, b):
        half = g.constant(np.full(4, 0.5, np.float32))
        return g.op("MUL", [a, half], (4,), "MulOptions"), g.op("MUL", [b, half], (4,), "MulOptions")

    return loop([((4,), np.float32)] * 2, body)


def reshaped_each_turn():
    """A state of as many elements whose shape changes."""

    def body(g, count, a):
        y = g.op("TRANSPOSE", [a, value(g, np.int32([1, 0]))], (3, 2))
        return [g.op("CUMSUM", [y, value(g, np.int32(0))], (3, 2), "CumsumOptions")]

    return loop([((2, 3), np.float32)], body, limit=4)


def no_turn():
    return loop([((4,), np.float32)], lambda g, count, a: [g.op("NEG", [a], (4,))], limit=0)


def cases():
    """Of three branches; an index out of range means the last. LiteRT wants all other subgraphs to be branches."""
    shape = (3, 5)

    def part(name):
        g = graphs.Graph()
        x = g.input(shape)
        return g, [g.op(name, [x], shape)]

    g = graphs.Graph()
    i, x = g.input((), np.int32), g.input(shape)
    y = g.op("STABLEHLO_CASE", [i, x], shape, "StablehloCaseOptions", like=x, branchSubgraphIndices=[1, 2, 3])
    return g.build([g.op("NEG", [y], shape)], others=[part("EXP"), part("SQUARE"), part("ABS")])


def choose(shapes):
    """Two branches of one result and of constants of their own, between other operators."""

    def part(name, shape):
        g = graphs.Graph()
        x, y = g.input((3, 5)), g.input((4, 5), np.int32)
        weights = g.constant(np.linspace(-1, 1, 25, dtype=np.float32).reshape(5, 5) * len(name))
        sums = g.op("FULLY_CONNECTED", [g.op(name, [x], (3, 5)), weights, None], (3, 5), "FullyConnectedOptions")
        rows = g.op("CAST", [y], (4, 5), "CastOptions", dtype=np.float32)
        both = g.op("CONCATENATION", [sums, rows], (7, 5), "ConcatenationOptions", axis=0)
        return g, [g.op("RESHAPE", [both, g.constant(np.array(shape, np.int32))], shape)]

    g = graphs.Graph()
    condition, x, y = g.input((), np.bool_), g.input((3, 5)), g.input((4, 5), np.int32)
    chosen = g.op(
        "IF", [condition, g.op("ABS", [x], (3, 5)), y], shapes[0], "IfOptions", like=x, thenSubgraphIndex=1, elseSubgraphIndex=2
    )
    return g.build([g.op("NEG", [chosen], shapes[0])], others=[part("EXP", shapes[0]), part("SQUARE", shapes[1])])


def one_result():
    return choose([(7, 5), (7, 5)])


def other_shapes():
    return choose([(7, 5), (5, 7)])


def branches_of_two_types():
    """Results that their types tell apart."""

    def part(name):
        g = graphs.Graph()
        x = g.input((3, 5))
        y = g.op(name, [x], (3, 5))
        return g, [g.op("CAST", [y], (3, 5), "CastOptions", dtype=np.int32), y]

    g = graphs.Graph()
    condition, x = g.input((), np.bool_), g.input((3, 5))
    y, z = g.op("IF", [condition, x], [(3, 5)] * 2, "IfOptions", like=x, thenSubgraphIndex=1, elseSubgraphIndex=2)
    g.tensors[y.index].type = graphs.TYPES[np.dtype(np.int32)]
    return g.build([y, g.op("NEG", [z], (3, 5))], others=[part("EXP"), part("SQUARE")])


MODELS = {
    f.__name__: f
    for f in (
        lstm,
        gru,
        long_lstm,
        long_gru,
        product_of_a_row,
        product_of_integers,
        hybrid_product,
        rows_that_the_body_writes,
        given_twice,
        constant_in_the_body,
        alike_for_a_while,
        handed_on,
        handed_on_by_no_turn,
        handed_on_beside_open_shapes,
        same_sums,
        reshaped_each_turn,
        no_turn,
        growing,
        nothing_but_loops,
        branch,
        cases,
        one_result,
        other_shapes,
        branches_of_two_types,
    )
}


def inputs_of(interpreter, seed):
    rng = np.random.default_rng(seed)
    return [
        np.array(seed % 2 == 0)
        if d["dtype"] == np.bool_
        else np.full(d["shape"], seed - 1, np.int32)
        if d["dtype"] == np.int32
        else rng.uniform(-1, 1, d["shape"]).astype(d["dtype"])
        for d in interpreter.get_input_details()
    ]


@pytest.mark.parametrize("name", MODELS)
def test_has_the_outputs_of_litert(name, load_delegate, delegate_path):
    model = MODELS[name]()
    # LiteRT's reference kernels lack STABLEHLO_CASE.
    kernels = running.Resolver.BUILTIN_WITHOUT_DEFAULT_DELEGATES if name == "cases" else running.Resolver.BUILTIN_REF

    def hosted(**options):
        interpreter = litert.Interpreter(model_content=model, experimental_op_resolver_type=kernels, **options)
        interpreter.allocate_tensors()
        return interpreter

    plain, delegated = hosted(), hosted(experimental_delegates=[load_delegate()])
    own = own_interpreter.Interpreter(model)
    both = own_interpreter.Interpreter(model, own_interpreter.Delegate(delegate_path))
    for seed in range(4):
        values = inputs_of(plain, seed)
        expected = running.run(plain, values)
        for host, actual in {"LiteRT": running.run(delegated, values), "own": own.run(values), "both": both.run(values)}.items():
            for a, e in zip(actual, expected, strict=True):
                assert a.shape == e.shape, host
                np.testing.assert_allclose(a, e, rtol=1e-5, atol=1e-6, err_msg=host)


def turns_of(profile, graph):
    """How often the host ran the partition of a subgraph."""
    partitions = json.loads(profile.read_text())["partitions"]
    return max(step["runs"] for part in partitions if part["graph"] == graph for step in part["steps"])


@pytest.mark.parametrize("host", ["LiteRT", "own"])
def test_a_loop_runs_in_one_call_of_its_body(host, load_delegate, delegate_path, tmp_path):
    """As soon as the first turns have told which result goes where: the host sees one turn, and asks the condition
    before it and behind it."""
    profile, runs = tmp_path / "profile.json", 6
    model = lstm()
    if host == "own":
        interpreter = own_interpreter.Interpreter(model, own_interpreter.Delegate(delegate_path, profile_file=profile))
        values = inputs_of(litert.Interpreter(model_content=model), 0)
        for _ in range(runs):
            interpreter.run(values)
    else:
        interpreter = litert.Interpreter(model_content=model, experimental_delegates=[load_delegate(profile_file=profile)])
        interpreter.allocate_tensors()
        for seed in range(runs):
            running.run(interpreter, inputs_of(interpreter, seed))
    del interpreter
    assert turns_of(profile, 2) == runs * STEPS
    # Without anything learnt it would be (STEPS + 1) times as many.
    assert turns_of(profile, 1) <= 2 * runs + 2


def test_rows_multiplied_ahead_have_the_same_bits_in_each_run(load_delegate):
    """Whatever the runs before have left, and whether the host runs the turns or the body does."""
    interpreter = litert.Interpreter(model_content=long_lstm(), experimental_delegates=[load_delegate()])
    interpreter.allocate_tensors()
    values, others = (inputs_of(interpreter, seed) for seed in (1, 2))
    first = running.run(interpreter, values)
    for between in (values, others, values):
        running.run(interpreter, between)
        for a, b in zip(running.run(interpreter, values), first, strict=True):
            np.testing.assert_array_equal(a, b)


def test_a_row_out_of_range_is_an_error(load_delegate):
    """As LiteRT's GATHER has it."""
    model = loops.loop(
        [((3, 1, 9), np.float32), ((1, 7), np.float32)],
        lambda g, count, x, h: (x, loops.plus(g, h, loops.dense(g, loops.row_of(g, x, count), np.ones((7, 9), np.float32)))),
        4,
    )
    interpreter = litert.Interpreter(model_content=model, experimental_delegates=[load_delegate()])
    interpreter.allocate_tensors()
    with pytest.raises(RuntimeError, match=r"index 3 is not in \[0, 3\)"):
        interpreter.invoke()


@pytest.mark.parametrize("build", [one_result, other_shapes, branches_of_two_types, cases])
def test_branches_are_claimed_whole(build, load_delegate, tmp_path):
    explain = tmp_path / "explain.json"
    interpreter = litert.Interpreter(model_content=build(), experimental_delegates=[load_delegate(explain_file=explain)])
    interpreter.allocate_tensors()
    explained = running.explanation(explain)
    assert all(node["claimed"] for node in explained["nodes"]), explained["nodes"]
    assert len(explained["partitions"]) == 1


def test_the_host_runs_what_only_it_can_order(load_delegate, tmp_path):
    """Inside the partition, since nothing tells the two results apart."""
    explain = tmp_path / "explain.json"
    interpreter = litert.Interpreter(model_content=branch(), experimental_delegates=[load_delegate(explain_file=explain)])
    interpreter.allocate_tensors()
    explained = running.explanation(explain)
    chosen = [node["node"] for node in explained["nodes"] if node["op"] == "IF"]
    assert all(node["claimed"] for node in explained["nodes"]), explained["nodes"]
    assert [partition["host_run_nodes"] for partition in explained["partitions"]] == [chosen]


def test_a_loop_is_judged_by_the_nodes_of_its_subgraphs(load_delegate, tmp_path):
    """As these are when the host shows their graph, so that nothing is said to run in a partition that does not."""
    explain = tmp_path / "explain.json"
    delegates = [load_delegate(explain_file=explain, ops_deny="TANH")]
    interpreter = litert.Interpreter(model_content=lstm(), experimental_delegates=delegates)
    interpreter.allocate_tensors()
    (node,) = running.explanation(explain)["nodes"]
    assert node["op"] == "WHILE" and not node["claimed"]
    assert re.fullmatch(r"node \d+ \(TANH\) of subgraph 2: the option ops_deny names this operator", node["reason"]), node[
        "reason"
    ]


def test_what_another_place_gets_next_turn(load_delegate, delegate_path):
    """As without the delegate: LiteRT writes the first value before it reads it for the second."""
    model = handed_down()
    plain = litert.Interpreter(model_content=model)
    delegated = litert.Interpreter(model_content=model, experimental_delegates=[load_delegate()])
    own = own_interpreter.Interpreter(model)
    both = own_interpreter.Interpreter(model, own_interpreter.Delegate(delegate_path))
    for interpreter in plain, delegated:
        interpreter.allocate_tensors()
    for seed in range(4):
        values = inputs_of(plain, seed)
        for actual, expected in (
            (running.run(delegated, values), running.run(plain, values)),
            (both.run(values), own.run(values)),
        ):
            for a, e in zip(actual, expected, strict=True):
                np.testing.assert_allclose(a, e, rtol=1e-5, atol=1e-6)


def test_values_change_places():
    """In our own interpreter; LiteRT writes the first before it reads it for the second."""
    model = loop([((4,), np.float32)] * 2, lambda g, count, a, b: (b, a))
    a, b = np.arange(4, dtype=np.float32), -np.arange(4, dtype=np.float32)
    _, *results = own_interpreter.Interpreter(model).run([a, b])
    np.testing.assert_array_equal(results, [b, a] if STEPS % 2 else [a, b])
