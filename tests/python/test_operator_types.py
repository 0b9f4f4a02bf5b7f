"""Every row of the table of operators, each combination of types, against LiteRT on random parameters, with constant and
with run-time operands.

The cases of `operator_cases` draw operators and types; here each row of docs/operators.md finds those that drew it.
"""

import collections
import functools
import re

import operator_cases
import own_interpreter
import pytest
import running
from ai_edge_litert import schema_py_generated as schema
from operator_cases.case import Case
from operator_cases.typed import apply, given
from test_operators import check, second_run

SEEDS = 60  # of each case: enough to draw each of its types
PER_ROW = 3
TYPES = {code: name.lower() for name, code in vars(schema.TensorType).items() if not name.startswith("_")}
# Operators whose tests are elsewhere, and why they are not here.
ELSEWHERE = {
    "HASHTABLE": "strings and resources: test_strings.py",
    "HASHTABLE_FIND": "strings and resources: test_strings.py",
    "HASHTABLE_IMPORT": "strings and resources: test_strings.py",
    "HASHTABLE_SIZE": "strings and resources: test_strings.py",
    "SKIP_GRAM": "strings: test_strings.py",
    "MULTINOMIAL": "our own interpreter alone: test_random_numbers.py",
    "RANDOM_STANDARD_NORMAL": "our own interpreter alone: test_random_numbers.py",
    "RANDOM_UNIFORM": "our own interpreter alone: test_random_numbers.py",
    "Convolution2DTransposeBias": "LiteRT has no kernel of this name: test_custom_operators.py",
    "MaxPoolingWithArgmax2D": "LiteRT has no kernel of this name: test_custom_operators.py",
    "MaxUnpooling2D": "LiteRT has no kernel of this name: test_custom_operators.py",
    "TFLite_Detection_PostProcess": "test_custom_operators.py",
    "AudioSpectrogram": "test_custom_operators.py",
    "Mfcc": "test_custom_operators.py",
    "NumericVerify": "test_custom_operators.py",
    "FlexAcos": "LiteRT has no kernel of this name: test_tensorflow_operators.py",
    "FlexAcosh": "LiteRT has no kernel of this name: test_tensorflow_operators.py",
    "FlexAsin": "LiteRT has no kernel of this name: test_tensorflow_operators.py",
    "FlexAsinh": "LiteRT has no kernel of this name: test_tensorflow_operators.py",
    "FlexAtan": "LiteRT has no kernel of this name: test_tensorflow_operators.py",
    "FlexAtanh": "LiteRT has no kernel of this name: test_tensorflow_operators.py",
    "FlexAvgPool3D": "LiteRT has no kernel of this name: test_tensorflow_operators.py",
    "FlexCosh": "LiteRT has no kernel of this name: test_tensorflow_operators.py",
    "FlexErf": "LiteRT has no kernel of this name: test_tensorflow_operators.py",
    "FlexErfc": "LiteRT has no kernel of this name: test_tensorflow_operators.py",
    "FlexExpm1": "LiteRT has no kernel of this name: test_tensorflow_operators.py",
    "FlexExtractImagePatches": "LiteRT has no kernel of this name: test_tensorflow_operators.py",
    "FlexInv": "LiteRT has no kernel of this name: test_tensorflow_operators.py",
    "FlexIsFinite": "LiteRT has no kernel of this name: test_tensorflow_operators.py",
    "FlexIsInf": "LiteRT has no kernel of this name: test_tensorflow_operators.py",
    "FlexIsNan": "LiteRT has no kernel of this name: test_tensorflow_operators.py",
    "FlexLog1p": "LiteRT has no kernel of this name: test_tensorflow_operators.py",
    "FlexMaxPool3D": "LiteRT has no kernel of this name: test_tensorflow_operators.py",
    "FlexReciprocal": "LiteRT has no kernel of this name: test_tensorflow_operators.py",
    "FlexResizeBicubic": "LiteRT has no kernel of this name: test_tensorflow_operators.py",
    "FlexSelu": "LiteRT has no kernel of this name: test_tensorflow_operators.py",
    "FlexSinh": "LiteRT has no kernel of this name: test_tensorflow_operators.py",
    "FlexSoftplus": "LiteRT has no kernel of this name: test_tensorflow_operators.py",
    "FlexSoftsign": "LiteRT has no kernel of this name: test_tensorflow_operators.py",
    "FlexSplitV": "LiteRT has no kernel of this name: test_tensorflow_operators.py",
    "FlexTan": "LiteRT has no kernel of this name: test_tensorflow_operators.py",
}
# What must be constants, as the table says, and what the refusal says: LiteRT's, and ours.
CONSTANT = {"REDUCE_WINDOW": "IsConstantTensor", "BIDIRECTIONAL_SEQUENCE_LSTM": "auxiliary weights"}
# LiteRT reads the weights of these in Prepare, which ends its process where they are values of the run.
DIES_OF_RUN_TIME_WEIGHTS = {(name, "int8 × int8 × int8 → int8") for name in ("LSTM", "UNIDIRECTIONAL_SEQUENCE_LSTM")}
# What LiteRT takes since a version behind 2.3.0, with which this is tested; the C++ tests of the kernels do. Beside int16 values
# it reads weights of int4 as bytes, a convolution those of int2, beyond their end, and an SVDF's state of int8 as int16.
NOT_IN_LITERT = {
    "ADD": ["bfloat16 × bfloat16 → bfloat16"],
    "CONV_2D": ["float32 × int2 × float32 → float32"],
    "DEPTHWISE_CONV_2D": ["int16 × int4 × int64 → int16"],
    "DIV": ["float16 × float16 → float16", "bfloat16 × bfloat16 → bfloat16"],
    "EQUAL": ["bfloat16 × bfloat16 → bool"],
    "GREATER_EQUAL": ["bfloat16 × bfloat16 → bool"],
    "LESS_EQUAL": ["bfloat16 × bfloat16 → bool"],
    "MUL": ["bfloat16 × bfloat16 → bfloat16"],
    "NOT_EQUAL": ["bfloat16 × bfloat16 → bool"],
    "REDUCE_PROD": ["uint8 × int32 → uint8"],
    "SQUARED_DIFFERENCE": ["float16 × float16 → float16", "bfloat16 × bfloat16 → bfloat16"],
    "SUB": ["float16 × float16 → float16", "bfloat16 × bfloat16 → bfloat16"],
    "SVDF": ["int8 × int8 × int8 → int8"],
}


@functools.cache
def table_rows():
    """(operator, row of types) of the table, but for what rewrites make."""
    table = (own_interpreter.ROOT / "docs" / "operators.md").read_text().split("## Made by rewrites")[0]
    found = re.findall(r"^\| (\w+) \| \S+ \| (.*?) \|", table, re.MULTILINE)
    return [(name, row) for name, types in found if name != "operator" for row in types.split("<br>")]


def rows():
    """Those of table_rows() that LiteRT computes and that are tested here."""
    return [(name, row) for name, row in table_rows() if name not in ELSEWHERE and row not in NOT_IN_LITERT.get(name, ())]


def test_what_is_left_out_is_in_the_table():
    rows_of = collections.defaultdict(set)
    for name, row in table_rows():
        rows_of[name].add(row)
    assert set(ELSEWHERE) <= set(rows_of)
    assert all(set(left_out) <= rows_of[name] for name, left_out in NOT_IN_LITERT.items())


SHORT = [(name, row) for name, left_out in NOT_IN_LITERT.items() for row in left_out if "float16" in row]


@pytest.mark.parametrize("name, row", SHORT)
def test_litert_refuses_short_floats(name, row):
    kind, _, _, _, result = row.split()
    options = f"{name.title()}Options" if name in ("ADD", "DIV", "MUL", "SUB") else None

    def grow(c):
        return apply(c, name, [given(c, (4,), kind), given(c, (4,), kind)], (4,), result, options)

    drawn_case = Case(name, grow, 0)
    with pytest.raises(RuntimeError, match="support"):
        second_run(running.interpret(drawn_case.model()), list(drawn_case.feeds.values()))


def fits(row, inputs, outputs):
    if "→" not in row:
        return True
    sides = [part.split(" × ") for part in row.split(" → ")]
    return all(wanted in ("any", given) for side, types in zip(sides, (inputs, outputs)) for wanted, given in zip(side, types))


@functools.cache
def drawn():
    """For each operator what was drawn of it: (types of the inputs, of the outputs, case, seed, has constants)."""
    found = collections.defaultdict(list)
    for name in operator_cases.CASES:
        for seed in range(SEEDS):
            g = operator_cases.Case(name, seed).g
            codes = {index: code for (code, _), index in g.codes.items()}
            for operator in g.operators:
                inputs = [TYPES[g.tensors[i].type] if i >= 0 else "none" for i in operator.inputs]
                outputs = [TYPES[g.tensors[i].type] for i in operator.outputs]
                constant = any(i >= 0 and g.tensors[i].buffer for i in operator.inputs)
                found[codes[operator.opcodeIndex]].append((inputs, outputs, name, seed, constant))
    return found


@functools.cache
def ranks():
    """The ranks of the first input that the table allows, by operator."""
    table = (own_interpreter.ROOT / "docs" / "operators.md").read_text()
    found = re.findall(
        r"^\| (\w+) \| \S+ \| .*? \| (<= )?(\d+)(?: to (\d+)| (or more))?[^|]*\| (?:all|none)", table, re.MULTILINE
    )
    return {
        name: range(0 if most else int(least), 17 if more else int(last or least) + 1) for name, most, least, last, more in found
    }


def test_the_ranks_of_the_table_hold_what_is_drawn():
    for name in operator_cases.CASES:
        for seed in range(SEEDS):
            g = operator_cases.Case(name, seed).g
            codes = {index: code for (code, _), index in g.codes.items()}
            for operator in g.operators:
                code, first = codes[operator.opcodeIndex], operator.inputs[0]
                if code in ranks() and first >= 0:
                    assert len(g.tensors[first].shape) in ranks()[code], (code, g.tensors[first].shape)


def id_of(row):
    return " ".join(row).replace("→", "to").replace("×", "x")


@pytest.mark.parametrize("operator, row", rows(), ids=map(id_of, rows()))
def test_has_the_outputs_of_litert(operator, row, load_delegate, tmp_path):
    fitting = [
        (name, seed, constant) for inputs, outputs, name, seed, constant in drawn()[operator] if fits(row, inputs, outputs)
    ]
    assert fitting, "no case draws it"
    with_constants = [(name, seed, None) for name, seed, constant in fitting if constant][:PER_ROW]
    without = [(name, seed, None) for name, seed, constant in fitting if not constant][:PER_ROW]
    # What is drawn with the one kind of operands only is compared with the other, too.
    variants = {Case.with_run_time_operands: with_constants, Case.with_constant_operands: without}
    if (operator, row) in DIES_OF_RUN_TIME_WEIGHTS:
        del variants[Case.with_run_time_operands]
    if with_constants and without:
        variants = {}
    others = [
        (name, seed, change)
        for change, cases in variants.items()
        for name, seed, _ in cases
        if change(operator_cases.Case(name, seed))
    ]
    for name, seed, variant in with_constants + without + others:
        try:
            check(name, seed, load_delegate, tmp_path, variant)
        except Exception as error:
            wanted = CONSTANT.get(operator)
            if variant is Case.with_run_time_operands and wanted is not None and wanted in str(error):
                continue
            text = "\n  ".join(operator_cases.Case(name, seed).g.text)
            raise AssertionError(f"{name}, seed {seed}, {variant}: {error}\n  {text}") from error
