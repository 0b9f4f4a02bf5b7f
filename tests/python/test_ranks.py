"""Operators on tensors of many dimensions: what LiteRT computes we compute, and what it refuses we refuse."""

import graphs
import numpy as np
import own_interpreter
import pytest
import running

RANKS = [2, 3, 4, 5, 6, 8, 9, 10, 15]


def shape_of(rank):
    """Few elements, which only some dimensions have."""
    shape = [1] * rank
    for d in (0, rank // 2, rank - 1):
        shape[d] = 2
    return tuple(shape)


def ones(g, rank):
    return g.constant(np.ones(rank, np.int32))


def paddings(g, rank):
    pairs = np.zeros((rank, 2), np.int32)
    pairs[0, 0] = pairs[-1, 1] = 1
    return g.constant(pairs)


def padded(shape):
    return (shape[0] + 1, *shape[1:-1], shape[-1] + 1)


def axis(g, *values):
    return g.constant(np.array(values, np.int32))


def spatial(g, rank):
    count = max(rank - 2, 1)
    return [g.constant(np.ones(count, np.int32)), g.constant(np.zeros((count, 2), np.int32))]


def begin(g, rank):
    return g.constant(np.array([1] + [0] * (rank - 1), np.int32))


def select(g, x, first):
    condition = g.op("GREATER", [first, g.constant(np.zeros(first.shape, np.float32))], first.shape, dtype=np.bool_)
    return g.op("SELECT_V2", [condition, x, g.op("NEG", [x], x.shape)], x.shape, like=x)


# What each makes of x [2, .., 2], of which `first` has the first element of the outermost dimension.
OPERATORS = {
    "PAD": lambda g, x, first: g.op("PAD", [x, paddings(g, len(x.shape))], padded(x.shape)),
    "PADV2": lambda g, x, first: g.op("PADV2", [x, paddings(g, len(x.shape)), g.constant(np.float32([1.5]))], padded(x.shape)),
    "MIRROR_PAD": lambda g, x, first: g.op(
        "MIRROR_PAD", [x, paddings(g, len(x.shape))], padded(x.shape), "MirrorPadOptions", mode=1
    ),
    "TRANSPOSE": lambda g, x, first: g.op("TRANSPOSE", [x, axis(g, *range(len(x.shape))[::-1])], x.shape[::-1]),
    "SQUEEZE": lambda g, x, first: g.op("SQUEEZE", [first], x.shape[1:], "SqueezeOptions", squeezeDims=[0]),
    "EXPAND_DIMS": lambda g, x, first: g.op("EXPAND_DIMS", [g.op("ABS", [x], x.shape), axis(g, 0)], (1, *x.shape)),
    "RESHAPE": lambda g, x, first: g.op("RESHAPE", [x, axis(g, -1)], (int(np.prod(x.shape)),)),
    "REVERSE_V2": lambda g, x, first: g.op("REVERSE_V2", [x, axis(g, 0)], x.shape),
    "SLICE": lambda g, x, first: g.op("SLICE", [x, begin(g, len(x.shape)), axis(g, *first.shape)], first.shape),
    "STRIDED_SLICE": lambda g, x, first: g.op(
        "STRIDED_SLICE", [x, begin(g, len(x.shape)), axis(g, *x.shape), ones(g, len(x.shape))], first.shape, "StridedSliceOptions"
    ),
    "SELECT_V2 of one shape": lambda g, x, first: select(g, x, x),
    "SELECT_V2": select,
    "DYNAMIC_UPDATE_SLICE": lambda g, x, first: g.op("DYNAMIC_UPDATE_SLICE", [x, first, begin(g, len(x.shape))], x.shape),
    "SPACE_TO_BATCH_ND": lambda g, x, first: g.op("SPACE_TO_BATCH_ND", [x, *spatial(g, len(x.shape))], x.shape),
    "BATCH_TO_SPACE_ND": lambda g, x, first: g.op("BATCH_TO_SPACE_ND", [x, *spatial(g, len(x.shape))], x.shape),
    "CONCATENATION": lambda g, x, first: g.op("CONCATENATION", [x, first], (3, *x.shape[1:]), "ConcatenationOptions", axis=0),
    "PACK": lambda g, x, first: g.op("PACK", [x, x], (2, *x.shape), "PackOptions", axis=0, valuesCount=2),
    "TILE": lambda g, x, first: g.op("TILE", [first, axis(g, 2, *[1] * (len(x.shape) - 1))], x.shape),
    "GATHER": lambda g, x, first: g.op("GATHER", [x, axis(g, 1, 0, 1)], (3, *x.shape[1:]), "GatherOptions", axis=0),
    "SUM": lambda g, x, first: g.op("SUM", [x, axis(g, 0)], x.shape[1:], "ReducerOptions", keepDims=False),
    "CUMSUM": lambda g, x, first: g.op("CUMSUM", [x, axis(g, 0)], x.shape, "CumsumOptions"),
    "SOFTMAX": lambda g, x, first: g.op("SOFTMAX", [x], x.shape, "SoftmaxOptions", beta=1.0),
    "ADD": lambda g, x, first: g.op("ADD", [x, x], x.shape, "AddOptions"),
    "EXP": lambda g, x, first: g.op("EXP", [x], x.shape),
}


def model(operator, rank):
    g = graphs.Graph()
    shape = shape_of(rank)
    x, first = g.input(shape), g.input((1, *shape[1:]))
    return bytes(g.build([OPERATORS[operator](g, x, first)]))


def outcome(run):
    """The outputs, or None where the model is refused."""
    try:
        return run()
    except (RuntimeError, ValueError, own_interpreter.Error):
        return None


@pytest.mark.parametrize("rank", RANKS)
@pytest.mark.parametrize("operator", OPERATORS)
def test_computes_and_refuses_as_litert(operator, rank, load_delegate, tmp_path):
    path = tmp_path / "model.tflite"
    path.write_bytes(model(operator, rank))
    rng = np.random.default_rng(rank)
    shape = shape_of(rank)
    inputs = [rng.uniform(-1, 1, s).astype(np.float32) for s in (shape, (1, *shape[1:]))]

    def in_litert(interpreter):
        by_name = dict(zip(("t0", "t1"), inputs))
        for detail in interpreter.get_input_details():
            interpreter.set_tensor(detail["index"], by_name[detail["name"]])
        interpreter.invoke()
        return [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]

    expected = outcome(lambda: in_litert(running.reference(path)))
    hosted = outcome(lambda: in_litert(running.delegated(path, load_delegate())))
    own = outcome(lambda: own_interpreter.Interpreter(path).run(inputs))
    for host, actual in (("LiteRT", hosted), ("our interpreter", own)):
        assert (actual is None) == (expected is None), host
        if expected is not None:
            assert running.largest_difference(actual, expected) < 1e-6, host
