"""States and random numbers of subgraphs that operators run: when they begin anew, in LiteRT and in every other host.

LiteRT prepares a subgraph for each run of the operator that calls it, for each turn of a loop that is given other shapes,
and for each turn of a loop over handles."""

import graphs
import loops
import numpy as np
import own_interpreter
import pytest
import running
from test_composites import composite
from test_variables import Stateful, initializer

F32, SHAPE = np.float32, (1, 2)


def added(g, x):
    """The sum of `x` and all that came before it."""
    one = g.constant(np.eye(2, dtype=F32))
    zero = g.constant(np.zeros(2, F32))
    return g.op("RNN", [x, one, one, zero, g.variable(SHAPE)], SHAPE, "RNNOptions")


def drawn(g):
    return g.op("RANDOM_UNIFORM", [g.constant(np.int32(SHAPE))], SHAPE, "RandomOptions", dtype=F32, seed=3, seed2=4)


def draws_classes(g):
    logits = g.constant(np.zeros((1, 9), F32))
    classes = g.op("MULTINOMIAL", [logits, loops.value(g, np.int32(2))], SHAPE, "RandomOptions", dtype=np.int64, seed=1)
    return g.op("CAST", [classes], SHAPE, "CastOptions", dtype=F32)


def callee(open_shapes, named=False):
    """`named`: as a converter names a composite's inputs."""
    g = graphs.Graph()
    x, shape = g.input(SHAPE), g.input((2,), np.int32)
    for place, value in enumerate([x, shape] if named else []):
        g.tensors[value.index].name = f"arg{place}"
    y = added(g, x)
    return g, [g.op("RESHAPE", [y, shape], SHAPE) if open_shapes else y, drawn(g), draws_classes(g)]


def branches(open_shapes=False):
    g = graphs.Graph()
    condition, x, shape = g.input((), np.bool_), g.input(SHAPE), g.input((2,), np.int32)
    options = {"like": x, "thenSubgraphIndex": 1, "elseSubgraphIndex": 2}
    y = g.op("IF", [condition, x, shape], [SHAPE] * 3, "IfOptions", **options)
    return g.build(y, others=[callee(open_shapes), callee(open_shapes)])


def branches_of_open_shapes():
    return branches(open_shapes=True)


def composites(open_shapes=False):
    """Two, which run the same subgraph."""
    g = graphs.Graph()
    x, shape = g.input(SHAPE), g.input((2,), np.int32)
    first, second = (composite(g, "test.sum", [x, shape], [SHAPE] * 3, 1) for _ in range(2))
    return g.build([*first, *second], others=[callee(open_shapes, named=True)])


def composites_of_open_shapes():
    return composites(open_shapes=True)


def loop(open_shapes=False):
    def body(g, count, x, total, *_):
        y = added(g, x)
        # Of a shape that the run tells, and that no turn changes.
        open_shape = g.op("PACK", [loops.value(g, np.int32(1)), loops.value(g, np.int32(2))], (2,), "PackOptions", valuesCount=2)
        return x, g.op("RESHAPE", [y, open_shape], SHAPE) if open_shapes else y, drawn(g), draws_classes(g)

    return loops.loop([(SHAPE, F32)] * 4, body, 3)


def loop_of_open_shapes():
    return loop(open_shapes=True)


def shapes_that_turns_change(limit):
    """A value of one element in the first two turns, of two in the next ones: two turns of the same shape follow each
    other. No random numbers: the delegate moves them behind the value whose shape changes."""

    def body(g, count, total, _, rows):
        half = g.op("FLOOR_DIV", [count, loops.value(g, np.int32(2))], (), "FloorDivOptions")
        size = g.op("RESHAPE", [loops.next_of(g, half), g.constant(np.int32([1]))], (1,))
        y = g.op("SLICE", [rows, g.constant(np.int32([0])), size], (1,))
        g.tensors[y.index].shapeSignature = [-1]
        return added(g, g.constant(np.ones(SHAPE, F32))), y, rows

    return loops.loop([(SHAPE, F32), ((1,), F32), ((9,), F32)], body, limit)


def three_turns_of_changing_shapes():
    return shapes_that_turns_change(3)


def five_turns_of_changing_shapes():
    return shapes_that_turns_change(5)


def composite_in_a_loop():
    """The composite begins anew in each turn, what stands beside it in each run of the loop."""

    def inputs(g):
        return [g.input((), np.int32), *(g.input(SHAPE) for _ in range(5)), g.input((2,), np.int32)]

    body = graphs.Graph()
    count, x, *_, shape = inputs(body)
    results = [*composite(body, "test.sum", [x, shape], [SHAPE] * 3, 3), added(body, x)]
    g = graphs.Graph()
    first = [loops.value(g, np.int32(0)), *inputs(g)[1:]]
    g.inputs = g.inputs[1:]
    outputs = loops.loop_of(g, first, 1, 2)
    others = [loops.below(inputs, 3), (body, [loops.next_of(body, count), x, *results, shape]), callee(False, named=True)]
    return g.build(outputs, others=others)


def loop_over_a_handle():
    """Each turn begins anew."""

    def inputs(g):
        values = [g.input((), np.int32), g.input((), np.int32), g.input(SHAPE), g.input(SHAPE)]
        g.tensors[values[1].index].type = graphs.schema.TensorType.RESOURCE
        return values

    body = Stateful()
    count, handle, *_ = inputs(body)
    results = [loops.next_of(body, count), handle, added(body, body.constant(np.ones(SHAPE, F32))), drawn(body)]
    g = Stateful()
    first = [g.input(SHAPE), g.input(SHAPE)]
    g.call_once()
    handle = g.handle()
    values = [loops.value(g, np.int32(0)), handle, *first]
    shapes = [value.shape for value in values]
    outputs = g.op("WHILE", values, shapes, "WhileOptions", condSubgraphIndex=2, bodySubgraphIndex=3)
    for output, value in zip(outputs, values, strict=True):
        output.dtype, g.tensors[output.index].type = value.dtype, g.tensors[value.index].type
    return g.build(outputs[2:], others=[initializer("state"), loops.below(inputs, 3), (body, results)])


MODELS = [
    branches,
    branches_of_open_shapes,
    composites,
    composites_of_open_shapes,
    loop,
    loop_of_open_shapes,
    three_turns_of_changing_shapes,
    five_turns_of_changing_shapes,
    composite_in_a_loop,
    loop_over_a_handle,
]


def inputs_of(host, seed):
    rng = np.random.default_rng(seed)
    values = {np.bool_: lambda shape: np.array(seed % 3 != 1), np.int32: lambda shape: np.int32(SHAPE)}
    floats = lambda shape: rng.integers(1, 5, shape).astype(F32)  # noqa: E731
    return [values.get(d["dtype"], floats)(d["shape"]) for d in host.get_input_details()]


@pytest.mark.parametrize("build", MODELS)
def test_begin_anew_where_those_of_litert_do(build, load_delegate, delegate_path):
    model = bytes(build())
    plain = running.interpret(model)
    hosted = running.interpret(model, [load_delegate()], running.Resolver.BUILTIN_WITHOUT_DEFAULT_DELEGATES)
    own = own_interpreter.Interpreter(model)
    both = own_interpreter.Interpreter(model, own_interpreter.Delegate(delegate_path))
    for seed in range(5):
        values = inputs_of(plain, seed)
        expected = running.invoke(plain, values)
        for host, actual in {"LiteRT": running.invoke(hosted, values), "own": own.run(values), "both": both.run(values)}.items():
            for a, e in zip(actual, expected, strict=True):
                np.testing.assert_allclose(a, e, rtol=1e-6, err_msg=f"{host}, invoke {seed}")


def test_a_resize_lets_them_begin_anew_once(load_delegate, delegate_path):
    """Beside a loop whose body has a state, a state of the main graph's, which lasts."""
    g = graphs.Graph()
    x, longer = g.input(SHAPE), g.input((3,))
    sums = added(g, x)

    def inputs(g):
        return [g.input((), np.int32), g.input(SHAPE), g.input(SHAPE), g.input((3,))]

    body = graphs.Graph()
    count, value, _, any_length = inputs(body)
    results = [loops.next_of(body, count), value, added(body, value), any_length]
    first = [loops.value(g, np.int32(0)), sums, g.constant(np.zeros(SHAPE, F32)), longer]
    model = bytes(g.build([*loops.loop_of(g, first, 1, 2)[2:], sums], others=[loops.below(inputs, 3), (body, results)]))
    hosts = [running.interpret(model), running.interpret(model, [load_delegate()])]
    own = [own_interpreter.Interpreter(model), own_interpreter.Interpreter(model, own_interpreter.Delegate(delegate_path))]
    for length in (3, 3, 4, 4, 4, 3):
        for host in hosts if length != hosts[0].get_input_details()[1]["shape"][0] else []:
            host.resize_tensor_input(host.get_input_details()[1]["index"], [length])
            host.allocate_tensors()
        for host in own if length != own[0].inputs()[1].shape[0] else []:
            host.resize(1, [length])
            host.allocate()
        values = [np.ones(SHAPE, F32), np.ones(length, F32)]
        expected = running.invoke(hosts[0], values)
        for actual in (running.invoke(hosts[1], values), *(host.run(values) for host in own)):
            for a, e in zip(actual, expected, strict=True):
                np.testing.assert_array_equal(a, e)


def behind_branches(shapes):
    """A loop with a state, of what one of two branches gives."""

    def branch(name, shape):
        g = graphs.Graph()
        y = g.op(name, [g.input(SHAPE)], SHAPE)
        return g, [g.op("RESHAPE", [y, g.constant(np.int32(shape))], shape)]

    def inputs(g):
        return [g.input((), np.int32), g.input(SHAPE), g.input(SHAPE)]

    body = graphs.Graph()
    count, x, _ = inputs(body)
    results = [loops.next_of(body, count), x, added(body, x)]
    g = graphs.Graph()
    condition, x = g.input((), np.bool_), g.op("ABS", [g.input(SHAPE)], SHAPE)
    y = g.op("IF", [condition, x], shapes[0], "IfOptions", like=x, thenSubgraphIndex=1, elseSubgraphIndex=2)
    chosen = g.op("RESHAPE", [y, g.constant(np.int32(SHAPE))], SHAPE)
    outputs = loops.loop_of(g, [loops.value(g, np.int32(0)), chosen, g.constant(np.zeros(SHAPE, F32))], 3, 4)
    others = [branch("NEG", shapes[0]), branch("SQUARE", shapes[1]), loops.below(inputs, 3), (body, results)]
    return bytes(g.build([g.op("NEG", [outputs[2]], SHAPE)], others=others))


def test_states_behind_branches_can_be_reset_before_the_first_run(load_delegate, tmp_path):
    """As in LiteRT, which prepares a loop as soon as its operands' shapes are known: they are, whichever branch runs."""
    model, explain = behind_branches([SHAPE, SHAPE]), tmp_path / "explain.json"
    plain = running.interpret(model)
    hosted = running.interpret(model, [load_delegate(explain_file=explain)], running.Resolver.BUILTIN_WITHOUT_DEFAULT_DELEGATES)
    assert running.delegate_kernels(hosted) == 1
    (partition,) = running.explanation(explain)["partitions"]
    assert len(partition["host_run_nodes"]) == 1
    for seed in range(4):
        values = inputs_of(plain, seed)
        for a, e in zip(running.run(hosted, values), running.run(plain, values), strict=True):
            np.testing.assert_allclose(a, e, rtol=1e-6)


def test_states_behind_branches_of_other_shapes(load_delegate):
    """Which not even LiteRT resets before a run."""
    model = behind_branches([SHAPE, (2, 1)])
    plain = running.interpret(model)
    hosted = running.interpret(model, [load_delegate()], running.Resolver.BUILTIN_WITHOUT_DEFAULT_DELEGATES)
    for host in plain, hosted:
        with pytest.raises(RuntimeError, match="was not true"):
            host.reset_all_variables()
    for seed in range(4):
        values = inputs_of(plain, seed)
        for a, e in zip(running.invoke(hosted, values), running.invoke(plain, values), strict=True):
            np.testing.assert_allclose(a, e, rtol=1e-6)


def test_a_composite_that_reads_a_state(load_delegate, delegate_path):
    """Which nothing writes."""
    body = graphs.Graph()
    y = body.op("ADD", [body.input(SHAPE), body.variable(SHAPE)], SHAPE, "AddOptions")
    g = graphs.Graph()
    outputs = composite(g, "test.sum", [g.op("NEG", [g.input(SHAPE)], SHAPE)], [SHAPE], 1)
    model = bytes(g.build(outputs, others=[(body, [y])]))
    values = [np.ones(SHAPE, F32)]
    both = own_interpreter.Interpreter(model, own_interpreter.Delegate(delegate_path))
    for actual in (running.invoke(running.interpret(model, [load_delegate()]), values), both.run(values)):
        np.testing.assert_array_equal(actual, [-np.ones(SHAPE, F32)])


def test_a_loop_inside_may_share_the_condition(delegate_path):
    """Of longer values than those of the outer one: in our own interpreter; LiteRT has let go of the condition by then."""

    def condition():
        g = graphs.Graph()
        largest = g.op("REDUCE_MAX", [g.input((2,)), g.constant(np.int32([0]))], (), "ReducerOptions")
        return g, [g.op("LESS", [largest, loops.value(g, F32(5))], (), "LessOptions", dtype=np.bool_)]

    inner = graphs.Graph()
    counted = inner.op("ADD", [inner.input((99,)), loops.value(inner, F32(1))], (99,), "AddOptions")
    outer = graphs.Graph()
    x = outer.input((2,))
    (fives,) = loops.loop_of(outer, [outer.constant(np.full(99, 3, F32))], 1, 3)
    some = outer.op("SLICE", [fives, outer.constant(np.int32([0])), outer.constant(np.int32([2]))], (2,))
    total = outer.op("ADD", [x, outer.op("MUL", [some, loops.value(outer, F32(0.2))], (2,), "MulOptions")], (2,), "AddOptions")
    g = graphs.Graph()
    outputs = loops.loop_of(g, [g.input((2,))], 1, 2)
    model = bytes(g.build(outputs, others=[condition(), (outer, [total]), (inner, [counted])]))
    for delegate in (None, own_interpreter.Delegate(delegate_path)):
        host = own_interpreter.Interpreter(model, delegate)
        for start in (0, 2):
            np.testing.assert_array_equal(host.run([np.full(2, start, F32)]), [np.full(2, 5, F32)])
