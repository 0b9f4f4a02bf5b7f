"""Models whose main graph is one WHILE: any body, and an LSTM and a GRU as converters write them without TensorLists."""

import graphs
import numpy as np

F32 = np.float32


def value(g, data):
    return g.constant(np.array(data))


def next_of(g, i):
    return g.op("ADD", [i, value(g, np.int32(1))], (), "AddOptions")


def below(inputs, limit):
    """The condition of a loop whose first value counts."""
    g = graphs.Graph()
    values = inputs(g)
    return g, [g.op("LESS", [values[0], value(g, np.int32(limit))], (), "LessOptions", dtype=np.bool_)]


def loop_of(g, values, condition, body):
    """A WHILE over `values`, by the indices of its subgraphs."""
    outputs = g.op(
        "WHILE", values, [v.shape for v in values], "WhileOptions", condSubgraphIndex=condition, bodySubgraphIndex=body
    )
    for output, like in zip(outputs, values, strict=True):
        output.dtype, g.tensors[output.index].type = like.dtype, graphs.TYPES[like.dtype]
    return outputs


def loop(shapes, body, limit):
    """A model that counts to `limit`; `body(g, count, *values)` gives the values of the next turn. The loop begins with
    the model's inputs."""

    def inputs(g):
        return [g.input(shape, dtype) for shape, dtype in [((), np.int32), *shapes]]

    inner = graphs.Graph()
    count, *values = inputs(inner)
    results = [next_of(inner, count), *body(inner, count, *values)]
    g = graphs.Graph()
    first = [value(g, np.int32(0)), *(g.input(shape, dtype) for shape, dtype in shapes)]
    return g.build(loop_of(g, first, 1, 2), others=[below(inputs, limit), (inner, results)])


def times(g, a, b):
    return g.op("MUL", [a, b], a.shape, "MulOptions")


def plus(g, a, b):
    return g.op("ADD", [a, b], a.shape, "AddOptions")


def joined(g, a, b):
    shape = (a.shape[0], a.shape[1] + b.shape[1])
    return g.op("CONCATENATION", [a, b], shape, "ConcatenationOptions", axis=1)


def dense(g, a, weights):
    bias = g.constant(np.linspace(-0.1, 0.1, len(weights), dtype=F32))
    shape = (a.shape[0], len(weights))
    return g.op("FULLY_CONNECTED", [a, g.constant(weights), bias], shape, "FullyConnectedOptions")


def parts(g, a, count):
    shape = (a.shape[0], a.shape[1] // count)
    return g.op("SPLIT", [value(g, np.int32(1)), a], [shape] * count, "SplitOptions", like=a, numSplits=count)


def weights_of(rng, rows, columns):
    return rng.uniform(-1, 1, (rows, columns)).astype(F32) * F32(columns**-0.5)


def row_of(g, x, count):
    return g.op("GATHER", [x, count], x.shape[1:], "GatherOptions", axis=0)


def lstm(steps, batch, width, cells):
    weights = weights_of(np.random.default_rng(0), 4 * cells, width + cells)

    def body(g, count, x, h, c):
        i, j, f, o = parts(g, dense(g, joined(g, row_of(g, x, count), h), weights), 4)
        i, f, o = (g.op("LOGISTIC", [gate], h.shape) for gate in (i, f, o))
        cell = plus(g, times(g, f, c), times(g, i, g.op("TANH", [j], h.shape)))
        return x, times(g, o, g.op("TANH", [cell], h.shape)), cell

    state = ((batch, cells), F32)
    return loop([((steps, batch, width), F32), state, state], body, steps)


def gru(steps, batch, width, cells):
    rng = np.random.default_rng(0)
    gates, of_input, of_state = (
        weights_of(rng, *shape) for shape in ((2 * cells, width + cells), (cells, width), (cells, cells))
    )

    def body(g, count, x, h):
        row = row_of(g, x, count)
        z, r = parts(g, g.op("LOGISTIC", [dense(g, joined(g, row, h), gates)], (batch, 2 * cells)), 2)
        new = g.op("TANH", [plus(g, dense(g, row, of_input), times(g, r, dense(g, h, of_state)))], h.shape)
        return x, plus(g, new, times(g, z, g.op("SUB", [h, new], h.shape, "SubOptions")))

    return loop([((steps, batch, width), F32), ((batch, cells), F32)], body, steps)


def growing(steps):
    """A value that is longer after each turn."""

    def body(g, count, a):
        y = g.op("CONCATENATION", [a, g.constant(np.ones(1, F32))], (-1,), "ConcatenationOptions", axis=0)
        g.tensors[y.index].shape, g.tensors[y.index].shapeSignature = [1], [-1]
        return [g.op("ABS", [y], (1,))]

    return loop([((2,), F32)], body, steps)


def branch():
    """Of two branches that compute different things."""
    shape = (3, 5)

    def part(name):
        g = graphs.Graph()
        x = g.input(shape)
        return g, [g.op(name, [x], shape), g.op("ABS", [x], shape)]

    g = graphs.Graph()
    condition, x = g.input((), np.bool_), g.input(shape)
    y, z = g.op("IF", [condition, x], [shape] * 2, "IfOptions", like=x, thenSubgraphIndex=1, elseSubgraphIndex=2)
    return g.build([g.op("NEG", [y], shape), z], others=[part("EXP"), part("SQUARE")])


def nothing_but_loops():
    """A loop whose body is another loop, which runs until a number is a multiple of five: no graph but the innermost
    has other nodes."""
    shapes = [((), np.int32), ((4,), F32)]

    def inputs(g):
        return [g.input(shape, dtype) for shape, dtype in shapes]

    def condition():
        g = graphs.Graph()
        count = inputs(g)[0]
        left = g.op("FLOOR_MOD", [count, value(g, np.int32(5))], (), "FloorModOptions")
        return g, [g.op("NOT_EQUAL", [left, value(g, np.int32(0))], (), "NotEqualOptions", dtype=np.bool_)]

    def outer():
        g = graphs.Graph()
        return g, loop_of(g, inputs(g), 3, 4)

    def inner():
        g = graphs.Graph()
        count, x = inputs(g)
        return g, [next_of(g, count), g.op("TANH", [x], x.shape)]

    g = graphs.Graph()
    outputs = loop_of(g, inputs(g), 1, 2)
    return g.build(outputs, others=[condition(), outer(), condition(), inner()])
