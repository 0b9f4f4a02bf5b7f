"""Random graphs in LiteRT: the delegate against LiteRT's reference kernels, integers to the bit.

FUSELITE_RANDOM_GRAPHS says how many graphs of each type (100), FUSELITE_SEED the first one's seed (0).
"""

import os

import numpy as np
import pytest
from ai_edge_litert import interpreter as litert

import random_graphs
import running

ISAS = ["scalar", "ssse3", "avx2", "avxvnni", "avx512", "avx512vnni"]
# Of a float output's largest element: chains of up to eight patterns add up the errors of each.
FLOAT_BOUND = 2e-5


def run(model, inputs, delegates=()):
    """The outputs of the second of two invokes."""
    interpreter = litert.Interpreter(
        model_content=model,
        experimental_op_resolver_type=running.Resolver.BUILTIN_REF,
        experimental_delegates=list(delegates),
    )
    interpreter.allocate_tensors()
    inputs = inputs or running.random_inputs(interpreter, 1)
    running.run(interpreter, inputs)
    return interpreter, inputs, running.run(interpreter, inputs)


def difference(actual, expected):
    """What is wrong with one output; None where nothing is."""
    if actual.dtype != np.float32:
        wrong = (actual != expected).sum()
        return f"{wrong} of {actual.size} elements differ" if wrong else None
    finite = np.isfinite(expected)
    if not np.array_equal(np.nan_to_num(actual[~finite]), np.nan_to_num(expected[~finite])):
        return "other values that are not finite"
    largest = np.abs(expected[finite]).max(initial=1)
    error = np.abs(actual[finite].astype(np.float64) - expected[finite]).max(initial=0)
    return None if error <= FLOAT_BOUND * largest else f"off by {error:g} of {largest:g}"


def problems(seed, dtype, load_delegate):
    """(what differs and where, whether the delegate took part); None where LiteRT refuses the graph."""
    graph = random_graphs.RandomGraph(seed, dtype).grow()
    if not graph.g.operators:
        return None
    model = graph.model()
    try:
        _, inputs, expected = run(model, None)
    except RuntimeError:
        return None
    rng, found = np.random.default_rng(seed), []
    switched = {
        "isa": ISAS[rng.integers(len(ISAS))],
        "jit": ["on", "off"][rng.integers(2)],
        "fusion": ["on", "off"][rng.integers(2)],
        "num_threads": int(rng.integers(1, 3)),
    }
    for options in ({}, switched):
        interpreter, _, actual = run(model, inputs, [load_delegate(**options)])
        for i, (a, e) in enumerate(zip(actual, expected, strict=True)):
            wrong = difference(a, e)
            if wrong:
                lines = "\n  ".join(graph.g.text)
                found.append(
                    f"seed {seed}, {dtype.__name__}, {options}, output {i} {list(e.shape)}: {wrong}\n  {lines}"
                )
    return found, running.delegate_kernels(interpreter) > 0


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.uint8])
def test_random_graphs_have_the_references_outputs(dtype, load_delegate):
    first, count = int(os.environ.get("FUSELITE_SEED", 0)), int(os.environ.get("FUSELITE_RANDOM_GRAPHS", 100))
    results = [problems(seed, dtype, load_delegate) for seed in range(first, first + count)]
    results = [result for result in results if result is not None]
    assert "\n".join(text for found, _ in results for text in found) == ""
    assert len(results) >= 0.9 * count
    assert sum(taken for _, taken in results) >= 0.9 * len(results)
