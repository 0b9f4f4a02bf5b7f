"""Shrinking: what is left of a graph is what the failure needs, and nothing else."""

import numpy as np
import pytest
import random_check
import random_shrink
import running
from ai_edge_litert import interpreter as litert


def case_of(seed, type_name):
    return random_shrink.Case.of(random_check.subject(seed, type_name))


def long_case(type_name, least=6):
    """The first graph of at least so many operators, and its seed."""
    for seed in range(200):
        try:
            case = case_of(seed, type_name)
        except (RuntimeError, ValueError):
            continue
        if len(case.names()) >= least:
            return case
    raise AssertionError(f"no {type_name} graph of {least} operators")


@pytest.mark.parametrize("type_name", ["float", "int8"])
def test_each_operator_alone_can_be_what_is_left(type_name):
    case = long_case(type_name)
    for name in set(case.names()):
        smaller = random_shrink.shrink(case, lambda c, name=name: name in c.names())
        assert smaller.names() == [name]
        # It still runs, with the values that the operators before it had given.
        interpreter = running.interpret(smaller.bytes)
        random_check.outputs_of(interpreter, smaller.inputs)
        assert len(smaller.bytes) <= len(case.bytes)


def test_a_pair_that_fails_together_stays_together():
    case = long_case("int8")
    first, last = case.names()[0], case.names()[-1]

    def fails(c):
        return {first, last} <= set(c.names())

    smaller = random_shrink.shrink(case, fails)
    assert fails(smaller) and len(smaller.names()) <= len(case.names())
    assert len(smaller.graph.outputs) == 1
    assert random_shrink.shrink(smaller, fails).names() == smaller.names()


def test_a_difference_is_shrunk_saved_and_differs_again(delegate_path, tmp_path):
    # Sums in another order: without any bound for floats, graphs with products differ from the reference.
    fails = random_shrink.differs(delegate_path, [("litert", {})], places=0)
    for seed in range(100):
        try:
            case = case_of(seed, "float")
        except (RuntimeError, ValueError):
            continue
        if len(case.names()) > 3 and fails(case):
            break
    smaller = random_shrink.shrink(case, fails)
    assert len(smaller.names()) < len(case.names())
    path = random_shrink.save(smaller, tmp_path, "found")
    inputs = np.load(path.with_suffix(".npz"))
    inputs = [inputs[f"input{i}"] for i in range(len(inputs.files))]
    expected = random_check.outputs_of(running.interpret(path.read_bytes()), inputs)
    delegate = litert.load_delegate(str(delegate_path), {})
    actual = random_check.outputs_of(running.interpret(path.read_bytes(), [delegate]), inputs)
    assert any((a != e).any() for a, e in zip(actual, expected, strict=True))


def test_a_process_that_ends_is_a_failure(tmp_path):
    broken = tmp_path / "delegate.so"
    broken.write_bytes(b"no library")
    assert random_shrink.differs(broken, [("litert", {})])(long_case("int8"))
