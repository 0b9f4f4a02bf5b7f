#!/usr/bin/env python3
"""Resizes the inputs of single operators in LiteRT: with the delegate what LiteRT takes alone shall be taken, too.

    resizes_run.py --count 5 --seed 0 --operators CONV_2D,BATCH_MATMUL

Each case of operator_cases runs with its own shapes and then with others: every dimension of every input, alone and
with those of the same size in other inputs, becomes 0, 1, 2, one more, and more than twice as large. Runs are children
of this process, since LiteRT's kernels do not check everything. Prints a line for each case whose delegate failed or
gave something else; the exit status is 1 if there was any. The last line counts the resizes that LiteRT took.
"""

import argparse
import os
import pathlib
import pickle
import re
import signal
import sys

import numpy as np
import operator_cases
import running
import test_operators
from ai_edge_litert import interpreter as litert

BUILT = pathlib.Path(__file__).resolve().parents[2] / "build" / "release" / "partitioner" / "libfuselite_delegate.so"
LIMIT_S = 60  # of a child
MOST = 60  # resizes of a case

# Where LiteRT's kernels overlook an error and the delegate reports it.
OVERLOOKED = [
    "does not divide into rows of",  # FULLY_CONNECTED leaves out the rest of the input
    "rows by shuffled weights, which are for",  # nothing is written
    "a product of no quantized values",  # the output is what was there before
    # Reads or writes beyond a tensor.
    r"operands of \[",
    r"a diagonal of ",
    "BIDIRECTIONAL_SEQUENCE_RNN .* (an auxiliary input that fits to neither cell|input [59] has shape)",
    r"updates of \[",
    r"a slice of \d+ along dimension",
    r"vectors of \d+ indices along dimension",
    r"length -?\d+ of sequence \d+ exceeds",
    r"index -?\d+ is out of dimension",
    # LiteRT's Python interface shows no dynamic tensor that lost its elements (test_dynamic_shapes.py).
    "^Invalid tensor size",
]
# Outputs that LiteRT leaves as they were: sums of no quantized values, the copy of the input in another order.
UNWRITTEN = ["SUM of quantized values", "FULLY_CONNECTED, shuffled"]


def in_child(function):
    """What it returns; a string where the child died."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        signal.alarm(LIMIT_S)
        with open(os.devnull, "w") as quiet:
            os.dup2(quiet.fileno(), 2)
        with os.fdopen(write, "wb") as pipe:
            pickle.dump(function(), pipe)
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        data = pipe.read()
    status = os.waitpid(pid, 0)[1]
    return pickle.loads(data) if data else f"died: {status}"


def fill(value, shape):
    """The value's elements, as often as they fit."""
    return np.resize(value, shape) if value.size and np.prod(shape) else np.zeros(shape, value.dtype)


def outcomes(make, feeds, plans):
    """Of each plan, the shapes of the inputs: the outputs, or the error as a string."""

    def invoke(interpreter, values):
        for detail, value in zip(interpreter.get_input_details(), values, strict=True):
            interpreter.set_tensor(detail["index"], value)
        interpreter.invoke()
        return [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]

    results, interpreter = [], make()
    invoke(interpreter, feeds)
    for shapes in plans:
        try:
            for detail, shape in zip(interpreter.get_input_details(), shapes, strict=True):
                interpreter.resize_tensor_input(detail["index"], list(shape))
            interpreter.allocate_tensors()
            interpreter.reset_all_variables()
            results.append(invoke(interpreter, [fill(f, s) for f, s in zip(feeds, shapes, strict=True)]))
        except (RuntimeError, ValueError) as error:
            results.append(str(error))
            interpreter = make()
    return results


def outcomes_of_all(make, feeds, plans):
    """As outcomes(), one child for each plan where one for all dies."""
    together = in_child(lambda: outcomes(make, feeds, plans))
    if not isinstance(together, str):
        return together
    alone = [in_child(lambda plan=plan: outcomes(make, feeds, [plan])) for plan in plans]
    return [one if isinstance(one, str) else one[0] for one in alone]


def resizes(feeds, rng):
    """Up to MOST lists of shapes."""
    shapes = [f.shape for f in feeds]
    plans = []

    def with_others(i, d, size, which):
        """Dimension d of input i, and those of its size that `which` picks by their places from the front and the end."""
        old, plan = shapes[i][d], [list(s) for s in shapes]
        for j, s in enumerate(shapes):
            for e in range(len(s)):
                if (j, e) == (i, d) or (s[e] == old and which(e - d, (len(s) - e) - (len(shapes[i]) - d))):
                    plan[j][e] = size
        return [tuple(s) for s in plan]

    for i, shape in enumerate(shapes):
        for d, old in enumerate(shape):
            for size in {0, 1, 2, old + 1, 2 * old + 1} - {old}:
                for which in (lambda f, e: False, lambda f, e: f == 0, lambda f, e: e == 0):
                    plan = with_others(i, d, size, which)
                    if plan not in plans:
                        plans.append(plan)
    return [plans[i] for i in sorted(rng.permutation(len(plans))[:MOST])]


def problem(actual, expected, case):
    """What is wrong with an outcome; None where nothing is."""
    if isinstance(actual, str):
        return None if any(re.search(pattern, actual.replace("fuselite: ", "")) for pattern in OVERLOOKED) else actual
    if case.name in UNWRITTEN:
        return None
    with np.errstate(all="ignore"):
        found = [test_operators.difference(a, e, case) for a, e in zip(actual, expected, strict=True)]
    return next((f for f in found if f and "nan of nan" not in f), None)


def check(name, seed, delegate):
    """Prints what is wrong with a case; how many resizes LiteRT took, and how many were wrong."""
    case = operator_cases.Case(name, seed)
    model, feeds = case.model(), [case.feeds[value.index] for value in case.g.inputs]
    kernels = test_operators.resolver(case, model)
    plans = resizes(feeds, np.random.default_rng(seed))
    alone = outcomes_of_all(lambda: running.interpret(model, [], kernels), feeds, plans)
    taken = [(plan, outcome) for plan, outcome in zip(plans, alone) if not isinstance(outcome, str)]

    def delegated():
        return running.interpret(model, [litert.load_delegate(str(delegate))], kernels)

    actual = outcomes_of_all(delegated, feeds, [plan for plan, _ in taken])
    wrong = 0
    for (plan, expected), outcome in zip(taken, actual, strict=True):
        text = problem(outcome, expected, case)
        if text is not None:
            wrong += 1
            print(f"{name}, seed {seed}, {[f.shape for f in feeds]} to {plan}: {text}", flush=True)
    return len(taken), wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=5, help="cases of each operator")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--operators", default=",".join(n.replace(",", ";") for n in operator_cases.CASES))
    parser.add_argument("--delegate", default=BUILT)
    arguments = parser.parse_args()
    names = [n.replace(";", ",") for n in arguments.operators.split(",")]
    seeds = range(arguments.seed, arguments.seed + arguments.count)
    counts = [check(name, seed, arguments.delegate) for name in names for seed in seeds]
    taken, wrong = map(sum, zip(*counts))
    print(f"{taken} resizes, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
