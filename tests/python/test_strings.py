"""Strings, hash tables and n-grams in our own interpreter, against LiteRT."""

import graphs
import numpy as np
import own_interpreter
import pytest
from ai_edge_litert import interpreter as litert
from ai_edge_litert import schema_py_generated as schema

STRING, RESOURCE = schema.TensorType.STRING, schema.TensorType.RESOURCE
WORDS = "the quick brown fox jumps over the lazy dog".split()


def table_of(strings):
    """The bytes of a string tensor."""
    ends = np.cumsum([4 * (len(strings) + 2)] + [len(s) for s in strings])
    return np.array([len(strings), *ends], np.int32).tobytes() + b"".join(strings)


def strings_in(table):
    count, *offsets = np.frombuffer(table[: 4 * (int.from_bytes(table[:4], "little") + 2)], np.int32)
    return [table[a:b] for a, b in zip(offsets[:count], offsets[1:])]


def string_constant(g, strings, shape):
    value = g.constant(np.frombuffer(table_of(strings), np.uint8))
    g.tensors[value.index].type, g.tensors[value.index].shape = STRING, list(shape)
    value.shape = shape
    return value


def string_input(g, shape):
    value = g.input(shape)
    g.tensors[value.index].type = STRING
    return value


def outputs_of_litert(model, values):
    interpreter = litert.Interpreter(model_content=model)
    interpreter.allocate_tensors()
    for detail, value in zip(interpreter.get_input_details(), values, strict=True):
        interpreter.set_tensor(
            detail["index"], np.array(value, object).reshape(detail["shape"]) if isinstance(value, list) else value
        )
    interpreter.invoke()
    outputs = [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]
    return [(o.shape, [bytes(s) for s in o.reshape(-1)] if o.dtype.kind in "OS" else o.tolist()) for o in outputs]


def our_outputs(model, values):
    interpreter = own_interpreter.Interpreter(model)
    for i, value in enumerate(values):
        interpreter.set_input(i, np.frombuffer(table_of(value), np.uint8) if isinstance(value, list) else value)
    interpreter.invoke()
    results = []
    for i, tensor in enumerate(interpreter.outputs()):
        if tensor.type == own_interpreter.STRING:
            results.append((tensor.shape, strings_in(interpreter.output_bytes(i))))
        else:
            results.append((tensor.shape, interpreter.output(i).tolist()))
    return results


def check(model, *values):
    assert our_outputs(model, values) == outputs_of_litert(model, values)


def hash_table(from_strings, shape=(4,)):
    """A table of seven entries, one key twice, filled by CALL_ONCE: what it gives for the input, and its size."""
    keys = [w.encode() for w in WORDS[:8]]
    numbers = np.array([5, -7, 2**40, 0, 11, 6, 5, 9], np.int64)

    def handle(g):
        types = (schema.TensorType.STRING, schema.TensorType.INT64)
        key, value = types if from_strings else types[::-1]
        return g.op(
            "HASHTABLE",
            [],
            (1,),
            "HashtableOptions",
            dtype=np.int32,
            tensor_type=RESOURCE,
            tableId=7,
            keyDtype=key,
            valueDtype=value,
        )

    once = graphs.Graph()
    texts, counts = string_constant(once, keys, (8,)), once.constant(numbers)
    once.op("HASHTABLE_IMPORT", [handle(once), *((texts, counts) if from_strings else (counts, texts))], [])
    g = graphs.Graph()
    g.op("CALL_ONCE", [], [], "CallOnceOptions", dtype=np.int32, initSubgraphIndex=1)
    table = handle(g)
    if from_strings:
        x, default = string_input(g, shape), g.constant(np.array([-1], np.int64))
    else:
        x, default = g.input(shape, np.int64), string_constant(g, [b"none"], (1,))
    found = g.op("HASHTABLE_FIND", [table, x, default], shape, dtype=np.int64)
    g.tensors[found.index].type = schema.TensorType.INT64 if from_strings else STRING
    size = g.op("HASHTABLE_SIZE", [table], (1,), dtype=np.int64)
    return g.build([found, size], others=[(once, [])])


def test_a_table_from_strings_has_what_litert_finds():
    check(hash_table(True), [b"the", b"fox", b"cat", b""])


def test_a_table_of_strings_has_what_litert_finds():
    check(hash_table(False, (2, 2)), np.array([[5, 2**40], [-7, 4]], np.int64))


@pytest.mark.parametrize("sentence", ["", "fox", " ".join(WORDS), "  two  spaces ", "tabs\tand\nlines at the end\n"])
@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("skipped, shorter", [(0, False), (1, False), (2, True), (0, True)])
def test_skip_grams_are_those_of_litert(sentence, size, skipped, shorter):
    g = graphs.Graph()
    x = string_input(g, (1,))
    y = g.op(
        "SKIP_GRAM",
        [x],
        (1,),
        "SkipGramOptions",
        tensor_type=STRING,
        ngramSize=size,
        maxSkipSize=skipped,
        includeAllNgrams=shorter,
    )
    check(g.build([y]), [sentence.encode()])


def test_a_table_that_was_not_filled_is_an_error():
    g = graphs.Graph()
    table = g.op(
        "HASHTABLE",
        [],
        (1,),
        "HashtableOptions",
        dtype=np.int32,
        tensor_type=RESOURCE,
        tableId=1,
        keyDtype=schema.TensorType.INT64,
        valueDtype=STRING,
    )
    x = g.input((1,), np.int64)
    y = g.op("HASHTABLE_FIND", [table, x, string_constant(g, [b""], (1,))], (1,), tensor_type=STRING, dtype=np.int64)
    model, value = g.build([y]), np.zeros(1, np.int64)
    with pytest.raises(RuntimeError):
        outputs_of_litert(model, [value])
    with pytest.raises(own_interpreter.Error, match="HASHTABLE_FIND: nothing was imported"):
        our_outputs(model, [value])


def test_a_table_of_strings_that_is_cut_off_is_refused():
    g = graphs.Graph()
    y = g.op("SKIP_GRAM", [string_input(g, (1,))], (1,), "SkipGramOptions", tensor_type=STRING, ngramSize=1)
    interpreter = own_interpreter.Interpreter(g.build([y]))
    for table in (b"", table_of([b"a", b"b"]), table_of([b"word"])[:-1], np.array([1, 12, -1], np.int32).tobytes()):
        with pytest.raises(own_interpreter.Error, match="string table"):
            interpreter.set_input(0, np.frombuffer(table, np.uint8))


def ints(g, values):
    return g.constant(np.array(values, np.int32))


# What is done to [2, 3] strings.
MOVES = {
    "GATHER": lambda g, x: g.op(
        "GATHER",
        [g.op("RESHAPE", [x, ints(g, [6])], (6,), tensor_type=STRING), ints(g, [[5, 0], [5, 1]])],
        (2, 2),
        "GatherOptions",
    ),
    "GATHER_ND": lambda g, x: g.op("GATHER_ND", [x, ints(g, [[1, 2], [0, 0]])], (2,)),
    "RESHAPE": lambda g, x: g.op("RESHAPE", [x, ints(g, [3, 2])], (3, 2), "ReshapeOptions"),
    "EXPAND_DIMS": lambda g, x: g.op("EXPAND_DIMS", [x, ints(g, [0])], (1, 2, 3)),
    "SLICE": lambda g, x: g.op("SLICE", [x, ints(g, [0, 1]), ints(g, [2, 2])], (2, 2)),
    "STRIDED_SLICE": lambda g, x: g.op(
        "STRIDED_SLICE",
        [x, ints(g, [1, 2]), ints(g, [-3, -4]), ints(g, [-1, -2])],
        (2, 2),
        "StridedSliceOptions",
        beginMask=0,
        endMask=3,
    ),
    "TILE": lambda g, x: g.op("TILE", [x, ints(g, [1, 2])], (2, 6)),
}


@pytest.mark.parametrize("operator", MOVES)
def test_strings_are_moved_as_litert_moves_them(operator):
    g = graphs.Graph()
    y = MOVES[operator](g, string_input(g, (2, 3)))
    g.tensors[y.index].type = STRING
    check(g.build([y]), [w.encode() for w in ["the", "", "fox", "over", "the", "a much longer word"]])


def test_a_string_fills_a_shape():
    """LiteRT 2.3.0 fills it with the bytes of a pointer."""
    g = graphs.Graph()
    y = g.op("FILL", [ints(g, [2, 2]), string_input(g, ())], (2, 2), "FillOptions")
    g.tensors[y.index].type = STRING
    assert our_outputs(g.build([y]), [[b"word"]]) == [((2, 2), [b"word"] * 4)]


@pytest.mark.parametrize("operator", ["EQUAL", "NOT_EQUAL"])
def test_strings_are_compared_as_litert_does(operator):
    g = graphs.Graph()
    x = string_input(g, (2, 2))
    y = g.op(
        operator,
        [x, string_constant(g, [b"the", b"fox"], (1, 2))],
        (2, 2),
        f"{'Not' * (operator != 'EQUAL')}EqualOptions",
        dtype=np.bool_,
    )
    check(g.build([y]), [b"the", b"the", b"", b"fox"])


def test_moved_strings_are_read_by_what_follows():
    g = graphs.Graph()
    x = g.op("GATHER", [string_input(g, (4,)), ints(g, [3])], (1,), "GatherOptions")
    g.tensors[x.index].type = STRING
    y = g.op("SKIP_GRAM", [x], (1,), "SkipGramOptions", tensor_type=STRING, ngramSize=2, maxSkipSize=1)
    check(g.build([y]), [b"a", b"b", b"c", b"the quick brown fox"])


def test_strings_do_not_become_numbers():
    g = graphs.Graph()
    y = g.op("GATHER", [string_input(g, (4,)), ints(g, [3])], (1,), "GatherOptions", dtype=np.int32)
    with pytest.raises(own_interpreter.Error, match="output 0 is declared as int32, but is string"):
        own_interpreter.Interpreter(g.build([y]))


def test_strings_are_gathered_out_of_vectors_only():
    g = graphs.Graph()
    y = g.op("GATHER", [string_input(g, (2, 2)), ints(g, [1])], (1, 2), "GatherOptions", tensor_type=STRING)
    with pytest.raises(own_interpreter.Error, match="which are no vector"):
        own_interpreter.Interpreter(g.build([y]))
