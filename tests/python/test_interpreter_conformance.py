"""The NN API's published vectors through our own interpreter, without a delegate.

FUSELITE_CONFORMANCE names a folder with index.csv, NAME.tflite and NAME.npz, whose tolerances are the index's:

    FUSELITE_CONFORMANCE=FOLDER .venv/bin/python -m pytest -s tests/python/test_interpreter_conformance.py
"""

import collections
import csv

import numpy as np

import own_interpreter


def difference(actual, expected, row):
    """What is wrong with an output; None where nothing is."""
    if actual.dtype != expected.dtype or actual.shape != expected.shape:
        return f"{actual.dtype}{list(actual.shape)}, expected {expected.dtype}{list(expected.shape)}"
    if expected.size == 0:
        return None
    a, e = actual.astype(np.float64), expected.astype(np.float64)
    with np.errstate(invalid="ignore"):
        off = np.where((a == e) | (np.isnan(a) & np.isnan(e)), 0.0, np.abs(a - e))
    if expected.dtype == np.float32:
        allowed = float(row["atol"]) + float(row["rtol"]) * np.abs(np.where(np.isfinite(e), e, 0))
    elif expected.dtype in (np.bool_, np.int32):
        allowed = 0
    else:
        allowed = float(row["qtol"])
    wrong = ~(off <= allowed)
    return f"{wrong.sum()} of {wrong.size} elements off, by up to {off.max():g}" if wrong.any() else None


def run(folder, row):
    """(verdict, note) of one vector: passed, unsupported or failed."""
    vectors = np.load(folder / f"{row['name']}.npz")
    try:
        interpreter = own_interpreter.Interpreter(folder / f"{row['name']}.tflite")
        outputs = interpreter.run([vectors[f"in{i}"] for i in range(len(interpreter.inputs()))])
    except own_interpreter.Error as error:
        verdict = "unsupported" if error.status == own_interpreter.UNSUPPORTED else "failed"
        return verdict, str(error)
    notes = [difference(output, vectors[f"out{i}"], row) for i, output in enumerate(outputs)]
    notes = [f"output {i}: {note}" for i, note in enumerate(notes) if note]
    return ("failed", "; ".join(notes)) if notes else ("passed", "")


def test_every_vector_passes(conformance):
    rows = [row for row in csv.DictReader((conformance / "index.csv").open())
            if "yes" in (row["litert_ref"], row["litert_opt"])]
    verdicts = {row["name"]: run(conformance, row) for row in rows}
    counts = collections.Counter(verdict for verdict, _ in verdicts.values())
    print(f"{counts['passed']} of {len(rows)} passed")
    assert [f"{name}: {note}" for name, (verdict, note) in verdicts.items() if verdict != "passed"] == []
