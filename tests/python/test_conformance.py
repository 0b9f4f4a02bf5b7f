"""The conformance vectors, each a model of one or a few operators with its expected outputs, with the delegate applied."""

import collections
import csv

import numpy as np

import running


def vectors(folder):
    """The rows of index.csv that LiteRT's own kernels compute as expected."""
    with open(folder / "index.csv", newline="") as file:
        return [row for row in csv.DictReader(file) if "yes" in (row["litert_ref"], row["litert_opt"])]


def difference(actual, expected, row):
    """What is wrong with one output, by the tolerances that the vector comes with; None where nothing is."""
    if actual.dtype != expected.dtype or actual.shape != expected.shape:
        return f"{actual.dtype}{list(actual.shape)} instead of {expected.dtype}{list(expected.shape)}"
    if not expected.size or expected.dtype == np.bool_:
        return None if np.array_equal(actual, expected) else "other values"
    a, e = actual.astype(np.float64), expected.astype(np.float64)
    error = np.where((a == e) | (np.isnan(a) & np.isnan(e)), 0.0, np.abs(a - e))
    if expected.dtype == np.float32:
        tolerance = float(row["atol"]) + float(row["rtol"]) * np.abs(np.where(np.isfinite(e), e, 0))
    else:
        tolerance = 0 if expected.dtype == np.int32 else float(row["qtol"])
    return None if (error <= tolerance).all() else f"off by up to {np.max(error)}"


def check(folder, row, delegate):
    """(what is wrong or None, whether the delegate took part) of one vector."""
    data = np.load(folder / f"{row['name']}.npz")
    interpreter = running.delegated(folder / f"{row['name']}.tflite", delegate)
    inputs = [data[f"in{i}"] for i in range(len(interpreter.get_input_details()))]
    outputs = running.run(interpreter, inputs)
    problems = [difference(output, data[f"out{i}"], row) for i, output in enumerate(outputs)]
    return next((p for p in problems if p), None), running.delegate_kernels(interpreter) > 0


def test_all_vectors_pass(load_delegate, conformance):
    delegate = load_delegate()
    failures, taken = [], collections.Counter()
    for row in vectors(conformance):
        problem, delegated = check(conformance, row, delegate)
        if problem:
            failures.append(f"{row['name']} ({row['tfl_ops']}): {problem}")
        taken[delegated] += 1
    assert failures == []
    print(f"{taken[True]} of {taken.total()} delegated")
    assert taken[True] >= 500
