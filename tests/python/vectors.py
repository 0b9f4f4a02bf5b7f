"""Vectors: models of one or a few operators, each with inputs and the outputs that are right for them.

A folder of them has index.csv, NAME.tflite and NAME.npz (in0, in1, ..., out0, ...). The index has the tolerances, and whether LiteRT's
own kernels give the expected outputs. FUSELITE_CONFORMANCE names the NN API's published ones; a machine without them
draws its own."""

import csv

import numpy as np
import random_check
import running

COLUMNS = ["name", "tfl_ops", "types", "inputs", "atol", "rtol", "qtol", "litert_ref", "litert_opt"]
TYPE_NAMES = {"float32": "f32", "float16": "f16", "int8": "s8", "uint8": "u8", "int16": "s16", "int32": "i32", "int64": "i64"}
# Kinds of random graphs that keep nothing from one invoke to the next.
KINDS = ["int8", "uint8", "int16", "float", "hybrid", "integer", "rare", "shapes"]
OF_EACH_KIND = 80
# The part of a number of float16 by which it and its neighbour differ at most.
PLACE = 2.0**-10


def rows(folder):
    """Those of index.csv that LiteRT's own kernels compute as expected."""
    with open(folder / "index.csv", newline="") as file:
        return [row for row in csv.DictReader(file) if "yes" in (row["litert_ref"], row["litert_opt"])]


def load(folder, row):
    """(inputs, expected outputs) of a vector."""
    data = np.load(folder / f"{row['name']}.npz")
    return tuple([data[f"{of}{i}"] for i in range(sum(key.startswith(of) for key in data.files))] for of in ("in", "out"))


def difference(actual, expected, row):
    """What is wrong with one output, by the tolerances that the vector comes with; None where nothing is."""
    if actual.dtype != expected.dtype or actual.shape != expected.shape:
        return f"{actual.dtype}{list(actual.shape)} instead of {expected.dtype}{list(expected.shape)}"
    if not expected.size:
        return None
    a, e = actual.astype(np.float64), expected.astype(np.float64)
    with np.errstate(invalid="ignore"):
        off = np.where((a == e) | (np.isnan(a) & np.isnan(e)), 0.0, np.abs(a - e))
    if expected.dtype == np.float32:
        allowed = float(row["atol"]) + float(row["rtol"]) * np.abs(np.where(np.isfinite(e), e, 0))
    else:
        allowed = 0 if expected.dtype in (np.bool_, np.int32) else float(row["qtol"])
    wrong = ~(off <= allowed)
    return f"{wrong.sum()} of {wrong.size} elements off, by up to {off.max():g}" if wrong.any() else None


def draw(folder):
    """Writes vectors of random graphs, with the outputs of LiteRT's reference kernels."""
    drawn = []
    for kind in KINDS:
        for seed in range(OF_EACH_KIND):
            try:
                drawn.append(_draw_one(folder, kind, seed))
            except (RuntimeError, ValueError):
                continue  # LiteRT refuses some graphs
    with open(folder / "index.csv", "w", newline="") as file:
        index = csv.DictWriter(file, COLUMNS)
        index.writeheader()
        index.writerows(drawn)


def _draw_one(folder, kind, seed):
    subject, name = random_check.subject(seed, kind), f"{kind}_{seed}"
    expected = running.run(running.interpret(subject.model), subject.inputs)
    (folder / f"{name}.tflite").write_bytes(subject.model)
    values = {f"in{i}": value for i, value in enumerate(subject.inputs)} | {f"out{i}": y for i, y in enumerate(expected)}
    np.savez(folder / f"{name}.npz", **values)
    types = {value.dtype.name for value in (*subject.inputs, *expected)}
    return {
        "name": name,
        "tfl_ops": " ".join(sorted({operator for operator, _ in subject.graph.g.codes})),
        "types": " ".join(sorted(TYPE_NAMES.get(of, of) for of in types)),
        "inputs": len(subject.inputs),
        "atol": _tolerance(subject, expected),
        "rtol": (subject.graph.places or 0) * PLACE,
        "qtol": 0,
        "litert_ref": "yes",
        "litert_opt": "no",
    }


def _tolerance(subject, expected):
    """Of floats: a part of the largest element, more where the graph amplifies roundings. Integers have none."""
    floats = [y[np.isfinite(y)] for y in expected if y.dtype == np.float32]
    if not floats:
        return 0
    largest = max(np.abs(y).max(initial=1) for y in floats)
    slack = 0
    if subject.graph.dtype == np.float32:
        perturbation = random_check.PERTURBATION
        slack = max(random_check.slacks(subject.graph, subject.inputs, subject.expected, subject.rng, perturbation))
    return max(random_check.FLOAT_BOUND * largest, slack)
