"""Operators that move values take the types that LiteRT's reference kernels take, and no others, with the delegate in LiteRT and
in our own interpreter; and they move the same bits."""

import graphs
import numpy as np
import own_interpreter
import pytest
from test_errors_as_litert import in_litert, in_our_host, ints

TYPES = [dtype.type for dtype in graphs.TYPES]
# name: (shape of the values, shape of the result, the operands behind the values, the options, the version)
MOVES = {
    "BATCH_TO_SPACE_ND": ((4, 2, 2, 1), (1, 4, 4, 1), [[2, 2], [[0, 0], [0, 0]]], "BatchToSpaceNDOptions"),
    "SPACE_TO_BATCH_ND": ((1, 4, 4, 1), (4, 2, 2, 1), [[2, 2], [[0, 0], [0, 0]]], "SpaceToBatchNDOptions"),
    "BITCAST": ((4,), (4,), [], "BitcastOptions"),
    "BROADCAST_TO": ((4,), (2, 4), [[2, 4]], "BroadcastToOptions"),
    "EXPAND_DIMS": ((4,), (1, 4), [[0]], "ExpandDimsOptions"),
    "GATHER": ((4, 2), (2, 2), [[3, 0]], "GatherOptions"),
    "GATHER_ND": ((4, 2), (2, 2), [[[3], [0]]], "GatherNdOptions"),
    "MIRROR_PAD": ((4, 4), (6, 6), [[[1, 1], [1, 1]]], "MirrorPadOptions"),
    "PAD": ((4, 4), (6, 6), [[[1, 1], [1, 1]]], "PadOptions"),
    "RESHAPE": ((4, 4), (2, 8), [[2, 8]], "ReshapeOptions"),
    "REVERSE_V2": ((4,), (4,), [[0]], "ReverseV2Options"),
    "SLICE": ((4, 4), (2, 2), [[0, 2], [2, 2]], "SliceOptions"),
    "SQUEEZE": ((1, 4), (4,), [], "SqueezeOptions"),
    "STRIDED_SLICE": ((4, 4), (2, 2), [[0, 0], [4, 4], [2, 2]], "StridedSliceOptions"),
    "TILE": ((4,), (8,), [[2]], "TileOptions"),
    "TRANSPOSE": ((4, 2), (2, 4), [[1, 0]], "TransposeOptions"),
}


def values(shape, dtype):
    numbers = np.arange(1, 1 + np.prod(shape, dtype=int)).reshape(shape)
    return (numbers % 3 == 0 if dtype is np.bool_ else numbers * (1 + 2j) if np.dtype(dtype).kind == "c" else numbers).astype(
        dtype
    )


def move(name, dtype):
    shape, result, operands, options = MOVES[name]
    graph = graphs.Graph()
    x = graph.input(shape, dtype)
    y = graph.op(
        name,
        [x, *(graph.constant(np.array(o, np.int32)) for o in operands)],
        result,
        options,
        version=2 if name == "BROADCAST_TO" else 1,
    )
    return graph.build([y]), [values(shape, dtype)]


def fill(dtype):
    graph = graphs.Graph()
    value = graph.input((), dtype)
    return graph.build([graph.op("FILL", [ints(graph, 2, 3), value], (2, 3), "FillOptions", like=value)]), [values((), dtype)]


def pad_with_a_value(dtype):
    graph = graphs.Graph()
    x, value = graph.input((2, 2), dtype), graph.input((), dtype)
    pads = graph.constant(np.ones((2, 2), np.int32))
    return graph.build([graph.op("PADV2", [x, pads, value], (4, 4), "PadV2Options")]), [values((2, 2), dtype), values((), dtype)]


def dilate(dtype):
    graph = graphs.Graph()
    x, value = graph.input((3, 3), dtype), graph.input((), dtype)
    y = graph.op("DILATE", [x, ints(graph, 2, 2), value], (5, 5), "DilateOptions")
    return graph.build([y]), [values((3, 3), dtype), values((), dtype)]


def update(dtype):
    graph = graphs.Graph()
    x, part = graph.input((4, 4), dtype), graph.input((2, 2), dtype)
    y = graph.op("DYNAMIC_UPDATE_SLICE", [x, part, ints(graph, 1, 1)], (4, 4), "DynamicUpdateSliceOptions")
    return graph.build([y]), [values((4, 4), dtype), values((2, 2), dtype)]


def select(name, dtype):
    graph = graphs.Graph()
    condition, x, y = graph.input((4,), np.bool_), graph.input((4,), dtype), graph.input((4,), dtype)
    z = graph.op(name, [condition, x, y], (4,), "SelectOptions" if name == "SELECT" else "SelectV2Options", like=x)
    return graph.build([z]), [values((4,), np.bool_), values((4,), dtype), values((4,), dtype)[::-1]]


def pack(dtype):
    graph = graphs.Graph()
    parts = [graph.input((2, 2), dtype) for _ in range(2)]
    y = graph.op("PACK", parts, (2, 2, 2), "PackOptions", axis=0, valuesCount=2)
    return graph.build([y]), [values((2, 2), dtype), values((2, 2), dtype)[::-1]]


def concatenate(dtype):
    graph = graphs.Graph()
    parts = [graph.input((2, 2), dtype) for _ in range(2)]
    y = graph.op("CONCATENATION", parts, (4, 2), "ConcatenationOptions", axis=0)
    return graph.build([y]), [values((2, 2), dtype), values((2, 2), dtype)[::-1]]


def split(dtype):
    graph = graphs.Graph()
    x, axis = graph.input((4, 2), dtype), graph.constant(np.array(0, np.int32))
    parts = graph.op("SPLIT", [axis, x], [(2, 2), (2, 2)], "SplitOptions", like=x, numSplits=2)
    return graph.build(parts), [values((4, 2), dtype)]


def scatter(dtype):
    graph = graphs.Graph()
    indices, x = graph.constant(np.array([[0], [2]], np.int32)), graph.input((2, 3), dtype)
    y = graph.op("SCATTER_ND", [indices, x, ints(graph, 4, 3)], (4, 3), "ScatterNdOptions", like=x)
    return graph.build([y]), [values((2, 3), dtype)]


CASES = {
    **{name: lambda dtype, name=name: move(name, dtype) for name in MOVES},
    **{name: lambda dtype, name=name: select(name, dtype) for name in ("SELECT", "SELECT_V2")},
    "CONCATENATION": concatenate,
    "DILATE": dilate,
    "DYNAMIC_UPDATE_SLICE": update,
    "FILL": fill,
    "PACK": pack,
    "PADV2": pad_with_a_value,
    "SCATTER_ND": scatter,
    "SPLIT": split,
}


@pytest.mark.parametrize("dtype", TYPES, ids=lambda dtype: dtype.__name__)
@pytest.mark.parametrize("name", CASES)
def test_takes_the_types_of_litert(name, dtype, load_delegate, delegate_path):
    model, inputs = CASES[name](dtype)
    stage, expected = in_litert(model, inputs, [])
    in_hosts = [in_litert(model, inputs, [load_delegate()])]
    in_hosts += [in_our_host(model, inputs, delegate) for delegate in (None, own_interpreter.Delegate(delegate_path))]
    for failed, actual in in_hosts:
        assert bool(failed) == bool(stage), (failed, stage)
        assert [a.tobytes() for a in actual] == [e.tobytes() for e in expected]
        assert [a.shape for a in actual] == [e.shape for e in expected]
