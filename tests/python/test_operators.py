"""Single operators with random parameters: the delegate in LiteRT, and our own interpreter, against LiteRT's kernels.

FUSELITE_CASES says how many models of each operator (25), FUSELITE_SEED the first one's seed (0). LiteRT's reference
kernels are what is compared with; its others where an operator has none.
"""

import os

import numpy as np
import operator_cases
import own_interpreter
import pytest
import running

SEED, COUNT = int(os.environ.get("FUSELITE_SEED", 0)), int(os.environ.get("FUSELITE_CASES", 25))


def resolver(case, model):
    """LiteRT's reference kernels, unless they lack the operator or are wrong."""
    try:
        if case.reference:
            running.interpret(model)
            return running.Resolver.BUILTIN_REF
    except (RuntimeError, ValueError) as error:
        if "Didn't find op" not in str(error):
            raise
    return running.Resolver.BUILTIN_WITHOUT_DEFAULT_DELEGATES


def second_run(interpreter, feeds):
    """The outputs of the second of two invokes, which states of the first lead to."""
    for _ in range(2):
        for detail, value in zip(interpreter.get_input_details(), feeds, strict=True):
            interpreter.set_tensor(detail["index"], value)
        interpreter.invoke()
    return [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]


def difference(actual, expected, case):
    if actual.dtype != expected.dtype or actual.shape != expected.shape:
        return f"{actual.dtype}{list(actual.shape)} instead of {expected.dtype}{list(expected.shape)}"
    if case.exact or expected.dtype.kind not in "fc":
        near = np.abs(actual.astype(np.int64) - expected) <= case.steps if case.steps else actual == expected
        equal = near | ((actual != actual) & (expected != expected))
        return None if equal.all() else f"{(~equal).sum()} of {equal.size} elements differ"
    if not expected.size:
        return None
    off, largest = np.nanmax(np.abs(actual - expected)), np.nanmax(np.abs(expected))
    return None if off <= case.tolerance * max(1.0, largest) else f"off by {off:g} of {largest:g}"


def check(name, seed, load_delegate, folder, variant=None):
    """The case as it is drawn, or the variant that a method of its makes of it."""
    case = operator_cases.Case(name, seed)
    if variant is not None:
        variant(case)
    model = case.model()
    kernels, feeds = resolver(case, model), [case.feeds[value.index] for value in case.g.inputs]
    expected = second_run(running.interpret(model, kernels=kernels), feeds)
    explain = folder / "explain.json"
    hosted = running.interpret(model, [load_delegate(explain_file=explain)], kernels)
    left = [node["reason"] for node in running.explanation(explain)["nodes"] if not node["claimed"]]
    assert not left, left
    outputs = {"in LiteRT": second_run(hosted, feeds)}
    own = own_interpreter.Interpreter(model)
    own.run(feeds)
    outputs["in our interpreter"] = own.run(feeds)
    for host, actual in outputs.items():
        problems = [difference(a, e, case) for a, e in zip(actual, expected, strict=True)]
        assert problems == [None] * len(problems), host
    return case


@pytest.mark.parametrize("name", sorted(operator_cases.CASES))
def test_has_the_outputs_of_litert(name, load_delegate, tmp_path):
    for seed in range(SEED, SEED + COUNT):
        try:
            check(name, seed, load_delegate, tmp_path)
        except Exception as error:
            text = "\n  ".join(operator_cases.Case(name, seed).g.text)
            raise AssertionError(f"{name}, seed {seed}: {error}\n  {text}") from error
