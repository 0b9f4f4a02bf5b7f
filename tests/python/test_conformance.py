"""The conformance vectors, each a model of one or a few operators with its outputs, with the delegate applied."""

import collections
import pathlib
import re

import running
import vectors

# The operators of quantized networks. A vector counts where it holds nothing else and has values of one of the types.
QUANTIZED_OPERATORS = set(
    """
    ABS ADD ARG_MAX ARG_MIN AVERAGE_POOL_2D BATCH_MATMUL BATCH_TO_SPACE_ND BROADCAST_TO CAST CONCATENATION CONV_2D
    CUMSUM DEPTHWISE_CONV_2D DEPTH_TO_SPACE DEQUANTIZE DIV ELU EMBEDDING_LOOKUP EQUAL EXP EXPAND_DIMS FILL FLOOR_DIV
    FLOOR_MOD FULLY_CONNECTED GATHER GATHER_ND GELU GREATER GREATER_EQUAL HARD_SWISH L2_NORMALIZATION LEAKY_RELU
    LESS LESS_EQUAL LOG LOGICAL_AND LOGICAL_NOT LOGICAL_OR LOGISTIC LOG_SOFTMAX LSTM MAXIMUM MAX_POOL_2D MEAN
    MINIMUM MIRROR_PAD MUL NEG NOT_EQUAL ONE_HOT PACK PAD PADV2 POW PRELU QUANTIZE RANGE RANK REDUCE_ALL REDUCE_ANY
    REDUCE_MAX REDUCE_MIN REDUCE_PROD RELU RELU6 RELU_0_TO_1 RELU_N1_TO_1 RESHAPE RESIZE_BILINEAR
    RESIZE_NEAREST_NEIGHBOR REVERSE_V2 RSQRT SELECT SELECT_V2 SHAPE SLICE SOFTMAX SPACE_TO_BATCH_ND SPACE_TO_DEPTH
    SPLIT SPLIT_V SQRT SQUARED_DIFFERENCE SQUEEZE STRIDED_SLICE SUB SUM TANH TILE TOPK_V2 TRANSPOSE TRANSPOSE_CONV
    UNIDIRECTIONAL_SEQUENCE_LSTM UNPACK WHERE
    """.split()
)
# int8 (per channel, symmetric), uint8, int16, float16, bool, and the integers of shapes; not float32 alone.
QUANTIZED_TYPES = {"s8", "s8ch", "s8sym", "u8", "s16", "f16", "b8", "i32", "i64"}
TABLE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "operators.md"


def is_quantized(row):
    return set(row["tfl_ops"].split()) <= QUANTIZED_OPERATORS and bool(set(row["types"].split()) & QUANTIZED_TYPES)


def check(folder, row, delegate):
    """(what is wrong or None, whether the delegate took part) of one vector."""
    inputs, expected = vectors.load(folder, row)
    interpreter = running.delegated(folder / f"{row['name']}.tflite", delegate)
    outputs = running.run(interpreter, inputs)
    problems = [vectors.difference(y, e, row) for y, e in zip(outputs, expected, strict=True)]
    return next((p for p in problems if p), None), running.delegate_kernels(interpreter) > 0


def reasons(folder, row, load_delegate, explain):
    """Why the nodes of a vector were left to the host."""
    running.delegated(folder / f"{row['name']}.tflite", load_delegate(explain_file=explain))
    graph = running.explanation(explain)
    return graph.get("error") or "; ".join(f"{node['op']}: {node['reason']}" for node in graph["nodes"] if not node["claimed"])


def test_all_vectors_pass(load_delegate, conformance):
    delegate = load_delegate()
    failures, taken = [], collections.Counter()
    for row in vectors.rows(conformance):
        problem, delegated = check(conformance, row, delegate)
        if problem:
            failures.append(f"{row['name']} ({row['tfl_ops']}): {problem}")
        taken[delegated] += 1
    assert failures == []
    print(f"{taken[True]} of {taken.total()} delegated")
    assert taken[True] >= 0.95 * taken.total()


def test_vectors_of_quantized_networks_are_delegated(load_delegate, conformance, tmp_path):
    rows = [row for row in vectors.rows(conformance) if is_quantized(row)]
    assert len(rows) >= 100
    left = [row for row in rows if not check(conformance, row, load_delegate())[1]]
    print(f"{len(rows) - len(left)} of {len(rows)} delegated")
    for row in left:
        why = reasons(conformance, row, load_delegate, tmp_path / "explain.json")
        print(f"  {row['name']} ({row['types']}): {why}")
        assert why, row["name"]
    assert len(left) <= 0.05 * len(rows)


def test_the_operators_of_quantized_networks_are_ours():
    ours = set(re.findall(r"^\| ([A-Z0-9_]+) \|", TABLE.read_text(), re.MULTILINE))
    assert QUANTIZED_OPERATORS - ours == set()
