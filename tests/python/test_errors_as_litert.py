"""What LiteRT's reference kernels refuse, when preparing or when running, is refused with the delegate too, in LiteRT and in
our own interpreter; and what they give in odd cases is what the delegate gives."""

import graphs
import numpy as np
import own_interpreter
import pytest
import running
from ai_edge_litert import interpreter as litert

LEAST = np.iinfo(np.int32).min
MOST = np.iinfo(np.int32).max


def ints(graph, *values):
    return graph.constant(np.array(values, np.int32))


def unary(name, dtype, scale, zero_point, values):
    graph = graphs.Graph()
    x = graph.input((len(values),), dtype, scale, zero_point)
    version = {"SQRT": 2, "RSQRT": 2}.get(name, 1)
    y = graph.op(name, [x], x.shape, version=version, scale=scale, zero_point=zero_point)
    return graph.build([y]), [np.array(values, dtype)]


def reshape_of_nothing():
    graph = graphs.Graph()
    x = graph.input((4, 0))
    return graph.build([graph.op("RESHAPE", [x, ints(graph, 2, 0, -1)], (2, 0, 2))]), [np.zeros((4, 0), np.float32)]


def sign_of_nan():
    graph = graphs.Graph()
    x = graph.input((5,))
    return graph.build([graph.op("SIGN", [x], (5,))]), [np.array([np.nan, -2, 3, -0.0, np.inf], np.float32)]


def select(condition, x, y, declared):
    graph = graphs.Graph()
    inputs = [graph.input(condition, np.bool_), graph.input(x), graph.input(y)]
    output = graph.op("SELECT", inputs, declared, like=inputs[1])
    return graph.build([output]), [np.ones(condition, np.bool_), np.full(x, 3, np.float32), np.zeros(y, np.float32)]


def broadcast_to_a_matrix():
    graph = graphs.Graph()
    x = graph.input((3,))
    shape = graph.constant(np.array([[2, 3]], np.int32))
    return graph.build([graph.op("BROADCAST_TO", [x, shape], (2, 3), version=2)]), [np.zeros(3, np.float32)]


def stride(step):
    graph = graphs.Graph()
    x = graph.input((3,))
    operands = [x, ints(graph, 2), ints(graph, 0), ints(graph, step)]
    return graph.build([graph.op("STRIDED_SLICE", operands, (1,), "StridedSliceOptions")]), [np.zeros(3, np.float32)]


def gather_of_constants(*indices):
    graph = graphs.Graph()
    x = graph.constant(np.arange(3, dtype=np.float32))
    return graph.build([graph.op("GATHER", [x, ints(graph, *indices)], (len(indices),), "GatherOptions")]), []


def indexed_nothing(name, shape, index, axis=0):
    """Takes from, or writes into, a value without elements."""
    graph = graphs.Graph()
    indices = np.full((1, 1) if name.endswith("_ND") else (1,), index, np.int32)
    places = graph.input(indices.shape, np.int32)
    if name == "SCATTER_ND":
        x = graph.input((1, *shape[1:]))
        inputs, result, options = [places, x, ints(graph, *shape)], shape, "ScatterNdOptions"
    else:
        x = graph.input(shape)
        inputs, result = [x, places], (*shape[:axis], 1, *shape[axis + 1 :])
        options = {"GATHER": "GatherOptions", "GATHER_ND": "GatherNdOptions"}.get(name)
        inputs = inputs[::-1] if name == "EMBEDDING_LOOKUP" else inputs
    y = graph.op(name, inputs, result, options, like=x, **({"axis": axis} if name == "GATHER" else {}))
    return graph.build([y]), [indices, np.zeros(x.shape, np.float32)]


def zeros_like(dtype):
    graph = graphs.Graph()
    x = graph.input((3,), dtype)
    return graph.build([graph.op("ZEROS_LIKE", [x], (3,))]), [np.ones(3, dtype)]


def arg_max_of_too_many():
    graph = graphs.Graph()
    x = graph.input((0, 1, MOST, MOST))
    y = graph.op("ARG_MAX", [x, ints(graph, 1)], (0, MOST, MOST), "ArgMaxOptions", dtype=np.int32, outputType=2)
    return graph.build([y]), []


def extreme(name, constant):
    """Beside a NaN, and of two zeros, LiteRT gives the second operand, whichever is a constant."""
    graph = graphs.Graph()
    sides = [
        np.tile(np.array(side, np.float32), 7) for side in ([np.nan, 1, np.nan, 0, -0.0, 2], [1, np.nan, np.nan, -0.0, 0, 3])
    ]
    operands = [graph.constant(v) if i == constant else graph.input(v.shape) for i, v in enumerate(sides)]
    y = graph.op(name, operands, sides[0].shape, "MaximumMinimumOptions")
    return graph.build([y]), [v for i, v in enumerate(sides) if i != constant]


def prelu_of_zeros(constant):
    """-0 stays, also where what it would be multiplied by is negative."""
    graph, slopes = graphs.Graph(), np.tile(np.array([0.5, -2, 0, -0.0], np.float32), 5)
    values = np.tile(np.array([-0.0, 0, -1, -0.0, 2], np.float32), 4)
    operands = [graph.input((20,)), graph.constant(slopes) if constant else graph.input((20,))]
    return graph.build([graph.op("PRELU", operands, (20,))]), [values, slopes][: len(graph.inputs)]


def dense_with_bias(scale):
    """LiteRT refuses a bias whose scale is not that of the products."""
    graph = graphs.Graph()
    x = graph.input((2, 4), np.int8, 0.5)
    operands = [x, graph.constant(np.ones((3, 4), np.int8), 0.5), graph.constant(np.ones(3, np.int32), scale)]
    y = graph.op("FULLY_CONNECTED", operands, (2, 3), "FullyConnectedOptions", 4, scale=4.0)
    return graph.build([y]), [np.arange(8, dtype=np.int8).reshape(2, 4)]


def of_type(name, dtype):
    """Operators that LiteRT has, in a type in which it has not."""
    graph = graphs.Graph()
    if name == "PACK":
        pair = [graph.input((3,), dtype) for _ in range(2)]
        outputs = [graph.op(name, pair, (2, 3), "PackOptions", valuesCount=2)]
    elif name == "UNPACK":
        outputs = graph.op(name, [graph.input((2, 3), dtype)], [(3,)] * 2, "UnpackOptions", num=2)
    else:
        x = graph.input((3,), dtype, 0.5)
        outputs = [graph.op(name, [x], x.shape, "DequantizeOptions", dtype=np.float32)]
    return graph.build(outputs), [np.ones(v.shape, dtype) for v in graph.inputs]


def depthwise_int16(bias):
    graph = graphs.Graph()
    x = graph.input((1, 4, 4, 2), np.int16, 0.5)
    filters = graph.constant(np.ones((1, 3, 3, 2), np.int8), [0.5] * 2, 0, 3)
    operands = [x, filters, graph.constant(np.ones(2, bias), [0.25] * 2)]
    fields = {"padding": 0, "strideW": 1, "strideH": 1, "depthMultiplier": 1}
    y = graph.op("DEPTHWISE_CONV_2D", operands, x.shape, "DepthwiseConv2DOptions", 3, scale=4.0, **fields)
    return graph.build([y]), [np.arange(32, dtype=np.int16).reshape(x.shape)]


def reduce_window(kind):
    """Windows, strides and dilations are constants, or values of the run, which LiteRT refuses."""
    graph = graphs.Graph()
    values = [np.array(v, np.int64) for v in ([2, 2], [1, 1], [1, 1])]
    operands = [graph.input((3, 4)), graph.constant(np.float32(0))]
    operands += [graph.constant(v) if kind == "constant" else graph.input(v.shape, v.dtype) for v in values]
    y = graph.op("REDUCE_WINDOW", operands, (2, 3), "ReduceWindowOptions", reduceFunction=1)
    inputs = [np.arange(12, dtype=np.float32).reshape(3, 4), *values]
    return graph.build([y]), inputs[: len(graph.inputs)]


INDEXED = {  # the operand of indices, its values, and the result's shape for an input of [2, 3]
    "ARG_MAX": ([0], (3,), "ArgMaxOptions", {"dtype": np.int32, "outputType": 2}),
    "CUMSUM": (0, (2, 3), "CumsumOptions", {}),
    "REVERSE_V2": ([1], (2, 3), "ReverseV2Options", {}),
    "SUM": ([1], (2,), "ReducerOptions", {}),
    "TILE": ([1, 2], (2, 6), "TileOptions", {}),
    "TOPK_V2": (2, (2, 2), "TopKV2Options", {}),
    "BROADCAST_TO": ([2, 3], (2, 3), "BroadcastToOptions", {"version": 2}),
    "EXPAND_DIMS": (0, (1, 2, 3), "ExpandDimsOptions", {}),
}


def indexed(name, index, constant):
    """Axes, counts and shapes in types that LiteRT takes, and in others."""
    values, shape, options, fields = INDEXED[name]
    graph, data = graphs.Graph(), np.array(values, index)
    operands = [graph.input((2, 3)), graph.constant(data) if constant else graph.input(data.shape, index)]
    y = graph.op(name, operands, [shape, shape] if name == "TOPK_V2" else shape, options, **fields)
    if name == "TOPK_V2":
        graph.tensors[y[1].index].type = graphs.TYPES[np.dtype(np.int32)]
    inputs = [np.arange(6, dtype=np.float32).reshape(2, 3), data]
    return graph.build(y if isinstance(y, list) else [y]), inputs[: len(graph.inputs)]


def declared_as(name, dtype):
    """Of a type that the file states and LiteRT replaces, with values that only a run tells."""
    graph = graphs.Graph()
    x = graph.input((2, 3))
    values, shape, options, version = {
        "EXPAND_DIMS": (0, (1, 2, 3), "ExpandDimsOptions", 1),
        "TILE": ([1, 2], (2, 6), "TileOptions", 1),
        "BROADCAST_TO": ([2, 3], (2, 3), "BroadcastToOptions", 2),
        "TRANSPOSE": ([1, 0], (3, 2), "TransposeOptions", 1),
        "RESHAPE": ([6], (6,), "ReshapeOptions", 1),
    }[name]
    y = graph.op(name, [x, graph.input(np.shape(values), np.int32)], shape, options, version, dtype=dtype)
    return graph.build([y]), [np.arange(6, dtype=np.float32).reshape(2, 3), np.array(values, np.int32)]


def moved(name, dtype, scale=None):
    """Operators that move values, in types for which LiteRT has no kernel, and to another scale."""
    graph = graphs.Graph()
    x = graph.input((1, 2, 2, 4), dtype, *([0.5, 3] if scale else []))
    more, shape, options, fields = {
        "PAD": ([graph.constant(np.ones((4, 2), np.int32))], (3, 4, 4, 6), "PadOptions", {}),
        "REVERSE_SEQUENCE": ([ints(graph, 2)], x.shape, "ReverseSequenceOptions", {"seqDim": 1, "batchDim": 0}),
        "SPACE_TO_DEPTH": ([], (1, 1, 1, 16), "SpaceToDepthOptions", {"blockSize": 2}),
        "DEPTH_TO_SPACE": ([], (1, 4, 4, 1), "DepthToSpaceOptions", {"blockSize": 2}),
        "CONCATENATION": ([x], (2, 2, 2, 4), "ConcatenationOptions", {"axis": 0}),
        "PACK": ([x], (1, 2, 2, 4, 2), "PackOptions", {"valuesCount": 2, "axis": 4}),
        "EXPAND_DIMS": ([ints(graph, 0)], (1, 1, 2, 2, 4), "ExpandDimsOptions", {}),
    }[name]
    y = graph.op(name, [x, *more], shape, options, scale=scale, zero_point=3 if scale else 0, **fields)
    data = (np.arange(16) % 2 if dtype == np.bool_ else np.arange(16)).astype(dtype)
    return graph.build([y]), [data.reshape(x.shape)]


CASES = {
    "reshape_of_nothing": reshape_of_nothing(),
    "sign_of_nan": sign_of_nan(),
    "broadcast_to_a_matrix": broadcast_to_a_matrix(),
    **{f"prelu_of_zeros_{constant}": prelu_of_zeros(constant) for constant in (True, False)},
    **{f"dense_with_bias_{scale}": dense_with_bias(scale) for scale in (0.25, 0.3, 0.5)},
    "arg_max_of_too_many": arg_max_of_too_many(),
    **{f"{name}_{constant}": extreme(name, constant) for name in ("MAXIMUM", "MINIMUM") for constant in (None, 0, 1)},
    **{f"{name}_{t.__name__}": of_type(name, t) for name in ("PACK", "UNPACK") for t in (np.bool_, np.int64)},
    **{f"DEQUANTIZE_{t.__name__}": of_type("DEQUANTIZE", t) for t in (np.int16, np.int32)},
    **{f"depthwise_{t.__name__}": depthwise_int16(t) for t in (np.int32, np.int64)},
    **{f"reduce_window_{kind}": reduce_window(kind) for kind in ("constant", "run_time")},
    **{f"stride_{step}": stride(step) for step in (LEAST, LEAST + 1, MOST)},
    **{f"gather_{indices}": gather_of_constants(*indices) for indices in ((0, 2), (0, 3), (0, -1))},
    **{
        f"{name}_{index}_of_nothing": indexed_nothing(name, (3, 0), index)
        for name in ("GATHER", "SCATTER_ND", "EMBEDDING_LOOKUP")
        for index in (-1, 0, 2, 3)
    },
    **{f"GATHER_ND_{index}_of_nothing": indexed_nothing("GATHER_ND", (3, 0), index) for index in (-1, 3)},
    **{f"GATHER_{index}_of_no_line": indexed_nothing("GATHER", (0, 3), index, 1) for index in (-1, 2, 3)},
    **{
        f"{name}_by_{index.__name__}_{constant}": indexed(name, index, constant)
        for name in INDEXED
        for index in (np.int8, np.int16, np.int32, np.int64)
        for constant in (True, False)
    },
    **{
        f"{name}_of_{dtype.__name__}": moved(name, dtype)
        for name in ("PAD", "REVERSE_SEQUENCE", "SPACE_TO_DEPTH", "DEPTH_TO_SPACE", "CONCATENATION")
        for dtype in (np.int8, np.int16, np.uint32, np.float16, np.float64, np.bool_)
    },
    **{f"{name}_to_{scale}": moved(name, np.int8, scale) for name in ("PACK", "EXPAND_DIMS") for scale in (0.5, 0.25)},
    **{f"zeros_like_{t.__name__}": zeros_like(t) for t in (np.uint8, np.int8, np.bool_, np.int32, np.float32)},
    **{
        f"select_{condition}_{x}_{y}_as_{declared}": select(condition, x, y, declared)
        for condition in ((), (1,))
        for x in ((), (1,))
        for y in ((), (1,), (1, 1))
        for declared in ((), (1,), (1, 1))
    },
    **{
        f"{name}_{dtype.__name__}_{values}": unary(name, dtype, 0.1, zero, values)
        for name in ("SQRT", "RSQRT")
        for dtype, zero in ((np.int8, -5), (np.int16, 0))
        for values in ((10, 20, zero), (10, zero - 1, 20), (zero + 4,) * 40, (zero + 4,) * 40 + (zero - 1,))
    },
}


def in_litert(model, inputs, delegates):
    """("prepare" or "run" where that failed, else "", the outputs)."""
    try:
        interpreter = litert.Interpreter(
            model_content=model,
            experimental_op_resolver_type=running.Resolver.BUILTIN_REF,
            experimental_delegates=delegates,
        )
        interpreter.allocate_tensors()
    except (RuntimeError, ValueError):
        return "prepare", []
    try:
        return "", running.run(interpreter, inputs)
    except (RuntimeError, ValueError):
        return "run", []


def in_our_host(model, inputs, delegate):
    try:
        interpreter = own_interpreter.Interpreter(model, delegate)
    except own_interpreter.Error:
        return "prepare", []
    try:
        return "", interpreter.run(inputs)
    except own_interpreter.Error:
        return "run", []


def same(actual, expected):
    return all(
        a.shape == e.shape
        and np.array_equal(a, e, equal_nan=e.dtype == np.float32)
        and (e.dtype != np.float32 or np.array_equal(np.signbit(a[a == 0]), np.signbit(e[e == 0])))
        for a, e in zip(actual, expected, strict=True)
    )


@pytest.mark.parametrize("name", ["EXPAND_DIMS", "TILE", "BROADCAST_TO", "TRANSPOSE", "RESHAPE"])
def test_a_wrong_type_is_left_to_litert(name, load_delegate):
    model, inputs = declared_as(name, np.int32)
    stage, expected = in_litert(model, inputs, [])
    with_delegate, actual = in_litert(model, inputs, [load_delegate()])
    assert with_delegate == stage and same(actual, expected), (actual, expected)


@pytest.mark.parametrize("case", CASES)
def test_refusals_and_odd_results(case, load_delegate, delegate_path):
    model, inputs = CASES[case]
    stage, expected = in_litert(model, inputs, [])
    with_delegate, actual = in_litert(model, inputs, [load_delegate()])
    assert with_delegate == stage and same(actual, expected), (actual, expected)
    for delegate in (None, own_interpreter.Delegate(delegate_path)):
        failed, actual = in_our_host(model, inputs, delegate)
        # Our host may refuse before a run what LiteRT refuses in it.
        assert bool(failed) == bool(stage), (failed, stage)
        assert same(actual, expected), (actual, expected)


def of_constants(name, *more, options=None, shape=(2,), **fields):
    graph = graphs.Graph()
    x = graph.constant(np.arange(6, dtype=np.float32).reshape(2, 3))
    return graph.build([graph.op(name, [x, *(ints(graph, *values) for values in more)], shape, options, **fields)])


def of_shapes(name, shape, options=None, **fields):
    graph = graphs.Graph()
    return graph.build([graph.op(name, [graph.input((2, 3))], shape, options, dtype=np.int32, **fields)])


CONSTANT_CASES = {
    "RANK": of_shapes("RANK", ()),
    "SHAPE": of_shapes("SHAPE", (2,), "ShapeOptions", outType=2),
    "SUM": of_constants("SUM", (1,), options="ReducerOptions"),
    "MEAN": of_constants("MEAN", (1,), options="ReducerOptions"),
    "REDUCE_PROD": of_constants("REDUCE_PROD", (1,), options="ReducerOptions"),
    "CAST": of_constants("CAST", options="CastOptions", shape=(2, 3), dtype=np.int32, inDataType=0, outDataType=2),
    "RESHAPE": of_constants("RESHAPE", (3, 2), shape=(3, 2)),
    "GATHER": gather_of_constants(2, 0)[0],
}


@pytest.mark.parametrize("name", CONSTANT_CASES)
def test_what_depends_on_constants_alone_is_there_after_allocation(name, load_delegate, delegate_path):
    model = CONSTANT_CASES[name]
    plain = litert.Interpreter(model_content=model, experimental_op_resolver_type=running.Resolver.BUILTIN_REF)
    plain.allocate_tensors()
    plain.invoke()
    expected = plain.get_tensor(plain.get_output_details()[0]["index"])
    interpreter = litert.Interpreter(model_content=model, experimental_delegates=[load_delegate()])
    interpreter.allocate_tensors()
    assert running.delegate_kernels(interpreter) == 1
    for _ in range(2):
        actual = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
        assert actual.dtype == expected.dtype and np.array_equal(actual, expected)
        interpreter.invoke()
    for delegate in (None, own_interpreter.Delegate(delegate_path)):
        own = own_interpreter.Interpreter(model, delegate)
        assert np.array_equal(own.output(0), expected)
        own.invoke()
        assert np.array_equal(own.output(0), expected)
