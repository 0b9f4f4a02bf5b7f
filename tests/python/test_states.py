"""States and variables that other nodes or subgraphs use, too, over several invokes: LiteRT's values, whoever runs what."""

import graphs
import numpy as np
import own_interpreter
import pytest
import running
from test_variables import SHAPE, Stateful, initializer

F32 = np.float32


def runs(model, inputs, delegates=()):
    """The outputs of one invoke after the other in LiteRT, each of which begins with the states of the one before."""
    host = running.interpret(model, delegates, running.Resolver.BUILTIN_WITHOUT_DEFAULT_DELEGATES)
    return [running.invoke(host, values) for values in inputs]


def assert_as_litert(model, inputs, delegate, exact=False):
    model = bytes(model)
    for actual, expected in zip(runs(model, inputs, [delegate]), runs(model, inputs), strict=True):
        for a, e in zip(actual, expected, strict=True):
            np.testing.assert_allclose(a, e, rtol=0 if exact else 1e-5, atol=0 if exact else 1e-5)


def handed_to_a_branch():
    """IF, whose branches assign the variable whose handle they are given."""
    g = Stateful()
    condition, x = g.input((), np.bool_), g.input(SHAPE)
    g.call_once()
    handle = g.handle()
    branches = []
    for factor in (2, 3):
        b = Stateful()
        given = b.input((), np.int32)
        b.tensors[given.index].type = g.tensors[handle.index].type
        y = b.op("MUL", [b.input(SHAPE), b.constant(F32(factor))], SHAPE, "MulOptions")
        b.assign(given, y)
        branches.append((b, [y]))
    y = g.op("IF", [condition, handle, x], SHAPE, "IfOptions", dtype=F32, thenSubgraphIndex=2, elseSubgraphIndex=3)
    return g.build([y, g.read(handle)], others=[initializer("state"), *branches])


def initialized_behind():
    """A branch reads a variable that the main graph does not name, and whose initializer comes last."""
    g = Stateful()
    condition, x = g.input((), np.bool_), g.input(SHAPE)
    g.call_once(3)
    handle = g.handle()
    total = g.op("ADD", [g.read(handle), x], SHAPE, "AddOptions")
    g.assign(handle, total)
    reads = Stateful()
    added = reads.op("ADD", [reads.input(SHAPE), reads.read(reads.handle("other"))], SHAPE, "AddOptions")
    plain = graphs.Graph()
    negated = plain.op("NEG", [plain.input(SHAPE)], SHAPE)
    y = g.op("IF", [condition, total], SHAPE, "IfOptions", dtype=F32, thenSubgraphIndex=1, elseSubgraphIndex=2)
    return g.build([y], others=[(reads, [added]), (plain, [negated]), initializer("state", "other")])


@pytest.mark.parametrize("build", [handed_to_a_branch, initialized_behind])
def test_variables_of_branches(build, load_delegate):
    rng = np.random.default_rng(0)
    inputs = [[np.array(i % 2 == 0), rng.uniform(-1, 1, SHAPE).astype(F32)] for i in range(4)]
    assert_as_litert(build(), inputs, load_delegate())


def rnn(g, x, weights, state):
    return g.op("RNN", [x, *weights, state], SHAPE, "RNNOptions", fusedActivationFunction=4)


def rnn_weights(g):
    rng = np.random.default_rng(1)
    return [g.constant(rng.uniform(-0.5, 0.5, shape).astype(F32)) for shape in [(8, 8), (8, 8), (8,)]]


def test_a_branch_with_a_state(load_delegate):
    branches = []
    for _ in range(2):
        b = graphs.Graph()
        x = b.input(SHAPE)
        branches.append((b, [rnn(b, x, rnn_weights(b), b.variable(SHAPE))]))
    g = graphs.Graph()
    condition, x = g.input((), np.bool_), g.input(SHAPE)
    y = g.op("IF", [condition, x], SHAPE, "IfOptions", dtype=F32, thenSubgraphIndex=1, elseSubgraphIndex=2)
    inputs = [[np.array(i % 2 == 0), np.full(SHAPE, 0.1 * i, F32)] for i in range(4)]
    assert_as_litert(g.build([y], others=branches), inputs, load_delegate())


@pytest.mark.parametrize("denied", ["COS", "RELU"])
def test_a_state_that_several_nodes_share(denied, load_delegate):
    g = graphs.Graph()
    x, z = g.input(SHAPE), g.input(SHAPE)
    weights, state = rnn_weights(g), g.variable(SHAPE)
    first = rnn(g, g.op("COS", [x], SHAPE), weights, state)
    second = rnn(g, z, weights, state)
    model = g.build([first, second, rnn(g, second, weights, state)])
    rng = np.random.default_rng(2)
    inputs = [[rng.uniform(-1, 1, SHAPE).astype(F32) for _ in range(2)] for _ in range(3)]
    assert_as_litert(model, inputs, load_delegate(ops_deny=denied))


def integer_lstm(cells, peephole=None, cell_clip=0.0, proj_clip=0.0):
    rng = np.random.default_rng(3)
    g = graphs.Graph()
    rows, width = (3, 1), 4
    x = g.input((*rows, width), np.int8, 0.01, 0)

    def weights(shape):
        return g.constant(rng.integers(-127, 128, shape).astype(np.int8), 0.004, 0)

    inputs = [x, *(weights((cells, width)) for _ in range(4)), *(weights((cells, cells)) for _ in range(4))]
    ties = [g.constant(rng.integers(-9, 10, cells).astype(np.int16), peephole, 0) for _ in range(3)] if peephole else [None] * 3
    inputs += [*ties, *(g.constant(np.zeros(cells, np.int32), 2.0**-12, 0) for _ in range(4))]
    projection = weights((cells, cells)) if proj_clip else None
    inputs += [projection, None, g.variable((1, cells), np.int8, scale=0.01, zero_point=0)]
    inputs += [g.variable((1, cells), np.int16, 2.0**-11), *[None] * 4]
    y = g.op(
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        inputs,
        (*rows, cells),
        "UnidirectionalSequenceLSTMOptions",
        dtype=np.int8,
        scale=0.01,
        zero_point=0,
        intermediates=[(2.0**-12, 0)] * 4 + [(0.002, 0)],
        fusedActivationFunction=4,
        cellClip=cell_clip,
        projClip=proj_clip,
        timeMajor=True,
    )
    values = [[rng.integers(-128, 128, (*rows, width)).astype(np.int8)] for _ in range(4)]
    return bytes(g.build([y])), values


@pytest.mark.parametrize("isa", ["scalar", "ssse3", "avx2", "avx512"])
@pytest.mark.parametrize(
    "fields",
    [{"peephole": 2.0**-5 * 1.01}, {"peephole": 2.0**-9 * 1.1}, {"proj_clip": 0.001}, {"cell_clip": 1e-5}, {"cell_clip": 0.5}],
    ids=str,
)
@pytest.mark.parametrize("cells", [15, 20, 33])
def test_integer_lstm(cells, fields, isa, load_delegate):
    model, values = integer_lstm(cells, **fields)
    assert_as_litert(model, values, load_delegate(isa=isa), exact=True)


@pytest.mark.parametrize("seeds", [(2**31, 5), (2**32 + 1, 5), (7, 2**31), (3, 4)], ids=str)
def test_seeds_have_32_bits(seeds):
    g = graphs.Graph()
    shape = g.input((2,), np.int32)
    y = g.op("RANDOM_UNIFORM", [shape], (3, 4), "RandomOptions", dtype=F32, seed=seeds[0], seed2=seeds[1])
    model, values = bytes(g.build([y])), [[np.int32([3, 4])]]
    np.testing.assert_array_equal(own_interpreter.Interpreter(model).run(values[0])[0], runs(model, values)[0][0])
